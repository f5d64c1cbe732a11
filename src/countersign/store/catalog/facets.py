"""Counts of a list of products: its total, and the number of products that remain for each value of a filter."""

from typing import NamedTuple

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.store.catalog import search
from countersign.store.catalog.catalog_index import ACCESS, KINDS, PLATFORMS, CatalogIndex, ProductSet
from countersign.store.catalog.schemas import FacetCount
from countersign.store.catalog.search import PageQuery, SqlBuilder
from countersign.store.context import Store

DAYS = {"7d": 7, "30d": 30, "90d": 90, "365d": 365}
MAX_TAGS = 20
_VALUES = {"kind": KINDS, "platform": PLATFORMS, "access": ACCESS}
OF_FACET = """
    SELECT k.number FROM catalog_facet f JOIN catalog_index k ON k.product_id = f.product_id WHERE f.facet = $1
"""
NOT_PUBLIC = """
    SELECT k.number
    FROM catalog_entry e
    JOIN catalog_index k ON k.product_id = e.product_id
    WHERE e.org_id IN ({orgs}) AND e.status <> 'public'
"""
RELEASED_IN = """
    SELECT DISTINCT k.number
    FROM release r
    JOIN catalog_index k ON k.product_id = r.product_id
    WHERE r.status = 'published' AND r.channel = $1 AND r.published_at >= $2
"""


class Counts(msgspec.Struct):
    """The members that a list has if the request has `facets`."""

    total: int
    facets: dict[str, list[FacetCount]]


class _Filters(NamedTuple):
    """The products of a list as bits: all products without a filter, and the products of each filter by its name."""

    everything: int
    sets: dict[str, int]

    def products(self, excluded_name: str = "") -> int:
        """The products that match all filters, or all filters except the filter `excluded_name`."""
        products_left = self.everything
        for name, bits in self.sets.items():
            if name != excluded_name:
                products_left &= bits
        return products_left


async def count(store: Store, query: PageQuery, wanted_facets: str) -> Counts:
    """Count all products of the list, and the values of the wanted facets, which are separated by commas. A facet is
    counted without the filter on the same facet.

    Raises:
        Unavailable: the products of a search or a rare value could not be read before the read deadline.
    """
    index = store.memory.get(CatalogIndex)
    names = list(dict.fromkeys(wanted_facets.split(",")))
    days = {value: _start_of_day_before(number) for value, number in DAYS.items()}
    await _update_index(store, index, [*days.values()] if "since" in names else [], query)
    filters = _Filters(await _visible_products(store, index, query), await _sets(store, index, query))
    facets: dict[str, list[FacetCount]] = {}
    for name in names:
        products_left = filters.products(excluded_name=name)
        if name == "since":
            facets[name] = _counts(products_left, {value: index.published_since(day) for value, day in days.items()})
        elif name == "tag":
            facets[name] = _most_frequent(_counts(products_left, index.tags()))
            _add_chosen_tag(facets[name], query, products_left & filters.sets.get(name, 0))
        else:
            facets[name] = _counts(
                products_left, {value: index.products(f"{name}:{value}") or 0 for value in _VALUES[name]}
            )
    return Counts(filters.products().bit_count(), facets)


async def _update_index(store: Store, index: CatalogIndex, days: list[Instant], query: PageQuery) -> None:
    """Update the sets, and add the sets for the days that the counts or the filter need."""
    if query.since is not None and query.channel is None:
        days = [*days, query.since]
    # In an atomic batch, the changes of the batch are not counted, because they may be rolled back.
    is_own = store.database is store.memory.database
    await index.update((await store.versions())[0] if is_own else -1, days)


async def _sets(store: Store, index: CatalogIndex, query: PageQuery) -> dict[str, int]:
    """The products of each filter, by its name."""
    sets: dict[str, int] = {}
    for facet in query.facets:
        product_set = index.products(facet)
        sets[facet.partition(":")[0]] = (
            await _product_numbers(store, OF_FACET, facet) if product_set is None else product_set
        )
    if query.since is not None and query.channel is not None:
        sets["since"] = await _product_numbers(store, RELEASED_IN, query.channel, query.since)
    elif query.since is not None:
        sets["since"] = index.published_since(query.since)
    return sets


def _counts(products_left: int, sets: dict[str, int]) -> list[FacetCount]:
    return [FacetCount(value, (products_left & bits).bit_count()) for value, bits in sets.items()]


def _most_frequent(tags: list[FacetCount]) -> list[FacetCount]:
    tags.sort(key=lambda facet_count: (-facet_count.count, facet_count.value))
    return [facet_count for facet_count in tags[:MAX_TAGS] if facet_count.count]


def _add_chosen_tag(counts: list[FacetCount], query: PageQuery, products: int) -> None:
    """Add the tag of the filter, if it is not among the most frequent ones."""
    for facet in query.facets:
        name, _, value = facet.partition(":")
        if name == "tag" and products and all(count.value != value for count in counts):
            counts.append(FacetCount(value, products.bit_count()))


async def _visible_products(store: Store, index: CatalogIndex, query: PageQuery) -> int:
    """The products that the list shows without any filter, or those that match its words."""
    public_products = index.products("public") or 0
    if query.orgs:
        statement = SqlBuilder()
        text = NOT_PUBLIC.format(orgs=statement.add_all(query.orgs))
        public_products |= await _product_numbers(store, text, *statement.values)
    if query.words:
        text, values = search.matching_products_statement(query.words)
        public_products &= await _product_numbers(store, text, *values)
    return public_products


async def _product_numbers(store: Store, statement: str, *values: None | int | float | str | bytes) -> int:
    return ProductSet(row[0] for row in await store.database.scan(statement, *values)).bits


def _start_of_day_before(days: int) -> Instant:
    """The start of the day (UTC) that was `days` days ago."""
    day = 86_400 * clock.SECOND
    return Instant((clock.now() // day - days) * day)
