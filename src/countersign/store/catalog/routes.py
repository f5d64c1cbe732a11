"""GET /products, /products/{id} with its releases, drafts and Atom feed, and /catalog."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, date, datetime, time
from html import escape
from typing import Literal, TypeAlias
from urllib.parse import quote, urlencode

import msgspec

from countersign import __version__
from countersign.kernel import clock
from countersign.kernel.errors import invalid_parameter
from countersign.kernel.http import cursor, response
from countersign.kernel.http.cursor import InvalidCursor
from countersign.kernel.http.response import Response, encode, etag_of
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.authentication import InsufficientScope
from countersign.store.auth.callers import Caller, StoreRequest
from countersign.store.catalog import facets, products, search
from countersign.store.catalog.products import (
    NEWEST_POSSIBLE,
    ProductNotFound,
    ReleaseRow,
    is_member,
    require_drafts_visible,
    visible_entry,
)
from countersign.store.catalog.schemas import (
    Catalog,
    CatalogQuery,
    Draft,
    ListQuery,
    ProductDetail,
    ProductList,
    Release,
    ReleasesQuery,
)
from countersign.store.context import Store

ATOM = "application/atom+xml"
MAX_ENTRIES = 50
_NOT_OF_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_detail = msgspec.json.Decoder(ProductDetail)


def atom_feed(encoded: bytes, newest: Sequence[ReleaseRow], root_url: str, base_url: str) -> bytes:
    """The Atom feed (RFC 4287) of a product with this encoded detail and these published releases, the newest first.
    The ids in the feed are the ids of the product and its releases, which never change."""
    product = _detail.decode(encoded)
    page = f"{root_url}/products/{product.slug}"
    updated_at = clock.rfc3339(clock.Instant(newest[0].at)) if newest else product.created_at
    entries = "".join(_entry_xml(product, release, page) for release in newest)
    text = (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
        f"<id>urn:uuid:{product.id}</id><title>{_xml_text(product.title)}</title><updated>{updated_at}</updated>"
        f"<author><name>{_xml_text(product.org)}</name></author>"
        f'<link rel="alternate" type="text/html" href="{_xml_text(page)}"/>'
        f'<link rel="self" type="{ATOM}" href="{_xml_text(f"{base_url}/products/{product.slug}/feed")}"/>'
        f"{entries}</feed>\n"
    )
    return text.encode()


def _entry_xml(product: ProductDetail, at: ReleaseRow, page: str) -> str:
    release = at.release
    moment = clock.rfc3339(clock.Instant(at.at))
    return (
        f"<entry><id>urn:uuid:{at.id}</id>"
        f"<title>{_xml_text(f'{product.title} {release.version}')}</title>"
        f"<published>{moment}</published><updated>{moment}</updated>"
        f'<category term="{release.channel}"/>'
        f'<link rel="alternate" type="text/html" href="{_xml_text(f"{page}?channel={release.channel}")}"/>'
        f'<content type="text">{_xml_text(release.notes or "")}</content></entry>'
    )


def _xml_text(value: str) -> str:
    """User text escaped for XML, without characters that XML does not allow."""
    return escape(_NOT_OF_XML.sub("", value))


NDJSON = "application/x-ndjson"
RELEASES_AT_ONCE = 500
CATALOG_AT_ONCE = 500
FILTERS = ("kind", "platform", "org", "tag", "q", "sort", "channel", "access", "published_since")
"""The query members that a cursor contains, in this order. New members must be added at the end."""
KEYS = {
    "title": (str, str),
    "-published_at": (int, str),
    "relevance": (int, str, str),
    "-updated_at": (int, str),
    "-downloads_7d": (int, str),
}
"""The types of the sort keys of each order."""

Kind: TypeAlias = Literal["releases", "drafts"]
ReadPage: TypeAlias = Callable[[tuple[int, str, str], int], Awaitable[list[ReleaseRow]]]
"""A function that reads a number of releases after a position."""


async def list_products(call: StoreRequest[ListQuery, Nothing]) -> Response:
    """List products, a page at a time, filtered and sorted."""
    query = call.query
    page_query = _page_query(call.context, call.caller, query)
    rows = await products.read_page(call.context.database, page_query)
    next_link = b"null"
    if len(rows) > query.limit:
        rows.pop()
        position = cursor.Position("products", _filter_values(query), _sort_key(page_query, products.Card(*rows[-1])))
        next_link = b'"%b"' % cursor.write(call.context.cursors, position).encode()
    # The fifth member of a row is the encoded product, the sixth its status.
    items = [row[4] if row[5] == "public" else b'%b,"status":"%b"}' % (row[4][:-1], row[5].encode()) for row in rows]
    if query.facets is not None:
        facet_counts = encode(await facets.count(call.context, page_query, query.facets))[1:-1]
        return Response(200, b'{"items":[%b],"next_cursor":%b,%b}' % (b",".join(items), next_link, facet_counts))
    # Compute the entity tag of the page from the entity tags of its products, which are much shorter than the page.
    etag = etag_of(b"%b%b" % ("".join([row[6] for row in rows]).encode(), next_link))
    return Response(200, b'{"items":[%b],"next_cursor":%b}' % (b",".join(items), next_link), etag=etag)


def _page_query(store: Store, caller: Caller, query: ListQuery) -> search.PageQuery:
    cursor_values: list[str | int] = []
    if query.cursor is not None:
        position = cursor.read(store.cursors, query.cursor, "products")
        query = _continue_query(query, position)
        cursor_values = position.after
    filters = [
        f"{name}:{value}"
        for name, value in (
            ("org", query.org),
            ("tag", query.tag),
            ("kind", query.kind),
            ("platform", query.platform),
            ("channel", query.channel),
            ("access", query.access),
        )
        if value is not None
    ]
    search_words = search.search_words(query.q) if query.q is not None else []
    if query.q is not None and not search_words:
        raise invalid_parameter("q", "must contain a letter or digit")
    if query.sort == "relevance" and not search_words:
        raise invalid_parameter("sort", "relevance requires a search (q)")
    orgs = caller.orgs_allowing("read:products")
    since = _start_of_day(query.published_since)
    sort = query.sort or "title"
    return search.PageQuery(filters, search_words, sort, cursor_values, query.limit + 1, orgs, since, query.channel)


def _start_of_day(day: date | None) -> clock.Instant | None:
    """The start of a day in UTC."""
    return None if day is None else clock.from_datetime(datetime.combine(day, time(), UTC))


def _filter_values(query: ListQuery) -> list[str]:
    values_sent = (query.kind, query.platform, query.org, query.tag, query.q, query.sort)
    return [str(value or "") for value in (*values_sent, query.channel, query.access, query.published_since)]


def _continue_query(query: ListQuery, position: cursor.Position) -> ListQuery:
    """The query of a further page, with the filter of the cursor. Parameters may repeat this filter, but not change
    it."""
    # A cursor of an earlier version contains fewer filters.
    cursor_filter = position.filter + [""] * (len(FILTERS) - len(position.filter))
    values_sent = _filter_values(query)
    if values_sent == cursor_filter:
        cursor.require_keys(position, *KEYS[query.sort or "title"])
        return query
    if any(values_sent):
        raise InvalidCursor("made for another filter")
    values: dict[str, str] = {name: value for name, value in zip(FILTERS, cursor_filter, strict=False) if value}
    try:
        continued_query = msgspec.convert({**values, "limit": query.limit}, ListQuery)
    except msgspec.ValidationError as error:
        raise InvalidCursor("made for a filter this service no longer has") from error
    cursor.require_keys(position, *KEYS[continued_query.sort or "title"])
    return continued_query


def _sort_key(page_query: search.PageQuery, last: products.Card) -> list[str | int]:
    if page_query.sort == "-published_at":
        return [last.published_at, last.product_id]
    if page_query.sort in search.RANKED:
        return [last.score, last.product_id]
    if page_query.sort == "relevance":
        return [-last.score, last.title, last.product_id]
    return [last.title, last.product_id]


async def show_product(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show one product, by id or slug."""
    product = await visible_entry(call.context.database, call.caller, call.path["id"])
    return Response(200, product.detail, etag=product.etag)


