"""GET /store/home: the content of the front page, in one response that is the same for every caller."""

import msgspec

from countersign.kernel.database.port import Database
from countersign.kernel.http.response import Response, encode
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.callers import StoreRequest
from countersign.store.catalog import products
from countersign.store.catalog.schemas import Product
from countersign.store.catalog.search import PageQuery
from countersign.store.context import Store

MAX_HERO, MAX_ITEMS, MAX_CANDIDATES = 5, 12, 24
SHELVES: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("new", "home.new", (), "-published_at"),
    ("free", "home.free", ("access:free",), "-downloads_7d"),
    ("updated", "home.updated", (), "-updated_at"),
    ("downloaded", "home.downloaded", (), "-downloads_7d"),
    ("games", "home.games", ("kind:game",), "-downloads_7d"),
    ("apps", "home.apps", ("kind:app",), "-downloads_7d"),
    ("tools", "home.tools", ("kind:tool",), "-downloads_7d"),
)
"""Id, key of the title, filters and order of each shelf, in the order of the page."""


class Shelf(msgspec.Struct):
    """A row of products. `title_key` names a text that pages translate; `query` are the parameters of `GET /products`
    for the whole list."""

    id: str
    title_key: str
    query: str
    items: list[Product]


class Home(msgspec.Struct):
    """The front page: at most five products to show large, and shelves of at most twelve. A shelf without products is
    left out."""

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
            cards = await self._cards(facets, sort, MAX_ITEMS)
            if cards:
                query = "&".join([*(each.replace(":", "=") for each in facets), f"sort={sort}"])
                members = (encode(name), encode(title_key), encode(query), b",".join(cards))
                shelves.append(b'{"id":%b,"title_key":%b,"query":%b,"items":[%b]}' % members)
        return b'{"hero":[%b],"shelves":[%b]}' % (b",".join(await self._hero()), b",".join(shelves))

    async def _hero(self) -> list[bytes]:
        """The most downloaded products, those with a cover of their own first."""
        candidates = await self._cards((), "-downloads_7d", MAX_CANDIDATES)
        candidates.sort(key=_has_placeholder)
        return candidates[:MAX_HERO]

    async def _cards(self, facets: tuple[str, ...], sort: str, limit: int) -> list[bytes]:
        rows = await products.page(self._database, PageQuery(facets, (), sort, (), limit))
        # The fifth member of a row is the encoded product.
        return [row[4] for row in rows]


def _has_placeholder(card: bytes) -> bool:
    cover = _cover.decode(card).cover
    return cover is None or cover.placeholder


async def show_home(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show what the front page shows: products to show large, and shelves.

    The answer is the same for every caller.
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
