"""GET /library: what the caller owns."""

import msgspec

from countersign.distribution.auth.callers import StoreRequest
from countersign.distribution.catalog.schemas import Channel, Cursor, Described, Limit
from countersign.distribution.library import queries
from countersign.kernel import clock
from countersign.kernel.database.port import Row
from countersign.kernel.http import cursor
from countersign.kernel.http.cursor import InvalidCursor
from countersign.kernel.http.response import Moment, Response, encode
from countersign.kernel.http.routing import Nothing, route

_channels = msgspec.json.Decoder(list[Channel])


class LibraryQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of GET /library."""

    limit: Limit = 50
    cursor: Cursor | None = None


class Owned(Described, kw_only=True):
    """A product of the library: since when it is the caller's, and the newest release of each channel."""

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
    rows = await queries.owned(store.database, owner, query.limit + 1, after)
    headers: tuple[tuple[str, str], ...] = (("Cache-Control", "private, no-cache"),)
    if len(rows) > query.limit:
        rows.pop()
        _, granted_at, product_id, _ = rows[-1]
        following = cursor.write(store.cursors, cursor.Position("library", [owner], [granted_at, product_id]))
        address = f"{store.base_url}/library?limit={query.limit}&cursor={following}"
        headers = (*headers, ("Link", f'<{address}>; rel="next"'))
    return Response(200, b"[" + b",".join([_item(row) for row in rows]) + b"]", headers=headers)


def _item(row: Row) -> bytes:
    """The encoded card with two members more; of the newest releases it takes what a list needs."""
    card, granted_at, _, newest = row
    told = (encode(clock.rfc3339(granted_at)), encode(_channels.decode(newest)))
    return b'%b,"granted_at":%b,"channels":%b}' % (card[:-1], *told)


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
