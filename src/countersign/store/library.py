"""Entitlements to products: granting, revoking, and GET /library."""

from collections.abc import Sequence

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Row, Transaction
from countersign.kernel.http import cursor
from countersign.kernel.http.cursor import InvalidCursor
from countersign.kernel.http.response import Moment, Response, encode
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.callers import StoreRequest
from countersign.store.catalog.schemas import Channel, Cursor, Described, Limit

GRANT = """
    INSERT INTO entitlement (owner, product_id, granted_at, source, revoked_at)
    VALUES ($1, $2, $3, $4, NULL)
    ON CONFLICT (owner, product_id) DO UPDATE
        SET granted_at = excluded.granted_at, source = excluded.source, revoked_at = NULL
        WHERE entitlement.revoked_at IS NOT NULL
"""
REVOKE_BY_SOURCE = "UPDATE entitlement SET revoked_at = $2 WHERE source = $1 AND revoked_at IS NULL"
FIRST_PAGE = """
    SELECT c.card, e.granted_at, e.product_id, c.newest
    FROM entitlement e
    JOIN catalog_entry c ON c.product_id = e.product_id
    WHERE e.owner = $1 AND e.revoked_at IS NULL
    ORDER BY e.granted_at DESC, e.product_id DESC
    LIMIT $2
"""
NEXT_PAGE = """
    SELECT c.card, e.granted_at, e.product_id, c.newest
    FROM entitlement e
    JOIN catalog_entry c ON c.product_id = e.product_id
    WHERE e.owner = $1 AND e.revoked_at IS NULL AND (e.granted_at, e.product_id) < ($3, $4)
    ORDER BY e.granted_at DESC, e.product_id DESC
    LIMIT $2
"""


async def grant(transaction: Transaction, owner: str, products: Sequence[str], source: str, now: Instant) -> int:
    """Grant the owner the products that it does not own; return their number. `source` is the reason, such as
    `batch:<id>`, by which the entitlements can be revoked."""
    return sum([await transaction.run(GRANT, owner, product, now, source) for product in sorted(products)])


async def revoke_by_source(transaction: Transaction, source: str, now: Instant) -> int:
    """Revoke every entitlement of the source; return their number."""
    return await transaction.run(REVOKE_BY_SOURCE, source, now)


async def owned(reader: Reader, owner: str, limit: int, after: tuple[int, str] | None) -> list[Row]:
    """The owner's products, newest entitlement first: encoded card, moment granted, product id, encoded newest
    releases."""
    if after is None:
        return await reader.fetch(FIRST_PAGE, owner, limit)
    return await reader.fetch(NEXT_PAGE, owner, limit, *after)


_channels = msgspec.json.Decoder(list[Channel])


class LibraryQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of GET /library."""

    limit: Limit = 50
    cursor: Cursor | None = None


class Owned(Described, kw_only=True):
    """A product of the library: when it was granted, and the newest release of each channel."""

    granted_at: Moment
    channels: list[Channel]


async def list_library(call: StoreRequest[LibraryQuery, Nothing]) -> Response:
    """List the products the caller is entitled to, newest first; Link names the next page."""
    store, query, owner = call.context, call.query, call.caller.owner
    after = None
    if query.cursor is not None:
        position = cursor.read(store.cursors, query.cursor, "library", int, str)
        if position.filter != [owner]:
            raise InvalidCursor("made for another library")
        after = (int(position.after[0]), str(position.after[1]))
    rows = await owned(store.database, owner, query.limit + 1, after)
    headers: tuple[tuple[str, str], ...] = (("Cache-Control", "private, no-cache"),)
    if len(rows) > query.limit:
        rows.pop()
        _, granted_at, product_id, _ = rows[-1]
        following = cursor.write(store.cursors, cursor.Position("library", [owner], [granted_at, product_id]))
        address = f"{store.base_url}/library?limit={query.limit}&cursor={following}"
        headers = (*headers, ("Link", f'<{address}>; rel="next"'))
    return Response(200, b"[" + b",".join([_item(row) for row in rows]) + b"]", headers=headers)


def _item(row: Row) -> bytes:
    """The encoded card with two more members; the newest releases are reduced to the members that a list needs."""
    card, granted_at, _, newest = row
    members = (encode(clock.rfc3339(granted_at)), encode(_channels.decode(newest)))
    return b'%b,"granted_at":%b,"channels":%b}' % (card[:-1], *members)


ROUTES = (
    route(
        "GET",
        "/library",
        list_library,
        query=LibraryQuery,
        answers={200: list[Owned]},
        refusals=(InvalidCursor,),
        scope="read:library",
        documented=True,
        sends={200: ("Link", "Cache-Control")},
    ),
)
