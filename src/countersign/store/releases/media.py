"""Images and videos of a product: POST and DELETE /products/{id}/media, /media/uploads/{token}, GET /media/{sha256}."""

import asyncio
from dataclasses import replace
from typing import Annotated, NamedTuple

import msgspec

from countersign.kernel import clock, ids, telemetry
from countersign.kernel.database.port import Reader, Transaction, Value
from countersign.kernel.errors import NotFound, Refused, StorageFull, Unavailable, invalid_member
from countersign.kernel.http import range_response, response
from countersign.kernel.http.range_response import (
    RANGE_REQUEST_HEADERS,
    RANGE_RESPONSE_HEADERS,
    RangeNotSatisfiable,
    StoredContent,
)
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.callers import Caller, StoreRequest
from countersign.store.catalog import product_assembly, projection
from countersign.store.catalog import products as catalog
from countersign.store.catalog.covers.routes import SVG
from countersign.store.catalog.products import ProductNotFound
from countersign.store.catalog.schemas import Media, MediaKind
from countersign.store.context import Store
from countersign.store.releases import blobs, receive_upload, uploads
from countersign.store.releases.media_formats import (
    HEAD_BYTES,
    MEDIA_TYPES,
    CoverPictures,
    Picture,
    UnsupportedImage,
    UnsupportedVideo,
    media_type,
    reencode,
    reencode_cover,
)
from countersign.store.releases.permissions import NotYourOrganisation, OwnedProduct, owned_product
from countersign.store.releases.processing.sandboxed_process import SandboxedProcess, WorkerDied, run_process
from countersign.store.releases.processing.video_duration import (
    MAX_READS,
    PROGRAM,
    DurationOrder,
    VideoDuration,
    VideoType,
    decode_record,
)
from countersign.store.releases.receive_upload import Progress
from countersign.store.releases.uploads import (
    Content,
    Purpose,
    TooManyParts,
    Upload,
    UploadAddress,
    UploadNotFound,
    check_filename,
)

MEBIBYTE = 1 << 20
MAX_IMAGE_MIB = 20
MAX_VIDEO_MIB = 512
MAX_MEDIA = 100
MAX_READING_S = 60
"""The maximum time for reading the duration of a video, in seconds."""

_turn = asyncio.Semaphore(1)
"""At most one process reads the duration of a video."""

COUNT = "SELECT count(*) FROM media WHERE product_id = $1"
INSERT = "INSERT INTO media (id, product_id, kind, alt, created_at) VALUES ($1, $2, $3, $4, $5)"
SET_CONTENT = """
    UPDATE media
    SET sha256 = $2, size = $3, media_type = $4, width = $5, height = $6, color = $7, duration_ms = $8
    WHERE id = $1 AND sha256 IS NULL
"""
INSERT_SIZE = """
    INSERT INTO media_size (media_id, media_type, width, sha256, size) VALUES ($1, $2, $3, $4, $5)
"""
DELETE_SIZES = """
    DELETE FROM media_size WHERE media_id IN (SELECT id FROM media WHERE id = $1 AND product_id = $2)
"""
DELETE = "DELETE FROM media WHERE id = $1 AND product_id = $2"
DELETE_UNRECEIVED = "DELETE FROM media WHERE id = $1 AND sha256 IS NULL"
BY_ID = "SELECT id, kind, sha256, alt, width, height, duration_ms FROM media WHERE id = $1"
KIND_OF = "SELECT kind FROM media WHERE id = $1"
PRODUCT_OF = "SELECT product_id FROM media WHERE id = $1"
VISIBLE = """
    SELECT DISTINCT m.media_type, m.size, p.id, p.org_id, p.status
    FROM (
        SELECT product_id, media_type, size FROM media WHERE sha256 = $1
        UNION ALL
        SELECT o.product_id, s.media_type, s.size FROM media_size s JOIN media o ON o.id = s.media_id
        WHERE s.sha256 = $1
    ) AS m
    JOIN product p ON p.id = m.product_id
    ORDER BY p.status DESC, p.id
    LIMIT 100
"""


