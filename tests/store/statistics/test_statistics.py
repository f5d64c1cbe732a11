"""Statistics: when events are counted, how they are summed and divided, and who sees them."""

import csv
import io
from datetime import date, timedelta
from typing import Any

import httpx
import pytest

from countersign.kernel import clock
from countersign.store.auth import queries
from countersign.store.statistics import counts
from tests.store.catalog.test_lists import walk_pages
from tests.store.personal.test_follows import publish
from tests.store.world import World

TODAY = date.fromisoformat(counts.day_of(clock.now()))


def ago(days: int) -> str:
    """Return the day this number of days ago."""
    return (TODAY - timedelta(days=days)).isoformat()


async def stats(world: World, token: str, query: str = "") -> dict[str, Any]:
    """Return the statistics that the token can read."""
    answer = await world.call("GET", f"/org/stats?{query}", token)
    assert answer.is_success, answer.text
    return answer.json()


async def put(world: World, slug: str, day: str, value: int, **dimensions: str) -> None:
    """Insert counted values of a day."""
    row = await world.store.database.fetch_one("SELECT org_id, id FROM product WHERE slug = $1", slug)
    assert row is not None
    members = {"metric": "downloads", "version": "1.0", "platform": "linux", **dimensions}
    async with world.store.database.transaction() as transaction:
        await counts.put_counts(
            transaction, [(row[0], members["metric"], day, row[1], members["version"], members["platform"], value)]
        )


@pytest.fixture
async def owner(world: World) -> str:
    """A token of the owner of north, which has two products."""
    for slug in ("one", "two"):
        await world.product("north", slug)
    return await world.person("owner@north.example", north="owner")


async def test_a_series_has_a_value_for_each_step_and_compares_with_before(world: World, owner: str) -> None:
    for days, value in ((1, 5), (2, 7), (10, 100), (11, 1000)):
        await put(world, "one", ago(days), value)
    await put(world, "two", ago(2), 1)

    series = await stats(world, owner, f"from={ago(9)}&to={ago(1)}")

    assert [point["at"] for point in series["points"]] == [ago(days) for days in range(9, 0, -1)]
    assert [point["value"] for point in series["points"]] == [0] * 7 + [8, 5]
    assert (series["total"], series["previous"]["total"], series["groups"]) == (13, 1100, [])
    month = await stats(world, owner)
    assert (len(month["points"]), month["total"], month["points"][-1]["at"]) == (30, 1113, ago(1))
    assert (await stats(world, owner, "product=two"))["total"] == 1
    assert (await stats(world, owner, "metric=bytes"))["total"] == 0


async def test_weeks_begin_on_monday_and_months_on_the_first(world: World, owner: str) -> None:
    for day, value in (("2026-03-29", 1), ("2026-03-30", 10), ("2026-04-01", 100), ("2026-04-06", 1000)):
        await put(world, "one", day, value)

    weeks = await stats(world, owner, "from=2026-03-28&to=2026-04-07&step=week")
    months = await stats(world, owner, "from=2026-03-28&to=2026-04-07&step=month")

    assert [(point["at"], point["value"]) for point in weeks["points"]] == [
        ("2026-03-28", 1), ("2026-03-30", 110), ("2026-04-06", 1000)
    ]  # fmt: skip
    assert [(point["at"], point["value"]) for point in months["points"]] == [("2026-03-28", 11), ("2026-04-01", 1100)]


async def test_the_numbers_are_split_by_product_release_and_platform(world: World, owner: str) -> None:
    await put(world, "one", ago(1), 10)
    await put(world, "one", ago(2), 20, version="1.1")
    await put(world, "two", ago(2), 50, platform="")

    by_product = await stats(world, owner, "by=product")
    by_release = await stats(world, owner, "by=release&product=one")
    by_platform = await stats(world, owner, "by=platform")

    def group_totals(series: dict[str, Any]) -> list[tuple[str, str, int]]:
        return [(group["key"], group["label"], group["total"]) for group in series["groups"]]

    assert group_totals(by_product) == [("two", "Two", 50), ("one", "One", 30)]
    assert group_totals(by_release) == [("1.1", "1.1", 20), ("1.0", "1.0", 10)]
    assert group_totals(by_platform) == [("", "", 50), ("linux", "linux", 30)]
    assert [point["value"] for point in by_product["groups"][1]["points"][-2:]] == [20, 10]


