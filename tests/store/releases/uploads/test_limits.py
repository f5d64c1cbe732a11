"""Uploads at the limits of a machine: a full volume, little memory, very many tiny parts."""

import subprocess
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from countersign.kernel.blobs.local import LocalBlobs
from countersign.store import app as distribution
from countersign.store.releases import receive_upload, uploads
from tests.store.files import Shop, pattern, sha256_of

MEBIBYTE = 1 << 20


@pytest.fixture
def small_volume(tmp_path: Path) -> Iterator[Path]:
    """A volume of 4 MiB."""
    volume = tmp_path / "volume"
    volume.mkdir()
    mounted_result = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", volume], capture_output=True, text=True, check=False
    )
    if mounted_result.returncode:
        pytest.skip(f"no small volume could be mounted: {mounted_result.stderr.strip()}")
    yield volume
    subprocess.run(["umount", "--lazy", volume], check=True)


async def test_a_full_volume_refuses_the_part_and_keeps_the_received_bytes(shop: Shop, small_volume: Path) -> None:
    store = replace(shop.store, blobs=LocalBlobs(small_volume, reserve_bytes=0))
    data = pattern(6 * MEBIBYTE)
    address = await shop.address(len(data))
    transport = httpx.ASGITransport(distribution.create(store))
    async with httpx.AsyncClient(transport=transport) as client:
        first_stretch = {"Content-Range": f"bytes 0-{MEBIBYTE - 1}/{len(data)}"}
        await client.put(address, content=data[:MEBIBYTE], headers=first_stretch)

        answer = await client.put(address, content=data)

        assert (answer.status_code, answer.json()["code"]) == (507, "insufficient_storage")
        assert (await client.get(address)).json()["received"] == [[0, MEBIBYTE - 1]]
        files = [path.stat().st_size for path in small_volume.rglob("*") if path.is_file()]
        assert files == [MEBIBYTE]


async def test_no_room_to_put_the_file_together_keeps_every_part(shop: Shop, small_volume: Path) -> None:
    store = replace(shop.store, blobs=LocalBlobs(small_volume, reserve_bytes=0))
    data = pattern(3 * MEBIBYTE)
    address = await shop.address(len(data))
    half_size = len(data) // 2
    transport = httpx.ASGITransport(distribution.create(store))
    async with httpx.AsyncClient(transport=transport) as client:
        ranges = ((0, half_size), (half_size, len(data)))
        answers = [
            await client.put(
                address,
                content=data[start:stop],
                headers={"Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"},
            )
            for start, stop in ranges
        ]

        assert [answer.status_code for answer in answers] == [204, 507]
        assert (await client.get(address)).json()["received"] == [[0, len(data) - 1]]
        assert [path for path in small_volume.rglob("*") if path.is_file() and "sealed" in path.parts] == []


async def endless(count: int) -> AsyncIterator[bytes]:
    """Yield a body of many mebibytes that is never in memory as a whole."""
    for number in range(count * 16):
        yield number.to_bytes(2) * (MEBIBYTE // 32)


async def test_a_large_file_passes_in_constant_memory(shop: Shop) -> None:
    if shop.store.settings.blobs_url:
        pytest.skip("measured on a directory; the bucket's own tests measure the bucket")
    address = await shop.address(48 * MEBIBYTE)
    headers = {"Content-Length": str(48 * MEBIBYTE)}
    tracemalloc.start()
    try:
        answer = await shop.world.http.put(address, content=endless(48), headers=headers)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert answer.status_code == 201, answer.text
    assert peak < 12 * MEBIBYTE


async def test_a_slow_or_long_body_is_counted_stretch_by_stretch(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive_upload, "MAX_PART_BYTES", 300)
    data = pattern(1000)
    address = await shop.address(1001)

    await shop.put(address, data, "bytes 0-999/1001")

    rows = await shop.store.database.fetch("SELECT start_at, length FROM upload_part ORDER BY start_at")
    assert rows == [(0, 300), (300, 300), (600, 300), (900, 100)]
    assert (await shop.put(address, b"!", "bytes 1000-1000/1001")).json()["sha256"] == sha256_of(data + b"!")


async def test_a_file_does_not_come_in_countless_crumbs(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_PARTS", 3)
    address = await shop.address(100)
    for at in (0, 10, 20):
        assert (await shop.put(address, b"x", f"bytes {at}-{at}/100")).status_code == 204

    answer = await shop.put(address, b"x", "bytes 30-30/100")

    assert (answer.status_code, answer.json()["code"]) == (409, "too_many_parts")
    assert await shop.received_ranges(address) == [[0, 0], [10, 10], [20, 20]]
