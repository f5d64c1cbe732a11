"""Attacks by lists that cost much to read: filters put together so that the database walks everything."""

from dataclasses import replace
from itertools import combinations

import httpx
import pytest

from countersign.distribution import app as distribution
from countersign.distribution.catalog import statements
from countersign.distribution.context import Store
from countersign.settings import Settings
from tests.distribution.conftest import ROOT_URL
from tests.distribution.world import World

FACETS = ("org:north", "tag:new", "kind:game", "platform:linux")
COMBINED = [chosen for count in range(1, len(FACETS) + 1) for chosen in combinations(FACETS, count)]


@pytest.mark.parametrize("after", [(), ("a title", "an id")], ids=["first-page", "next-page"])
@pytest.mark.parametrize("facets", COMBINED, ids="+".join)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_filters_put_together_still_walk_one_index_in_order(
    store: Store, facets: tuple[str, ...], after: tuple[str, ...]
) -> None:
    text, values = statements.page(statements.Wanted(facets, [], "title", after, 21))

    plan = [str(row[3]) for row in await store.database.fetch(f"EXPLAIN QUERY PLAN {text}", *values)]

    assert plan[0].startswith("SEARCH d "), plan
    assert not any("TEMP B-TREE" in step for step in plan), plan


@pytest.mark.parametrize("path", ["/codes", "/org/usage"])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_counting_millions_of_codes_never_holds_up_the_others(settings: Settings, path: str) -> None:
    impatient = replace(settings, read_deadline_s=0)
    async with distribution.opened(impatient, ROOT_URL, is_loopback=True) as store:
        transport = httpx.ASGITransport(distribution.create(store))
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as http:
            world = World(store, http)
            await world.org("north")

            answer = await world.call("GET", path, await world.client_token("north"))

    # With no time at all for long reads, whatever is answered was read on the loop that serves everybody.
    assert answer.status_code == 503
