"""Attacks by expensive lists: combinations of filters that make the database scan everything."""

from itertools import combinations

import pytest

from countersign.store.catalog import search
from countersign.store.context import Store

FACETS = ("org:north", "tag:new", "kind:game", "platform:linux", "channel:stable", "access:free")
COMBINED = [chosen for count in range(1, len(FACETS) + 1) for chosen in combinations(FACETS, count)]


@pytest.mark.parametrize("after", [(), ("a title", "an id")], ids=["first-page", "next-page"])
@pytest.mark.parametrize("facets", COMBINED, ids="+".join)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_filters_put_together_still_walk_one_index_in_order(
    store: Store, facets: tuple[str, ...], after: tuple[str, ...]
) -> None:
    text, values = search.page(search.PageQuery(facets, [], "title", after, 21))

    plan = [str(row[3]) for row in await store.database.fetch(f"EXPLAIN QUERY PLAN {text}", *values)]

    assert plan[0].startswith("SEARCH d "), plan
    assert not any("TEMP B-TREE" in step for step in plan), plan


@pytest.mark.parametrize("after", [(), ("a title", "an id")], ids=["first-page", "next-page"])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_page_in_the_order_of_titles_is_read_from_one_index_alone(store: Store, after: tuple[str, ...]) -> None:
    text, values = search.page(search.PageQuery((), [], "title", after, 21))

    plan = [str(row[3]) for row in await store.database.fetch(f"EXPLAIN QUERY PLAN {text}", *values)]

    assert [step.split(" (")[0] for step in plan] == ["SEARCH e USING COVERING INDEX catalog_entry_by_title"]
