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
    """The body of an upload. If the connection is aborted, the stream ends without an exception, so that the received
    bytes can be stored; `gone` is then the error."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""
        self._is_over = False
        self.gone: ClientGone | None = None

    async def has_more(self) -> bool:
        """Wait for more bytes; False at the end of the body or connection."""
        while not self._rest and not self._is_over:
            try:
                self._rest = await anext(self._chunks)
            except StopAsyncIteration:
                self._is_over = True
            except ClientGone as gone:
                self.gone, self._is_over = gone, True
        return bool(self._rest)

    async def stretch(self, limit: int, seconds: float) -> AsyncIterator[bytes]:
        """Read the next bytes: at most `limit`, within the given number of seconds."""
        ends_s = clock.monotonic_s() + seconds
        while limit > 0 and await self.has_more():
            piece, self._rest = self._rest[:limit], self._rest[limit:]
            limit -= len(piece)
            yield piece
            if clock.monotonic_s() >= ends_s:
                return

    async def skip(self, count: int) -> bool:
        """Read and discard the given number of bytes; False if the body ended before."""
        while count > 0 and await self.has_more():
            dropped = min(count, len(self._rest))
            self._rest = self._rest[dropped:]
            count -= dropped
        return count == 0


UNPROCESSABLE = 422
ATTEMPTS = 3

# Only one task in this process seals an upload: a client's retry waits for its first request.
_turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


class _BlobMissing(Exception):
    """The sealed blob was removed before it was referenced."""


async def finish(store: Store, upload: Upload, purpose: Purpose) -> Response:
    """Finish a complete upload according to its purpose; return the response.

    Raises:
        ChecksumMismatch, or another 422 error: the content is invalid; upload and announcement are removed.
        Unavailable: the same blob is being removed, or the blob store is unavailable; the call can be repeated.
        StorageFull: no space is left; the received parts remain stored.
        UploadNotFound: the file was announced again, or the upload has expired.
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
    """The sealed blob of the upload; None if another request finished the upload and removed the staged parts."""
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
    """Seal the parts. A known digest is recorded first, so that a process that dies in between leaves no blob that the
    database does not know."""
    expected = parts[0].sha256 if len(parts) == 1 else upload.sha256
    if expected is not None:
        await blobs.note_new(store.database, store.blobs, expected)
    digest = await store.blobs.seal(upload.id, parts, upload.size, upload.sha256)
    if digest != expected:
        await blobs.note_idle(store.database, digest)
    return digest


async def _conclude(store: Store, upload: Upload, purpose: Purpose, content: Content) -> bool:
    """Finish in one transaction; False if another request did, or the bytes must be sealed again."""
    try:
        async with store.database.transaction() as transaction:
            if not await uploads.finish(transaction, upload.id):
                return False
            # From here the blob cannot be removed: removal needs its row, which this transaction locks.
            await blobs.keep(transaction, content.sha256, content.size)
            if await store.blobs.size(content.sha256) != content.size:
                raise _BlobMissing
            await purpose.keep(transaction, upload, content)
            return True
    except _BlobMissing:
        return False


async def _void(store: Store, upload: Upload, purpose: Purpose) -> bool:
    """Remove the upload and its announcement; False if another request finished it."""
    async with store.database.transaction() as transaction:
        if not await uploads.drop_open(transaction, upload.id):
            return False
        await purpose.abandon(transaction, upload)
    await _discard(store, upload)
    return True


async def _discard(store: Store, upload: Upload) -> None:
    # The outcome is committed; the collector removes files that cannot be removed now.
    with suppress(Unavailable):
        await store.blobs.discard(upload.id)


STRETCH_S = 30
"""A service stop loses at most the bytes sent in this time; an aborted connection loses nothing."""
STRETCH_BYTES = 4 << 30


class Progress(msgspec.Struct):
    """Progress of an upload: received ranges as first and last byte, in order, and the total size."""

    received: list[tuple[int, int]]
    size: int


async def show(call: StoreRequest[Nothing, Nothing], purpose: Purpose) -> Response:
    """Show the received ranges of the upload.

    Raises:
        UploadNotFound: no upload has this address.
    """
    database = call.context.database
    upload = await uploads.by_token(database, purpose.name, call.path["token"])
    if upload.finished_at is not None:
        return response.json(Progress([(0, upload.size - 1)], upload.size), headers=(_NO_STORE,))
    parts = await uploads.parts(database, upload.id)
    return response.json(Progress(uploads.received_pairs(parts), upload.size), headers=(_NO_STORE,))


_NO_STORE = ("Cache-Control", "no-store")


async def receive(call: StoreRequest[Nothing, Nothing], purpose: Purpose) -> Response:
    """Receive the request's bytes: 204 with Upload-Received while parts are missing, otherwise the purpose's response.

    Received bytes remain stored, and repeated bytes are discarded. A finished upload answers again without reading the
    body.

    Raises:
        UploadNotFound: no upload has this address.
        InvalidRequest: Content-Range, Content-Length and body do not match; the body is discarded.
        ClientGone: the connection was aborted; the bytes received before remain stored.
        StorageFull: no space is left; the parts recorded before remain stored.
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
        # A node that finishes the upload removes all its staged files, including those that another node is writing.
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
    """Stage the missing ranges of the span; each part is recorded once it is durable."""
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
