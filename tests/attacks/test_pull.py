"""Attacks on a folder that `pull` updates: by its store, and by other processes that write to it meanwhile."""

import hashlib
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from countersign.archives.confinement import UNPRIVILEGED_ID
from countersign.cli.client import release_trust
from countersign.cli.client.release_trust import Pin
from countersign.updates import chunks, dsse, trust, varint
from countersign.updates import manifest as manifests
from countersign.updates.api_types import ChannelState, ChannelStatement, ChunkPlaces, Delta, Pack
from countersign.updates.deltas import apply, patch
from countersign.updates.deltas.apply import DeltaRefused, MemoryPiece
from countersign.updates.dsse import SigningKey
from countersign.updates.install import installer
from countersign.updates.install.fetch import ChunkFetcher, ContentMismatch
from countersign.updates.install.file_builder import MAX_FAILED_DELTAS
from countersign.updates.install.installer import PullOptions, PullReport
from countersign.updates.install.validate_manifest import ManifestRefused
from countersign.updates.install.workspace import WorkspaceRefused
from countersign.updates.manifest import Chunk
from tests.cli.conftest import Run, ScriptedServer, home, run, scripted
from tests.updates.builds import BuildServer, SampleBuild, build, contents_of

__all__ = ["home", "run", "scripted"]

OLD = build("1.0", {"tool": b"old " * 20_000, "same.txt": b"same", "text": b"words"})
NEW = build("2.0", {"tool": b"old " * 20_000 + b"new", "same.txt": b"same", "again": b"words"})
SIGNED = build("1.0", {"tool": b"old"})
SIGNED.manifest = msgspec.structs.replace(SIGNED.manifest, platform="linux")
ISSUED, EXPIRES = "2026-11-20T00:00:00.000Z", "2999-12-04T00:00:00.000Z"


def pull(folder: Path, shelf: BuildServer) -> PullReport:
    return installer.pull(folder, shelf.wanted.release(), shelf, PullOptions())


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A folder with the old version installed."""
    pull(tmp_path / "app", BuildServer(OLD))
    return tmp_path / "app"


@pytest.mark.parametrize("size", [4, 40])
def test_a_delta_whose_digest_is_a_path_touches_no_other_file(app: Path, tmp_path: Path, size: int) -> None:
    """A pull writes only to its folder and to the folder beside it, for any content of an unsigned answer."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    shelf = BuildServer(NEW, OLD)
    shelf.deltas = [msgspec.structs.replace(delta, sha256=str(victim), size=size) for delta in shelf.deltas]
    for delta in shelf.deltas:
        shelf.blobs[delta.url] = bytes(4) + b"appended" * 100

    pull(app, shelf)

    assert victim.read_bytes() == b"mine"
    assert contents_of(app) == dict(NEW.contents)


def with_chunk_sizes(sample_build: SampleBuild, *sizes: int) -> SampleBuild:
    """Return the same build, whose first file claims chunks of these sizes."""
    all_chunks = [*sample_build.manifest.chunks, *(Chunk(f"{number:064x}", size) for number, size in enumerate(sizes))]
    first_file = sample_build.manifest.files[0]
    chunk_positions = [len(sample_build.manifest.chunks) + number for number in range(len(sizes))]
    file = msgspec.structs.replace(first_file, size=sum(sizes), chunks=chunk_positions)
    changed_manifest = msgspec.structs.replace(
        sample_build.manifest, files=[file, *sample_build.manifest.files[1:]], chunks=all_chunks
    )
    return SampleBuild(sample_build.version, sample_build.contents, changed_manifest, sample_build.frames)


