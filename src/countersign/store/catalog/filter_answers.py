"""The answer to a filter in words, made of nothing but the rows that it finds, with where each statement is from."""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from countersign.kernel import clock
from countersign.store.catalog import filter_queries
from countersign.store.catalog.filter import PLATFORM_NAMES, Filter, Values, join_words, with_slots
from countersign.store.catalog.filter_queries import MAX_ROWS, Facts, ProductMatch, ReleaseMatch, facts
from countersign.store.catalog.projection import CHANNELS
from countersign.store.context import Store

Status = Literal["answered", "partial", "refused"]
MAX_SHOWN = 20
MAX_OF_RANGE = 50
MAX_WITH_FILES = 40
"""Releases of several products that are answered with their files."""
MAX_NOTES = 600
_YES_NO = {True: "Yes", False: "No"}
_OF_RELEASES = frozenset(["versions", "published_at", "notes", "artifacts"])


class Source(msgspec.Struct, frozen=True):
    """Where a statement of an answer is from; `release` is a version of the product."""

    product: str
    release: str | None
    url: str


class FilterAnswer(msgspec.Struct, frozen=True):
    """The answer to a filter. `total` is how many rows were found."""

    text: str
    sources: tuple[Source, ...] = ()
    total: int = 0
    status: Status = "answered"
    filter: Filter | None = None


async def answer_of(store: Store, asked: Filter) -> FilterAnswer:
    """The answer to the filter."""
    ways = {"count": _count, "breakdown": _breakdown, "fields": _fields, "compare": _fields, "exists": _exists}
    wanted = replace(asked, fields=()) if asked.answer == "compare" else asked
    return replace(await ways.get(asked.answer, _list)(store, wanted), filter=asked)


async def _list(store: Store, asked: Filter) -> FilterAnswer:
    lists = {"products": _list_of_products, "releases": _list_of_releases, "publishers": _list_of_publishers}
    return await lists[asked.find](store, asked)


async def _list_of_products(store: Store, asked: Filter) -> FilterAnswer:
    products = await filter_queries.products(store.database, asked)
    count = len(products)
    text = f"{_listed([each.title for each in products])}." if products else "None: no product fits."
    if count > 1 and not asked.limit:
        # To count more of them would be to read all.
        text = f"{'At least ' if count == MAX_ROWS else ''}{count} products: {text}"
    return FilterAnswer(text, _sources(store, products), count)


async def _list_of_releases(store: Store, asked: Filter) -> FilterAnswer:
    rows = await filter_queries.releases(store.database, asked)
    return FilterAnswer(_releases_text(rows, asked), _sources(store, rows), len(rows))


async def _list_of_publishers(store: Store, asked: Filter) -> FilterAnswer:
    found = await filter_queries.publishers(store.database, asked)
    names = [f"{each.name} ({each.products})" if asked.order == "products" else each.name for each in found]
    return FilterAnswer(f"{_listed(names)}." if names else "None: no publisher has such a product.", total=len(names))


def _releases_text(rows: Sequence[ReleaseMatch], asked: Filter) -> str:
    if not rows:
        return "None: no published release fits."
    if len(rows) == 1 and asked.order in ("newest", "oldest"):
        which = "latest" if asked.order == "newest" else "first"
        of = " of these versions" if asked.where.version else ""
        return f"The {which} release{of} is {_release_name(rows[0])}, published on {_day(rows[0].published_at)}."
    return f"{_number(rows, 'release')}: {_listed([_release_with_date(row) for row in rows])}."


def _release_name(row: ReleaseMatch) -> str:
    return f"{row.title} {row.version} ({row.channel})"


def _release_with_date(row: ReleaseMatch) -> str:
    return f"{row.title} {row.version} ({row.channel}, {_day(row.published_at)})"


async def _count(store: Store, asked: Filter) -> FilterAnswer:
    count = await filter_queries.total(store.database, asked)
    noun = asked.find if count != 1 else asked.find[:-1]
    rows = await filter_queries.products(store.database, asked) if count and asked.find == "products" else []
    return FilterAnswer(f"{count} {noun}.", _sources(store, rows), count)


async def _breakdown(store: Store, asked: Filter) -> FilterAnswer:
    counts = await filter_queries.counts(store.database, asked, asked.by or "kind")
    shown = [f"{PLATFORM_NAMES.get(value, value)}: {count}" for value, count in counts.most_common(MAX_SHOWN) if count]
    return FilterAnswer(f"{', '.join(shown) or 'None'}.", total=len(counts))


