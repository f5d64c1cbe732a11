"""Answer a filter in words, using only the rows that it matches, and name the source of each statement."""

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
"""The maximum number of releases of several products that are answered with their files."""
MAX_NOTES = 600
_YES_NO = {True: "Yes", False: "No"}
_OF_RELEASES = frozenset(["versions", "published_at", "notes", "artifacts"])


class Source(msgspec.Struct, frozen=True):
    """A source of an answer; `release` is a version of the product."""

    product: str
    release: str | None
    url: str


class FilterAnswer(msgspec.Struct, frozen=True):
    """The answer to a filter. `total` is the number of matching rows."""

    text: str
    sources: tuple[Source, ...] = ()
    total: int = 0
    status: Status = "answered"
    filter: Filter | None = None


async def answer_of(store: Store, query: Filter) -> FilterAnswer:
    """The answer to the filter."""
    handlers = {
        "count": _count_answer,
        "breakdown": _breakdown_answer,
        "fields": _fields_answer,
        "compare": _fields_answer,
        "exists": _exists_answer,
    }
    narrowed_query = replace(query, fields=()) if query.answer == "compare" else query
    return replace(await handlers.get(query.answer, _list_answer)(store, narrowed_query), filter=query)


async def _list_answer(store: Store, query: Filter) -> FilterAnswer:
    lists = {"products": _products_answer, "releases": _releases_answer, "publishers": _publishers_answer}
    return await lists[query.find](store, query)


async def _products_answer(store: Store, query: Filter) -> FilterAnswer:
    products = await filter_queries.products(store.database, query)
    count = len(products)
    text = f"{_list_text([product.title for product in products])}." if products else "None: no product fits."
    if count > 1 and not query.limit:
        # Counting more of them would require reading all rows.
        text = f"{'At least ' if count == MAX_ROWS else ''}{count} products: {text}"
    return FilterAnswer(text, _sources(store, products), count)


async def _releases_answer(store: Store, query: Filter) -> FilterAnswer:
    rows = await filter_queries.releases(store.database, query)
    return FilterAnswer(_releases_text(rows, query), _sources(store, rows), len(rows))


async def _publishers_answer(store: Store, query: Filter) -> FilterAnswer:
    results = await filter_queries.publishers(store.database, query)
    names = [f"{result.name} ({result.products})" if query.order == "products" else result.name for result in results]
    return FilterAnswer(
        f"{_list_text(names)}." if names else "None: no publisher has such a product.", total=len(names)
    )


def _releases_text(rows: Sequence[ReleaseMatch], query: Filter) -> str:
    if not rows:
        return "None: no published release fits."
    if len(rows) == 1 and query.order in ("newest", "oldest"):
        which_release = "latest" if query.order == "newest" else "first"
        version_text = " of these versions" if query.where.version else ""
        return (
            f"The {which_release} release{version_text} is {_release_name(rows[0])}, published on "
            f"{_day_text(rows[0].published_at)}."
        )
    return f"{_count_text(rows, 'release')}: {_list_text([_release_with_date(row) for row in rows])}."


def _release_name(row: ReleaseMatch) -> str:
    return f"{row.title} {row.version} ({row.channel})"


def _release_with_date(row: ReleaseMatch) -> str:
    return f"{row.title} {row.version} ({row.channel}, {_day_text(row.published_at)})"


async def _count_answer(store: Store, query: Filter) -> FilterAnswer:
    count = await filter_queries.total(store.database, query)
    noun = query.find if count != 1 else query.find[:-1]
    rows = await filter_queries.products(store.database, query) if count and query.find == "products" else []
    return FilterAnswer(f"{count} {noun}.", _sources(store, rows), count)


async def _breakdown_answer(store: Store, query: Filter) -> FilterAnswer:
    counts = await filter_queries.counts(store.database, query, query.by or "kind")
    texts = [f"{PLATFORM_NAMES.get(value, value)}: {count}" for value, count in counts.most_common(MAX_SHOWN) if count]
    return FilterAnswer(f"{', '.join(texts) or 'None'}.", total=len(counts))


async def _exists_answer(store: Store, query: Filter) -> FilterAnswer:
    """Answer yes or no: whether any row matches; for named products, whether all of them match."""
    if query.order in ("newest", "oldest") and _is_about_one_release(query):
        return await _extreme_release_answer(store, query)
    names = (*query.where.product.any, *query.where.product.all)
    named_facts = await facts(store.database, names)
    if len(named_facts) > 1 and (query.fields or query.order != "title"):
        return await _comparison_answer(store, query, named_facts)
    needed_count = 1
    if query.find != "releases":
        query, needed_count = replace(query, find="products", limit=None, order="title"), max(1, len(names))
    results = await _list_answer(store, query)
    if results.total >= needed_count:
        return replace(results, text=f"Yes: {results.text}")
    text = f"No. {'; '.join(map(_product_text, named_facts))}" if names else "No: there is none."
    return replace(results, text=text, sources=_sources(store, named_facts))


