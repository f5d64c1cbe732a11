"""Installing, updating and healing a folder, with a store in memory and a real file system."""

import hashlib
import io
import lzma
import os
import random
import tarfile
from pathlib import Path

import msgspec
import pytest

from countersign.updates.install import fetch, installer, state, swap
from countersign.updates.install.fetch import ContentMismatch
from countersign.updates.install.installer import PullOptions, PullReport
from countersign.updates.install.workspace import side_folder
from countersign.updates.planner import UpdatePlan
from tests.updates.builds import BuildServer, SampleBuild, build, contents_of

CHANCE = random.Random(6)
BIG = CHANCE.randbytes(300_000)
OLD = build(
    "1.0",
    {"bin/tool": BIG, "lib/a.txt": b"a" * 5000, "lib/b.txt": b"bee", "gone.txt": b"gone", "empty": b""},
    executables=("bin/tool",),
    links={"tool": "bin/tool"},
    folders=("logs",),
)
NEW = build(
    "2.0",
    {
        "bin/tool": BIG[:100_000] + b"inserted" + BIG[100_000:],
        "lib/moved.txt": b"a" * 5000,
        "lib/b.txt": b"bee",
        "fresh.txt": b"fresh",
        "empty": b"",
    },
    executables=("bin/tool", "fresh.txt"),
    links={"tool": "bin/tool", "lib/again": "b.txt"},
)