@pytest.mark.parametrize("sizes", [(64 << 30,), (-1, 101), (0,), (chunks.MAX_BYTES + 1,)])
def test_a_chunk_that_unpacks_to_more_than_any_chunk_has_is_refused(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    """A signed manifest does not decide how much memory a client uses."""
    with pytest.raises(ManifestRefused):
        pull(tmp_path / "app", BuildServer(with_chunk_sizes(NEW, *sizes)))


@pytest.mark.parametrize(
    "change", [{"mode": 0o4755}, {"mode": 0o666}, {"size": 3}, {"size": -1, "chunks": []}, {"size": 1 << 50}], ids=str
)
def test_a_manifest_that_contradicts_itself_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    """It is refused before anything is downloaded or written."""
    first_file, *other_files = NEW.manifest.files
    changed_manifest = msgspec.structs.replace(
        NEW.manifest, files=[msgspec.structs.replace(first_file, **change), *other_files]
    )

    with pytest.raises(ManifestRefused):
        pull(tmp_path / "app", BuildServer(SampleBuild("2.0", NEW.contents, changed_manifest, NEW.frames)))


def test_another_product_does_not_replace_the_installed_product(app: Path) -> None:
    """A wrong product name replaces nothing in the folder."""
    changed_manifest = msgspec.structs.replace(NEW.manifest, product_id="0200", product="other")

    with pytest.raises(WorkspaceRefused):
        pull(app, BuildServer(SampleBuild("2.0", NEW.contents, changed_manifest, NEW.frames)))

    assert contents_of(app) == dict(OLD.contents)


class EndlessServer(BuildServer):
    """A store that never stops sending."""

    def read(self, url: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield the range, and more bytes than requested."""
        yield from super().read(url, offset, length)
        for _ in range(1000):
            yield bytes(1 << 20)
        pytest.fail("everything was taken")


def test_no_more_bytes_are_read_than_were_requested(app: Path) -> None:
    """The client stops reading although the store continues to send."""
    with pytest.raises(ContentMismatch, match="more"):
        pull(app, EndlessServer(NEW))


def test_chunks_declared_as_overlapping_are_refused() -> None:
    """The memory for a download is limited by the requested bytes, for any number of chunks that the store claims."""
    names = [f"{number:064x}" for number in range(1000)]
    pack = Pack("pack:0", 1 << 20, [(name, 0, chunks.MAX_BYTES) for name in names])
    chunk_places = ChunkPlaces([pack], "artifact:0", 1, "0" * 64, "build.tar")

    with pytest.raises(ContentMismatch, match="chunk location"):
        ChunkFetcher(BuildServer(NEW), chunk_places, dict.fromkeys(names, 1), set(names), lambda count: None)


class SlowServer(BuildServer):
    """A slow store: while it answers, another process changes something."""

    meddle: Callable[[], object] = staticmethod(lambda: None)

    def places(self, *, is_start: bool = False) -> ChunkPlaces:
        """Return the answer, late."""
        self.meddle()
        return super().places(is_start=is_start)


@pytest.mark.parametrize("name", ["same.txt", "text"])
def test_the_next_pull_finds_changes_made_during_a_pull(app: Path, name: str) -> None:
    """The pull records the size and the time of a file at the moment in which it checks the file."""
    shelf = SlowServer(NEW)
    shelf.meddle = lambda: (app / name).write_bytes(b"evil")
    pull(app, shelf)

    pull(app, BuildServer(NEW))

    assert contents_of(app) == dict(NEW.contents)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may write what others own")
def test_root_installs_nothing_into_a_folder_of_another_user(app: Path) -> None:
    """The owner of the folder could change links in it while root writes."""
    os.chown(app, UNPRIVILEGED_ID, UNPRIVILEGED_ID)

    with pytest.raises(WorkspaceRefused):
        pull(app, BuildServer(NEW))


MOUNTED = """
import subprocess, sys
from pathlib import Path
from countersign.updates.install.workspace import WorkspaceRefused
from tests.attacks.test_pull import NEW, pull
from tests.updates.builds import BuildServer

app, volume = Path(sys.argv[1]), Path(sys.argv[2])
subprocess.run(["mount", "--bind", volume, app / "my saves"], check=True)
try:
    pull(app, BuildServer(NEW))
except WorkspaceRefused as refused:
    print("refused", refused.detail)
"""


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="mounting takes root and unshare")
def test_a_disk_that_is_mounted_inside_of_an_installation_is_not_emptied(app: Path, tmp_path: Path) -> None:
    """The user's own files in the folder are kept, even when they are on another disk."""
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "save").write_text("precious")
    (app / "my saves").mkdir()
    paths = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])}
    command = ["unshare", "--mount", sys.executable, "-c", MOUNTED, app, volume]

    result = subprocess.run(command, env={**os.environ, **paths}, capture_output=True, text=True, check=False)

    if "mount" in result.stderr and "permission denied" in result.stderr.lower():
        pytest.skip("nothing may be mounted here")
    assert (volume / "save").read_text() == "precious"
    assert "my saves is a file system" in result.stdout, result.stderr


