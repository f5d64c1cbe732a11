"""Entitlements to products: granting, revoking, GET /library, and the owners' own notes and settings for products."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlencode

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Reader, Row, Transaction
from countersign.kernel.errors import invalid_member, invalid_parameter
from countersign.kernel.http import cursor, response
from countersign.kernel.http.cursor import InvalidCursor
from countersign.kernel.http.response import Moment, Response, Uuid, encode
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth.callers import StoreRequest
from countersign.store.catalog.products import ProductNotFound, find_entry
from countersign.store.catalog.schemas import Channel, ChannelName, Cursor, Described, Kind, Limit, Platform, SearchText
from countersign.store.catalog.search import SqlBuilder, prefix_end, search_words

GRANT = """
    INSERT INTO entitlement (owner, product_id, granted_at, source, revoked_at)
    VALUES ($1, $2, $3, $4, NULL)
    ON CONFLICT (owner, product_id) DO UPDATE
        SET granted_at = excluded.granted_at, source = excluded.source, revoked_at = NULL
        WHERE entitlement.revoked_at IS NOT NULL
"""
REVOKE_BY_SOURCE = "UPDATE entitlement SET revoked_at = $2 WHERE source = $1 AND revoked_at IS NULL"
OWNED = "SELECT 1 FROM entitlement WHERE owner = $1 AND product_id = $2 AND revoked_at IS NULL"
PAGE = """
    SELECT c.card, e.granted_at, e.product_id, c.newest, c.title, c.published_at, i.hidden, i.note,
           i.downloaded_version, i.downloaded_platform, i.downloaded_at
    FROM entitlement e
    JOIN catalog_entry c ON c.product_id = e.product_id
    LEFT JOIN library_item i ON i.owner = e.owner AND i.product_id = e.product_id
    WHERE {conditions}
    ORDER BY {order}
    LIMIT {limit}
"""
IN_COLLECTION = """
    EXISTS (
        SELECT 1
        FROM product_collection_item ci
        JOIN product_collection co ON co.id = ci.collection_id
        WHERE co.id = {collection} AND co.owner = e.owner AND ci.product_id = e.product_id
    )
"""
HAS_WORD = """
    EXISTS (SELECT 1 FROM catalog_term t WHERE t.product_id = e.product_id AND t.term >= {word} AND t.term < {end})
"""
# Selects products with a newer release in the channel of the downloaded release. An update never changes the channel.
HAS_UPDATE = """
    EXISTS (
        SELECT 1
        FROM release had
        JOIN release r ON r.product_id = had.product_id AND r.channel = had.channel AND r.status = 'published'
        WHERE had.product_id = e.product_id AND had.version = i.downloaded_version
          AND (r.published_at, r.sort_key, r.id) > (had.published_at, had.sort_key, had.id)
    )
"""
UPDATES = """
    SELECT i.product_id, r.version, r.channel, r.published_at,
           (SELECT sum(a.size) FROM artifact a
            WHERE a.release_id = r.id AND a.status = 'ready' AND coalesce(a.platform, '') = i.downloaded_platform),
           (SELECT sum(d.size)
            FROM build old
            JOIN delta d ON d.from_artifact = old.artifact_id
            JOIN build new ON new.artifact_id = d.to_artifact
            WHERE old.release_id = had.id AND new.release_id = r.id
              AND old.platform = i.downloaded_platform AND new.platform = i.downloaded_platform)
    FROM library_item i
    JOIN release had ON had.product_id = i.product_id AND had.version = i.downloaded_version
    JOIN release r ON r.product_id = i.product_id AND r.channel = had.channel AND r.status = 'published'
      AND (r.published_at, r.sort_key, r.id) > (had.published_at, had.sort_key, had.id)
    WHERE i.owner = {owner} AND i.product_id IN ({products})
      AND NOT EXISTS (
          SELECT 1 FROM release n
          WHERE n.product_id = r.product_id AND n.channel = r.channel AND n.status = 'published'
            AND (n.published_at, n.sort_key, n.id) > (r.published_at, r.sort_key, r.id)
      )
"""
COLLECTIONS = """
    SELECT ci.product_id, co.id
    FROM product_collection co
    JOIN product_collection_item ci ON ci.collection_id = co.id
    WHERE co.owner = {owner} AND ci.product_id IN ({products})
    ORDER BY co.name, co.id
"""
RELEASE_EXISTS = """
    SELECT 1 FROM release WHERE product_id = $1 AND version = $2 AND status IN ('published', 'yanked')
