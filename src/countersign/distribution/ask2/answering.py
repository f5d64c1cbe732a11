"""A filter to its answer: the rows it finds, and the answer in words that are made of nothing but those rows.

The members of an `Answered`:

status      `answered`: every word of the question was used; `partial`: the rows of a part of it; `refused`: no rows
text        the answer in words
sources     product and release each statement is from, with its address; the first 200 rows
asked       the filter that was run; None where nothing was understood
confidence  1 as asked, 0.8 where a name was corrected, 0.6 where a model read the question, 0.5 partial, 0 refused
suggestions questions that have been tried and have answers
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from countersign.distribution.ask2 import statements
from countersign.distribution.ask2.filter import Filter, Values
from countersign.distribution.catalog.public import CHANNELS, PLATFORMS
from countersign.distribution.catalog.schemas import ProductDetail
from countersign.distribution.context import Store
from countersign.kernel import clock
from countersign.kernel.database.port import Database

Status = Literal["answered", "partial", "refused"]
MOST_ROWS = 200
MOST_SHOWN = 20
MOST_DETAILED = 20
LONGEST_NOTES = 600
PLATFORM_NAMES = {
    "windows": "Windows", "macos": "macOS", "linux": "Linux", "android": "Android", "ios": "iOS", "web": "the web"
}  # fmt: skip
DETAIL = """
    SELECT e.detail, o.name
    FROM catalog_public c
    JOIN catalog_entry e ON e.product_id = c.product_id
    JOIN organisation o ON o.slug = c.org_slug
    WHERE c.slug = $1
"""
FILES = """
    SELECT a.filename, a.size, a.sha256, a.platform
    FROM catalog_public c
    JOIN release r ON r.product_id = c.product_id
    JOIN artifact a ON a.release_id = r.id
    WHERE c.slug = $1 AND r.version = $2 AND r.status = 'published' AND a.status = 'ready'
    ORDER BY a.filename
    LIMIT 50
"""


class Source(msgspec.Struct, frozen=True):
    """Where a statement of an answer is from; `release` is a version of the product."""

    product: str
    release: str | None
    url: str


class Answered(msgspec.Struct, frozen=True):
    """A question answered; see the head of this file for its members."""

    status: Status
    text: str
    sources: tuple[Source, ...] = ()
    asked: Filter | None = None
    confidence: float = 1.0
    suggestions: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    total: int = 0


class Facts(NamedTuple):
    """What the catalog says of a product, and its publisher's name."""

    detail: ProductDetail
    publisher: str


class Row(NamedTuple):
    """A release."""

    slug: str
    title: str
    version: str
    channel: str
    published_at: clock.Instant
    notes: str | None


async def facts(database: Database, slug: str) -> Facts | None:
    """The public product with this slug."""
    row = await database.fetch_one(DETAIL, slug)
    return None if row is None else Facts(msgspec.json.decode(row[0], type=ProductDetail), row[1])


async def titles(database: Database, slugs: Sequence[str]) -> list[str]:
    """The titles of these products."""
    found = [await facts(database, slug) for slug in slugs]
    return [each.detail.title for each in found if each is not None]


async def run(store: Store, asked: Filter) -> Answered:
    """The answer to the filter."""
    match asked.answer:
        case "count":
            found = await _count(store, asked)
        case "breakdown":
            found = await _breakdown(store, asked)
        case "fields" | "compare":
            found = await _fields(store, asked)
        case "exists":
            found = await _exists(store, asked)
        case "list":
            found = await _list(store, asked)
    return msgspec.structs.replace(found, asked=asked)


