"""Which product a caller may see: public ones, drafts of the caller's own organisations, archived ones it owns."""

from countersign.kernel import ids
from countersign.kernel.database.port import Reader
from countersign.kernel.errors import NotFound
from countersign.store.auth.authentication import InsufficientScope
from countersign.store.auth.callers import Caller
from countersign.store.catalog import queries
from countersign.store.catalog.queries import Entry

SHOW_DRAFTS = ("read:releases", "read:products", "write:releases")


class ProductNotFound(NotFound):
    """No product has this id or slug, or the caller may not know of it."""

    resolution = "List the products with GET /api/v1/products and use an id or slug from there."


async def visible_entry(reader: Reader, caller: Caller, id_or_slug: str) -> Entry:
    """The product as the caller may see it.

    Raises:
        ProductNotFound: there is none, or it is another organisation's draft: the same answer.
    """
    found = await queries.entry(reader, id_or_slug, is_id=ids.is_uuid(id_or_slug))
    if found is None or not await _may_see(reader, caller, found):
        raise ProductNotFound("no product has this id or slug")
    return found


async def _may_see(reader: Reader, caller: Caller, found: Entry) -> bool:
    if found.status == "public" or is_member(caller, found):
        return True
    if found.status != "archived" or caller.is_anonymous:
        return False
    return await queries.owns(reader, caller.owner, found.product_id)


def is_member(caller: Caller, found: Entry) -> bool:
    """Whether the caller sees the product from inside its organisation."""
    return found.org_id in caller.orgs_allowing("read:products")


def require_drafts_visible(caller: Caller, found: Entry) -> None:
    """Let only members of the product's organisation see its drafts.

    Raises:
        InsufficientScope: the caller is not a member, or its token carries none of the scopes that show drafts.
    """
    if not any(found.org_id in caller.orgs_allowing(scope) for scope in SHOW_DRAFTS):
        raise InsufficientScope(
            "drafts are visible to members of the product's organisation only",
            resolution="Use a token of a member of the organisation, with the scope read:releases.",
        )
