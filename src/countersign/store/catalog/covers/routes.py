"""GET /products/{id}/cover.svg: the placeholder cover of a product."""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from countersign.kernel.http.response import Response, etag_of
from countersign.kernel.http.response_cache import VARY
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.callers import StoreRequest
from countersign.store.catalog.covers import placeholder
from countersign.store.catalog.products import ProductNotFound, visible_entry
from countersign.store.catalog.schemas import Kind
from countersign.store.context import Store

SVG = "image/svg+xml"
IMMUTABLE, REVALIDATED, PRIVATE = "public, max-age=31536000, immutable", "public, no-cache", "private, no-cache"
# If a browser opens the address as a page, it runs no script and loads nothing. Pages of other origins may show the
# image.
INERT = (
    ("Content-Security-Policy", "default-src 'none'; style-src 'none'; sandbox"),
    ("Cross-Origin-Resource-Policy", "cross-origin"),
)
_SENT = ("ETag", "Cache-Control", "Vary", "Content-Encoding")
_VERSION = "The version in the address that lists name; with it, the response may be cached for a year."


class CoverQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of GET /products/{id}/cover.svg."""

    v: Annotated[str, msgspec.Meta(min_length=1, max_length=64, description=_VERSION)] | None = None


class _Drawn(msgspec.Struct):
    """The members of a product that its placeholder cover depends on."""

    slug: str
    kind: Kind
    tags: list[str]


_drawn = msgspec.json.Decoder(_Drawn)


async def show_cover(call: StoreRequest[CoverQuery, Nothing]) -> Response:
    """Show the placeholder cover of a product: an SVG of 640 × 360 that depends on its slug, kind and tags alone."""
    store: Store = call.context
    product = await visible_entry(store.database, call.caller, call.path["id"])
    cover = _drawn.decode(product.detail)
    body = placeholder.draw(cover.slug, cover.kind, cover.tags)
    caching = PRIVATE
    if product.status == "public":
        version = placeholder.describe(cover.slug, cover.kind, cover.tags).version
        caching = IMMUTABLE if call.query.v == version else REVALIDATED
    return Response(200, body, SVG, (("Cache-Control", caching), VARY, *INERT), etag_of(body))


_SENDS: Mapping[int, tuple[str, ...]] = {200: _SENT, 304: _SENT}

ROUTES = (
    route(
        "GET",
        "/products/{id}/cover.svg",
        show_cover,
        query=CoverQuery,
        answers={200: str},
        refusals=(ProductNotFound,),
        produces=(SVG,),
        compressed=True,
        cross_origin=True,
        # A page shows dozens of covers. If these requests counted, a few pages would use up the quota of an address.
        counted=False,
        reads=("If-None-Match",),
        sends=_SENDS,
    ),
)