@pytest.mark.parametrize("metric", ["downloads", "bytes"])
async def test_fewer_than_five_on_a_platform_are_not_reported(world: World, owner: str, metric: str) -> None:
    factor = 1 if metric == "downloads" else 1000
    for platform, values in (("linux", (4, 5)), ("macos", (1, 2)), ("windows", (0, 9))):
        for days, value in enumerate(values, start=1):
            await put(world, "one", ago(days), value, platform=platform)
            if metric == "bytes":
                await put(world, "one", ago(days), value * factor, platform=platform, metric="bytes")

    series = await stats(world, owner, f"by=platform&metric={metric}&from={ago(2)}&to={ago(1)}")

    groups = {
        group["key"]: (group["total"], [point["value"] for point in group["points"]]) for group in series["groups"]
    }
    assert groups == {
        "linux": (9 * factor, [5 * factor, None]),
        "macos": (None, [None, None]),
        "windows": (9 * factor, [9 * factor, 0]),
    }


async def test_the_follower_count_is_exact(world: World, owner: str) -> None:
    ann, bob = await world.person("ann@example.com"), await world.person("bob@example.com")
    await put(world, "one", ago(40), 3, metric="followers", version="", platform="")
    await put(world, "one", ago(2), 2, metric="followers", version="", platform="")
    for token in (ann, bob):
        for _ in range(2):
            assert (await world.call("PUT", "/me/follows/product/one", token)).is_success
    assert (await world.call("PUT", "/me/follows/org/north", ann)).is_success
    for _ in range(2):
        await world.call("DELETE", "/me/follows/product/one", bob)

    series = await stats(world, owner, f"metric=followers&from={ago(3)}&to={ago(0)}&by=product")

    assert [point["value"] for point in series["points"]] == [3, 5, 5, 7]
    assert (series["total"], series["previous"]["total"]) == (7, 3)
    groups = {
        group["key"]: (group["total"], [point["value"] for point in group["points"]]) for group in series["groups"]
    }
    assert groups == {"one": (6, [3, 5, 5, 6]), "": (1, [0, 0, 0, 1])}


async def test_redemptions_are_counted_from_their_rows_once(world: World, owner: str) -> None:
    body = {"kind": "promo", "products": ["one", "two"], "count": 1, "max_uses": 10}
    (code,) = (await world.call("POST", "/codes", owner, json=body)).json()["codes"]
    for name in ("ann", "bob"):
        token = await world.person(f"{name}@example.com")
        for _ in range(2):
            assert (await world.call("POST", "/redeem", token, json={"code": code})).is_success
    async with world.store.database.transaction() as transaction:
        earlier = clock.later(clock.now(), seconds=-3 * 86_400)
        move_first_redemption = (
            "UPDATE redemption SET redeemed_at = $1 WHERE owner = (SELECT min(owner) FROM redemption)"
        )
        await transaction.run(move_first_redemption, earlier)

    for _ in range(2):
        await counts.roll_up(world.store.database)

    series = await stats(world, owner, f"metric=redemptions&from={ago(4)}&to={ago(0)}")
    assert [point["value"] for point in series["points"]] == [0, 2, 0, 0, 2]
    assert (await stats(world, owner, f"metric=redemptions&to={ago(0)}&product=one"))["total"] == 2


async def test_products_are_ranked_by_the_last_seven_whole_days_once_a_day(world: World, owner: str) -> None:
    await put(world, "one", ago(0), 100)
    await put(world, "one", ago(8), 100)
    await put(world, "one", ago(7), 3)
    await put(world, "two", ago(1), 4)
    await counts.roll_up(world.store.database)
    first_walk = await walk_pages(world, sort="-downloads_7d")
    await put(world, "one", ago(1), 50)
    await counts.roll_up(world.store.database)
    second_walk = await walk_pages(world, sort="-downloads_7d")
    with clock.fixed(clock.later(clock.now(), seconds=86_400)):
        await counts.roll_up(world.store.database)

    assert first_walk == second_walk == ["two", "one"]
    assert await walk_pages(world, sort="-downloads_7d") == ["one", "two"]