"""
ITEM = """
    SELECT hidden, note, downloaded_version, downloaded_platform, downloaded_at
    FROM library_item
    WHERE owner = $1 AND product_id = $2
"""
PUT_ITEM = """
    INSERT INTO library_item (
        owner, product_id, hidden, note, downloaded_version, downloaded_platform, downloaded_at
    )
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (owner, product_id) DO UPDATE SET
        hidden = excluded.hidden, note = excluded.note, downloaded_version = excluded.downloaded_version,
        downloaded_platform = excluded.downloaded_platform, downloaded_at = excluded.downloaded_at
"""


async def grant(transaction: Transaction, owner: str, products: Sequence[str], source: str, now: Instant) -> int:
    """Grant the owner the products that it does not own; return their number. `source` is the reason, such as
    `batch:<id>`, by which the entitlements can be revoked."""
    return sum([await transaction.run(GRANT, owner, product, now, source) for product in sorted(products)])


async def revoke_by_source(transaction: Transaction, source: str, now: Instant) -> int:
    """Revoke every entitlement of the source; return their number."""
    return await transaction.run(REVOKE_BY_SOURCE, source, now)


async def owned_product(reader: Reader, owner: str, id_or_slug: str) -> str:
    """The id of a product in the owner's library.

    Raises:
        ProductNotFound: the product does not exist, or is not in the library; the response is the same.
    """
    catalog_entry = await find_entry(reader, id_or_slug, is_id=ids.is_uuid(id_or_slug))
    if catalog_entry is None or await reader.fetch_one(OWNED, owner, catalog_entry.product_id) is None:
        raise ProductNotFound("your library has no product with this id or slug")
    return catalog_entry.product_id


_channels = msgspec.json.Decoder(list[Channel])

Order = Literal["-granted_at", "title", "-updated_at"]
_ORDERS = {
    "-granted_at": ("e.granted_at DESC, e.product_id DESC", "(e.granted_at, e.product_id) < ({})"),
    "title": ("c.title, e.product_id", "(c.title, e.product_id) > ({})"),
    "-updated_at": ("c.published_at DESC, e.product_id DESC", "(c.published_at, e.product_id) < ({})"),
}
_KEYS: dict[str, tuple[type, type]] = {"-granted_at": (int, str), "title": (str, str), "-updated_at": (int, str)}


class LibraryQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of GET /library."""

    limit: Limit = 50
    cursor: Cursor | None = None
    q: SearchText | None = None
    kind: Annotated[Kind, msgspec.Meta(description="Only products of this kind.")] | None = None
    collection: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=36, max_length=36, description="Only products in the caller's collection with this id."
            ),
        ]
        | None
    ) = None
    update: (
        Annotated[
            Literal["1"],
            msgspec.Meta(description="`1`: only products with a newer release than the last downloaded one."),
        ]
        | None
    ) = None
    hidden: (
        Annotated[Literal["0", "1"], msgspec.Meta(description="`0`: without hidden products; `1`: only those.")] | None
    ) = None
    sort: (
        Annotated[
            Order,
            msgspec.Meta(
                description="The order: by the newest entitlement (the default), by title, or by the newest release."
            ),
        ]
        | None
    ) = None


_FILTERS = ("q", "kind", "collection", "update", "hidden", "sort")


class Update(msgspec.Struct):
    """A newer release in the channel of the downloaded release. `size` and `delta_size` are in bytes, for the platform
    of the download. They are null if the release has no file for the platform, or no prepared delta."""

    version: str
    channel: ChannelName
    published_at: Moment
    size: int | None
    delta_size: int | None


class Owned(Described, kw_only=True):
    """A product of the library: the time when it was granted, the newest release of each channel, and the owner's
    settings. `installed_version` is the version that was last downloaded. `collections` contains ids."""

    granted_at: Moment
    channels: list[Channel]
    hidden: bool
    note: str | None
    installed_version: str | None
    update: Update | None
    collections: list[Uuid]


class LastDownload(msgspec.Struct, forbid_unknown_fields=True):
    """The downloaded release, the platform (null for files without a platform), and the time (by default now)."""

    version: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    platform: Platform | None = None
    at: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\dT[\d:.]{8,15}Z(?!\n)$")] | None = None


class LibraryUpdate(msgspec.Struct, forbid_unknown_fields=True):
    """The changes of the owner's settings for a product. Omitted members do not change; null removes `note` and
    `downloaded`."""

    hidden: bool | msgspec.UnsetType = msgspec.UNSET
    note: (
        Annotated[
            str,
            msgspec.Meta(
                max_length=2_000,
                pattern=r"^(?=[\s\S]*\S)[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$",
                extra={"needs": "must be plain text of at most 2000 characters, and not blank"},
            ),
        ]
        | None
        | msgspec.UnsetType
    ) = msgspec.UNSET
    downloaded: LastDownload | None | msgspec.UnsetType = msgspec.UNSET


