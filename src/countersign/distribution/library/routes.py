"""GET /library: what the caller owns."""

from typing import Annotated

import msgspec

from countersign.distribution.catalog.schemas import Cursor, Product
from countersign.distribution.identity.callers import Request
from countersign.distribution.library import queries
from countersign.kernel.http import cursor
from countersign.kernel.http.answer import Answer
from countersign.kernel.http.cursor import InvalidCursor
from countersign.kernel.http.route import Nothing, route


class LibraryQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of GET /library."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 50
    cursor: Cursor | None = None


async def list_library(call: Request[LibraryQuery, Nothing]) -> Answer:
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
        _, granted_at, product_id = rows[-1]
        following = cursor.write(store.cursors, cursor.Position("library", [owner], [granted_at, product_id]))
        address = f"{store.base_url}/library?limit={query.limit}&cursor={following}"
        headers = (*headers, ("Link", f'<{address}>; rel="next"'))
    return Answer(200, b"[" + b",".join([row[0] for row in rows]) + b"]", headers=headers)


ROUTES = (
    route(
        "GET",
        "/library",
        list_library,
        query=LibraryQuery,
        answers={200: list[Product]},
        refusals=(InvalidCursor,),
        scope="read:library",
        documented=True,
        sends={200: ("Link", "Cache-Control")},
    ),
)
