"""Attacks by expensive lists: combinations of filters that make the database scan everything."""

from itertools import combinations

import pytest

from countersign.store.catalog import products, search
from countersign.store.context import Store

FACETS = ("org:north", "tag:new", "kind:game", "platform:linux", "channel:stable", "access:free")
COMBINED = [facet_choice for count in range(1, len(FACETS) + 1) for facet_choice in combinations(FACETS, count)]


@pytest.mark.parametrize("position", [(), ("a title", "an id")], ids=["first-page", "next-page"])
@pytest.mark.parametrize("facets", COMBINED, ids="+".join)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_combined_filters_still_read_one_index_in_order(
    store: Store, facets: tuple[str, ...], position: tuple[str, ...]
) -> None:
    text, values = search.page_statement(search.PageQuery(facets, [], "title", position, 21))

    plan = [str(row[3]) for row in await store.database.fetch(f"EXPLAIN QUERY PLAN {text}", *values)]

    assert plan[0].startswith("SEARCH d "), plan
    assert not any("TEMP B-TREE" in step for step in plan), plan


@pytest.mark.parametrize("position", [(), ("a title", "an id")], ids=["first-page", "next-page"])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_page_sorted_by_title_is_read_from_only_one_index(
    store: Store, position: tuple[str, ...]
) -> None:
    text, values = search.page_statement(search.PageQuery((), [], "title", position, 21))

    plan = [str(row[3]) for row in await store.database.fetch(f"EXPLAIN QUERY PLAN {text}", *values)]

    assert [step.split(" (")[0] for step in plan] == ["SEARCH e USING COVERING INDEX catalog_entry_by_title"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_the_update_sizes_of_a_page_are_read_from_its_own_releases(store: Store) -> None:
    statement = products.UPDATE_SIZES.format(releases="$1, $2")

    plan = [str(row[3]) for row in await store.database.fetch(f"EXPLAIN QUERY PLAN {statement}", "a", "b")]

    assert plan[0].startswith(("SEARCH new_release ", "SEARCH new ")), plan
    assert not any(step.startswith("SCAN") or "product_id" in step for step in plan), plan
