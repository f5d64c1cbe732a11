"""PUT and GET of an upload address: bytes are staged as they arrive; the last part completes the upload."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from weakref import WeakValueDictionary

import msgspec

from countersign.kernel import clock
from countersign.kernel.blobs.port import Part
from countersign.kernel.errors import Refused, Unavailable
from countersign.kernel.http import response
from countersign.kernel.http.range_response import ByteRange
from countersign.kernel.http.request import ClientGone
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing
from countersign.store.auth.callers import StoreRequest
from countersign.store.context import Store
from countersign.store.releases import blobs, uploads
from countersign.store.releases.uploads import Content, Purpose, Upload


class UploadBody:
    """Bytes as they arrive. A cut connection ends them like any end, so that what came before it can be kept; `gone`
    holds it then."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""
        self._is_over = False
        self.gone: ClientGone | None = None

    async def has_more(self) -> bool:
        """Wait for more bytes; False at the end of the body or of the connection."""
        while not self._rest and not self._is_over:
            try:
                self._rest = await anext(self._chunks)
            except StopAsyncIteration:
                self._is_over = True
            except ClientGone as gone:
                self.gone, self._is_over = gone, True
        return bool(self._rest)

    async def stretch(self, limit: int, seconds: float) -> AsyncIterator[bytes]:
        """The next bytes: `limit` at most, and no more once the seconds have passed."""
        ends_s = clock.monotonic_s() + seconds
        while limit > 0 and await self.has_more():
            piece, self._rest = self._rest[:limit], self._rest[limit:]
            limit -= len(piece)
            yield piece
            if clock.monotonic_s() >= ends_s:
                return

    async def skip(self, count: int) -> bool:
        """Read that many bytes and let them go; False when the body ended before."""
        while count > 0 and await self.has_more():
            dropped = min(count, len(self._rest))
            self._rest = self._rest[dropped:]
            count -= dropped
        return count == 0


UNPROCESSABLE = 422
ATTEMPTS = 3

# One at a time seals an upload in this process: a client that lost patience and asks again waits for the first.
_turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


class _BlobMissing(Exception):
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
            present = await uploads.reload(store.database, upload)
            if present.finished_at is not None:
                return await purpose.answer(store.database, present)
            content = await _content(store, present, purpose)
            if content is not None and await _conclude(store, present, purpose, content):
                await _discard(store, present)
                return await purpose.answer(store.database, present)
    raise blobs.removal_in_progress()


async def _content(store: Store, upload: Upload, purpose: Purpose) -> Content | None:
    """The sealed blob; None when somebody else ended the upload meanwhile and took the staged bytes away."""
    try:
        parts = await uploads.parts(store.database, upload.id)
        if not parts:
            return None
        digest = await _seal(store, upload, parts)
        return await purpose.content(store, upload, digest)
    except Refused as refused:
        if refused.status != UNPROCESSABLE:
            raise
        if not await _void(store, upload, purpose):
            return None
        raise


async def _seal(store: Store, upload: Upload, parts: Sequence[Part]) -> str:
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
            if not await uploads.finish(transaction, upload.id):
                return False
            # From here on nobody can remove the blob: they need its row, which this transaction holds.
            await blobs.keep(transaction, content.sha256, content.size)
            if await store.blobs.size(content.sha256) != content.size:
                raise _BlobMissing
            await purpose.keep(transaction, upload, content)
            return True
    except _BlobMissing:
        return False


async def _void(store: Store, upload: Upload, purpose: Purpose) -> bool:
    """Remove the upload and what its announcement made; False when it was ended by somebody else."""
    async with store.database.transaction() as transaction:
        if not await uploads.drop_open(transaction, upload.id):
            return False
        await purpose.abandon(transaction, upload)
    await _discard(store, upload)
    return True


async def _discard(store: Store, upload: Upload) -> None:
    # The outcome stands already; what cannot be removed now is left to the collector.
    with suppress(Unavailable):
        await store.blobs.discard(upload.id)


