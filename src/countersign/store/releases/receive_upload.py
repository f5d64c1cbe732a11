"""PUT and GET of an upload address.

Received bytes are staged: the blob store keeps them as a part of an unfinished blob. After the last part has arrived,
the parts are sealed: the blob store joins them to one blob, which is named by its SHA-256.
"""

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
    bytes can be stored. `connection_error` then contains the error."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""
        self._is_over = False
        self.connection_error: ClientGone | None = None

    async def has_more(self) -> bool:
        """Wait for more bytes; False at the end of the body or connection."""
        while not self._rest and not self._is_over:
            try:
                self._rest = await anext(self._chunks)
            except StopAsyncIteration:
                self._is_over = True
            except ClientGone as gone:
                self.connection_error, self._is_over = gone, True
        return bool(self._rest)

    async def read(self, limit: int, seconds: float) -> AsyncIterator[bytes]:
        """Yield the next bytes of the body, at most `limit` bytes. Stop after the given number of seconds."""
        ends_s = clock.monotonic_s() + seconds
        while limit > 0 and await self.has_more():
            piece, self._rest = self._rest[:limit], self._rest[limit:]
            limit -= len(piece)
            yield piece
            if clock.monotonic_s() >= ends_s:
                return

    async def skip(self, count: int) -> bool:
        """Read and discard the given number of bytes. Return False if the body ends earlier."""
        while count > 0 and await self.has_more():
            dropped_bytes = min(count, len(self._rest))
            self._rest = self._rest[dropped_bytes:]
            count -= dropped_bytes
        return count == 0


UNPROCESSABLE = 422
ATTEMPTS = 3

# The locks of uploads. Only one task of this process may finish an upload, so a client's retry waits for the first
# request.
_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


async def finish(store: Store, upload: Upload, purpose: Purpose) -> Response:
    """Finish a complete upload according to its purpose; return the response.

    Raises:
        ChecksumMismatch, or another 422 error: the content is invalid. The upload and its announcement are removed.
        Unavailable: the same blob is being removed, or the blob store is unavailable. The caller can repeat the call.
        StorageFull: no space is left. The received parts remain stored.
        UploadNotFound: the file was announced again, or the upload has expired.
    """
    async with _locks.setdefault(upload.id, asyncio.Lock()):
        for _ in range(ATTEMPTS):
            current_upload = await uploads.reload(store.database, upload)
            if current_upload.finished_at is not None:
                return await purpose.response(store.database, current_upload)
            content = await _content(store, current_upload, purpose)
            if content is not None and await _finish_in_transaction(store, current_upload, purpose, content):
                await _discard(store, current_upload)
                return await purpose.response(store.database, current_upload)
    raise blobs.removal_in_progress()


async def _content(store: Store, upload: Upload, purpose: Purpose) -> Content | None:
    """The sealed blob of the upload; None if another request finished the upload and removed the staged parts."""
    try:
        upload_parts = await uploads.parts(store.database, upload.id)
        if not upload_parts:
            return None
        digest = await _seal(store, upload, upload_parts)
        return await purpose.content(store, upload, digest)
    except Refused as refused:
        if refused.status != UNPROCESSABLE:
            raise
        if not await _abandon(store, upload, purpose):
            return None
        raise


async def _seal(store: Store, upload: Upload, parts: Sequence[Part]) -> str:
    """Seal the parts, and return the digest. If the digest is known beforehand, it is recorded in the database first.
    If the process then dies, the database still knows the blob."""
    expected_sha256 = parts[0].sha256 if len(parts) == 1 else upload.sha256
    if expected_sha256 is not None:
        await blobs.note_new(store.database, store.blobs, expected_sha256)
    digest = await store.blobs.seal(upload.id, parts, upload.size, upload.sha256)
    if digest != expected_sha256:
        await blobs.note_idle(store.database, digest)
    return digest


async def _finish_in_transaction(store: Store, upload: Upload, purpose: Purpose, content: Content) -> bool:
    """Finish the upload in one transaction. Return False if another request finished it, or the bytes must be sealed
    again."""
    stored_blobs = [(blob.sha256, blob.size) for blob in (content, *content.sizes)]
    try:
        reservations = await blobs.reserve(store.database, store.blobs, stored_blobs)
        async with store.database.transaction() as transaction:
            if not await uploads.finish(transaction, upload.id):
                return False
            await blobs.keep(transaction, reservations)
            await purpose.keep(transaction, upload, content)
            return True
    except blobs.BlobRemoved:
        return False