async def _exists(store: Store, asked: Filter) -> FilterAnswer:
    """Yes or no: whether there is one; of named products, whether all of them are so."""
    if asked.where.version and asked.order in ("newest", "oldest"):
        return await _is_extreme(store, asked)
    names = (*asked.where.product.any, *asked.where.product.all)
    named = await facts(store.database, names)
    if len(named) > 1 and (asked.fields or asked.order != "title"):
        return await _is_alike(store, asked, named)
    needed = 1
    if asked.find != "releases":
        asked, needed = replace(asked, find="products", limit=None, order="title"), max(1, len(names))
    found = await _list(store, asked)
    if found.total >= needed:
        return replace(found, text=f"Yes: {found.text}")
    text = f"No. {'; '.join(map(_about, named))}" if names else "No: there is none."
    return replace(found, text=text, sources=_sources(store, named))


async def _is_alike(store: Store, asked: Filter, products: Sequence[Facts]) -> FilterAnswer:
    """Whether the named products have the same fields; with an order, whether the first of them comes first."""
    if asked.order == "title":
        is_so = len({_predicates(each, asked.fields) for each in products}) == 1
        text = " ".join(_about(each, asked.fields) for each in products)
    else:
        first = await filter_queries.products(store.database, replace(asked, limit=1))
        is_so = [each.slug for each in first] == [products[0].slug]
        text = f"{first[0].title} comes first." if first else "None of them fits."
    return FilterAnswer(f"{_YES_NO[is_so]}. {text}", _sources(store, products), len(products))


async def _is_extreme(store: Store, asked: Filter) -> FilterAnswer:
    """Whether the version is the newest or oldest of those that fit otherwise."""
    rows = await filter_queries.releases(store.database, replace(with_slots(asked, version=Values()), limit=1))
    versions = [text.lower().removeprefix("v") for text in asked.where.version.any]
    is_so = any(row.version.lower().removeprefix("v") in versions for row in rows)
    return FilterAnswer(f"{_YES_NO[is_so]}. {_releases_text(rows, asked)}", _sources(store, rows), len(rows))


async def _fields(store: Store, asked: Filter) -> FilterAnswer:
    """What is asked of each product; where releases are asked for, of each that has such a release."""
    products = await filter_queries.products(store.database, _products_of(asked))
    if not products:
        return FilterAnswer("None: no product fits.")
    known = await facts(store.database, [each.slug for each in products])
    found = [await _of_product(store, asked, each, len(products)) for each in known]
    text = " ".join(each.text for each in found if each.text)
    if text:
        return FilterAnswer(text, tuple(source for each in found for source in each.sources), len(products))
    words = quoted((*asked.where.text.any, *asked.where.text.all)) or "this"
    return FilterAnswer(unable(f"no release notes mention {words}."), status="refused")


def _products_of(asked: Filter) -> Filter:
    """The filter of the products that something is asked of: those that are named even where no release fits."""
    wanted = replace(with_slots(asked, version=Values()), find="products", limit=MAX_SHOWN)
    if asked.where.product.any:
        return Filter(where=replace(wanted.where, text=Values()), order=asked.order, limit=MAX_SHOWN)
    # Of releases, the limit is of those of each product.
    limit = MAX_SHOWN if _OF_RELEASES & {*asked.fields} else min(asked.limit or MAX_SHOWN, MAX_SHOWN)
    return replace(wanted, limit=limit)


async def _of_product(store: Store, asked: Filter, product: Facts, among: int) -> FilterAnswer:
    """What is asked of the product, one `among` so many; nothing where no release of one of several fits."""
    if asked.fields == ("channels",):
        return _newest_of_channels(store, asked, product)
    if not _OF_RELEASES & {*asked.fields}:
        return FilterAnswer(_about(product, asked.fields), _sources(store, [product]))
    rows = await filter_queries.releases(store.database, _releases_of(product, asked, among))
    if rows:
        text = ". ".join([await _release(store, asked, row) for row in rows]).rstrip(".") + "."
        other = [name for name in asked.fields if name not in _OF_RELEASES]
        return FilterAnswer(f"{text} {_about(product, other) if other else ''}".rstrip(), _sources(store, rows))
    if among > 1 or asked.where.text:
        return FilterAnswer("")
    return FilterAnswer(_no_release(asked, product), _sources(store, [product]))


