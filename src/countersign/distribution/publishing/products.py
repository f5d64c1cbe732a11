"""Creating, replacing and archiving a product, each in the caller's transaction."""

from countersign.distribution.auth.organisations import SlugTaken
from countersign.distribution.catalog import projection
from countersign.distribution.publishing import queries
from countersign.distribution.publishing.rules import OwnedProduct
from countersign.distribution.publishing.schemas import ProductWrite
from countersign.kernel import clock, ids
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import Refused, invalid_member


class StillEntitled(Refused):
    """Somebody owns the product, so it cannot be archived."""

    status = 409
    code = "product_entitled"
    title = "Product is owned"
    resolution = "Revoke the entitlements first, or set the status to draft to take it off the catalog."


def check(body: ProductWrite) -> None:
    """What a struct cannot say.

    Raises:
        InvalidRequest: platforms or tags repeat themselves, or the slug has the shape of an id.
    """
    if len(set(body.platforms)) != len(body.platforms):
        raise invalid_member("/platforms", "names a platform twice")
    if len(set(body.tags)) != len(body.tags):
        raise invalid_member("/tags", "names a tag twice")
    if ids.is_uuid(body.slug):
        raise invalid_member("/slug", "must not have the shape of an id")


async def create(transaction: Transaction, org_id: str, body: ProductWrite, product_id: str | None = None) -> str:
    """A new product of the organisation, a draft unless its status says otherwise; its id.

    Raises:
        InvalidRequest: as `check`.
        SlugTaken: another product has the slug.
    """
    check(body)
    made = product_id or ids.new_uuid()
    if not await queries.insert_product(transaction, made, org_id, body, body.status or "draft", clock.now()):
        raise SlugTaken("the slug is taken")
    await projection.refresh(transaction, made)
    return made


async def replace(transaction: Transaction, product: OwnedProduct, body: ProductWrite) -> None:
    """Replace all writable members; a status that is left out stays.

    Raises:
        InvalidRequest: as `check`.
        SlugTaken: another product has the slug.
        StillEntitled: it would archive a product that somebody owns.
    """
    check(body)
    status = body.status or product.status
    if status == "archived" and product.status != "archived":
        await _require_unowned(transaction, product.id)
    if not await queries.replace_product(transaction, product.id, body, status, clock.now()):
        raise SlugTaken("the slug is taken")
    await projection.refresh(transaction, product.id)


async def archive(transaction: Transaction, product: OwnedProduct) -> None:
    """Take the product out of the catalog for good; archiving twice is fine.

    Raises:
        StillEntitled: somebody owns it.
    """
    await _require_unowned(transaction, product.id)
    await transaction.run(queries.SET_STATUS, product.id, "archived", clock.now())
    await projection.refresh(transaction, product.id)


async def lock(transaction: Transaction, product_id: str) -> None:
    """Hold the product's row until the transaction ends, so that what is read of it stays true."""
    await transaction.run(queries.LOCK_PRODUCT, product_id)


async def _require_unowned(transaction: Transaction, product_id: str) -> None:
    await lock(transaction, product_id)
    if await queries.is_entitled(transaction, product_id):
        raise StillEntitled("a customer owns this product")
