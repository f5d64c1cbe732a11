"""/me/follows and /me/owned: products and organisations that the caller follows, and which of some products it owns."""

from typing import Annotated, Literal

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.http import response
from countersign.kernel.http.response import Moment, Response, Uuid, encode
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth import queries
from countersign.store.auth.callers import StoreRequest
from countersign.store.catalog.products import ProductNotFound, find_entry, visible_entry
from countersign.store.catalog.publishers import PublisherNotFound, find_publisher
from countersign.store.catalog.schemas import Product
from countersign.store.catalog.search import SqlBuilder
from countersign.store.personal.notifications import WINDOW_S, seen_at
from countersign.store.statistics import counts

READ_LIBRARY = "read:library"
PRIVATE = (("Cache-Control", "private, no-store"),)
MAX_FOLLOWS, MAX_IDS = 1_000, 100
FOLLOW = """
    INSERT INTO follow (owner, kind, target_id, since)
    SELECT $1, $2, $3, $4
    WHERE (SELECT count(*) FROM follow WHERE owner = $1) < $5
    ON CONFLICT DO NOTHING
"""
IS_FOLLOWED = "SELECT since FROM follow WHERE owner = $1 AND kind = $2 AND target_id = $3"
UNFOLLOW = "DELETE FROM follow WHERE owner = $1 AND kind = $2 AND target_id = $3"
FOLLOWED_PRODUCTS = """
    SELECT f.since, f.target_id, c.slug, c.title, c.card
    FROM follow f
    JOIN catalog_entry c ON c.product_id = f.target_id
    WHERE f.owner = $1 AND f.kind = 'product' AND c.status = 'public'
"""
FOLLOWED_ORGS = """
    SELECT f.since, f.target_id, o.slug, o.name
    FROM follow f
    JOIN organisation o ON o.id = f.target_id
    WHERE f.owner = $1 AND f.kind = 'org'
"""
UNSEEN = """
    SELECT kind, target_id, count(*)
    FROM (
        SELECT f.kind AS kind, f.target_id AS target_id
        FROM follow f
        JOIN product p ON p.id = f.target_id
        JOIN release r ON r.product_id = p.id
        WHERE f.owner = $1 AND f.kind = 'product' AND p.status = 'public' AND r.status = 'published'
          AND r.published_at > f.since AND r.published_at > $2
        UNION ALL
        SELECT f.kind AS kind, f.target_id AS target_id
        FROM follow f
        JOIN product p ON p.org_id = f.target_id
        JOIN release r ON r.product_id = p.id
        WHERE f.owner = $1 AND f.kind = 'org' AND p.status = 'public' AND r.status = 'published'
          AND r.published_at > f.since AND r.published_at > $2
    ) AS unseen
    GROUP BY kind, target_id
"""
OWNED = "SELECT product_id FROM entitlement WHERE owner = {owner} AND revoked_at IS NULL AND product_id IN ({ids})"
FOLLOWED = "SELECT target_id FROM follow WHERE owner = {owner} AND kind = 'product' AND target_id IN ({ids})"

Kind = Literal["product", "org"]


class LimitReached(Refused):
    """The caller has the maximum number of follows, collections or products in a collection."""

    status = 409
    code = "limit_reached"
    title = "Limit reached"
    resolution = "Remove what is no longer needed, then try again."


class Target(msgspec.Struct):
    """The followed product with its title, or the followed organisation with its name."""

    type: Kind
    slug: str
    name: str


class Follow(msgspec.Struct):
    """A followed product or organisation, and the time since which it is followed."""

    target: Target
    since: Moment


class FollowItem(msgspec.Struct, kw_only=True):
    """A followed product or organisation. `unseen` is the number of its releases since the notifications were last
    seen, and `product` is null for organisations."""

    target: Target
    since: Moment
    unseen: int
    product: Product | None


class FollowList(msgspec.Struct):
    """Everything that the caller follows, the latest first."""

    items: list[FollowItem]


class OwnedQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of GET /me/owned."""

    ids: Annotated[
        str,
        msgspec.Meta(
            min_length=36,
            max_length=MAX_IDS * 37,
            pattern=r"^[0-9a-fA-F-]{36}(,[0-9a-fA-F-]{36}){0,99}(?!\n)$",
            description="Ids of products, separated by commas; at most 100.",
            examples=["01890a5d-ac96-774b-bcce-b302099a8057"],
            extra={"needs": "must be 1 to 100 ids of products, separated by commas"},
        ),
    ]


class OwnedIds(msgspec.Struct):
    """Those of the products that are in the caller's library, and those that the caller follows."""

    owned: list[Uuid]
    followed: list[Uuid]


async def show_owned(call: StoreRequest[OwnedQuery, Nothing]) -> Response:
    """Show which of some products the caller owns and follows."""
    wanted_ids = list(dict.fromkeys(call.query.ids.lower().split(",")))
    id_sets: list[set[str]] = []
    for template in (OWNED, FOLLOWED):
        statement = SqlBuilder()
        text = template.format(owner=statement.add(call.caller.owner), ids=statement.add_all(wanted_ids))
        id_sets.append({row[0] for row in await call.context.database.fetch(text, *statement.values)})
    owned_ids, followed_ids = ([wanted_id for wanted_id in wanted_ids if wanted_id in ids] for ids in id_sets)
    return response.json(OwnedIds(owned_ids, followed_ids), headers=PRIVATE)