def _is_about_one_release(query: Filter) -> bool:
    """Whether a version or the channel of the newest release is asked about. A limit asks for the first of the releases
    in the channel."""
    return bool(query.where.version or (query.where.product.any and query.channel.any and query.limit is None))


async def _comparison_answer(store: Store, query: Filter, products: Sequence[Facts]) -> FilterAnswer:
    """Whether the named products have equal fields; with an order, whether the first named product is the first in
    that order."""
    if query.order == "title":
        is_so = len({_predicates(product, query.fields) for product in products}) == 1
        text = " ".join(_product_text(product, query.fields) for product in products)
    else:
        first_product = await filter_queries.products(store.database, replace(query, limit=1))
        is_so = [product.slug for product in first_product] == [products[0].slug]
        text = f"{first_product[0].title} comes first." if first_product else "None of them fits."
    return FilterAnswer(f"{_YES_NO[is_so]}. {text}", _sources(store, products), len(products))


async def _extreme_release_answer(store: Store, query: Filter) -> FilterAnswer:
    """Whether the newest or oldest release that matches the other conditions has the version, or else the channel."""
    other_query = with_slots(query, **{"version" if query.where.version else "channel": Values()})
    rows = await filter_queries.releases(store.database, replace(other_query, limit=1))
    versions = [text.lower().removeprefix("v") for text in query.where.version.any]
    accepted_values = versions or query.channel.any
    is_so = any((row.version.lower().removeprefix("v") if versions else row.channel) in accepted_values for row in rows)
    return FilterAnswer(f"{_YES_NO[is_so]}. {_releases_text(rows, other_query)}", _sources(store, rows), len(rows))


async def _fields_answer(store: Store, query: Filter) -> FilterAnswer:
    """The requested information about each product; if releases are requested, about each product that has a matching
    one."""
    products = await filter_queries.products(store.database, _product_filter(query))
    if not products:
        return FilterAnswer("None: no product fits.")
    details = await facts(store.database, [product.slug for product in products])
    results = [await _product_answer(store, query, detail, len(products)) for detail in details]
    text = " ".join(result.text for result in results if result.text)
    if text:
        return FilterAnswer(text, tuple(source for result in results for source in result.sources), len(products))
    return FilterAnswer(unable(_nothing_found_text(query)), status="refused")


def _nothing_found_text(query: Filter) -> str:
    if query.fields == ("artifacts",):
        return "no files are listed."
    return f"no release notes mention {quoted((*query.where.text.any, *query.where.text.all)) or 'this'}."


def _product_filter(query: Filter) -> Filter:
    """The filter of the products that the question is about. It includes named products even if none of their releases
    matches."""
    product_filter = replace(with_slots(query, version=Values()), find="products", limit=MAX_SHOWN)
    if query.where.product.any:
        return Filter(where=replace(product_filter.where, text=Values()), order=query.order, limit=MAX_SHOWN)
    # If releases are requested, the limit applies to the releases of each product.
    limit = MAX_SHOWN if _OF_RELEASES & {*query.fields} else min(query.limit or MAX_SHOWN, MAX_SHOWN)
    return replace(product_filter, limit=limit)


async def _product_answer(store: Store, query: Filter, product: Facts, product_count: int) -> FilterAnswer:
    """Return the requested fields of one of `product_count` products. The answer is empty if there are several products
    and no release of this one matches."""
    if query.fields == ("channels",):
        return _channels_answer(store, query, product)
    if not _OF_RELEASES & {*query.fields}:
        return FilterAnswer(_product_text(product, query.fields), _sources(store, [product]))
    rows = await filter_queries.releases(store.database, _release_filter(product, query, product_count))
    if rows:
        text = ". ".join(filter(None, [await _release_text(store, query, row) for row in rows])).rstrip(".")
        text = f"{text}.{_product_fields_text(product, query)}" if text else ""
        return FilterAnswer(text, _sources(store, rows) if text else ())
    if product_count > 1 or query.where.text:
        return FilterAnswer("")
    return FilterAnswer(_no_release_text(query, product), _sources(store, [product]))


def _product_fields_text(product: Facts, query: Filter) -> str:
    """The text of the requested fields that do not describe releases; empty if there are none."""
    fields = [name for name in query.fields if name not in _OF_RELEASES]
    return f" {_product_text(product, fields)}" if fields else ""