def joined(items: Sequence[str], last: str = "and") -> str:
    """a, b and c."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}" if items else ""


def day(at: clock.Instant) -> str:
    """A moment as its day in UTC."""
    return clock.rfc3339(at)[:10]


def source(store: Store, slug: str, version: str | None = None) -> Source:
    """Where a statement is from."""
    address = f"{store.base_url}/products/{slug}"
    return Source(slug, version, address if version is None else f"{address}/releases")


async def total(database: Database, asked: Filter) -> int:
    """How many rows there are, whatever the limit."""
    text, values = statements.count(asked)
    return int((await database.scan(text, *values))[0][0])


async def _rows(database: Database, asked: Filter) -> list[Row]:
    text, values = statements.releases(asked, min(asked.limit or MOST_ROWS, MOST_ROWS))
    return [Row(*row) for row in await database.scan(text, *values)]


async def _products(database: Database, asked: Filter) -> list[tuple[str, str]]:
    text, values = statements.products(asked, min(asked.limit or MOST_ROWS, MOST_ROWS))
    return [(slug, title) for slug, title in await database.scan(text, *values)]


async def _publishers(database: Database, asked: Filter) -> list[tuple[str, int]]:
    text, values = statements.publishers(asked, min(asked.limit or MOST_ROWS, MOST_ROWS))
    return [(name, count) for _, name, count in await database.scan(text, *values)]


def _listed(names: Sequence[str], count: int) -> str:
    more = f", and {count - MOST_SHOWN} more" if count > MOST_SHOWN else ""
    return f"{', '.join(names[:MOST_SHOWN])}{more}" if more else joined(names)


async def _list(store: Store, asked: Filter) -> Answered:
    if asked.find == "publishers":
        return await _list_of_publishers(store, asked)
    if asked.find == "releases":
        rows = await _rows(store.database, asked)
        return Answered("answered", _releases_text(rows, asked), _of_releases(store, rows), total=len(rows))
    rows = await _products(store.database, asked)
    count = len(rows) if asked.limit or len(rows) < MOST_ROWS else await total(store.database, asked)
    text = f"{_listed([title for _, title in rows], count)}." if rows else "None: no product fits."
    if count > 1 and not asked.limit:
        text = f"{count} products: {text}"
    return Answered("answered", text, tuple(source(store, slug) for slug, _ in rows), total=count)


async def _list_of_publishers(store: Store, asked: Filter) -> Answered:
    found = await _publishers(store.database, asked)
    names = [f"{name} ({count})" if asked.order == "products" else name for name, count in found]
    text = f"{_listed(names, len(names))}." if names else "None: no publisher has such a product."
    return Answered("answered", text, total=len(names))


def _of_releases(store: Store, rows: Sequence[Row]) -> tuple[Source, ...]:
    return tuple(dict.fromkeys(source(store, row.slug, row.version) for row in rows))


def _release(row: Row) -> str:
    return f"{row.title} {row.version} ({row.channel}, {day(row.published_at)})"


def _releases_text(rows: Sequence[Row], asked: Filter) -> str:
    if not rows:
        return "None: no published release fits."
    if len(rows) == 1 and asked.order in ("newest", "oldest"):
        row = rows[0]
        which = "latest" if asked.order == "newest" else "first"
        return f"The {which} release is {row.title} {row.version} ({row.channel}), published on {day(row.published_at)}."
    return f"{len(rows)} releases: {_listed([_release(row) for row in rows], len(rows))}."


async def _count(store: Store, asked: Filter) -> Answered:
    count = await total(store.database, asked)
    noun = asked.find if count != 1 else asked.find[:-1]
    rows: tuple[Source, ...] = ()
    if asked.find == "products":
        rows = tuple(source(store, slug) for slug, _ in await _products(store.database, asked))
    return Answered("answered", f"{count} {noun}.", rows, total=count)


async def _exists(store: Store, asked: Filter) -> Answered:
    """Yes or no: whether there is one; of named products, whether all of them are so."""
    if asked.order in ("newest", "oldest") and asked.where.version != Values():
        return await _is_extreme(store, asked)
    named = asked.where.product
    wanted = len((*named.any, *named.all))
    if asked.find == "releases":
        found = await _list(store, asked)
    else:
        found = await _list(store, msgspec.structs.replace(asked, find="products", limit=None, order="title"))
    is_so = found.total >= (1 if asked.find == "releases" else max(1, wanted))
    if is_so:
        return msgspec.structs.replace(found, text=f"Yes: {found.text}")
    if not wanted:
        return msgspec.structs.replace(found, text="No: there is none.", sources=())
    rows = [await facts(store.database, slug) for slug in (*named.any, *named.all)]
    told = "; ".join(_about(each, ()) for each in rows if each is not None)
    sources = tuple(source(store, each.detail.slug) for each in rows if each is not None)
    return msgspec.structs.replace(found, text=f"No. {told}", sources=sources)


async def _is_extreme(store: Store, asked: Filter) -> Answered:
    """Whether the version is the newest or oldest of those that fit otherwise."""
    versions = asked.where.version
    where = msgspec.structs.replace(asked.where, version=Values())
    rows = await _rows(store.database, msgspec.structs.replace(asked, find="releases", where=where, limit=1))
    told = [text.lower().removeprefix("v") for text in versions.any]
    is_so = any(row.version.lower().removeprefix("v") in told for row in rows)
    text = f"{'Yes' if is_so else 'No'}. {_releases_text(rows, asked)}"
    return Answered("answered", text, _of_releases(store, rows), total=len(rows))


_COLUMNS = {"kind": "c.kind", "org": "c.org_slug", "license": "coalesce(c.license, 'none')"}


async def _breakdown(store: Store, asked: Filter) -> Answered:
    database = store.database
    if asked.by in _COLUMNS:
        text, values = statements.breakdown(asked, _COLUMNS[asked.by])
        counts = [(str(value), int(count)) for value, count in await database.scan(text, *values)]
    else:
        known = PLATFORMS if asked.by == "platform" else CHANNELS
        counts = []
        for value in known:
            slot = "platform" if asked.by == "platform" else "channel"
            held: Values = getattr(asked.where, slot)
            narrowed = msgspec.structs.replace(held, all=(*held.all, value))
            where = msgspec.structs.replace(asked.where, **{slot: narrowed})
            counts.append((value, await total(database, msgspec.structs.replace(asked, where=where))))
    told = ", ".join(f"{PLATFORM_NAMES.get(value, value)}: {count}" for value, count in counts if count)
    return Answered("answered", f"{told or 'None'}.", total=len(counts))


async def _fields(store: Store, asked: Filter) -> Answered:
    """What is asked of each product: of its releases where versions, dates, notes or files are."""
    products = await _products(
        store.database, msgspec.structs.replace(asked, find="products", order="title", since=None, until=None, when="any",
        limit=MOST_DETAILED, where=msgspec.structs.replace(asked.where, version=Values(), channel=Values(),
        text=Values() if asked.where.product.any else asked.where.text)),
    )  # fmt: skip
    texts: list[str] = []
    sources: list[Source] = []
    for slug, _ in products:
        told = await facts(store.database, slug)
        if told is None:
            continue
        text, of = await _told(store, asked, told)
        if len(products) > 1 and _OF_RELEASES & {*asked.fields} and all(each.release is None for each in of):
            continue
        texts.append(text)
        sources += of
    if not products:
        return Answered("answered", "None: no product fits.")
    return Answered("answered", " ".join(texts), tuple(sources), total=len(products))


_OF_RELEASES = frozenset(["versions", "published_at", "notes", "artifacts"])


async def _told(store: Store, asked: Filter, told: Facts) -> tuple[str, list[Source]]:
    slug, title = told.detail.slug, told.detail.title
    where = msgspec.structs.replace(asked.where, product=Values(any=(slug,)))
    if not _OF_RELEASES & {*asked.fields} or asked.answer == "compare":
        sources = [source(store, slug)]
        return _about(told, asked.fields if asked.answer == "fields" else ()), sources
    is_open = where.version == Values() and where.text == Values() and asked.since is None and asked.until is None
    order, limit = ("oldest" if asked.order == "oldest" else "newest"), asked.limit or (1 if is_open else 50)
    rows = await _rows(
        store.database, msgspec.structs.replace(asked, find="releases", where=where, limit=limit, order=order)
    )
    if not rows:
        versions = ", ".join((*where.version.any, *where.version.all))
        what = f"version {versions}" if versions else "such release"
        return f"{title} has no published {what}.", [source(store, slug)]
    parts: list[str] = []
    for row in rows:
        part = f"{row.title} {row.version} ({row.channel}) was published on {day(row.published_at)}"
        if "notes" in asked.fields:
            part = f"{row.title} {row.version} ({row.channel}, {day(row.published_at)}): {(row.notes or 'no notes')[:LONGEST_NOTES]}"
        if "artifacts" in asked.fields:
            part += f"; files: {await _files(store.database, row)}"
        parts.append(part)
    other = [name for name in asked.fields if name not in _OF_RELEASES]
    text = ". ".join(parts).rstrip(".") + "."
    return f"{text} {_about(told, other)}" if other else text, [source(store, row.slug, row.version) for row in rows]


async def _files(database: Database, row: Row) -> str:
    files = await database.fetch(FILES, row.slug, row.version)
    return ", ".join(f"{name} ({size} bytes, sha256 {digest})" for name, size, digest, _ in files) or "none"


def _about(told: Facts, fields: Sequence[str]) -> str:
    """What is said of a product: the fields, or all of them."""
    detail = told.detail
    newest = detail.channels[0] if detail.channels else None
    parts = {
        "kind": f"is {'an' if detail.kind == 'app' else 'a'} {detail.kind}",
        "org": f"is published by {told.publisher}",
        "platforms": f"runs on {joined([PLATFORM_NAMES[name] for name in detail.platforms]) or 'no platform'}"
        f" ({len(detail.platforms)} platform{'s' * (len(detail.platforms) != 1)})",
        "access": "is free" if detail.access == "free" else "has to be owned (entitled)",
        "license": f"has the license {detail.license}" if detail.license else "states no license",
        "homepage": f"has the homepage {detail.homepage}" if detail.homepage else "has no homepage",
        "tags": f"is tagged {', '.join(detail.tags)}" if detail.tags else "has no tags",
        "channels": f"has releases in {joined([f'{each.channel} ({each.version})' for each in detail.channels])}"
        if detail.channels
        else "has no releases",
    }
    if fields:
        return f"{detail.title} {joined([parts[name] for name in fields if name in parts])}."
    text = f"{detail.title} {joined([parts[name] for name in parts])}"
    if newest is not None:
        text += f"; its newest version is {newest.version} ({newest.channel}, {newest.published_at[:10]})"
    return f"{text}. {detail.description or ''}".rstrip()
