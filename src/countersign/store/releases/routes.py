"""POST, PUT, DELETE /products…, and the life of a release below it."""

from countersign.kernel.database.port import Transaction
from countersign.kernel.http import response
from countersign.kernel.http.request import BodyT
from countersign.kernel.http.response import PreconditionFailed, Response, require_match
from countersign.kernel.http.routing import Nothing, OneOf, route
from countersign.store.auth.callers import StoreRequest
from countersign.store.auth.organisations import SlugTaken, organisation_of
from countersign.store.catalog import products as catalog
from countersign.store.catalog.products import ProductNotFound
from countersign.store.catalog.schemas import Draft, ProductDetail, Release
from countersign.store.releases import lifecycle
from countersign.store.releases.lifecycle import (
    AlreadyPublished,
    Incomplete,
    NotPublished,
    ReleaseExists,
    ReleaseIncomplete,
    Yanked,
)
from countersign.store.releases.permissions import (
    NotYourOrganisation,
    OwnedRelease,
    ReleaseNotFound,
    owned_product,
    owned_release,
)
from countersign.store.releases.schemas import NewProductQuery, NewRelease, ProductWrite, Promotion, ReleaseUpdate, Yank
from countersign.store.scopes import WRITE_PRODUCTS, WRITE_RELEASES


async def create_product(call: StoreRequest[NewProductQuery, ProductWrite]) -> Response:
    """Create a product; it is a draft until its first release is published."""
    org = await organisation_of(call.transaction, call.caller, call.query.org, WRITE_PRODUCTS)
    product_id = await lifecycle.create(call.transaction, org.id, call.body)
    detail = await _detail(call.transaction, product_id)
    detail.status = 201
    detail.headers = (("Location", f"{call.context.base_url}/products/{call.body.slug}"),)
    return detail


async def replace_product(call: StoreRequest[Nothing, ProductWrite]) -> Response:
    """Replace all writable members of a product."""
    product = await owned_product(call.transaction, call.caller, call.path["id"], WRITE_PRODUCTS)
    await lifecycle.lock(call.transaction, product.id)
    detail = await _detail(call.transaction, product.id)
    require_match(call.headers.get("if-match"), detail.etag or "")
    await lifecycle.replace(call.transaction, product, call.body)
    return await _detail(call.transaction, product.id)


async def archive_product(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Archive a product without entitlements."""
    product = await owned_product(call.transaction, call.caller, call.path["id"], WRITE_PRODUCTS)
    await lifecycle.archive(call.transaction, product)
    return response.no_content()


async def draft_release(call: StoreRequest[Nothing, NewRelease]) -> Response:
    """Draft a release of a product."""
    product = await owned_product(call.transaction, call.caller, call.path["id"], WRITE_RELEASES)
    release_id = await lifecycle.draft(call.transaction, product, call.body)
    return response.json(await lifecycle.release_view(call.transaction, release_id), 201)


async def update_release(call: StoreRequest[Nothing, ReleaseUpdate]) -> Response:
    """Change a release's notes, channel or `notes_only`."""
    release = await _release(call)
    await lifecycle.update(call.transaction, release, call.body)
    return response.json(await lifecycle.release_view(call.transaction, release.id))


async def publish_release(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Publish a draft release. It requires a build for each platform that it has files for, or `notes_only`."""
    release = await _release(call)
    await lifecycle.publish(call.transaction, release)
    return response.json(await lifecycle.release_view(call.transaction, release.id))


async def yank_release(call: StoreRequest[Nothing, Yank]) -> Response:
    """Yank a published release, with a reason."""
    release = await _release(call)
    await lifecycle.yank(call.transaction, release, call.body.reason)
    return response.json(await lifecycle.release_view(call.transaction, release.id))


async def promote_release(call: StoreRequest[Nothing, Promotion]) -> Response:
    """Move a published release to another channel."""
    release = await _release(call)
    await lifecycle.promote(call.transaction, release, call.body.channel)
    return response.json(await lifecycle.release_view(call.transaction, release.id))


async def _release(call: StoreRequest[Nothing, BodyT]) -> OwnedRelease:
    return await owned_release(call.transaction, call.caller, call.path["id"], call.path["version"], WRITE_RELEASES)


async def _detail(transaction: Transaction, product_id: str) -> Response:
    entry = await catalog.find_entry(transaction, product_id, is_id=True)
    if entry is None:
        raise LookupError(f"no catalog entry of {product_id}")
    return Response(200, entry.detail, etag=entry.etag)


_OF_PRODUCT = (ProductNotFound, NotYourOrganisation)
_OF_RELEASE = (*_OF_PRODUCT, ReleaseNotFound)

ROUTES = (
    route(
        "POST",
        "/products",
        create_product,
        query=NewProductQuery,
        body=ProductWrite,
        answers={201: ProductDetail},
        refusals=(SlugTaken,),
        scope=WRITE_PRODUCTS,
        writes=True,
    ),
    route(
        "PUT",
        "/products/{id}",
        replace_product,
        body=ProductWrite,
        answers={200: ProductDetail},
        refusals=(*_OF_PRODUCT, SlugTaken, PreconditionFailed, lifecycle.StillEntitled),
        scope=WRITE_PRODUCTS,
        writes=True,
        reads=("If-Match",),
        sends={200: ("ETag",)},
    ),
    route(
        "DELETE",
        "/products/{id}",
        archive_product,
        answers={204: None},
        refusals=(*_OF_PRODUCT, lifecycle.StillEntitled),
        scope=WRITE_PRODUCTS,
        writes=True,
    ),
    route(
        "POST",
        "/products/{id}/releases",
        draft_release,
        body=NewRelease,
        answers={201: Draft},
        refusals=(*_OF_PRODUCT, ReleaseExists),
        scope=WRITE_RELEASES,
        writes=True,
    ),
    route(
        "PUT",
        "/products/{id}/releases/{version}",
        update_release,
        body=ReleaseUpdate,
        answers={200: OneOf((Release, Draft))},
        refusals=(*_OF_RELEASE, Yanked, AlreadyPublished),
        scope=WRITE_RELEASES,
        writes=True,
    ),
    route(
        "POST",
        "/products/{id}/releases/{version}/publish",
        publish_release,
        answers={200: Release},
        refusals=(*_OF_RELEASE, Yanked, Incomplete, ReleaseIncomplete),
        scope=WRITE_RELEASES,
        writes=True,
    ),
    route(
        "POST",
        "/products/{id}/releases/{version}/yank",
        yank_release,
        body=Yank,
        answers={200: Release},
        refusals=(*_OF_RELEASE, NotPublished),
        scope=WRITE_RELEASES,
        writes=True,
    ),
    route(
        "POST",
        "/products/{id}/releases/{version}/promote",
        promote_release,
        body=Promotion,
        answers={200: Release},
        refusals=(*_OF_RELEASE, NotPublished, Yanked),
        scope=WRITE_RELEASES,
        writes=True,
    ),
)