def _release_filter(product: Facts, query: Filter, product_count: int) -> Filter:
    """The filter of the product's releases. Without a condition on releases, it selects the newest one. If there are
    many products, it selects only a few releases of each."""
    is_open = not any((query.where.version, query.where.text, query.since, query.until))
    limit = query.limit or (1 if is_open else MAX_OF_RANGE)
    max_releases = MAX_WITH_FILES if "artifacts" in query.fields and product_count > 1 else MAX_ROWS
    return replace(
        with_slots(query, product=Values(any=(product.slug,))), limit=min(limit, max_releases // product_count)
    )


def _no_release_text(query: Filter, product: Facts) -> str:
    versions = ", ".join((*query.where.version.any, *query.where.version.all))
    return f"{product.detail.title} has no {f'published version {versions}' if versions else 'such published release'}."


async def _release_text(store: Store, query: Filter, row: ReleaseMatch) -> str:
    """The requested fields of the release; empty if only its files are requested and there are none."""
    text = f"{_release_name(row)} was published on {_day_text(row.published_at)}"
    if "notes" in query.fields:
        text = f"{_release_with_date(row)}: {(row.notes or 'no notes')[:MAX_NOTES]}"
    if "artifacts" in query.fields:
        files = await filter_queries.files(store.database, row.slug, row.version)
        if not files and query.fields == ("artifacts",):
            return ""
        names = [f"{file.name} ({file.size} bytes, sha256 {file.sha256}, {file.platform})" for file in files]
        text += f"; files: {', '.join(names) or 'none'}"
    return text


def _channels_answer(store: Store, query: Filter, product: Facts) -> FilterAnswer:
    selected_channels = (*query.channel.any, *query.channel.all) or CHANNELS
    results = [channel for channel in product.detail.channels if channel.channel in selected_channels]
    names = (
        join_words([f"{result.version} ({result.channel}, {result.published_at[:10]})" for result in results]) or "none"
    )
    text = f"{product.detail.title} has releases in {_count_text(results, 'channel')}: {names}."
    return FilterAnswer(text, tuple(_source(store, product.slug, result.version) for result in results))


def _product_text(product: Facts, fields: Sequence[str] = ()) -> str:
    """The text about a product: the requested fields, or all of them."""
    detail = product.detail
    text = f"{detail.title} {_predicates(product, fields)}"
    if fields:
        return f"{text}."
    for newest in detail.channels[:1]:
        text += f"; its newest version is {newest.version} ({newest.channel}, {newest.published_at[:10]})"
    return f"{text}. {detail.description or ''}".rstrip()


def _predicates(product: Facts, fields: Sequence[str]) -> str:
    """The text that follows a product's title: the requested fields, or all of them."""
    detail = product.detail
    platforms = join_words([PLATFORM_NAMES[name] for name in detail.platforms])
    channels = join_words([f"{channel.channel} ({channel.version})" for channel in detail.channels])
    phrases = {
        "kind": {"game": "is a game", "app": "is an app", "tool": "is a tool"}[detail.kind],
        "org": f"is published by {product.publisher}",
        "platforms": f"runs on {platforms} ({_count_text(detail.platforms, 'platform')})",
        "access": {"free": "is free", "entitled": "has to be owned (entitled)"}[detail.access],
        "license": f"has the license {detail.license}" if detail.license else "states no license",
        "homepage": f"has the homepage {detail.homepage}" if detail.homepage else "has no homepage",
        "tags": f"is tagged {', '.join(detail.tags)}" if detail.tags else "has no tags",
        "channels": f"has releases in {channels}" if channels else "has no releases",
    }
    return join_words([phrases[name] for name in fields or phrases if name in phrases])


def _count_text(items: Sequence[object], noun: str) -> str:
    return f"{len(items)} {noun}{'s' * (len(items) != 1)}"


def _list_text(names: Sequence[str]) -> str:
    omitted_count = len(names) - MAX_SHOWN
    return f"{', '.join(names[:MAX_SHOWN])}, and {omitted_count} more" if omitted_count > 0 else join_words(names)


def _day_text(instant: clock.Instant) -> str:
    return clock.rfc3339(instant)[:10]


def _source(store: Store, slug: str, version: str | None = None) -> Source:
    address = f"{store.base_url}/products/{slug}"
    return Source(slug, version, address if version is None else f"{address}/releases")


def _sources(store: Store, rows: Iterable[ProductMatch | Facts | ReleaseMatch]) -> tuple[Source, ...]:
    """The products or releases that are the sources of an answer."""
    return tuple(_source(store, row.slug, row.version if isinstance(row, ReleaseMatch) else None) for row in rows)


def unable(reason: str) -> str:
    """The text of an answer without results."""
    return f"I cannot tell: {reason}"


def quoted(texts: Sequence[str], separator: str = "") -> str:
    """The quoted texts, with "or" before the last, or with the separator between them."""
    quoted_texts = [f'"{text}"' for text in dict.fromkeys(texts)]
    return separator.join(quoted_texts) if separator else join_words(quoted_texts, "or")