async def test_releases_of_the_time_are_marked(world: World, owner: str) -> None:
    await publish(world, owner, "one", "1.0")
    await publish(world, owner, "two", "1.1")

    series = await stats(world, owner, f"to={ago(0)}")

    assert [(marker["product"], marker["version"]) for marker in series["markers"]] == [("two", "1.1"), ("one", "1.0")]
    assert [marker["version"] for marker in (await stats(world, owner, f"to={ago(0)}&product=one"))["markers"]] == [
        "1.0"
    ]
    assert (await stats(world, owner))["markers"] == []


async def test_the_export_has_the_same_numbers(world: World, owner: str) -> None:
    await put(world, "one", ago(1), 10)
    async with world.store.database.transaction() as transaction:
        await transaction.run("UPDATE product SET title = '=1+1' WHERE slug = 'one'")

    plain_response = await world.call("GET", f"/org/stats.csv?from={ago(2)}", owner)
    split_response = await world.call("GET", f"/org/stats.csv?from={ago(2)}&by=product", owner)

    assert plain_response.headers["content-type"] == "text/csv; charset=utf-8"
    assert list(csv.reader(io.StringIO(plain_response.text))) == [
        ["at", "key", "label", "downloads"], [ago(2), "", "", "0"], [ago(1), "", "", "10"]
    ]  # fmt: skip
    assert list(csv.reader(io.StringIO(split_response.text)))[1:] == [
        [ago(2), "one", "'=1+1", "0"], [ago(1), "one", "'=1+1", "10"]
    ]  # fmt: skip


async def test_only_owners_and_clients_of_the_organisation_read_statistics(world: World, owner: str) -> None:
    publisher = await world.person("p@north.example", north="publisher")
    viewer = await world.person("v@north.example", north="viewer")
    stranger = await world.person("o@south.example", south="owner")
    client, narrow = await world.client_token("north"), await world.client_token("north", "write:products")
    await world.product("south", "theirs")

    allowed_answers = [await world.call("GET", "/org/stats", token) for token in (owner, client)]
    path = "/org/stats?org=north"
    refused_answers = [await world.call("GET", path, token) for token in (publisher, viewer, stranger, narrow)]
    in_session = [await world.session_token(f"{name}@north.example") for name in ("owner", "p", "v")]
    statuses = [(await world.call("GET", path, token)).status_code for token in in_session]

    assert [response.status_code for response in allowed_answers] == [200, 200]
    assert statuses == [200, 200, 403]
    assert allowed_answers[0].headers["cache-control"] == "private, no-store"
    assert [(response.status_code, response.json()["code"]) for response in refused_answers] == [
        (403, "insufficient_scope")
    ] * 4
    assert (await world.call("GET", "/org/stats")).status_code == 401
    assert (await world.call("GET", "/org/stats?product=theirs", owner)).status_code == 404
    assert (await world.call("GET", "/org/stats?org=nowhere", owner)).status_code == 403


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("metric=money", "metric"),
        ("step=hour", "step"),
        ("from=2026-02-31", "from"),
        ("from=2026-03-02&to=2026-03-01", "from"),
        ("from=2000-01-01&to=2026-03-01", "from"),
        ("to=2999-01-01", "from"),
        ("from=0001-01-01&to=0001-01-02", "from"),
        ("by=release", "product"),
        ("by=platform&metric=followers", "by"),
        ("by=country", "by"),
    ],
)
async def test_an_uncountable_statistic_is_refused(world: World, owner: str, query: str, parameter: str) -> None:
    answer = await world.call("GET", f"/org/stats?{query}", owner)

    assert answer.status_code == 400, answer.text
    assert answer.json()["errors"][0]["parameter"] == parameter


async def test_the_demonstration_has_a_month_of_statistics(demo_world: World, http: httpx.AsyncClient) -> None:
    person = await queries.person_with_email(demo_world.store.database, "publisher@example.com")
    assert person is not None
    token = await demo_world.person_token("publisher@example.com", "admin:org")

    for metric in ("downloads", "bytes", "updates", "redemptions", "followers"):
        series = await stats(demo_world, token, f"metric={metric}&by=product")
        assert series["total"] > 50, metric
        assert len(series["groups"]) > 3
        assert sum(point["value"] > 0 for point in series["points"]) >= 28
    most_downloaded = (await http.get("/api/v1/products?sort=-downloads_7d&limit=1")).json()["items"]
    assert most_downloaded