STRETCH_S = 30
"""A stop of the service loses at most what a client sent in this time; a cut connection loses nothing."""
STRETCH_BYTES = 4 << 30


class Progress(msgspec.Struct):
    """How far an upload has come: stretches from their first byte to their last, in order, and the whole size."""

    received: list[tuple[int, int]]
    size: int


async def show(call: StoreRequest[Nothing, Nothing], purpose: Purpose) -> Response:
    """What of the upload has arrived.

    Raises:
        UploadNotFound: no upload has this address (any more).
    """
    database = call.context.database
    upload = await uploads.by_token(database, purpose.name, call.path["token"])
    if upload.finished_at is not None:
        return response.json(Progress([(0, upload.size - 1)], upload.size), headers=(_NO_STORE,))
    parts = await uploads.parts(database, upload.id)
    return response.json(Progress(uploads.received_pairs(parts), upload.size), headers=(_NO_STORE,))


_NO_STORE = ("Cache-Control", "no-store")


async def receive(call: StoreRequest[Nothing, Nothing], purpose: Purpose) -> Response:
    """Take the request's bytes: 204 with Upload-Received while some are missing, else what the file became.

    What has arrived stays: bytes sent again are read and let go. A finished upload answers again without reading.

    Raises:
        UploadNotFound: no upload has this address (any more).
        InvalidRequest: Content-Range, Content-Length and body do not agree; nothing of the body counts.
        ClientGone: the connection ended; what came before counts.
        StorageFull: no room; what was counted before stays.
        TooManyParts, and what `finish` raises.
    """
    store = call.context
    upload = await uploads.by_token(store.database, purpose.name, call.path["token"])
    span = uploads.span_of_request(call.headers.get("content-range"), call.headers.get("content-length"), upload.size)
    if upload.finished_at is not None:
        return await purpose.answer(store.database, upload)
    try:
        return await _receive(call, upload, span, purpose)
    except Unavailable:
        # A node that finishes the upload removes its staged files, those that another node is writing too.
        present = await uploads.reload(store.database, upload)
        if present.finished_at is None:
            raise
        return await purpose.answer(store.database, present)


async def _receive(call: StoreRequest[Nothing, Nothing], upload: Upload, span: ByteRange, purpose: Purpose) -> Response:
    store = call.context
    parts = await uploads.parts(store.database, upload.id)
    if not uploads.is_whole(parts, upload.size):
        await _take(store, upload, span, parts, UploadBody(call.chunks()))
        parts = await uploads.parts(store.database, upload.id)
        upload = await uploads.reload(store.database, upload)
    if upload.finished_at is None and not uploads.is_whole(parts, upload.size):
        return Response(204, headers=(("Upload-Received", uploads.received_header(parts)), _NO_STORE))
    return await finish(store, upload, purpose)


async def _take(store: Store, upload: Upload, span: ByteRange, known: Sequence[Part], body: UploadBody) -> None:
    """Stage what of the span is missing, stretch by stretch, each counted once it is durable."""
    taken: list[Part] = []
    position = span.start
    for gap in uploads.missing(known, span):
        await body.skip(gap.start - position)
        position = gap.start
        while position < gap.stop and await body.has_more():
            uploads.require_part_limit([*known, *taken])
            limit = min(gap.stop - position, STRETCH_BYTES)
            part = await store.blobs.stage(upload.id, position, body.stretch(limit, STRETCH_S))
            async with store.database.transaction() as transaction:
                if not await uploads.add_part(transaction, upload.id, part):
                    return
            taken.append(part)
            position += part.length
    is_complete = await body.skip(span.stop - position)
    is_long = is_complete and await body.has_more()
    if body.gone is not None:
        raise body.gone
    if is_long or not is_complete:
        async with store.database.transaction() as transaction:
            await uploads.forget_parts(transaction, upload.id, taken)
        raise uploads.wrong_length(is_long, span)