class LibraryItem(msgspec.Struct):
    """The owner's settings for a product: whether the product is hidden, a note, and the last download."""

    hidden: bool
    note: str | None
    downloaded: LastDownload | None


class _ItemRow(NamedTuple):
    hidden: int
    note: str | None
    version: str | None
    platform: str | None
    at: int | None


async def list_library(call: StoreRequest[LibraryQuery, Nothing]) -> Response:
    """List the products the caller is entitled to, newest first; Link names the next page.

    The list can be narrowed to a kind, a collection, a search or products with an update, and ordered otherwise.
    """
    store, owner = call.context, call.caller.owner
    query, after_key = _query_and_position(call)
    rows = await _page(store.database, owner, query, after_key)
    headers: tuple[tuple[str, str], ...] = (("Cache-Control", "private, no-cache"),)
    if len(rows) > query.limit:
        rows.pop()
        last_row, values = rows[-1], _filter_values(query)
        sort_key = {"title": last_row[4], "-updated_at": last_row[5]}.get(query.sort or "", last_row[1])
        next_cursor = cursor.write(store.cursors, cursor.Position("library", [owner, *values], [sort_key, last_row[2]]))
        given_filters = {name: value for name, value in zip(_FILTERS, values, strict=True) if value}
        address = (
            f"{store.base_url}/library?{urlencode({'limit': query.limit, **given_filters, 'cursor': next_cursor})}"
        )
        headers = (*headers, ("Link", f'<{address}>; rel="next"'))
    products = [row[2] for row in rows]
    collections = await _collections(store.database, owner, products)
    downloaded_ids = [row[2] for row in rows if row[8] is not None]
    updates = await _updates(store.database, owner, downloaded_ids)
    items = [_item(row, collections.get(row[2], []), updates.get(row[2])) for row in rows]
    return Response(200, b"[" + b",".join(items) + b"]", headers=headers)


def _filter_values(query: LibraryQuery) -> list[str]:
    return [str(getattr(query, name) or "") for name in _FILTERS]


def _query_and_position(call: StoreRequest[LibraryQuery, Nothing]) -> tuple[LibraryQuery, list[str | int]]:
    """The query, and the sort key of the last row before the page. A cursor continues the list of its own filters."""
    query = call.query
    if query.q is not None and not search_words(query.q):
        raise invalid_parameter("q", "must contain a letter or digit")
    if query.cursor is None:
        return query, []
    position = cursor.read(call.context.cursors, query.cursor, "library")
    if position.filter[:1] != [call.caller.owner]:
        raise InvalidCursor("made for another library")
    # A cursor of an earlier version carries no filters.
    values = [*position.filter[1:], *[""] * len(_FILTERS)][: len(_FILTERS)]
    if _filter_values(query) not in (values, [""] * len(_FILTERS)):
        raise InvalidCursor("made for another filter")
    query = _query_of_cursor(values, query.limit)
    cursor.require_keys(position, *_KEYS[query.sort or "-granted_at"])
    return query, position.after


def _query_of_cursor(values: Sequence[str], limit: int) -> LibraryQuery:
    named_filters = {name: value for name, value in zip(_FILTERS, values, strict=True) if value}
    try:
        return msgspec.convert({"limit": limit, **named_filters}, LibraryQuery)
    except msgspec.ValidationError as error:
        raise InvalidCursor("made for a filter this service no longer has") from error


async def _page(database: Database, owner: str, query: LibraryQuery, after_key: Sequence[str | int]) -> list[Row]:
    statement = SqlBuilder()
    conditions = [f"e.owner = {statement.add(owner)}", "e.revoked_at IS NULL", *_conditions(statement, query)]
    order, position = _ORDERS[query.sort or "-granted_at"]
    if after_key:
        conditions.append(position.format(statement.add_all(after_key)))
    text = PAGE.format(
        conditions=" AND ".join(conditions), order=order, limit=statement.add(query.limit + 1)
    )
    is_bounded = not any(_filter_values(query))
    return await (database.fetch if is_bounded else database.scan)(text, *statement.values)


