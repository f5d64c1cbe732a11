"""Sealing bytes that are at hand whole."""

from collections.abc import AsyncIterator

from countersign.kernel import ids
from countersign.kernel.blobs.port import BlobStore


async def seal_whole(store: BlobStore, data: bytes) -> str:
    """Make the bytes a blob; its SHA-256. They are staged under an id of their own, which a collector of stages finds
    when this stops halfway.

    Raises:
        StorageFull, Unavailable: the store does not take it.
    """
    stage = ids.new_uuid()
    part = await store.stage(stage, 0, _once(data))
    digest = await store.seal(stage, [part], part.length, part.sha256)
    await store.discard(stage)
    return digest


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
