"""The end of an upload: sealed, referred to and answered once, whoever else completes it at the same moment."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from weakref import WeakValueDictionary

from countersign.distribution.context import Store
from countersign.distribution.uploads import blobs, queries
from countersign.distribution.uploads.purposes import Content, Purpose
from countersign.distribution.uploads.queries import Upload
from countersign.kernel.blobs.port import Part
from countersign.kernel.errors import Refused, Unavailable
from countersign.kernel.http.response import Response

UNPROCESSABLE = 422
ATTEMPTS = 3

# One at a time seals an upload in this process: a client that lost patience and asks again waits for the first.
_turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


class _BytesGone(Exception):
    """The sealed bytes were removed before anything referred to them."""


async def finish(store: Store, upload: Upload, purpose: Purpose) -> Response:
    """Make the upload, of which nothing is missing, what it is for; what it became.

    Raises:
        ChecksumMismatch, or another refusal of the content with 422: upload and announcement are removed.
        Unavailable: the same bytes are just being removed, or the store is away; the same call can be made again.
        StorageFull: no room; what has arrived stays.
        UploadNotFound: the file was announced again, or the upload expired.
    """
    async with _turns.setdefault(upload.id, asyncio.Lock()):
        for _ in range(ATTEMPTS):
            present = await queries.again(store.database, upload)
            if present.finished_at is not None:
                return await purpose.answer(store.database, present)
            content = await _content(store, present, purpose)
            if content is not None and await _conclude(store, present, purpose, content):
                await _discard(store, present)
                return await purpose.answer(store.database, present)
    raise blobs.being_removed()


async def _content(store: Store, upload: Upload, purpose: Purpose) -> Content | None:
    """The sealed blob; None when somebody else ended the upload meanwhile and took the staged bytes away."""
    try:
        parts = await queries.parts(store.database, upload.id)
        if not parts:
            return None
        digest = await _sealed(store, upload, parts)
        return await purpose.content(store, upload, digest)
    except Refused as refused:
        if refused.status != UNPROCESSABLE:
            raise
        if not await _void(store, upload, purpose):
            return None
        raise


async def _sealed(store: Store, upload: Upload, parts: Sequence[Part]) -> str:
    """Seal the parts. The digest is noted before, where it is known by then, so that a process that dies in between
    leaves nothing that the database does not know."""
    expected = parts[0].sha256 if len(parts) == 1 else upload.sha256
    if expected is not None:
        await blobs.note_new(store.database, store.blobs, expected)
    digest = await store.blobs.seal(upload.id, parts, upload.size, upload.sha256)
    if digest != expected:
        await blobs.note_idle(store.database, digest)
    return digest


async def _conclude(store: Store, upload: Upload, purpose: Purpose, content: Content) -> bool:
    """Finish in one transaction; False when somebody else did, or the bytes have to be sealed again."""
    try:
        async with store.database.transaction() as transaction:
            if not await queries.finish(transaction, upload.id):
                return False
            # From here on nobody can remove the blob: they need its row, which this transaction holds.
            await blobs.keep(transaction, content.sha256, content.size)
            if await store.blobs.size(content.sha256) != content.size:
                raise _BytesGone
            await purpose.keep(transaction, upload, content)
            return True
    except _BytesGone:
        return False


async def _void(store: Store, upload: Upload, purpose: Purpose) -> bool:
    """Remove the upload and what its announcement made; False when it was ended by somebody else."""
    async with store.database.transaction() as transaction:
        if not await queries.drop_open(transaction, upload.id):
            return False
        await purpose.abandon(transaction, upload)
    await _discard(store, upload)
    return True


async def _discard(store: Store, upload: Upload) -> None:
    # The outcome stands already; what cannot be removed now is left to the collector.
    with suppress(Unavailable):
        await store.blobs.discard(upload.id)