def pull(
    folder: Path, shelf: BuildServer, *, counter: int = 1, verify: bool = False, dry_run: bool = False
) -> PullReport:
    """Pull the build of the shelf."""
    return installer.pull(folder, shelf.wanted.release(counter), shelf, PullOptions(verify=verify, dry_run=dry_run))


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A folder with the old version installed."""
    pull(tmp_path / "app", BuildServer(OLD))
    return tmp_path / "app"


def is_build(root: Path, sample_build: SampleBuild) -> bool:
    """Return whether the folder contains the build and nothing else."""
    modes = {file.path: (root / file.path).stat().st_mode & 0o777 for file in sample_build.manifest.files}
    links = {link.path: os.readlink(root / link.path) for link in sample_build.manifest.links}
    return (
        contents_of(root) == dict(sample_build.contents)
        and modes == {file.path: file.mode for file in sample_build.manifest.files}
        and links == {link.path: link.target for link in sample_build.manifest.links}
    )


def test_a_first_pull_installs_the_build_and_leaves_no_temporary_files(app: Path) -> None:
    assert is_build(app, OLD)
    assert (app / "logs").is_dir()
    assert sorted(path.name for path in app.parent.iterdir()) == ["app"]


@pytest.mark.parametrize("with_deltas", [True, False])
def test_an_update_gives_the_new_build(app: Path, with_deltas: bool) -> None:
    shelf = BuildServer(NEW, OLD if with_deltas else None)

    report = pull(app, shelf)

    assert is_build(app, NEW)
    assert not (app / "logs").exists()
    assert (report.former, report.version) == ("1.0", "2.0")
    assert set(shelf.served) == ({"delta"} if with_deltas else {"pack"})
    assert report.stats.fetched_bytes == sum(shelf.served.values())


def test_an_update_by_delta_fetches_a_fraction_of_what_chunks_cost(app: Path) -> None:
    shelf = BuildServer(NEW, OLD)

    pull(app, shelf)

    assert shelf.served["delta"] < 500


def test_unchanged_files_keep_their_inodes(app: Path) -> None:
    inode_before = (app / "lib/b.txt").stat().st_ino

    pull(app, BuildServer(NEW))

    assert (app / "lib/b.txt").stat().st_ino == inode_before


def test_a_build_of_one_file_costs_its_size_once(tmp_path: Path) -> None:
    """The artifact is the file, and smaller than its chunks: each byte is transferred once."""
    image = build("1.0", {"game.bin": BIG}, artifact=BIG)
    shelf = BuildServer(image)

    report = pull(tmp_path / "app", shelf)

    assert is_build(tmp_path / "app", image)
    assert shelf.served == {"artifact": len(BIG)}
    assert (report.stats.fetched_bytes, report.stats.detours) == (len(BIG), [])
    assert report.plan is not None
    assert report.plan.write_bytes == len(BIG)


def test_a_second_pull_does_nothing(app: Path) -> None:
    shelf = BuildServer(OLD)

    report = pull(app, shelf)

    assert not report.is_changed
    assert shelf.served == {}


def test_a_pull_reports_the_bytes_to_fetch_and_to_write_before_starting(app: Path) -> None:
    shelf = BuildServer(NEW, OLD)
    plans: list[tuple[UpdatePlan, int]] = []

    def announce(plan: UpdatePlan) -> None:
        plans.append((plan, sum(shelf.served.values())))

    report = installer.pull(app, NEW.release(), shelf, PullOptions(announce=announce))

    (plan, fetched_before) = plans[0]
    assert fetched_before == 0
    assert plan.fetch_bytes == report.stats.fetched_bytes
    assert plan.write_bytes >= len(NEW.contents["bin/tool"])


def test_a_dry_run_changes_nothing_and_leaves_nothing(app: Path) -> None:
    shelf = BuildServer(NEW, OLD)

    report = pull(app, shelf, dry_run=True)

    assert report.plan is not None
    assert is_build(app, OLD)
    assert shelf.served == {}
    assert not side_folder(app).exists()


def test_only_the_damaged_chunks_of_a_damaged_file_are_fetched(app: Path) -> None:
    damaged = bytearray(BIG)
    damaged[150_000] ^= 1
    (app / "bin/tool").write_bytes(damaged)
    shelf = BuildServer(OLD)

    report = pull(app, shelf)

    assert is_build(app, OLD)
    assert [(wound.path, wound.kind) for wound in report.corruptions] == [("bin/tool", "changed")]
    assert report.corruptions[0].offset <= 150_000 < report.corruptions[0].offset + report.corruptions[0].size
    assert 0 < shelf.served["pack"] < len(BIG) // 2


def test_a_change_that_keeps_size_and_time_is_found_by_verify(app: Path) -> None:
    path = app / "lib/a.txt"
    status_before = path.stat()
    path.write_bytes(b"b" * 5000)
    os.utime(path, ns=(status_before.st_atime_ns, status_before.st_mtime_ns))

    assert pull(app, BuildServer(OLD)).corruptions == []
    assert [wound.path for wound in pull(app, BuildServer(OLD), verify=True).corruptions] == ["lib/a.txt"]
    assert is_build(app, OLD)


def test_missing_files_wrong_modes_and_lost_links_are_healed(app: Path) -> None:
    (app / "gone.txt").unlink()
    (app / "bin/tool").chmod(0o600)
    (app / "tool").unlink()
    (app / "lib/b.txt").write_bytes(b"bee and more")

    report = pull(app, BuildServer(OLD))

    assert {wound.path: wound.kind for wound in report.corruptions} == {
        "gone.txt": "missing",
        "bin/tool": "mode",
        "tool": "link",
        "lib/b.txt": "extra-bytes",
    }
    assert is_build(app, OLD)


def test_files_added_by_the_user_are_carried_over(app: Path) -> None:
    (app / "saves").mkdir()
    (app / "saves/one").write_bytes(b"save")
    (app / "lib/mine.txt").write_bytes(b"mine")
    (app / "shortcut").symlink_to("/somewhere/else")

    report = pull(app, BuildServer(NEW, OLD))

    assert (app / "saves/one").read_bytes() == b"save"
    assert (app / "lib/mine.txt").read_bytes() == b"mine"
    assert os.readlink(app / "shortcut") == "/somewhere/else"
    assert report.aside == {}


def test_a_user_file_at_the_path_of_a_new_file_is_moved_and_kept(app: Path) -> None:
    (app / "fresh.txt").write_bytes(b"the user's own")

    report = pull(app, BuildServer(NEW))

    assert report.aside == {"fresh.txt": "fresh.txt.kept"}
    assert (app / "fresh.txt.kept").read_bytes() == b"the user's own"
    assert (app / "fresh.txt").read_bytes() == b"fresh"


def test_an_unmanaged_folder_is_adopted_without_losing_files(tmp_path: Path) -> None:
    app = tmp_path / "app"
    (app / "lib").mkdir(parents=True)
    (app / "lib/a.txt").write_bytes(b"a" * 5000)
    (app / "lib/b.txt").write_bytes(b"something else")

    report = pull(app, BuildServer(OLD))

    assert (app / "lib/b.txt.kept").read_bytes() == b"something else"
    assert report.aside == {"lib/b.txt": "lib/b.txt.kept"}
    (app / "lib/b.txt.kept").unlink()
    assert is_build(app, OLD)


@pytest.mark.parametrize("kind", ["delta", "artifact"])
def test_damaged_bytes_are_refused_and_the_files_are_made_from_another_source(app: Path, kind: str) -> None:
    shelf = BuildServer(build("2.0", NEW.contents, artifact=b"short"), OLD)
    if kind == "delta":
        shelf.wanted.manifest = build("2.0", NEW.contents).manifest
        shelf = BuildServer(NEW, OLD)
    blob = shelf.blobs[f"{kind}:0"]
    shelf.damage[f"{kind}:0"] = blob[:-1] + bytes([blob[-1] ^ 1])

    report = pull(app, shelf)

    assert contents_of(app) == dict(NEW.contents)
    assert "SHA-256" in report.stats.detours[0]
    assert shelf.served["pack"] > 0


def test_an_invalid_delta_is_refused_and_replaced_by_chunks(app: Path) -> None:
    shelf = BuildServer(NEW, OLD)
    delta = shelf.deltas[0]
    cut_delta = shelf.blobs["delta:0"][:20]
    shelf.blobs["delta:0"] = cut_delta
    shelf.deltas[0] = msgspec.structs.replace(delta, size=len(cut_delta), sha256=hashlib.sha256(cut_delta).hexdigest())

    pull(app, shelf)

    assert is_build(app, NEW)


def test_a_damaged_chunk_leaves_the_old_version(app: Path) -> None:
    shelf = BuildServer(NEW)
    shelf.damage["pack:0"] = b"\0" * len(shelf.blobs["pack:0"])

    with pytest.raises(ContentMismatch):
        pull(app, shelf)

    assert is_build(app, OLD)


def test_a_manifest_that_contradicts_itself_installs_nothing(app: Path) -> None:
    wanted_build = build("2.0", NEW.contents)
    lying = [msgspec.structs.replace(file, sha256="0" * 64) for file in wanted_build.manifest.files]
    wanted_build.manifest = msgspec.structs.replace(wanted_build.manifest, files=lying)

    with pytest.raises(ContentMismatch):
        pull(app, BuildServer(wanted_build))

    assert is_build(app, OLD)


@pytest.mark.parametrize("with_deltas", [True, False])
def test_an_interrupted_download_is_resumed(tmp_path: Path, with_deltas: bool) -> None:
    app = tmp_path / "app"
    old = build("1.0", {"data": CHANCE.randbytes(4_000_000)})
    new = build("2.0", {"data": CHANCE.randbytes(4_000_000) + old.contents["data"][:1000]})
    pull(app, BuildServer(old))
    shelf = BuildServer(new, old if with_deltas else None)
    download_size = len(shelf.blobs["delta:0"]) if with_deltas else len(shelf.blobs["pack:0"])
    shelf.cut_after = 3_000_000

    with pytest.raises(ConnectionResetError):
        pull(app, shelf)
    assert is_build(app, old)
    shelf.cut_after = None
    pull(app, shelf)

    assert is_build(app, new)
    assert sum(shelf.served.values()) < download_size + fetch.REQUEST_BYTES
    assert shelf.begun == 1


def test_the_store_is_informed_only_of_an_installation_or_update(tmp_path: Path) -> None:
    app, old, new = tmp_path / "app", BuildServer(OLD), BuildServer(NEW, OLD)

    pull(app, old, dry_run=True)
    assert old.begun == 0
    pull(app, old)
    pull(app, old)
    (app / next(iter(OLD.contents))).write_bytes(b"damaged")
    pull(app, old, verify=True)
    assert old.begun == 1
    pull(app, new)
    pull(app, new)

    assert is_build(app, NEW)
    assert new.begun == 1


def test_the_whole_artifact_is_downloaded_if_it_is_smaller(tmp_path: Path) -> None:
    contents = {f"src/{number}.txt": f"number {number}\n".encode() * 50 for number in range(200)}
    packed_stream = io.BytesIO()
    with tarfile.open(fileobj=packed_stream, mode="w") as archive:
        for path, data in contents.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    shelf = BuildServer(build("1.0", contents, artifact=lzma.compress(packed_stream.getvalue())))

    report = pull(tmp_path / "app", shelf)

    assert is_build(tmp_path / "app", shelf.wanted)
    assert report.stats.by_artifact == 200
    assert set(shelf.served) == {"artifact"}


def test_an_install_uses_two_renames_if_folders_cannot_be_exchanged(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swap, "exchange", lambda left, right: False)

    pull(app, BuildServer(NEW, OLD))

    assert is_build(app, NEW)
    assert not side_folder(app).exists()


def test_files_are_copied_if_hard_links_are_not_supported(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "no")

    monkeypatch.setattr(os, "link", refuse)

    pull(app, BuildServer(NEW, OLD))

    assert is_build(app, NEW)


def test_the_state_remembers_the_highest_counter(app: Path) -> None:
    pull(app, BuildServer(OLD), counter=7)
    pull(app, BuildServer(OLD), counter=3)

    install_state = state.read(app)
    assert install_state is not None
    assert install_state.state.counter == 7
