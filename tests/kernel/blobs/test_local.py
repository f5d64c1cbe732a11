"""The local directory of blobs with full disks, attacks, large files and kill -9."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from countersign.kernel.blobs.local import LocalBlobs
from countersign.kernel.blobs.port import BlobStore, ChecksumMismatch, Part
from countersign.kernel.errors import StorageFull, Unavailable
from tests.kernel import open_files
from tests.kernel.blobs.traffic import ConnectionCut, arriving, content, digest_of, sealed_in, staged_uploads

_MIB = 1024 * 1024


def _files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


@pytest.fixture
def small_volume(tmp_path: Path) -> Iterator[Path]:
    """A separate file system of 8 MiB."""
    if os.geteuid() != 0 or sys.platform != "linux":
        pytest.skip("a small volume is mounted as root on Linux alone")
    volume = tmp_path / "volume"
    volume.mkdir()
    mounted_result = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", volume],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted_result.returncode:
        pytest.skip(f"no small volume could be mounted: {mounted_result.stderr.strip()}")
    yield volume
    subprocess.run(["umount", "--lazy", volume], check=True)


async def test_a_volume_that_fills_up_keeps_nothing_of_the_call(small_volume: Path) -> None:
    blobs = LocalBlobs(small_volume, reserve_bytes=0)
    staged_part = await blobs.stage("kept", 0, arriving(b"k" * _MIB))
    free_blocks = os.statvfs(small_volume).f_bfree

    with pytest.raises(StorageFull):
        await blobs.stage("up", 0, arriving(bytes(16 * _MIB)))

    assert os.statvfs(small_volume).f_bfree == free_blocks
    assert [path.parent.name for path in _files(small_volume)] == ["kept"]
    assert await blobs.seal("kept", [staged_part], _MIB, None) == staged_part.sha256


async def test_sealing_onto_a_full_volume_keeps_the_parts_and_seals_nothing(small_volume: Path) -> None:
    blobs = LocalBlobs(small_volume, reserve_bytes=0)
    parts = [await blobs.stage("up", at * 3 * _MIB, arriving(bytes(3 * _MIB))) for at in range(2)]

    with pytest.raises(StorageFull):
        await blobs.seal("up", parts, 6 * _MIB, None)

    assert await sealed_in(blobs) == []
    assert [path.stat().st_size for path in _files(small_volume)] == [3 * _MIB, 3 * _MIB]


async def test_writing_is_refused_before_the_reserve_is_touched(small_volume: Path) -> None:
    blobs = LocalBlobs(small_volume, reserve_bytes=9 * _MIB)

    with pytest.raises(StorageFull):
        await blobs.stage("up", 0, arriving(b"x"))
    with pytest.raises(StorageFull):
        await blobs.check()

    assert _files(small_volume) == []


async def test_a_root_that_cannot_be_used_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    blobs = LocalBlobs(tmp_path / "file" / "blobs")

    with pytest.raises(Unavailable):
        await blobs.check()
    with pytest.raises(Unavailable):
        await blobs.stage("up", 0, arriving(b"x"))


async def test_a_cut_connection_leaves_no_file(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path, reserve_bytes=0)

    with pytest.raises(ConnectionCut):
        await blobs.stage("up", 0, arriving(bytes(3 * _MIB), cut=True))

    assert _files(tmp_path) == []


async def test_a_still_running_writer_cannot_change_a_sealed_blob(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path, reserve_bytes=0)
    data = b"good" * _MIB
    began, may_end = asyncio.Event(), asyncio.Event()

    async def slow_bytes() -> AsyncIterator[bytes]:
        yield b"evil" * _MIB
        began.set()
        await may_end.wait()
        yield b"evil"

    staged_part = await blobs.stage("up", 0, arriving(data))
    attack = asyncio.create_task(blobs.stage("up", 0, slow_bytes()))
    await began.wait()
    sealed_digest = await blobs.seal("up", [staged_part], len(data), None)
    may_end.set()
    await attack
    await blobs.stage("up", 0, arriving(b"evil" * _MIB))
    await blobs.stage("up", 0, arriving(data))
    await blobs.stage("up", 5, arriving(b"evil"))

    assert digest_of(await content(blobs, sealed_digest)) == sealed_digest == digest_of(data)


@pytest.mark.parametrize("pieces", [1, 2])
async def test_no_caller_may_write_to_a_sealed_file(tmp_path: Path, pieces: int) -> None:
    blobs = LocalBlobs(tmp_path, reserve_bytes=0)
    parts = [await blobs.stage("up", at * 5, arriving(b"bytes")) for at in range(pieces)]

    sealed_digest = await blobs.seal("up", parts, 5 * pieces, None)
    await blobs.discard("up")

    [path] = _files(tmp_path)
    assert path == tmp_path / "sealed" / sealed_digest[:2] / sealed_digest[2:4] / sealed_digest
    assert stat.S_IMODE(path.stat().st_mode) == 0o440
    assert path.stat().st_nlink == 1


async def test_a_damaged_blob_is_repaired_by_sealing_its_content_again(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path, reserve_bytes=0)
    staged_part = await blobs.stage("one", 0, arriving(b"bytes"))
    sealed_digest = await blobs.seal("one", [staged_part], 5, None)
    await blobs.discard("one")
    os.truncate(tmp_path / "sealed" / sealed_digest[:2] / sealed_digest[2:4] / sealed_digest, 0)

    staged_part = await blobs.stage("two", 0, arriving(b"bytes"))
    await blobs.seal("two", [staged_part], 5, None)

    assert await content(blobs, sealed_digest) == b"bytes"


@pytest.mark.parametrize("pieces", [1, 2])
async def test_a_part_that_lost_bytes_on_the_disk_is_not_sealed(tmp_path: Path, pieces: int) -> None:
    blobs = LocalBlobs(tmp_path, reserve_bytes=0)
    parts = [await blobs.stage("up", at * 5, arriving(b"bytes")) for at in range(pieces)]
    os.truncate(_files(tmp_path)[0], 4)

    with pytest.raises(ChecksumMismatch):
        await blobs.seal("up", parts, 5 * pieces, None)

    assert await sealed_in(blobs) == []


async def test_a_reader_keeps_its_blob_while_it_is_deleted(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path, reserve_bytes=0)
    data = os.urandom(3 * _MIB)
    staged_part = await blobs.stage("up", 0, arriving(data))
    sealed_digest = await blobs.seal("up", [staged_part], len(data), None)

    reading = blobs.read(sealed_digest, 0, len(data))
    received = await anext(reading)
    await blobs.delete(sealed_digest)
    received += b"".join([piece async for piece in reading])

    assert received == data


async def test_a_reader_that_stops_early_leaves_no_file_open(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path, reserve_bytes=0)
    staged_part = await blobs.stage("up", 0, arriving(bytes(3 * _MIB)))
    sealed_digest = await blobs.seal("up", [staged_part], 3 * _MIB, None)

    for _ in range(20):
        reading = blobs.read(sealed_digest, 0, 3 * _MIB)
        await anext(reading)
        del reading

    # The event loop closes abandoned generators in separate tasks, with a thread for each file.
    async with asyncio.timeout(60):
        while len(open_files.open_files_below(tmp_path)) > 1:
            await asyncio.sleep(0.01)


_LARGE = """
    import asyncio, resource
    from pathlib import Path
    from countersign.kernel.blobs.local import LocalBlobs

    def rss_mib():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    async def chunks():
        for number in range(3_200):
            yield bytes([number % 251]) * 65_536

    async def main():
        blobs = LocalBlobs(Path({root!r}), reserve_bytes=0)
        await blobs.check()
        before = rss_mib()
        part = await blobs.stage("up", 0, chunks())
        half = await blobs.stage("up", part.length, chunks())
        sha = await blobs.seal("up", [part, half], part.length * 2, None)
        read = 0
        async for piece in blobs.read(sha, 0, part.length * 2):
            read += len(piece)
        assert read == 2 * 200 * 1024 * 1024
        print(rss_mib() - before)

    asyncio.run(main())