class NewMedia(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The announcement of an image or video; `size` in bytes, `alt` is the alternative text."""

    kind: MediaKind
    filename: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    size: Annotated[int, msgspec.Meta(ge=1)]
    alt: Annotated[str, msgspec.Meta(max_length=1000)]


class AnnouncedMedia(msgspec.Struct):
    """The upload address of the file; it is a secret and expires at `expires_at`."""

    media_id: str
    upload_url: str
    expires_at: str


class MediaNotFound(NotFound):
    """The product has no such image or video, or the caller may not see any product that has it."""

    resolution = "Read the product and use an address or id from its `media`."


class TooManyMedia(Refused):
    """The product has the maximum number of images and videos."""

    status = 409
    code = "too_many_media"
    title = "Too many media"
    resolution = "Delete an image or video of the product first."


class StoredMedia(NamedTuple):
    """Stored media; `is_public` is true if every caller may see them."""

    media_type: str
    size: int
    is_public: bool


async def announce(
    transaction: Transaction, product: OwnedProduct, body: NewMedia, *, announcer: str, ttl_s: int
) -> tuple[str, UploadAddress]:
    """Announce an image or video; return its id and upload address.

    Raises:
        InvalidRequest: the filename is invalid, or the file exceeds the maximum size of its kind.
        TooManyMedia: the product has 100 media.
    """
    check_filename(body.filename)
    max_mib = MAX_VIDEO_MIB if body.kind == "video" else MAX_IMAGE_MIB
    if body.size > max_mib * MEBIBYTE:
        raise invalid_member("/size", f"must be at most {max_mib * MEBIBYTE} for {body.kind}, {max_mib} MiB")
    count_row = await transaction.fetch_one(COUNT, product.id)
    if count_row is not None and count_row[0] >= MAX_MEDIA:
        raise TooManyMedia(f"the product has {count_row[0]} images and videos")
    media_id = ids.new_uuid()
    await transaction.run(INSERT, media_id, product.id, body.kind, body.alt, clock.now())
    address = await uploads.announce(
        transaction,
        "media",
        media_id,
        org_id=product.org_id,
        announced_by=announcer,
        size=body.size,
        sha256=None,
        ttl_s=ttl_s,
    )
    return media_id, address


async def put_ready(transaction: Transaction, product_id: str, kind: MediaKind, alt: str, content: Content) -> None:
    """Insert an image or video of the product with this id. Its blob must already be stored. This function is used for
    demonstration data."""
    await blobs.keep(transaction, [await blobs.touch(transaction, content.sha256, content.size)])
    media_id = ids.new_uuid()
    await transaction.run(INSERT, media_id, product_id, kind, alt, clock.now())
    await transaction.run(SET_CONTENT, media_id, *_stored_values(content))


async def remove(transaction: Transaction, product: OwnedProduct, media_id: str) -> None:
    """Remove an image or video. The collector removes the blob later if it is unused.

    Raises:
        MediaNotFound: the product has no media of this id.
    """
    await uploads.delete_of_subject(transaction, media_id)
    await transaction.run(DELETE_SIZES, media_id, product.id)
    if not await transaction.run(DELETE, media_id, product.id):
        raise MediaNotFound("the product has no media of this id")
    await projection.refresh(transaction, product.id, reindex=False)


async def visible_media(reader: Reader, caller: Caller, sha256: str) -> StoredMedia:
    """The media with this digest, if the caller may see a product that has them.

    Raises:
        MediaNotFound: no product that the caller may see has the media.
    """
    for kind, size, product_id, org_id, status in await reader.fetch(VISIBLE, sha256):
        if status == "public":
            return StoredMedia(kind, size, is_public=True)
        is_member = org_id in caller.orgs_allowing("read:products")
        if is_member or (
            status == "archived" and not caller.is_anonymous and await catalog.owns(reader, caller.owner, product_id)
        ):
            return StoredMedia(kind, size, is_public=False)
    raise MediaNotFound("no media have this digest")


async def abandon(transaction: Transaction, upload: Upload) -> None:
    """Remove announced media that were never received."""
    await transaction.run(DELETE_UNRECEIVED, upload.subject_id)


async def _content(store: Store, upload: Upload, sha256: str) -> Content:
    """Return the content to store. A video does not change; an image is re-encoded, and its original blob is
    removed."""
    row = await store.database.fetch_one(KIND_OF, upload.subject_id)
    if row is None:
        raise UploadNotFound("the media of this upload were removed")
    if row[0] == "video":
        head = await _read_sealed(store, sha256, min(upload.size, HEAD_BYTES))
        return await _check_video(store, upload, sha256, head)
    try:
        data = await _read_sealed(store, sha256, upload.size)
        pictures = await reencode_cover(data) if row[0] == "cover" else CoverPictures(await reencode(data), [], None)
    finally:
        # Remove the original before the new image is stored. The new image can have the same digest as the original,
        # and would be removed with it.
        await _remove_original(store, sha256)
    sizes = tuple([await _store_picture(store, size) for size in pictures.sizes])
    return replace(await _store_picture(store, pictures.picture), color=pictures.color, sizes=sizes)


async def _store_picture(store: Store, picture: Picture) -> Content:
    digest = await blobs.put(store.database, store.blobs, picture.data)
    return Content(digest, len(picture.data), picture.media_type, picture.width, picture.height)


async def _check_video(store: Store, upload: Upload, sha256: str, head: bytes) -> Content:
    try:
        kind = media_type(head)
    except Refused:
        await _remove_original(store, sha256)
        raise
    return Content(sha256, upload.size, kind, duration_ms=await _duration_ms(store, sha256, upload.size, kind))


async def _duration_ms(store: Store, sha256: str, size: int, kind: VideoType) -> int | None:
    """The duration of the video, or None if the process that reads it finds none, cannot be started, or takes too long.
    A video without a duration is accepted, because browsers play it."""
    try:
        async with _turn, asyncio.timeout(MAX_READING_S), run_process(PROGRAM) as process:
            await process.send(msgspec.msgpack.encode(DurationOrder(kind, size)))
            return await _received_duration_ms(process, store, sha256, size)
    except (WorkerDied, OSError, msgspec.DecodeError) as error:
        telemetry.logger("media").warning("the duration of a video was not read", sha256=sha256, error=repr(error))
        return None


async def _received_duration_ms(process: SandboxedProcess, store: Store, sha256: str, size: int) -> int | None:
    """Send the bytes that the process requests, until it sends the duration."""
    for _ in range(MAX_READS + 1):
        record = decode_record(await process.receive())
        if isinstance(record, VideoDuration):
            return record.ms
        if record.start >= size:
            break
        stop = min(record.start + record.length, size)
        await process.send(await _read_sealed(store, sha256, stop, start=record.start))
    return None


async def _remove_original(store: Store, sha256: str) -> None:
    await blobs.remove_noted(store.database, store.blobs, sha256)


async def _read_sealed(store: Store, sha256: str, stop: int, *, start: int = 0) -> bytes:
    """The bytes from `start` to `stop` of a blob that was just sealed.

    Raises:
        Unavailable: the blob was removed as unused.
    """
    try:
        return b"".join([piece async for piece in store.blobs.read(sha256, start, stop)])
    except NotFound as error:
        raise blobs.removal_in_progress() from error


async def _keep(transaction: Transaction, upload: Upload, content: Content) -> None:
    """Raises UploadNotFound if the media were removed."""
    product = await transaction.fetch_one(PRODUCT_OF, upload.subject_id)
    if product is None or not await transaction.run(SET_CONTENT, upload.subject_id, *_stored_values(content)):
        raise UploadNotFound("the media of this upload were removed")
    for image_size in content.sizes:
        size = (image_size.media_type, image_size.width, image_size.sha256, image_size.size)
        await transaction.run(INSERT_SIZE, upload.subject_id, *size)
    await projection.refresh(transaction, product[0], reindex=False)


def _stored_values(content: Content) -> tuple[Value, ...]:
    """The values of SET_CONTENT, without the id."""
    picture = (content.width, content.height, content.color)
    return (content.sha256, content.size, content.media_type, *picture, content.duration_ms)


async def _upload_response(reader: Reader, upload: Upload) -> Response:
    row = await reader.fetch_one(BY_ID, upload.subject_id)
    if row is None:
        raise UploadNotFound("the media of this upload were removed")
    media = product_assembly.media_of(*row)
    return response.json(media, 201, (("Location", media.url),))


MEDIA = Purpose("media", _content, _keep, abandon, _upload_response)


WRITE_PRODUCTS = "write:products"
SHARED = "public, max-age=31536000, immutable"
PRIVATE = "private, no-cache"
# These headers prevent media from running scripts when a browser opens their address directly.
INERT = (
    ("Content-Security-Policy", "default-src 'none'; sandbox"),
    ("Cross-Origin-Resource-Policy", "cross-origin"),
)


async def announce_media(call: StoreRequest[Nothing, NewMedia]) -> Response:
    """Announce an image or video of a product; the response has its upload address."""
    store, transaction = call.context, call.transaction
    product = await owned_product(transaction, call.caller, call.path["id"], WRITE_PRODUCTS)
    ttl_s, announcer = store.settings.upload_ttl_s, call.caller.key
    media_id, address = await announce(transaction, product, call.body, announcer=announcer, ttl_s=ttl_s)
    url = f"{store.capability_base_url}/media/uploads/{address.token}"
    return response.json(AnnouncedMedia(media_id, url, clock.rfc3339(address.expires_at)), 201)


async def delete_media(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Remove an image or video from a product."""
    product = await owned_product(call.transaction, call.caller, call.path["id"], WRITE_PRODUCTS)
    await remove(call.transaction, product, call.path["media_id"])
    return response.no_content()


async def receive_media(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Upload an image or video, whole or in parts (Content-Range: bytes FIRST-LAST/SIZE); parts can be resent.

    The address is the only credential. Images (PNG, JPEG, WebP, AVIF) are re-encoded without metadata.
    """
    return await receive_upload.receive(call, MEDIA)


async def show_media_upload(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show the received byte ranges of an image or video, each as first and last byte."""
    return await receive_upload.show(call, MEDIA)


async def show_media(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show an image or video of a product."""
    store, sha256 = call.context, call.path["sha256"]
    media = await visible_media(store.database, call.caller, sha256)
    caching = SHARED if media.is_public else PRIVATE
    return await range_response.range_response(
        store.blobs, call.headers, StoredContent(sha256, media.size, caching, media.media_type, INERT)
    )


# Uploaded images are never SVG. The images of the demonstration data are SVG.
_MEDIA_TYPES = (*MEDIA_TYPES.values(), "video/mp4", "video/webm", SVG)

ROUTES = (
    route(
        "POST",
        "/products/{id}/media",
        announce_media,
        body=NewMedia,
        answers={201: AnnouncedMedia},
        refusals=(ProductNotFound, NotYourOrganisation, TooManyMedia),
        scope=WRITE_PRODUCTS,
        writes=True,
        secret=True,
    ),
    route(
        "DELETE",
        "/products/{id}/media/{media_id}",
        delete_media,
        answers={204: None},
        refusals=(ProductNotFound, NotYourOrganisation, MediaNotFound),
        scope=WRITE_PRODUCTS,
        writes=True,
    ),
    route(
        "PUT",
        "/media/uploads/{token}",
        receive_media,
        answers={201: Media, 204: None},
        refusals=(UploadNotFound, UnsupportedImage, UnsupportedVideo, TooManyParts, StorageFull, Unavailable),
        streams=True,
        reads=("Content-Range",),
        sends={204: ("Upload-Received",)},
    ),
    route(
        "GET",
        "/media/uploads/{token}",
        show_media_upload,
        answers={200: Progress},
        refusals=(UploadNotFound,),
    ),
    route(
        "GET",
        "/media/{sha256}",
        show_media,
        answers={200: bytes, 206: bytes},
        refusals=(MediaNotFound, RangeNotSatisfiable),
        produces=_MEDIA_TYPES,
        reads=RANGE_REQUEST_HEADERS,
        sends=RANGE_RESPONSE_HEADERS,
        cross_origin=True,
        # A page shows dozens of images. If these requests counted, a few pages would use up the quota of an address.
        counted=False,
    ),
)