def _releases_of(product: Facts, asked: Filter, among: int) -> Filter:
    """The filter of the product's releases: the newest, where nothing says which; few of each of many products."""
    is_open = not any((asked.where.version, asked.where.text, asked.since, asked.until))
    limit = asked.limit or (1 if is_open else MAX_OF_RANGE)
    most = MAX_WITH_FILES if "artifacts" in asked.fields and among > 1 else MAX_ROWS
    return replace(with_slots(asked, product=Values(any=(product.slug,))), limit=min(limit, most // among))


def _no_release(asked: Filter, product: Facts) -> str:
    versions = ", ".join((*asked.where.version.any, *asked.where.version.all))
    return f"{product.detail.title} has no {f'published version {versions}' if versions else 'such published release'}."


async def _release(store: Store, asked: Filter, row: ReleaseMatch) -> str:
    text = f"{_release_name(row)} was published on {_day(row.published_at)}"
    if "notes" in asked.fields:
        text = f"{_release_with_date(row)}: {(row.notes or 'no notes')[:MAX_NOTES]}"
    if "artifacts" in asked.fields:
        files = await filter_queries.files(store.database, row.slug, row.version)
        names = [f"{each.name} ({each.size} bytes, sha256 {each.sha256}, {each.platform})" for each in files]
        text += f"; files: {', '.join(names) or 'none'}"
    return text


def _newest_of_channels(store: Store, asked: Filter, product: Facts) -> FilterAnswer:
    wanted = (*asked.channel.any, *asked.channel.all) or CHANNELS
    found = [each for each in product.detail.channels if each.channel in wanted]
    names = join_words([f"{each.version} ({each.channel}, {each.published_at[:10]})" for each in found]) or "none"
    text = f"{product.detail.title} has releases in {_number(found, 'channel')}: {names}."
    return FilterAnswer(text, tuple(_source(store, product.slug, each.version) for each in found))


def _about(product: Facts, fields: Sequence[str] = ()) -> str:
    """What is said of a product: the fields, or all of them."""
    detail = product.detail
    text = f"{detail.title} {_predicates(product, fields)}"
    if fields:
        return f"{text}."
    for newest in detail.channels[:1]:
        text += f"; its newest version is {newest.version} ({newest.channel}, {newest.published_at[:10]})"
    return f"{text}. {detail.description or ''}".rstrip()


def _predicates(product: Facts, fields: Sequence[str]) -> str:
    """The fields of a product, or all of them, as what follows its title."""
    detail = product.detail
    platforms = join_words([PLATFORM_NAMES[name] for name in detail.platforms])
    channels = join_words([f"{each.channel} ({each.version})" for each in detail.channels])
    phrases = {
        "kind": {"game": "is a game", "app": "is an app", "tool": "is a tool"}[detail.kind],
        "org": f"is published by {product.publisher}",
        "platforms": f"runs on {platforms} ({_number(detail.platforms, 'platform')})",
        "access": {"free": "is free", "entitled": "has to be owned (entitled)"}[detail.access],
        "license": f"has the license {detail.license}" if detail.license else "states no license",
        "homepage": f"has the homepage {detail.homepage}" if detail.homepage else "has no homepage",
        "tags": f"is tagged {', '.join(detail.tags)}" if detail.tags else "has no tags",
        "channels": f"has releases in {channels}" if channels else "has no releases",
    }
    return join_words([phrases[name] for name in fields or phrases if name in phrases])


def _number(items: Sequence[object], noun: str) -> str:
    return f"{len(items)} {noun}{'s' * (len(items) != 1)}"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MAX_SHOWN
    return f"{', '.join(names[:MAX_SHOWN])}, and {more} more" if more > 0 else join_words(names)


def _day(at: clock.Instant) -> str:
    return clock.rfc3339(at)[:10]


def _source(store: Store, slug: str, version: str | None = None) -> Source:
    address = f"{store.base_url}/products/{slug}"
    return Source(slug, version, address if version is None else f"{address}/releases")


def _sources(store: Store, rows: Iterable[ProductMatch | Facts | ReleaseMatch]) -> tuple[Source, ...]:
    """The products, or the releases, that an answer is from."""
    return tuple(_source(store, row.slug, row.version if isinstance(row, ReleaseMatch) else None) for row in rows)


def unable(reason: str) -> str:
    """How an answer says that it has none."""
    return f"I cannot tell: {reason}"


def quoted(texts: Sequence[str], separator: str = "") -> str:
    """The texts in quotation marks, with "or" before the last or the separator between them."""
    marked = [f'"{text}"' for text in dict.fromkeys(texts)]
    return separator.join(marked) if separator else join_words(marked, "or")
