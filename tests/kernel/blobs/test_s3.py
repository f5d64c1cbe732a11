"""Blobs in a bucket: nothing incomplete remains in it, and an unreachable bucket is reported as unreachable."""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from countersign.kernel.blobs.open import open_blobs
from countersign.kernel.blobs.port import BlobStore, ChecksumMismatch
from countersign.kernel.errors import StorageFull, Unavailable
from tests.kernel.blobs.traffic import ConnectionCut, arriving, content, digest_of, sealed_in
from tests.servers.process import free_port
from tests.servers.s3 import Bucket

_MIB = 1024 * 1024
_DATA = random.Random(9).randbytes(33 * _MIB)


async def _tags(bucket: Bucket, query: str, tag: str) -> list[str]:
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(f"{bucket.endpoint}/{bucket.name}?{query}")
    return re.findall(f"<{tag}>([^<]+)</{tag}>", answer.text)


async def _keys(bucket: Bucket) -> list[str]:
    return await _tags(bucket, "list-type=2", "Key")


async def _open_uploads(bucket: Bucket) -> list[str]:
    return await _tags(bucket, "uploads", "UploadId")


async def test_a_cut_connection_leaves_nothing_in_the_bucket(s3_blobs: BlobStore, s3_url: Bucket) -> None:
    with pytest.raises(ConnectionCut):
        await s3_blobs.stage("up", 0, arriving(_DATA, cut=True))

    assert await _keys(s3_url) == []
    assert await _open_uploads(s3_url) == []


async def test_a_cancelled_call_leaves_nothing_in_the_bucket(s3_blobs: BlobStore, s3_url: Bucket) -> None:
    reached_event = asyncio.Event()

    async def stuck() -> AsyncIterator[bytes]:
        yield _DATA
        reached_event.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(s3_blobs.stage("up", 0, stuck()))
    await reached_event.wait()
    assert await _open_uploads(s3_url) != []
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await _keys(s3_url) == []
    assert await _open_uploads(s3_url) == []


async def test_after_a_mismatch_only_the_parts_remain_in_the_bucket(s3_blobs: BlobStore, s3_url: Bucket) -> None:
    half_length = len(_DATA) // 2
    parts = [
        await s3_blobs.stage("up", 0, arriving(_DATA[:half_length])),
        await s3_blobs.stage("up", half_length, arriving(_DATA[half_length:])),
    ]

    with pytest.raises(ChecksumMismatch):
        await s3_blobs.seal("up", parts, len(_DATA), digest_of(b"other"))

    assert await sealed_in(s3_blobs) == []
    assert await _open_uploads(s3_url) == []
    assert all(key.startswith("some/prefix/staging/up/") for key in await _keys(s3_url))
    sealed_digest = await s3_blobs.seal("up", parts, len(_DATA), digest_of(_DATA))
    assert await content(s3_blobs, sealed_digest) == _DATA


async def test_after_discarding_only_the_blob_remains_in_the_bucket(s3_blobs: BlobStore, s3_url: Bucket) -> None:
    staged_part = await s3_blobs.stage("up", 0, arriving(b"bytes"))
    sealed_digest = await s3_blobs.seal("up", [staged_part], 5, None)

    await s3_blobs.discard("up")

    assert await _keys(s3_url) == [f"some/prefix/sealed/{sealed_digest[:2]}/{sealed_digest[2:4]}/{sealed_digest}"]


async def test_an_upload_with_the_same_name_prefix_is_kept(s3_blobs: BlobStore) -> None:
    await s3_blobs.stage("up", 0, arriving(b"bytes"))
    staged_part = await s3_blobs.stage("up-2", 0, arriving(b"bytes"))

    await s3_blobs.discard("up")

    assert await s3_blobs.seal("up-2", [staged_part], 5, None) == staged_part.sha256


@pytest.mark.parametrize("pieces", [1, 2])
async def test_a_part_that_lost_bytes_in_the_bucket_is_not_sealed(
    s3_blobs: BlobStore, s3_url: Bucket, pieces: int
) -> None:
    parts = [await s3_blobs.stage("up", at * 5, arriving(b"bytes")) for at in range(pieces)]
    [data, *_] = [key for key in await _keys(s3_url) if "-data-" in key]
    async with httpx.AsyncClient(trust_env=False) as client:
        await client.put(f"{s3_url.endpoint}/{s3_url.name}/{data}", content=b"byte")

    with pytest.raises(ChecksumMismatch):
        await s3_blobs.seal("up", parts, 5 * pieces, None)

    assert await sealed_in(s3_blobs) == []


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key and a secret in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


async def _everything_refuses(blobs: BlobStore, refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        await blobs.stage("up", 0, arriving(_DATA))
    with pytest.raises(refusal):
        await blobs.check()
    with pytest.raises(refusal):
        await blobs.discard("up")
    with pytest.raises(refusal):
        await sealed_in(blobs)


@pytest.mark.usefixtures("credentials")
async def test_a_missing_bucket_is_reported_as_unavailable(s3_endpoint: str, tmp_path: Path) -> None:
    await _everything_refuses(open_blobs(f"s3://nowhere?endpoint={s3_endpoint}&allow_http=true", tmp_path), Unavailable)


@pytest.mark.usefixtures("credentials")
async def test_an_unreachable_server_is_reported_as_unavailable(tmp_path: Path) -> None:
    blobs = open_blobs(f"s3://bucket?endpoint=http://127.0.0.1:{free_port()}&allow_http=true", tmp_path)

    with pytest.raises(Unavailable):
        await blobs.size(digest_of(b""))


@asynccontextmanager
async def answering(answer: Callable[[bytes], bytes], folder: Path) -> AsyncIterator[BlobStore]:
    """Open blobs in a bucket whose server responds to each request, by its head, with this status line and these
    headers."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 " + answer(await reader.readuntil(b"\r\n\r\n")) + b"Connection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield open_blobs(f"s3://bucket?endpoint=http://127.0.0.1:{port}&allow_http=true", folder)


@pytest.mark.usefixtures("credentials")
async def test_a_blob_that_the_server_refuses_to_read_is_not_treated_as_empty(tmp_path: Path) -> None:
    def answer(request: bytes) -> bytes:
        if request.startswith(b"HEAD"):
            stamp = b"Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nETag: e\r\n"
            return b"200 OK\r\nContent-Length: 5\r\n" + stamp
        return b"403 Forbidden\r\nContent-Length: 0\r\n"

    async with answering(answer, tmp_path) as blobs:
        with pytest.raises(Unavailable):
            await content(blobs, digest_of(b"bytes"))


@pytest.mark.usefixtures("credentials")
async def test_a_server_without_room_is_full(tmp_path: Path) -> None:
    async with answering(lambda _: b"507 Insufficient Storage\r\nContent-Length: 0\r\n", tmp_path) as blobs:
        with pytest.raises(StorageFull):
            await blobs.stage("up", 0, arriving(b"bytes"))