async def list_follows(call: StoreRequest[Nothing, Nothing]) -> Response:
    """List what the caller follows: products and organisations, the latest first."""
    database, owner = call.context.database, call.caller.owner
    unseen_counts = await _unseen_counts(database, owner)
    items: list[tuple[Instant, str, bytes]] = []
    for followed_at, target_id, slug, title, card in await database.scan(FOLLOWED_PRODUCTS, owner):
        target = Target("product", slug, title)
        items.append(
            (followed_at, target_id, _item(target, followed_at, unseen_counts.get(("product", target_id), 0), card))
        )
    for followed_at, target_id, slug, name in await database.scan(FOLLOWED_ORGS, owner):
        target = Target("org", slug, name)
        items.append(
            (followed_at, target_id, _item(target, followed_at, unseen_counts.get(("org", target_id), 0), b"null"))
        )
    items.sort(reverse=True)
    return Response(200, b'{"items":[%b]}' % b",".join([body for *_, body in items]), headers=PRIVATE)


def _item(target: Target, followed_at: Instant, unseen_count: int, card: bytes) -> bytes:
    members = (encode(target), encode(clock.rfc3339(followed_at)), unseen_count, card)
    return b'{"target":%b,"since":%b,"unseen":%d,"product":%b}' % members


async def _unseen_counts(database: Database, owner: str) -> dict[tuple[str, str], int]:
    """The number of releases of what is followed, since the notifications were last seen."""
    after_instant = max(await seen_at(database, owner), clock.later(clock.now(), seconds=-WINDOW_S))
    return {
        (kind, target_id): int(count) for kind, target_id, count in await database.scan(UNSEEN, owner, after_instant)
    }


async def follow_product(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Follow a product. Following it again has no effect."""
    product = await visible_entry(call.transaction, call.caller, call.path["id"])
    row = await call.transaction.fetch_one("SELECT slug, title FROM catalog_entry WHERE product_id = $1", product[0])
    slug, title = row or ("", "")
    target = Target("product", slug, title)
    return await _follow(call.transaction, call.caller.owner, target, product.product_id, product.org_id)


async def follow_organisation(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Follow an organisation: all its products. Following it again has no effect."""
    publisher = await find_publisher(call.transaction, call.path["slug"])
    org = await queries.organisation_with_slug(call.transaction, publisher.slug)
    if org is None:
        raise PublisherNotFound("no publisher has this slug")
    return await _follow(call.transaction, call.caller.owner, Target("org", org.slug, org.name), org.id, org.id)


async def _follow(transaction: Transaction, owner: str, target: Target, target_id: str, org_id: str) -> Response:
    now = clock.now()
    if not await transaction.run(FOLLOW, owner, target.type, target_id, now, MAX_FOLLOWS):
        row = await transaction.fetch_one(IS_FOLLOWED, owner, target.type, target_id)
        if row is None:
            raise LimitReached(f"you follow {MAX_FOLLOWS} products and organisations already")
        return response.json(Follow(target, clock.rfc3339(row[0])), headers=PRIVATE)
    await counts.count_follower(transaction, org_id, target_id if target.type == "product" else "", 1)
    return response.json(Follow(target, clock.rfc3339(now)), headers=PRIVATE)


async def unfollow_product(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Stop following a product."""
    id_or_slug = call.path["id"]
    catalog_entry = await find_entry(call.transaction, id_or_slug, is_id=ids.is_uuid(id_or_slug))
    # If the caller neither sees nor follows the product, answer 404.
    if catalog_entry is None or not await _unfollow(call, "product", catalog_entry.product_id):
        await visible_entry(call.transaction, call.caller, id_or_slug)
    else:
        await counts.count_follower(call.transaction, catalog_entry.org_id, catalog_entry.product_id, -1)
    return response.no_content()


async def unfollow_organisation(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Stop following an organisation."""
    org = await queries.organisation_with_slug(call.transaction, call.path["slug"])
    if org is None or not await _unfollow(call, "org", org.id):
        await find_publisher(call.transaction, call.path["slug"])
    else:
        await counts.count_follower(call.transaction, org.id, "", -1)
    return response.no_content()


async def _unfollow(call: StoreRequest[Nothing, Nothing], kind: Kind, target_id: str) -> bool:
    """End a follow. Return False if there is none."""
    return bool(await call.transaction.run(UNFOLLOW, call.caller.owner, kind, target_id))


ROUTES = (
    route(
        "GET",
        "/me/owned",
        show_owned,
        query=OwnedQuery,
        answers={200: OwnedIds},
        scope=READ_LIBRARY,
        sends={200: ("Cache-Control",)},
    ),
    route(
        "GET",
        "/me/follows",
        list_follows,
        answers={200: FollowList},
        scope=READ_LIBRARY,
        sends={200: ("Cache-Control",)},
    ),
    route(
        "PUT",
        "/me/follows/product/{id}",
        follow_product,
        answers={200: Follow},
        refusals=(ProductNotFound, LimitReached),
        scope=READ_LIBRARY,
        writes=True,
        sends={200: ("Cache-Control",)},
    ),
    route(
        "DELETE",
        "/me/follows/product/{id}",
        unfollow_product,
        answers={204: None},
        refusals=(ProductNotFound,),
        scope=READ_LIBRARY,
        writes=True,
    ),
    route(
        "PUT",
        "/me/follows/org/{slug}",
        follow_organisation,
        answers={200: Follow},
        refusals=(PublisherNotFound, LimitReached),
        scope=READ_LIBRARY,
        writes=True,
        sends={200: ("Cache-Control",)},
    ),
    route(
        "DELETE",
        "/me/follows/org/{slug}",
        unfollow_organisation,
        answers={204: None},
        refusals=(PublisherNotFound,),
        scope=READ_LIBRARY,
        writes=True,
    ),
)