def _conditions(statement: SqlBuilder, query: LibraryQuery) -> list[str]:
    conditions: list[str] = []
    if query.kind is not None:
        conditions.append(f"c.kind = {statement.add(query.kind)}")
    if query.collection is not None:
        conditions.append(IN_COLLECTION.format(collection=statement.add(query.collection.lower())))
    if query.hidden is not None:
        conditions.append(f"coalesce(i.hidden, 0) = {int(query.hidden)}")
    if query.update is not None:
        conditions.append(HAS_UPDATE)
    search_terms = search_words(query.q or "")
    word_parameters = [
        {"word": statement.add(word), "end": statement.add(prefix_end(word))} for word in search_terms
    ]
    return conditions + [HAS_WORD.format(**word_parameter) for word_parameter in word_parameters]


async def _collections(database: Database, owner: str, products: Sequence[str]) -> dict[str, list[str]]:
    """The ids of the collections that each product is in."""
    statement = SqlBuilder()
    collections_by_product: dict[str, list[str]] = {}
    if products:
        text = COLLECTIONS.format(owner=statement.add(owner), products=statement.add_all(products))
        for product_id, collection_id in await database.fetch(text, *statement.values):
            collections_by_product.setdefault(product_id, []).append(collection_id)
    return collections_by_product


async def _updates(database: Database, owner: str, products: Sequence[str]) -> dict[str, Update]:
    """The newest release for each of these products that is newer than the downloaded one."""
    if not products:
        return {}
    statement = SqlBuilder()
    text = UPDATES.format(owner=statement.add(owner), products=statement.add_all(products))
    rows = await database.scan(text, *statement.values)
    return {
        product_id: Update(version, channel, clock.rfc3339(published_at), _integer(size), _integer(delta_size))
        for product_id, version, channel, published_at, size, delta_size in rows
    }


def _integer(value: object) -> int | None:
    """Return a sum as an integer, because PostgreSQL returns a decimal."""
    return None if value is None else int(str(value))


def _item(row: Row, collections: list[str], update: Update | None) -> bytes:
    """The encoded card with more members; the newest releases are reduced to the members that a list needs."""
    members = {
        "granted_at": clock.rfc3339(row[1]),
        "channels": _channels.decode(row[3]),
        "hidden": bool(row[6]),
        "note": row[7],
        "installed_version": row[8],
        "update": update,
        "collections": collections,
    }
    return b"%b,%b" % (row[0][:-1], encode(members)[1:])


async def update_item(call: StoreRequest[Nothing, LibraryUpdate]) -> Response:
    """Change the settings of a product in the library: hide it, write a note, or record the downloaded version."""
    transaction, owner, item_body = call.transaction, call.caller.owner, call.body
    product_id = await owned_product(transaction, owner, call.path["id"])
    row = await transaction.fetch_one(ITEM, owner, product_id)
    item = _ItemRow(0, None, None, None, None) if row is None else _ItemRow(*row)
    if not isinstance(item_body.hidden, msgspec.UnsetType):
        item = item._replace(hidden=int(item_body.hidden))
    if not isinstance(item_body.note, msgspec.UnsetType):
        item = item._replace(note=item_body.note)
    if item_body.downloaded is None:
        item = item._replace(version=None, platform=None, at=None)
    elif not isinstance(item_body.downloaded, msgspec.UnsetType):
        item = await _download_values(transaction, product_id, item, item_body.downloaded)
    await transaction.run(PUT_ITEM, owner, product_id, *item)
    download = None
    if item.version is not None and item.at is not None:
        platform = msgspec.convert(item.platform or None, Platform | None)
        download = LastDownload(item.version, platform, clock.rfc3339(Instant(item.at)))
    return response.json(
        LibraryItem(bool(item.hidden), item.note, download), headers=(("Cache-Control", "private, no-cache"),)
    )


async def _download_values(reader: Reader, product_id: str, item: _ItemRow, last_download: LastDownload) -> _ItemRow:
    if await reader.fetch_one(RELEASE_EXISTS, product_id, last_download.version) is None:
        raise invalid_member("/downloaded/version", "must be a published release of the product")
    try:
        downloaded_at = (
            clock.now() if last_download.at is None else clock.from_datetime(datetime.fromisoformat(last_download.at))
        )
    except ValueError as error:
        raise invalid_member("/downloaded/at", "must be a moment that exists, like 2026-03-01T12:00:00Z") from error
    return item._replace(
        version=last_download.version, platform=last_download.platform or "", at=min(downloaded_at, clock.now())
    )


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
    route(
        "PATCH",
        "/library/{id}",
        update_item,
        body=LibraryUpdate,
        answers={200: LibraryItem},
        refusals=(ProductNotFound,),
        scope="read:library",
        writes=True,
        sends={200: ("Cache-Control",)},
    ),
)