async def _abandon(store: Store, upload: Upload, purpose: Purpose) -> bool:
    """Remove the upload and its announcement. Return False if another request finished the upload."""
    async with store.database.transaction() as transaction:
        if not await uploads.delete_unfinished(transaction, upload.id):
            return False
        await purpose.abandon(transaction, upload)
    await _discard(store, upload)
    return True


async def _discard(store: Store, upload: Upload) -> None:
    # Ignore errors, because the outcome is already committed: the collector removes the remaining files later.
    with suppress(Unavailable):
        await store.blobs.discard(upload.id)


MAX_PART_S = 30
"""Received bytes are recorded as a part at least this often. If the service stops, only bytes after the last part are
lost. If a connection is aborted, no bytes are lost."""
MAX_PART_BYTES = 4 << 30


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
    upload = await uploads.upload_with_token(database, purpose.name, call.path["token"])
    if upload.finished_at is not None:
        return response.json(Progress([(0, upload.size - 1)], upload.size), headers=(_NO_STORE,))
    upload_parts = await uploads.parts(database, upload.id)
    return response.json(Progress(uploads.received_pairs(upload_parts), upload.size), headers=(_NO_STORE,))


_NO_STORE = ("Cache-Control", "no-store")


async def receive(call: StoreRequest[Nothing, Nothing], purpose: Purpose) -> Response:
    """Receive the request's bytes. Return 204 with Upload-Received while parts are missing. Return the response of the
    purpose after the last part.

    Received bytes remain stored, and repeated bytes are discarded. If the upload is already finished, return the same
    response again without reading the body.

    Raises:
        UploadNotFound: no upload has this address.
        InvalidRequest: Content-Range, Content-Length and body do not match; the body is discarded.
        ClientGone: the connection was aborted; the bytes received before remain stored.
        StorageFull: no space is left; the parts recorded before remain stored.
        TooManyParts, and what `finish` raises.
    """
    store = call.context
    upload = await uploads.upload_with_token(store.database, purpose.name, call.path["token"])
    span = uploads.requested_span(call.headers.get("content-range"), call.headers.get("content-length"), upload.size)
    if upload.finished_at is not None:
        return await purpose.response(store.database, upload)
    try:
        return await _receive(call, upload, span, purpose)
    except Unavailable:
        # Another node may have finished the upload. It then removed all staged files, including files that this node
        # was writing, so that the error can be ignored.
        current_upload = await uploads.reload(store.database, upload)
        if current_upload.finished_at is None:
            raise
        return await purpose.response(store.database, current_upload)


async def _receive(call: StoreRequest[Nothing, Nothing], upload: Upload, span: ByteRange, purpose: Purpose) -> Response:
    store = call.context
    upload_parts = await uploads.parts(store.database, upload.id)
    if not uploads.is_complete(upload_parts, upload.size):
        await _take(store, upload, span, upload_parts, UploadBody(call.chunks()))
        upload_parts = await uploads.parts(store.database, upload.id)
        upload = await uploads.reload(store.database, upload)
    if upload.finished_at is None and not uploads.is_complete(upload_parts, upload.size):
        return Response(204, headers=(("Upload-Received", uploads.received_header(upload_parts)), _NO_STORE))
    return await finish(store, upload, purpose)


async def _take(store: Store, upload: Upload, span: ByteRange, known_parts: Sequence[Part], body: UploadBody) -> None:
    """Stage the missing ranges of the span. Each part is recorded after it is stored durably."""
    staged_parts: list[Part] = []
    position = span.start
    for gap in uploads.missing_ranges(known_parts, span):
        await body.skip(gap.start - position)
        position = gap.start
        while position < gap.stop and await body.has_more():
            uploads.require_part_limit([*known_parts, *staged_parts])
            limit = min(gap.stop - position, MAX_PART_BYTES)
            part = await store.blobs.stage(upload.id, position, body.read(limit, MAX_PART_S))
            async with store.database.transaction() as transaction:
                if not await uploads.add_part(transaction, upload.id, part):
                    return
            staged_parts.append(part)
            position += part.length
    is_complete = await body.skip(span.stop - position)
    is_long = is_complete and await body.has_more()
    if body.connection_error is not None:
        raise body.connection_error
    if is_long or not is_complete:
        async with store.database.transaction() as transaction:
            await uploads.forget_parts(transaction, upload.id, staged_parts)
        raise uploads.wrong_length_error(is_long, span)
