"""GET /store/home: the content of the front page, in one response that is the same for every caller."""

from collections.abc import Sequence

import msgspec

from countersign.kernel.database.port import Database
from countersign.kernel.http.response import Response, encode
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.callers import StoreRequest
from countersign.store.catalog import products
from countersign.store.catalog.products import Card
from countersign.store.catalog.schemas import Product
from countersign.store.catalog.search import PageQuery
from countersign.store.context import Store

BY_DOWNLOADS = "-downloads_7d"
MAX_HERO, MAX_ITEMS, MAX_CANDIDATES = 5, 12, 24
SHELVES: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("new", "home.new", (), "-published_at"),
    ("free", "home.free", ("access:free",), BY_DOWNLOADS),
    ("updated", "home.updated", (), "-updated_at"),
    ("downloaded", "home.downloaded", (), BY_DOWNLOADS),
    ("games", "home.games", ("kind:game",), BY_DOWNLOADS),
    ("apps", "home.apps", ("kind:app",), BY_DOWNLOADS),
    ("tools", "home.tools", ("kind:tool",), BY_DOWNLOADS),
)
"""Id, key of the title, filters and order of each shelf, in the order of the page."""


class Shelf(msgspec.Struct):
    """A row of products. `title_key` names a text that pages translate; `query` are the parameters of `GET /products`
    for the whole list. `downloads_7d` are the downloads of each item in the last seven whole days, on shelves in the
    order of downloads."""

    id: str
    title_key: str
    query: str
    items: list[Product]
    downloads_7d: list[int] | msgspec.UnsetType = msgspec.UNSET


class Home(msgspec.Struct):
    """The front page: at most five products to display large, and shelves of at most twelve products. Empty shelves are
    omitted."""

    hero: list[Product]
    shelves: list[Shelf]


class _Cover(msgspec.Struct):
    placeholder: bool = True


class _CoverOfCard(msgspec.Struct):
    cover: _Cover | None = None


_cover = msgspec.json.Decoder(_CoverOfCard)


class HomeCache:
    """The encoded front page of one worker, and the catalog's version that it was made from."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._version, self._body = -1, b""

    async def body(self, version: int) -> bytes:
        """The front page at this version of the catalog, or at a newer one."""
        if self._version < version:
            body = await self._encode()
            if self._version < version:
                self._version, self._body = version, body
        return self._body

    async def _encode(self) -> bytes:
        shelves: list[bytes] = []
        for name, title_key, facets, sort in SHELVES:
            rows = await self._rows(facets, sort, MAX_ITEMS)
            if rows:
                query = "&".join([*(facet.replace(":", "=") for facet in facets), f"sort={sort}"])
                downloads = b',"downloads_7d":' + encode([row.score for row in rows]) if sort == BY_DOWNLOADS else b""
                members = (encode(name), encode(title_key), encode(query), _join_products(rows), downloads)
                shelves.append(b'{"id":%b,"title_key":%b,"query":%b,"items":[%b]%b}' % members)
        return b'{"hero":[%b],"shelves":[%b]}' % (_join_products(await self._hero()), b",".join(shelves))

    async def _hero(self) -> list[Card]:
        """The most downloaded products, those with a cover of their own first."""
        candidates = await self._rows((), BY_DOWNLOADS, MAX_CANDIDATES)
        candidates.sort(key=_has_placeholder)
        return candidates[:MAX_HERO]

    async def _rows(self, facets: tuple[str, ...], sort: str, limit: int) -> list[Card]:
        rows = await products.read_page(self._database, PageQuery(facets, (), sort, (), limit))
        return [Card(*row) for row in rows]


def _join_products(rows: Sequence[Card]) -> bytes:
    """The encoded products, separated by commas."""
    return b",".join([row.card for row in rows])


def _has_placeholder(row: Card) -> bool:
    cover = _cover.decode(row.card).cover
    return cover is None or cover.placeholder


async def show_home(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show the content of the front page: products to display large, and shelves.

    The response is the same for every caller.
    """
    store: Store = call.context
    # In an atomic batch, the changes of the batch are not shown, because they may be rolled back.
    is_own = store.database is store.memory.database
    version = (await store.versions())[0] if is_own else 0
    return Response(200, await store.memory.get(HomeCache).body(version))


ROUTES = (
    route(
        "GET",
        "/store/home",
        show_home,
        answers={200: Home},
        cached=True,
        cross_origin=True,
    ),
)
