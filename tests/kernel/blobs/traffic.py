"""Bytes as they come from a network, and everything a store holds, for the tests of the stores."""

from collections.abc import AsyncIterator
from hashlib import sha256

from countersign.kernel.blobs.port import BlobStore


class Cut(Exception):
    """The connection ended in the middle."""


async def arriving(data: bytes, *, chunk: int = 65_536, cut: bool = False) -> AsyncIterator[bytes]:
    """The bytes in chunks; with `cut` the connection ends after them."""
    for at in range(0, len(data), chunk):
        yield data[at : at + chunk]
    if cut:
        raise Cut


def digest_of(data: bytes) -> str:
    """The SHA-256 in hexadecimal."""
    return sha256(data).hexdigest()


async def content(blobs: BlobStore, sha: str, start: int = 0, stop: int = 1 << 40) -> bytes:
    """The blob's bytes, read through the store."""
    return b"".join([piece async for piece in blobs.read(sha, start, stop)])


async def sealed_in(blobs: BlobStore) -> list[str]:
    """The digests of all blobs."""
    return sorted([sha async for sha, *_ in blobs.sealed()])


async def staged_in(blobs: BlobStore) -> list[str]:
    """The ids of all uploads with staged bytes."""
    return sorted([each.upload async for each in blobs.staged()])