def test_two_pulls_at_once_lose_no_pin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An accepted key stays pinned: a second first use would accept any key."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    key = dsse.new_signing_key().public
    begin = threading.Barrier(8)

    def pin(org: str) -> None:
        begin.wait()
        release_trust.store_pin("http://store", org, Pin(key, {"p/stable": 1}))

    threads = [threading.Thread(target=pin, args=(f"org-{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [release_trust.load_pin("http://store", f"org-{number}") is None for number in range(8)] == [False] * 8


def test_a_slow_pull_does_not_lower_the_counter_that_a_faster_pull_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest known state of a channel is the minimum that any pull accepts."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    key = dsse.new_signing_key().public
    release_trust.store_pin("http://store", "north", Pin(key, {"p/stable": 9, "q/stable": 3}))

    release_trust.store_pin("http://store", "north", Pin(key, {"p/stable": 8}))

    pinned = release_trust.load_pin("http://store", "north")
    assert pinned is not None
    assert pinned.counters == {"p/stable": 9, "q/stable": 3}


def offer_release(script: ScriptedServer, sample_build: SampleBuild, state: ChannelState, by: SigningKey) -> None:
    """Answer a pull that requests the build by name, like a store whose manifest is signed by `by`."""
    manifest = sample_build.manifest
    member: dict[str, object] = {"id": manifest.product_id, "slug": manifest.product, "title": "x", "kind": "tool"}
    script.say(200, {**member, "platforms": [], "org": manifest.org})
    script.say(200, msgspec.to_builtins(state))
    script.say(200, msgspec.to_builtins(dsse.sign(manifests.PAYLOAD_TYPE, sample_build.payload, by)))
    script.say(200, msgspec.to_builtins(BuildServer(sample_build).places()))


def state_of(chain: list[SigningKey], signs: SigningKey) -> ChannelState:
    """Return the channel of SIGNED's product at 9.0, with a chain of keys."""
    manifest = SIGNED.manifest
    statement = ChannelStatement(
        manifest.org, manifest.product_id, manifest.product, "stable", "9.0", {}, 5, ISSUED, EXPIRES
    )
    pairs = itertools.pairwise(chain)
    rotations = [trust.sign_rotation(manifest.org, old, new.public, ISSUED) for old, new in pairs]
    return ChannelState(trust.sign_statement(statement, signs), chain[0].public, rotations)


def test_folders_in_folders_beyond_any_use_are_refused_before_anything_is_changed(app: Path) -> None:
    # Outside pytest's folders, because pytest could not remove it after a run that was killed here.
    apart = Path(tempfile.mkdtemp(prefix="countersign-deep-"))
    deep = app = Path(shutil.move(app, apart))
    try:
        for _ in range(1_200):
            deep /= "a"
            deep.mkdir()
        (deep / "mine").write_bytes(b"mine")
        with pytest.raises(WorkspaceRefused, match="folders"):
            pull(app, BuildServer(NEW, OLD))

        assert (deep / "mine").read_bytes() == b"mine"
        assert (app / "text").read_bytes() == OLD.contents["text"]
    finally:
        # Some versions of Python cannot remove such deep folders.
        subprocess.run(["rm", "-r", apart], check=True)


@pytest.fixture
def dry_pull(run: Run, scripted: Callable[[], ScriptedServer], tmp_path: Path) -> Callable[..., str]:
    """Pull SIGNED by its name with --dry-run, and return the error, or nothing when the pull would succeed."""
    script = scripted()

    def pull_signed(state: ChannelState, by: SigningKey) -> str:
        script.answers.clear()
        offer_release(script, SIGNED, state, by)
        ended_result = run(
            *("pull", "toolsmith/bench", tmp_path / "app", "--server", script.url),
            *("--version", "1.0", "--platform", "linux", "--dry-run"),
        )
        return ended_result.stderr if ended_result.returncode else ""

    return pull_signed


def test_a_key_inserted_before_the_pinned_key_is_not_trusted(dry_pull: Callable[..., str]) -> None:
    """A client with a pinned key accepts it and the keys that it named, and no key that claims to have named it."""
    publisher, thief = dsse.new_signing_key(), dsse.new_signing_key()
    assert dry_pull(state_of([publisher], publisher), publisher) == ""

    refusal = dry_pull(state_of([thief, publisher], publisher), thief)

    assert "signature_refused" in refusal or "no valid signature" in refusal


def test_a_build_signed_with_a_former_key_is_trusted_by_clients_that_pinned_that_key(
    dry_pull: Callable[..., str],
) -> None:
    """Builds are signed once, so the builds of a replaced key remain valid."""
    first_key, second_key, third_key = (dsse.new_signing_key() for _ in range(3))
    assert dry_pull(state_of([first_key, second_key], second_key), first_key) == ""

    assert dry_pull(state_of([first_key, second_key, third_key], third_key), first_key) == ""
    assert dry_pull(state_of([first_key, second_key, third_key], third_key), second_key) == ""
    assert dry_pull(state_of([first_key, second_key, third_key], third_key), third_key) == ""


def forge_delta(new_size: int, covers: int, runs: int, *, old: bytes = b"old files") -> bytes:
    """Return a delta whose covers and runs of differences all have length 0."""
    lists = bytes(3 * covers), bytes(2 * runs), b"", b"x" * new_size, b""
    packed_lists = [patch.compress(numbers) for numbers in lists]
    head = [len(old), new_size, covers, runs]
    for stream in packed_lists:
        head += [stream.method, stream.size, len(stream.body)]
    return patch.MAGIC + varint.encode_numbers(head) + b"".join(stream.body for stream in packed_lists)


@pytest.mark.parametrize(
    ("covers", "runs"), [(10_000_000, 0), (0, 16_000_000), (1, 0), (0, 1)], ids=["covers", "runs", "a cover", "a run"]
)
def test_a_delta_has_no_more_pieces_than_bytes(covers: int, runs: int) -> None:
    """A delta of a hundred bytes took a client twenty seconds."""
    blob = forge_delta(100, covers, runs)

    with pytest.raises(DeltaRefused):
        [b"".join(pieces) for pieces in apply.contents(blob, [MemoryPiece(b"old files")], [100])]


def test_a_delta_unfolds_to_no_more_than_its_files_can_hold() -> None:
    """A delta with an impossible size is refused before anything is allocated."""
    unfolded = apply.contents(forge_delta(1 << 20, 0, 0), [MemoryPiece(b"old files")], [100])

    with pytest.raises(DeltaRefused, match="more bytes than the files have"):
        next(unfolded)


def test_after_a_few_unusable_deltas_the_other_deltas_are_not_fetched(tmp_path: Path) -> None:
    """Deltas are unsigned, and each may cost a client time."""
    old = build("1.0", {"tool": b"old " * 20_000})
    new = build("2.0", {f"file{number}": random.Random(number).randbytes(5_000) for number in range(10)})
    pull(tmp_path / "app", BuildServer(old))
    shelf = BuildServer(new, old)
    sizes = [1_000 + number for number in range(10)]
    shelf.deltas = [
        Delta(f"delta:{number}", size, hashlib.sha256(bytes(size)).hexdigest(), [(0, 1)], [(number, number + 1)], 0)
        for number, size in enumerate(sizes)
    ]
    shelf.blobs |= {f"delta:{number}": bytes(size) for number, size in enumerate(sizes)}

    report = pull(tmp_path / "app", shelf)

    assert contents_of(tmp_path / "app") == dict(new.contents)
    assert shelf.served["delta"] == sum(sizes[:MAX_FAILED_DELTAS])
    assert report.stats.detours[-1] == "skipped the other deltas"


@pytest.mark.parametrize(
    "address", ["http://[::1", f"http://{'a' * 70}.example/", "file:///etc/hostname", "http://a/ü"]
)
def test_an_invalid_address_is_reported_as_invalid(
    run: Run, scripted: Callable[[], ScriptedServer], tmp_path: Path, address: str
) -> None:
    """The addresses of the bytes are not signed."""
    script, publisher = scripted(), dsse.new_signing_key()
    offer_release(script, SIGNED, state_of([publisher], publisher), publisher)
    chunk_places = BuildServer(SIGNED).places()
    packs = [msgspec.structs.replace(pack, url=address) for pack in chunk_places.packs]
    script.answers.pop()
    script.say(200, msgspec.to_builtins(msgspec.structs.replace(chunk_places, packs=packs, artifact_url=address)))

    ended_result = run(
        *("pull", "toolsmith/bench", tmp_path / "app", "--server", script.url),
        *("--version", "1.0", "--platform", "linux"),
    )

    assert ended_result.returncode == 1
    assert "not http or https" in ended_result.stderr
    assert "Traceback" not in ended_result.stderr
