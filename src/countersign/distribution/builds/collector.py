"""What nobody wants any more: expired uploads, staged bytes without an upload, sealed bytes nothing refers to.

Every step can be interrupted and is taken up by the next collection; several may run at once, on any nodes.
"""

from typing import NamedTuple

from countersign.distribution.builds import artifacts
from countersign.distribution.context import Store
from countersign.distribution.publishing import media
from countersign.distribution.uploads import blobs
from countersign.distribution.uploads import queries as uploads
from countersign.distribution.uploads.queries import Upload
from countersign.kernel import clock
from countersign.kernel.clock import Instant

SPARED_S = 3600
"""Bytes younger than this are left alone: somebody may be about to refer to them."""
UPLOADS_AT_ONCE = 200
ABANDON = {"artifact": artifacts.abandon, "media": media.abandon}


class Collected(NamedTuple):
    """How much was removed: expired uploads, leftovers of others, and sealed blobs."""

    uploads: int
    staged: int
    blobs: int


async def collect(store: Store) -> Collected:
    """Remove what has expired and what nothing refers to.

    Raises:
        Unavailable: database or blob store are away; what was removed before that stays removed.
    """
    before = clock.later(clock.now(), seconds=-SPARED_S)
    return Collected(
        await _expired_uploads(store), await _forgotten_stages(store, before), await _unused_blobs(store, before)
    )


async def _expired_uploads(store: Store) -> int:
    removed = 0
    while batch := await uploads.expired(store.database, UPLOADS_AT_ONCE):
        for upload in batch:
            await _remove_upload(store, upload)
        removed += len(batch)
    return removed


async def _remove_upload(store: Store, upload: Upload) -> None:
    async with store.database.transaction() as transaction:
        if await uploads.drop_open(transaction, upload.id):
            await ABANDON[upload.purpose](transaction, upload)
        else:
            await uploads.drop_finished(transaction, upload.id)
    await store.blobs.discard(upload.id)


async def _forgotten_stages(store: Store, before: Instant) -> int:
    """Staged bytes of uploads that are finished or gone, once nobody has written to them for a while."""
    removed = 0
    async for staged in store.blobs.staged():
        if staged.changed_at < before and not await uploads.is_open(store.database, staged.upload):
            await store.blobs.discard(staged.upload)
            removed += 1
    return removed


async def _unused_blobs(store: Store, before: Instant) -> int:
    database = store.database
    async for sha256 in blobs.unused(database, before):
        await blobs.condemn(database, sha256, before)
    async for sha256, changed_at, _ in store.blobs.sealed():
        if changed_at < before and not await blobs.is_known(database, sha256):
            await blobs.condemn(database, sha256, before)
    removed = 0
    while condemned := await blobs.condemned(database, UPLOADS_AT_ONCE):
        for sha256 in condemned:
            removed += await blobs.remove_condemned(database, store.blobs, sha256)
    return removed
