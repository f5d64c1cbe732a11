"""Bytes that arrive like from a network, and the whole content of a store, for tests of blob stores."""

from collections.abc import AsyncIterator
from hashlib import sha256

from countersign.kernel.blobs.port import BlobStore


class ConnectionCut(Exception):
    """The connection ended in the middle."""


async def arriving(data: bytes, *, chunk: int = 65_536, cut: bool = False) -> AsyncIterator[bytes]:
    """Yield the bytes in chunks. With `cut`, the connection then ends."""
    for at in range(0, len(data), chunk):
        yield data[at : at + chunk]
    if cut:
        raise ConnectionCut


def digest_of(data: bytes) -> str:
    """Return the SHA-256 in hexadecimal."""
    return sha256(data).hexdigest()


async def content(blobs: BlobStore, sha: str, start: int = 0, stop: int = 1 << 40) -> bytes:
    """Read the bytes of the blob through the store."""
    return b"".join([piece async for piece in blobs.read(sha, start, stop)])


async def sealed_in(blobs: BlobStore) -> list[str]:
    """Return the digests of all blobs."""
    return sorted([sha async for sha, *_ in blobs.sealed_blobs()])


async def staged_uploads(blobs: BlobStore) -> list[str]:
    """Return the ids of all uploads with staged bytes."""
    return sorted([blob.upload async for blob in blobs.staged_uploads()])
