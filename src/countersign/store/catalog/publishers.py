"""GET /publishers and /publishers/{slug}: the organisations that have public products."""

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Row
from countersign.kernel.errors import NotFound
from countersign.kernel.http import cursor, response
from countersign.kernel.http.cursor import InvalidCursor
from countersign.kernel.http.response import Moment, Response
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.callers import StoreRequest
from countersign.store.catalog.schemas import Cursor, Limit

_COLUMNS = "o.slug, o.name, o.text, o.website, o.created_at, c.product_count, c.release_count, c.last_release_at"
PAGE = f"""
    SELECT {_COLUMNS}
    FROM organisation o
    JOIN catalog_publisher c ON c.org_id = o.id
    WHERE c.product_count > 0 AND (o.name, o.slug) > ($1, $2)
    ORDER BY o.name, o.slug
    LIMIT $3
"""
ONE = f"""
    SELECT {_COLUMNS}
    FROM organisation o
    JOIN catalog_publisher c ON c.org_id = o.id
    WHERE o.slug = $1 AND c.product_count > 0
"""


class PublisherNotFound(NotFound):
    """No organisation with public products has this slug."""

    resolution = "List the publishers with GET /api/v1/publishers and use a slug from there."


class Publisher(msgspec.Struct, kw_only=True):
    """An organisation that has public products. `since` is when it was created, `text` is plain text, and `verified` is
    true if the organisation proved that it owns its domain."""

    slug: str
    name: str
    text: str | None
    website: str | None
    verified: bool
    since: Moment
    product_count: int
    release_count: int
    last_release_at: Moment | None


class PublisherList(msgspec.Struct):
    """A page of publishers."""

    items: list[Publisher]
    next_cursor: str | None


class PublishersQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of GET /publishers."""

    cursor: Cursor | None = None
    limit: Limit = 20


async def find_publisher(reader: Reader, slug: str) -> Publisher:
    """The publisher with this slug.

    Raises:
        PublisherNotFound: no organisation has this slug, or it has no public products; the response is the same.
    """
    row = await reader.fetch_one(ONE, slug)
    if row is None:
        raise PublisherNotFound("no publisher has this slug")
    return _publisher(row)


async def list_publishers(call: StoreRequest[PublishersQuery, Nothing]) -> Response:
    """List the organisations that have public products, by name, a page at a time."""
    store, query = call.context, call.query
    name, slug = "", ""
    if query.cursor is not None:
        after_key = cursor.read(store.cursors, query.cursor, "publishers", str, str).after
        name, slug = str(after_key[0]), str(after_key[1])
    rows = await store.database.fetch(PAGE, name, slug, query.limit + 1)
    next_cursor = None
    if len(rows) > query.limit:
        rows.pop()
        next_cursor = cursor.write(store.cursors, cursor.Position("publishers", [], [rows[-1][1], rows[-1][0]]))
    return response.json(PublisherList([_publisher(row) for row in rows], next_cursor))


async def show_publisher(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show a publisher: its profile, and how many products and releases it has."""
    return response.json(await find_publisher(call.context.database, call.path["slug"]))


def _publisher(row: Row) -> Publisher:
    slug, name, text, website, created_at, products, releases, last_at = row
    return Publisher(
        slug=slug,
        name=name,
        text=text,
        website=website,
        verified=False,
        since=clock.rfc3339(Instant(created_at)),
        product_count=int(products),
        release_count=int(releases),
        last_release_at=clock.rfc3339_or_none(last_at),
    )


ROUTES = (
    route(
        "GET",
        "/publishers",
        list_publishers,
        query=PublishersQuery,
        answers={200: PublisherList},
        refusals=(InvalidCursor,),
        cached=True,
        cross_origin=True,
    ),
    route(
        "GET",
        "/publishers/{slug}",
        show_publisher,
        answers={200: Publisher},
        refusals=(PublisherNotFound,),
        cached=True,
        cross_origin=True,
    ),
)
