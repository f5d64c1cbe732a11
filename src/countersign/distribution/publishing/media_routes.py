"""POST and DELETE /products/{id}/media, /media/uploads/{token}, GET /media/{sha256}."""

from countersign.distribution.auth.callers import StoreRequest
from countersign.distribution.catalog.schemas import Media
from countersign.distribution.catalog.visibility import ProductNotFound
from countersign.distribution.publishing import media
from countersign.distribution.publishing.films import UnsupportedVideo
from countersign.distribution.publishing.images import MEDIA_TYPES, UnsupportedImage
from countersign.distribution.publishing.media import MEDIA, AnnouncedMedia, MediaNotFound, NewMedia, TooManyMedia
from countersign.distribution.publishing.rules import NotYourOrganisation, owned_product
from countersign.distribution.uploads import receive
from countersign.distribution.uploads.queries import UploadNotFound
from countersign.distribution.uploads.receive import Progress
from countersign.distribution.uploads.rules import TooManyParts
from countersign.kernel import clock
from countersign.kernel.errors import StorageFull, Unavailable
from countersign.kernel.http import range_response, response
from countersign.kernel.http.range_response import RANGE_READS, RANGE_SENDS, RangeNotSatisfiable, StoredContent
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, route

WRITE_PRODUCTS = "write:products"
SHARED = "public, max-age=31536000, immutable"
PRIVATE = "private, no-cache"
# What publishers sent is shown as what it was recognised to be, and runs nothing even when opened by itself.
INERT = (
    ("Content-Security-Policy", "default-src 'none'; sandbox"),
    ("Cross-Origin-Resource-Policy", "cross-origin"),
)


async def announce_media(call: StoreRequest[Nothing, NewMedia]) -> Response:
    """Announce a picture or film of a product and get the address to upload it to."""
    store, transaction = call.context, call.transaction
    product = await owned_product(transaction, call.caller, call.path["id"], WRITE_PRODUCTS)
    ttl_s, by = store.settings.upload_ttl_s, call.caller.key
    media_id, address = await media.announce(transaction, product, call.body, by=by, ttl_s=ttl_s)
    url = f"{store.capability_base_url}/media/uploads/{address.token}"
    return response.json(AnnouncedMedia(media_id, url, clock.rfc3339(address.expires_at)), 201)


async def delete_media(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Remove a picture or film from a product."""
    product = await owned_product(call.transaction, call.caller, call.path["id"], WRITE_PRODUCTS)
    await media.remove(call.transaction, product, call.path["media_id"])
    return response.no_content()


async def receive_media(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Send a picture or film, whole or a part of it (Content-Range: bytes FIRST-LAST/SIZE), again after a cut.

    The address is all that is needed. Pictures (PNG, JPEG, WebP, AVIF) are encoded anew, without metadata.
    """
    return await receive.receive(call, MEDIA)


async def show_media_upload(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show which stretches of a picture or film have arrived, each from its first byte to its last."""
    return await receive.show(call, MEDIA)


async def show_media(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show a picture or film of a product."""
    store, sha256 = call.context, call.path["sha256"]
    found = await media.shown(store.database, call.caller, sha256)
    caching = SHARED if found.is_public else PRIVATE
    return await range_response.range_response(
        store.blobs, call.headers, StoredContent(sha256, found.size, caching, found.media_type, INERT)
    )


_MEDIA_TYPES = (*MEDIA_TYPES.values(), "video/mp4", "video/webm")

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
        reads=RANGE_READS,
        sends=RANGE_SENDS,
        cross_origin=True,
    ),
)