"""


def _run(code: str, **values: str) -> "subprocess.Popen[str]":
    program = textwrap.dedent(code).format(**values)
    source = str(Path(__file__).parents[3] / "src")
    environment = {**os.environ, "PYTHONPATH": source}
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)


def test_two_hundred_mebibytes_pass_through_little_memory(tmp_path: Path) -> None:
    with _run(_LARGE, root=str(tmp_path)) as process:
        grown_mib = process.communicate(timeout=120)[0]

    assert process.returncode == 0
    assert float(grown_mib) < 50


_BUSY = """
    import asyncio
    from pathlib import Path
    from countersign.kernel.blobs.local import LocalBlobs

    async def chunks(seed, count):
        for number in range(count):
            yield bytes([(seed + number) % 251]) * 65_536

    async def main():
        blobs = LocalBlobs(Path({root!r}), reserve_bytes=0)
        print("ready", flush=True)
        seed = 0
        while True:
            seed += 1
            upload = f"up-{{seed}}"
            parts = [await blobs.stage(upload, 0, chunks(seed, 40))]
            print("staged", upload, *parts[0], flush=True)
            if seed % 2:
                parts.append(await blobs.stage(upload, parts[0].length, chunks(seed, 40)))
            size = sum(part.length for part in parts)
            print("sealed", await blobs.seal(upload, parts, size, None), flush=True)
            if seed % 3 == 0:
                await blobs.discard(upload)
                print("discarded", upload, flush=True)

    asyncio.run(main())
"""


@pytest.mark.parametrize("turn", range(20))
async def test_kill_9_at_any_moment_leaves_no_wrong_blob_and_loses_no_part(tmp_path: Path, turn: int) -> None:
    reports = _said_before_kill(tmp_path, after_s=0.01 + turn * 0.013)
    blobs = LocalBlobs(tmp_path, reserve_bytes=0)
    digests = await sealed_in(blobs)

    assert [digest_of(await content(blobs, sha)) for sha in digests] == digests
    assert {line[1] for line in reports if line[0] == "sealed"} <= set(digests)
    await _staged_parts_seal(blobs, reports)
    for upload in await staged_uploads(blobs):
        await blobs.discard(upload)
    assert all(path.is_relative_to(tmp_path / "sealed") for path in _files(tmp_path))


def _said_before_kill(root: Path, *, after_s: float) -> list[list[str]]:
    """Return the lines that the busy process printed until it was killed."""
    with _run(_BUSY, root=str(root)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        # The kill may come at any point of the work, so the test chooses it by time.
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=after_s)
        process.send_signal(signal.SIGKILL)
        output_lines = process.stdout.read().splitlines(keepends=True)
    return [line.split() for line in output_lines if line.endswith("\n")]


async def _staged_parts_seal(blobs: BlobStore, reports: list[list[str]]) -> None:
    staged = {line[1]: line[2:] for line in reports if line[0] == "staged"}
    # The kill may come during a discard, because every third upload is discarded.
    for upload in [name for name in staged if int(name.removeprefix("up-")) % 3]:
        offset, length, sha = staged[upload]
        staged_part = Part(int(offset), int(length), sha)
        sealed_digest = await blobs.seal(upload, [staged_part], staged_part.length, sha)
        assert digest_of(await content(blobs, sealed_digest)) == sha