async def list_releases(call: StoreRequest[ReleasesQuery, Nothing]) -> Response:
    """List a product's published releases, newest first: all of them, or a page with a link to the next.

    Members of the organisation and owners of the product also see yanked releases, with the reason.
    """
    database = call.context.database
    product = await visible_entry(database, call.caller, call.path["id"])
    channel, visibility = call.query.channel or "", await _visible_statuses(call, product)

    async def read(after: tuple[int, str, str], limit: int) -> list[ReleaseRow]:
        return await products.releases(database, product.product_id, channel, visibility, after, limit)

    return await _release_list(call, product, "releases", read, etag_suffix=f"{channel}-{visibility}")


async def list_drafts(call: StoreRequest[ReleasesQuery, Nothing]) -> Response:
    """List the drafts of a product, newest first, for members of its organisation."""
    database = call.context.database
    product = await visible_entry(database, call.caller, call.path["id"])
    require_drafts_visible(call.caller, product)
    channel = call.query.channel or ""

    async def read(after: tuple[int, str, str], limit: int) -> list[ReleaseRow]:
        return await products.drafts(database, product.product_id, channel, after, limit)

    # Changes to drafts do not increment the catalog's version, so a streamed list has no entity tag.
    return await _release_list(call, product, "drafts", read, etag_suffix=None)


