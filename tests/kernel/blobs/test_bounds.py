"""A directory of blobs with a maximum size, and a directory that also reads the blobs of another one."""

import asyncio
import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from countersign.kernel.blobs.disk import DiskQuota
from countersign.kernel.blobs.local import LocalBlobs
from countersign.kernel.errors import NotFound, StorageFull
from tests.kernel.blobs.traffic import arriving, digest_of

MIB = 1 << 20
MOST = 4 * MIB


def content(size: int) -> bytes:
    """Return this number of bytes without short repetitions."""
    return hashlib.shake_256(size.to_bytes(4)).digest(size)


def total_size(root: Path) -> int:
    """Return the total size of all files."""
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def admits(quota: DiskQuota, count: int) -> bool:
    """Return whether the quota admits this number of bytes."""
    try:
        with quota.reserve(count):
            return True
    except StorageFull:
        return False


async def seal(blobs: LocalBlobs, name: str, data: bytes) -> str:
    """Seal a blob with the data."""
    staged_part = await blobs.stage(name, 0, arriving(data))
    digest = await blobs.seal(name, [staged_part], len(data), None)
    await blobs.discard(name)
    return digest


async def test_a_blob_that_exceeds_the_quota_is_refused_and_not_stored(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path, reserve_bytes=0, max_bytes=MOST)
    kept_digest = await seal(blobs, "kept", content(3 * MIB))

    with pytest.raises(StorageFull):
        await blobs.stage("up", 0, arriving(content(2 * MIB)))

    assert total_size(tmp_path) == 3 * MIB
    assert await blobs.size(kept_digest) == 3 * MIB


async def test_many_at_once_do_not_take_more_than_the_bound(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path, reserve_bytes=0, max_bytes=MOST)

    outcomes = await asyncio.gather(
        *(blobs.stage(f"up{number}", 0, arriving(content(MIB))) for number in range(12)), return_exceptions=True
    )

    refusals = [outcome for outcome in outcomes if isinstance(outcome, StorageFull)]
    assert total_size(tmp_path) <= MOST
    assert 0 < len(refusals) < 12
    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception) and outcome not in refusals]


def test_unfinished_blobs_are_counted_when_the_folder_is_measured_again(tmp_path: Path) -> None:
    quota = DiskQuota(tmp_path, 0, MOST)

    with quota.reserve(3 * MIB), pytest.raises(StorageFull), quota.reserve(2 * MIB):
        pass

    with quota.reserve(4 * MIB):
        pass


def test_a_file_renamed_during_the_count_is_still_counted(tmp_path: Path) -> None:
    names = [tmp_path / "staging" / "incoming", tmp_path / "staging" / "part"]
    names[0].parent.mkdir()
    names[0].write_bytes(bytes(3 * MIB))
    quota, stopped_event = DiskQuota(tmp_path, 0, MOST), Event()

    def rename() -> None:
        while not stopped_event.is_set():
            names[0].rename(names[1])
            names[1].rename(names[0])

    with ThreadPoolExecutor(1) as executor:
        renaming = executor.submit(rename)
        admitted = [admits(quota, 2 * MIB) for _ in range(3_000)]
        stopped_event.set()
        renaming.result()

    assert not any(admitted)
    assert admits(quota, MIB)


async def test_parts_that_are_put_together_count_too(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path, reserve_bytes=0, max_bytes=MOST)
    data = content(3 * MIB)
    parts = [await blobs.stage("up", at, arriving(data[at : at + MIB])) for at in range(0, 3 * MIB, MIB)]

    with pytest.raises(StorageFull):
        await blobs.seal("up", parts, 3 * MIB, None)

    assert total_size(tmp_path) == 3 * MIB


async def test_released_space_is_available_again(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path, reserve_bytes=0, max_bytes=MOST)
    first_digest = await seal(blobs, "first", content(3 * MIB))

    await blobs.delete(first_digest)

    assert await seal(blobs, "second", content(3 * MIB))


async def test_blobs_of_the_underlying_store_are_read_and_never_changed(tmp_path: Path) -> None:
    below = LocalBlobs(tmp_path / "below", reserve_bytes=0)
    shared_digest, data = await seal(below, "shared", content(1_000)), content(1_000)
    above = LocalBlobs(tmp_path / "above", reserve_bytes=0, beneath=tmp_path / "below")
    own_digest = await seal(above, "own", b"own")

    read_bytes = b"".join([piece async for piece in above.read(shared_digest, 0, 1_000)])
    path = await above.file(shared_digest, tmp_path)
    repeated_digest = await seal(above, "again", data)
    await above.delete(shared_digest)

    assert read_bytes == data
    assert path.read_bytes() == data
    assert repeated_digest == shared_digest == digest_of(data)
    assert await above.size(shared_digest) == await below.size(shared_digest) == 1_000
    assert await below.size(own_digest) is None
    assert [digest async for digest, *_ in above.sealed_blobs()] == [own_digest]
    with pytest.raises(NotFound):
        await above.file("0" * 64, tmp_path)
