"""Permissions: callers may edit products and releases of their own organisations. For drafts of other organisations,
the response is 404."""

from typing import NamedTuple

from countersign.kernel import ids
from countersign.kernel.database.port import Reader
from countersign.kernel.errors import NotFound
from countersign.store.auth.authentication import InsufficientScope
from countersign.store.auth.callers import Caller
from countersign.store.catalog import products as catalog
from countersign.store.catalog.products import ProductNotFound

PRODUCT = """
    SELECT e.product_id, e.org_id, e.org_slug, e.slug, e.status, p.access, p.updated_at
    FROM catalog_entry e
    JOIN product p ON p.id = e.product_id
    WHERE e.product_id = $1
"""
RELEASE = "SELECT id, version, channel, status FROM release WHERE product_id = $1 AND version = $2"


class ReleaseNotFound(NotFound):
    """The product has no release of this version, or the caller may not see it."""

    resolution = "List the product's releases and use a version from there."


class NotYourOrganisation(InsufficientScope):
    """The product is public, but belongs to another organisation."""

    resolution = "Use a token of the organisation that owns the product."


class OwnedProduct(NamedTuple):
    """A product of the caller's own organisation."""

    id: str
    org_id: str
    org_slug: str
    slug: str
    status: str
    access: str
    updated_at: int


class OwnedRelease(NamedTuple):
    """A release of a product of the caller's own organisation."""

    product: OwnedProduct
    id: str
    version: str
    channel: str
    status: str


async def owned_product(reader: Reader, caller: Caller, id_or_slug: str, scope: str) -> OwnedProduct:
    """The product, if the caller has the scope in its organisation.

    Raises:
        ProductNotFound: the product does not exist, or belongs to another organisation and is not public.
        NotYourOrganisation: the product is public and belongs to another organisation.
        InsufficientScope: the caller does not have the scope in its organisation.
    """
    entry = await catalog.find_entry(reader, id_or_slug, is_id=ids.is_uuid(id_or_slug))
    if entry is None or (entry.status != "public" and entry.org_id not in caller.orgs):
        raise ProductNotFound("no product has this id or slug")
    if entry.org_id not in caller.orgs:
        raise NotYourOrganisation("the product belongs to another organisation")
    if entry.org_id not in caller.orgs_allowing(scope):
        raise InsufficientScope(f"this requires the scope {scope} in the product's organisation")
    row = await reader.fetch_one(PRODUCT, entry.product_id)
    if row is None:
        raise ProductNotFound("no product has this id or slug")
    return OwnedProduct(*row)


async def owned_release(reader: Reader, caller: Caller, id_or_slug: str, version: str, scope: str) -> OwnedRelease:
    """The release of that version of a product of the caller's organisation.

    Raises:
        ProductNotFound, NotYourOrganisation, InsufficientScope: the same conditions as in `owned_product`.
        ReleaseNotFound: the product has no such release.
    """
    product = await owned_product(reader, caller, id_or_slug, scope)
    row = await reader.fetch_one(RELEASE, product.id, version)
    if row is None:
        raise ReleaseNotFound("the product has no release of this version")
    return OwnedRelease(product, *row)