async def _release_list(
    call: StoreRequest[ReleasesQuery, Nothing],
    product: products.CatalogEntry,
    kind: Kind,
    read: ReadPage,
    *,
    etag_suffix: str | None,
) -> Response:
    """Return a page of releases or drafts if a limit was sent, otherwise all. With an `etag_suffix`, the complete list
    has an entity tag, which also depends on this suffix."""
    start = _start_position(call, product, kind)
    page_size = call.query.limit or RELEASES_AT_ONCE
    rows = await read(start, page_size + 1)
    if len(rows) <= page_size:
        return response.json([row.release for row in rows])
    if call.query.limit is None:
        # The array is read again from the start, after its entity tag was computed.
        etag = None if etag_suffix is None else await _list_etag(call.context, product.product_id, etag_suffix)
        return Response(200, _stream_array(read), etag=etag)
    next_link = _next_link(call, product, kind, rows[page_size - 1])
    return response.json([row.release for row in rows[:page_size]], headers=(next_link,))


async def show_feed(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show a product's newest published releases as an Atom feed."""
    store = call.context
    product = await visible_entry(store.database, call.caller, call.path["id"])
    newest = await products.releases(
        store.database, product.product_id, "", products.PUBLISHED_ONLY, NEWEST_POSSIBLE, MAX_ENTRIES
    )
    return Response(200, atom_feed(product.detail, newest, store.root_url, store.base_url), ATOM)


def _start_position(
    call: StoreRequest[ReleasesQuery, Nothing], product: products.CatalogEntry, kind: Kind
) -> tuple[int, str, str]:
    """The sort keys after which the page starts."""
    query = call.query
    if query.cursor is None:
        return NEWEST_POSSIBLE
    if query.limit is None:
        raise invalid_parameter("limit", "is required with a cursor; repeat it on every page")
    position = cursor.read(call.context.cursors, query.cursor, kind, int, str, str)
    if position.filter != [product.product_id, query.channel or ""]:
        raise InvalidCursor("made for another product or channel")
    return int(position.after[0]), str(position.after[1]), str(position.after[2])


def _next_link(
    call: StoreRequest[ReleasesQuery, Nothing], product: products.CatalogEntry, kind: Kind, last: ReleaseRow
) -> tuple[str, str]:
    channel = call.query.channel or ""
    position = cursor.Position(kind, [product.product_id, channel], [last.at, last.sort_key, last.id])
    parameters = {"limit": str(call.query.limit), "cursor": cursor.write(call.context.cursors, position)}
    if channel:
        parameters["channel"] = channel
    path = f"/products/{quote(call.path['id'], safe='')}/{kind}"
    return ("Link", f'<{call.context.base_url}{path}?{urlencode(parameters)}>; rel="next"')


async def _visible_statuses(call: StoreRequest[ReleasesQuery, Nothing], product: products.CatalogEntry) -> int:
    if call.caller.is_anonymous:
        return products.PUBLISHED_ONLY
    if is_member(call.caller, product) or await products.owns(
        call.context.database, call.caller.owner, product.product_id
    ):
        return products.WITH_YANKED
    return products.PUBLISHED_ONLY


async def _list_etag(store: Store, product_id: str, suffix: str) -> str:
    """The entity tag of a streamed array: every change of the array increments the catalog's version."""
    version = (await store.versions())[0]
    return etag_of(f"{version}-{product_id}-{suffix}".encode())


async def _stream_array(read: ReadPage) -> AsyncIterator[bytes]:
    """The whole array, page by page, in constant memory."""
    yield b"["
    separator = b""
    start = NEWEST_POSSIBLE
    while rows := await read(start, RELEASES_AT_ONCE):
        yield separator + b",".join(encode(row.release) for row in rows)
        separator = b","
        last = rows[-1]
        start = (last.at, last.sort_key, last.id)
    yield b"]"


async def show_catalog(call: StoreRequest[CatalogQuery, Nothing]) -> Response:
    """Show the public catalog as one document, as a page of it, or as NDJSON."""
    store, query = call.context, call.query
    after = ["", ""]
    if query.cursor is not None:
        after = [str(value) for value in cursor.read(store.cursors, query.cursor, "catalog", str, str).after]
    changed_at = clock.rfc3339(clock.Instant((await store.versions())[0]))
    is_ndjson = NDJSON in (call.headers.get("accept") or "")
    tag = f'"{changed_at}-{query.limit}-{"/".join(after)}-{"lines" if is_ndjson else "document"}"'
    etag = etag_of(tag.encode())
    if is_ndjson:
        return Response(200, _catalog_lines(store, after, query.limit), NDJSON, etag=etag)
    return Response(200, _catalog_document(store, changed_at, after, query.limit), etag=etag)


def _catalog_item(card: bytes, newest: bytes) -> bytes:
    """A catalog item: the card's members, then its releases."""
    return b'%b,"releases":%b}' % (card[:-1], newest)


async def _catalog_items(
    store: Store, after: list[str], limit: int | None
) -> AsyncIterator[list[tuple[str, str, bytes]]]:
    """The catalog in batches of title, id and encoded item."""
    items_left = limit
    while items_left is None or items_left > 0:
        rows = await products.catalog_page(store.database, after, min(items_left or CATALOG_AT_ONCE, CATALOG_AT_ONCE))
        if not rows:
            return
        yield [(title, product_id, _catalog_item(card, newest)) for title, product_id, card, newest in rows]
        after = [rows[-1][0], rows[-1][1]]
        items_left = None if items_left is None else items_left - len(rows)


async def _catalog_lines(store: Store, after: list[str], limit: int | None) -> AsyncIterator[bytes]:
    async for batch in _catalog_items(store, after, limit):
        yield b"".join(item + b"\n" for _, _, item in batch)


async def _catalog_document(store: Store, changed_at: str, after: list[str], limit: int | None) -> AsyncIterator[bytes]:
    head = {"service": "countersign", "version": __version__, "generated_at": changed_at}
    yield encode(head)[:-1] + b',"products":['
    separator = b""
    count, last = 0, after
    async for batch in _catalog_items(store, after, limit):
        yield separator + b",".join(item for _, _, item in batch)
        separator = b","
        count += len(batch)
        last = [batch[-1][0], batch[-1][1]]
    next_link = None
    if limit is not None and count == limit and await products.catalog_page(store.database, last, 1):
        next_link = cursor.write(store.cursors, cursor.Position("catalog", [], [*last]))
    yield b'],"next_cursor":' + encode(next_link) + b"}"


ROUTES = (
    route(
        "GET",
        "/products",
        list_products,
        query=ListQuery,
        answers={200: ProductList},
        refusals=(InvalidCursor,),
        cached=True,
        cross_origin=True,
        documented=True,
    ),
    route(
        "GET",
        "/products/{id}",
        show_product,
        answers={200: ProductDetail},
        refusals=(ProductNotFound,),
        cached=True,
        cross_origin=True,
        documented=True,
    ),
    route(
        "GET",
        "/products/{id}/releases",
        list_releases,
        query=ReleasesQuery,
        answers={200: list[Release]},
        refusals=(ProductNotFound, InvalidCursor),
        cached=True,
        cross_origin=True,
        documented=True,
        sends={200: ("Link",)},
    ),
    route(
        "GET",
        "/products/{id}/drafts",
        list_drafts,
        query=ReleasesQuery,
        answers={200: list[Draft]},
        refusals=(ProductNotFound, InvalidCursor, InsufficientScope),
        signed_in=True,
        cached=True,
        sends={200: ("Link",)},
    ),
    route(
        "GET",
        "/products/{id}/feed",
        show_feed,
        answers={200: str},
        refusals=(ProductNotFound,),
        produces=(ATOM,),
        cached=True,
        cross_origin=True,
    ),
    route(
        "GET",
        "/catalog",
        show_catalog,
        query=CatalogQuery,
        answers={200: Catalog},
        refusals=(InvalidCursor,),
        produces=("application/json", NDJSON),
        cached=True,
        cross_origin=True,
    ),
)
