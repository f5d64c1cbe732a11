"""Large uploads and downloads do not increase the server's memory."""

import asyncio
import hashlib
import http.client
import random
import time
from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest

from tests.faults import shop
from tests.faults.lives import RestartableService
from tests.figures import Figures

MIB = 1 << 20
PIECE = random.Random(1).randbytes(MIB)
GROWTH_MIB = 100
PART_MIB = 24


class ReleasePublisher(NamedTuple):
    """A client that may announce files of one release, and its address."""

    lives: RestartableService
    token: str
    release: str

    def announce(self, size: int, filename: str) -> str:
        """Return the path to upload a new file to."""
        answer = httpx.post(
            f"{self.lives.root_url}{self.release}/artifacts",
            json={"filename": filename, "size": size},
            headers={"Authorization": f"Bearer {self.token}"},
        )
        assert answer.status_code == 201, answer.text
        return str(answer.json()["upload_url"]).removeprefix(self.lives.root_url)


@pytest.fixture
def publisher(lives: RestartableService) -> ReleasePublisher:
    """A served store with a product and a release."""

    async def prepare() -> str:
        async with shop.open_served_store(lives) as store:
            org_id = await shop.organisation(store)
            await shop.product(store, org_id, "river")
            return await shop.publisher(store, org_id)

    token = asyncio.run(prepare())
    lives.start()
    releases = f"{lives.root_url}/api/v1/products/river/releases"
    bearer = {"Authorization": f"Bearer {token}"}
    created_response = httpx.post(releases, json={"version": "1.0.0", "channel": "stable"}, headers=bearer)
    assert created_response.status_code == 201, created_response.text
    return ReleasePublisher(lives, token, "/api/v1/products/river/releases/1.0.0")


def pieces(start: int, stop: int) -> Iterator[bytes]:
    """Yield the mebibytes from number `start` up to `stop` of an endless file without repetitions."""
    for number in range(start, stop):
        yield number.to_bytes(8, "big") + PIECE[8:]


def put(port: int, path: str, first: int, stop: int, size_mib: int) -> tuple[int, bytes]:
    """Send these mebibytes of the file from a generator. Return the status and the body of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    headers = {"Content-Length": str((stop - first) * MIB)}
    if (first, stop) != (0, size_mib):
        headers["Content-Range"] = f"bytes {first * MIB}-{stop * MIB - 1}/{size_mib * MIB}"
    try:
        connection.request("PUT", path, body=pieces(first, stop), headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def send(publisher: ReleasePublisher, upload_way: str, size_mib: int) -> bytes:
    """Upload the file in one request, or in parts in any order, and return the last answer's body."""
    path = publisher.announce(size_mib * MIB, f"{upload_way}.bin")
    stride = size_mib if upload_way == "whole" else PART_MIB
    starts = list(range(0, size_mib, stride))
    random.Random(2).shuffle(starts)
    for start in starts[:-1]:
        assert put(publisher.lives.port, path, start, min(start + stride, size_mib), size_mib)[0] == 204
    status, body = put(publisher.lives.port, path, starts[-1], min(starts[-1] + stride, size_mib), size_mib)
    assert status == 201, body
    return body


def download_digest(publisher: ReleasePublisher, artifact_id: str) -> str:
    """Return the SHA-256 of the downloaded file, which is read piece by piece."""
    digest = hashlib.sha256()
    address = f"{publisher.lives.root_url}/api/v1/artifacts/{artifact_id}"
    with httpx.stream("GET", address, headers={"Authorization": f"Bearer {publisher.token}"}) as answer:
        assert answer.status_code == 200
        for piece in answer.iter_raw():
            digest.update(piece)
    return digest.hexdigest()


@pytest.mark.usefixtures("no_forking")
@pytest.mark.parametrize("way", ["whole", "parts"])
def test_a_large_file_is_uploaded_and_downloaded_in_constant_memory(
    publisher: ReleasePublisher, way: str, is_full: bool, figures: Figures
) -> None:
    size_mib = 2048 if is_full else 200
    expected = hashlib.sha256()
    for piece in pieces(0, size_mib):
        expected.update(piece)
    before_kib = publisher.lives.rss_kib()

    began_s = time.monotonic()
    artifact = httpx.Response(201, content=send(publisher, way, size_mib)).json()
    up_s = time.monotonic() - began_s
    grown_up_mib = (publisher.lives.rss_kib("VmHWM") - before_kib) / 1024
    began_s = time.monotonic()
    came_back = download_digest(publisher, artifact["id"])
    down_s = time.monotonic() - began_s
    grown_mib = (publisher.lives.rss_kib("VmHWM") - before_kib) / 1024

    figures |= {
        "size_mib": size_mib,
        "server_rss_before_mib": round(before_kib / 1024, 1),
        "server_peak_growth_upload_mib": round(grown_up_mib, 1),
        "server_peak_growth_mib": round(grown_mib, 1),
        "upload_mib_per_s": round(size_mib / up_s),
        "download_mib_per_s": round(size_mib / down_s),
    }
    assert artifact["sha256"] == expected.hexdigest() == came_back
    assert artifact["size"] == size_mib * MIB
    assert grown_mib < GROWTH_MIB, figures
