"""Counts of lists: totals and facets are equal to the lists, current, and in the documented order."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from countersign.kernel import clock
from countersign.store import app as distribution
from countersign.store.catalog import catalog_index
from countersign.store.catalog.catalog_index import CatalogIndex
from countersign.store.context import Store
from tests.store.ask.shelf import stock_store
from tests.store.catalog.test_lists import KINDS, PLATFORMS, TAGS, create_products, walk_pages
from tests.store.world import World, slugs

ALL = "kind,platform,access,since,tag"
EVERY = """
    SELECT product_id, is_public, kind, platforms, channels, is_free, org_slug, tags, published_at, updated_at,
           downloads_7d
    FROM catalog_index
    ORDER BY product_id
"""
SET_DOWNLOADS = "UPDATE catalog_index SET downloads_7d = $2 WHERE product_id = $1"
(MIGRATION,) = (Path(distribution.__file__).parent / "migrations").glob("*_catalog_index.sql")


async def count_facets(world: World, query: str = "", token: str | None = None, facets: str = ALL) -> dict[str, Any]:
    """Return the total of the list, and its facets as objects of value and count."""
    answer = await world.call("GET", f"/products?facets={facets}&{query}", token)
    assert answer.is_success, answer.text
    body = answer.json()
    counts_by_facet = {
        name: {value["value"]: value["count"] for value in values} for name, values in body["facets"].items()
    }
    return {"total": body["total"], **counts_by_facet}


async def test_the_migration_writes_the_same_rows_as_publishing(store: Store) -> None:
    await stock_store(store)
    published_rows = await store.database.fetch(EVERY)
    text = MIGRATION.read_text()
    async with store.database.transaction() as transaction:
        await transaction.run("DELETE FROM catalog_index")
        await transaction.run(text[text.index("INSERT INTO") :].rstrip().rstrip(";"))

    migrated_rows = await store.database.fetch(EVERY)

    assert len(published_rows) > 15
    normal = [(*row[:7], row[7].split(), *row[8:]) for row in published_rows]
    assert [(*row[:7], row[7].split(), *row[8:]) for row in migrated_rows] == normal


async def test_a_list_without_facets_has_no_counts(world: World) -> None:
    await world.product("north", "one")

    assert set((await world.call("GET", "/products")).json()) == {"items", "next_cursor"}
    assert set((await world.call("GET", "/products?facets=kind")).json()["facets"]) == {"kind"}


@pytest.mark.parametrize(
    "query",
    ["", "kind=game", "platform=linux", "tag=cli", "org=north", "kind=app&tag=cozy&platform=web", "q=product"],
)
async def test_each_count_is_the_length_of_the_list_with_that_value(world: World, query: str) -> None:
    await create_products(world, 60)
    filters = dict(parameter.split("=") for parameter in query.split("&") if parameter)

    counts = await count_facets(world, query)

    assert counts["total"] == len(await walk_pages(world, **filters))
    for name, values in (("kind", KINDS), ("platform", PLATFORMS), ("tag", TAGS)):
        for value in values:
            assert counts[name].get(value, 0) == len(await walk_pages(world, **{**filters, name: value})), (name, value)
    assert counts["access"]["free"] == len(await walk_pages(world, **filters, access="free")) == 0
    assert counts["since"]["7d"] == counts["total"]


@pytest.mark.parametrize("facet_name", ["", "kinds", "kind,", "kind tag", "kind," * 11 + "tag", "org"])
async def test_only_known_facets_are_counted(world: World, facet_name: str) -> None:
    answer = await world.call("GET", f"/products?facets={facet_name}")

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["parameter"] == "facets"


async def test_counts_follow_every_change(world: World) -> None:
    token = await world.person("p@north.example", north="publisher")
    await world.product("north", "one", tags=["a"])
    assert (await count_facets(world))["total"] == 1

    await world.product("north", "two", kind="tool", access="free", tags=["a", "b"])
    counts_of_two = await count_facets(world)
    change = {"slug": "two", "title": "Two", "kind": "app", "platforms": ["web"], "access": "free", "tags": ["c"]}
    assert (await world.call("PUT", "/products/two", token, json=change)).is_success
    counts_after = await count_facets(world)
    assert (await world.call("PUT", "/products/two", token, json={**change, "status": "draft"})).is_success

    assert (counts_of_two["total"], counts_of_two["kind"], counts_of_two["tag"]) == (
        2,
        {"game": 1, "app": 0, "tool": 1},
        {"a": 2, "b": 1},
    )
    assert (counts_after["kind"], counts_after["tag"]) == ({"game": 1, "app": 1, "tool": 0}, {"a": 1, "c": 1})
    assert counts_after["access"] == {"free": 1, "entitled": 1}
    assert counts_after["platform"]["web"] == 1
    assert (await count_facets(world))["total"] == 1
    members_counts = await count_facets(world, token=token)
    assert (members_counts["total"], members_counts["tag"]) == (2, {"a": 1, "c": 1})
    assert len((await world.call("GET", "/products", token)).json()["items"]) == 2


async def test_changes_that_a_batch_rolls_back_are_never_counted(world: World) -> None:
    token = await world.person("p@north.example", north="publisher")
    await world.product("north", "one")
    assert (await count_facets(world))["total"] == 1
    new = {"slug": "two", "title": "Two", "kind": "app", "platforms": ["web"], "status": "public"}
    operations = [
        {"method": "POST", "path": "/products", "body": new},
        {"method": "GET", "path": "/products?facets=kind"},
        {"method": "POST", "path": "/products", "body": new},
    ]

    answer = await world.call("POST", "/batch", token, json={"mode": "atomic", "operations": operations})

    assert answer.json()["results"][2]["status"] == 409, answer.text
    assert (await count_facets(world))["total"] == 1
    await world.product("north", "three")
    assert (await count_facets(world))["total"] == 2


async def test_the_since_facet_counts_days_without_the_filter_by_days(world: World) -> None:
    now = clock.now()
    for days in (1, 20, 60, 200, 500):
        with clock.fixed(clock.later(now, seconds=-86_400 * days)):
            await world.product("north", f"days-{days}")
    day = (datetime.fromisoformat(clock.rfc3339(now)) - timedelta(days=25)).date()

    counts = await count_facets(world, f"published_since={day}")

    assert counts["total"] == 2
    assert counts["since"] == {"7d": 1, "30d": 2, "90d": 3, "365d": 4}
    assert counts["kind"]["game"] == 2


async def test_rare_tags_are_counted_if_they_are_requested(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_index, "MAX_WORDS", 1)
    monkeypatch.setattr(catalog_index, "MAX_STRAYS", 3)
    await world.product("north", "one", tags=["often"])
    await world.product("south", "two", tags=["often", "rare"])

    counts_before = await count_facets(world, "tag=rare")
    of_south = await count_facets(world, "org=south")
    for number in range(4):
        await world.product("north", f"more-{number}", tags=["rare"])

    assert (counts_before["total"], counts_before["tag"]) == (1, {"often": 2, "rare": 1})
    assert of_south["total"] == 1
    assert (await count_facets(world, "tag=rare"))["total"] == 5
    await world.product("north", "last", tags=["rare"])
    assert (await count_facets(world))["tag"] == {"rare": 6}


async def test_many_changes_are_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    index = world.store.memory.get(CatalogIndex)
    await world.product("north", "one")
    await count_facets(world)
    monkeypatch.setattr(catalog_index, "MAX_STEP", 1)
    monkeypatch.setattr(
        catalog_index, "CHANGED_ROWS", catalog_index.EVERY_ROW + " WHERE changed > $1 ORDER BY changed LIMIT 2"
    )
    for number in range(3):
        await world.product("north", f"more-{number}")

    assert (await count_facets(world))["total"] == 4
    assert index.products("public") is not None


async def test_the_newest_change_is_listed_first(world: World) -> None:
    token = await world.person("p@north.example", north="publisher")
    now = clock.now()
    for number in range(5):
        with clock.fixed(clock.later(now, seconds=number - 100)):
            await world.product("north", f"p-{number}")
    with clock.fixed(clock.later(now, seconds=-50)):
        change = {"slug": "p-1", "title": "P", "kind": "app", "platforms": ["web"], "status": "public"}
        assert (await world.call("PUT", "/products/p-1", token, json=change)).is_success

    order = await walk_pages(world, sort="-updated_at")
    games = slugs((await world.call("GET", "/products?sort=-updated_at&kind=game&limit=2")).json()["items"])
    found_slugs = slugs((await world.call("GET", "/products?sort=-updated_at&q=p&kind=game")).json()["items"])

    assert order == ["p-1", "p-4", "p-3", "p-2", "p-0"]
    assert games == ["p-4", "p-3"]
    assert found_slugs == ["p-4", "p-3", "p-2", "p-0"]


async def test_the_most_downloaded_come_first(world: World) -> None:
    product_ids = [await world.product("north", f"p-{number}") for number in range(4)]
    async with world.store.database.transaction() as transaction:
        for downloads, product in zip((5, 9, 0, 9), product_ids, strict=True):
            await transaction.run(SET_DOWNLOADS, product, downloads)

    first_id, second_id = sorted((product_ids[1], product_ids[3]), reverse=True)
    expected = {product_ids[number]: f"p-{number}" for number in range(4)}

    order = await walk_pages(world, sort="-downloads_7d")

    assert order == [expected[first_id], expected[second_id], "p-0", "p-2"]
