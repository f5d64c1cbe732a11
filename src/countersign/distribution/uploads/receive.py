"""PUT and GET of an upload address: bytes are staged as they arrive; the one who completes the file finishes it.

A part's bytes are never written to again once it is counted, and who completes the file is decided by the database,
so that any number of clients may send at once, again, or from other nodes.
"""

from collections.abc import Sequence

import msgspec

from countersign.distribution.auth.callers import StoreRequest
from countersign.distribution.context import Store
from countersign.distribution.uploads import queries, rules
from countersign.distribution.uploads.body import Body
from countersign.distribution.uploads.finish import finish
from countersign.distribution.uploads.purposes import Purpose
from countersign.distribution.uploads.queries import Upload
from countersign.kernel.blobs.port import Part
from countersign.kernel.errors import Unavailable
from countersign.kernel.http import response
from countersign.kernel.http.range_response import ByteRange
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing

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
    upload = await queries.by_token(database, purpose.name, call.path["token"])
    if upload.finished_at is not None:
        return response.json(Progress([(0, upload.size - 1)], upload.size), headers=(_UNKEPT,))
    parts = await queries.parts(database, upload.id)
    return response.json(Progress(rules.pairs(parts), upload.size), headers=(_UNKEPT,))


_UNKEPT = ("Cache-Control", "no-store")


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
    upload = await queries.by_token(store.database, purpose.name, call.path["token"])
    span = rules.span_of_request(call.headers.get("content-range"), call.headers.get("content-length"), upload.size)
    if upload.finished_at is not None:
        return await purpose.answer(store.database, upload)
    try:
        return await _receive(call, upload, span, purpose)
    except Unavailable:
        # A node that finishes the upload removes its staged files, those that another node is writing too.
        present = await queries.again(store.database, upload)
        if present.finished_at is None:
            raise
        return await purpose.answer(store.database, present)


async def _receive(call: StoreRequest[Nothing, Nothing], upload: Upload, span: ByteRange, purpose: Purpose) -> Response:
    store = call.context
    parts = await queries.parts(store.database, upload.id)
    if not rules.is_whole(parts, upload.size):
        await _take(store, upload, span, parts, Body(call.chunks()))
        parts = await queries.parts(store.database, upload.id)
        upload = await queries.again(store.database, upload)
    if upload.finished_at is None and not rules.is_whole(parts, upload.size):
        return Response(204, headers=(("Upload-Received", rules.received_header(parts)), _UNKEPT))
    return await finish(store, upload, purpose)


async def _take(store: Store, upload: Upload, span: ByteRange, known: Sequence[Part], body: Body) -> None:
    """Stage what of the span is missing, stretch by stretch, each counted once it is durable."""
    taken: list[Part] = []
    position = span.start
    for gap in rules.missing(known, span):
        await body.skip(gap.start - position)
        position = gap.start
        while position < gap.stop and await body.has_more():
            rules.require_few([*known, *taken])
            limit = min(gap.stop - position, STRETCH_BYTES)
            part = await store.blobs.stage(upload.id, position, body.stretch(limit, STRETCH_S))
            async with store.database.transaction() as transaction:
                if not await queries.add_part(transaction, upload.id, part):
                    return
            taken.append(part)
            position += part.length
    is_complete = await body.skip(span.stop - position)
    is_long = is_complete and await body.has_more()
    if body.gone is not None:
        raise body.gone
    if is_long or not is_complete:
        async with store.database.transaction() as transaction:
            await queries.forget_parts(transaction, upload.id, taken)
        raise rules.wrong_length(is_long, span)
