"""A series is equal to counting by hand on both databases, and covers only records that the caller sees."""

import statistics
from collections.abc import AsyncIterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from countersign.declare import Date, Grant, Model, Number, Ref, Select, Text, where
from countersign.records.access.view import Caller
from countersign.records.commands.errors import BadInput
from tests.records import inside
from tests.records.inside import InProcessService

FIRST = date(2026, 1, 1)


class Shop(Model):
    """A shop."""

    title = Text()


class Sale(Model):
    """A sale."""

    title = Text()
    day = Date(index=True)
    amount = Number()
    secret = Number()
    kind = Select("cash", "card")
    shop = Ref("shop")


def rows() -> list[dict[str, Any]]:
    """Return sixty sales, one every fifth day. Some have no amount."""
    return [
        {
            "title": f"Sale {n}",
            "day": (FIRST + timedelta(days=5 * n)).isoformat(),
            "amount": None if n % 7 == 3 else n * 3 - 20,
            "secret": n,
            "kind": ("cash", "card", None)[n % 3],
        }
        for n in range(60)
    ]


@pytest.fixture
async def sales(database_url: str, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """A shop with all sales."""
    async with inside.open_service(database_url, tmp_path, Shop, Sale) as opened:
        root = opened.administrator()
        shop = (await value(opened, root, "shop.create", title="Main street"))["id"]
        for row in rows():
            await opened.value(root, "sale", "create", **row, shop=shop)
        yield opened


async def value(sales: InProcessService, caller: Caller, command: str, /, **body: object) -> Any:
    """Run a command, and return its value as decoded JSON."""
    model, _, name = command.partition(".")
    return msgspec.json.decode(msgspec.json.encode(await sales.value(caller, model, name, **body)))


def first_day(text: str, step: str) -> str:
    """Return the first day of a step. It is computed in another way than in the service."""
    day = date.fromisoformat(text)
    if step == "week":
        year, week, _ = day.isocalendar()
        return date.fromisocalendar(year, week, 1).isoformat()
    months = {"month": day.month, "quarter": [1, 1, 1, 4, 4, 4, 7, 7, 7, 10, 10, 10][day.month - 1], "year": 1}
    return text if step == "day" else f"{day.year}-{months[step]:02}-01"


def by_hand(fn: str, several: list[dict[str, Any]]) -> float | None:
    """Return the value of some rows."""
    amounts = [record["amount"] for record in several if record["amount"] is not None]
    if fn == "count":
        return len(several)
    if fn == "sum":
        return sum(amounts)
    mean = statistics.mean if fn == "avg" else statistics.median
    return round(mean(amounts), 2) if amounts else None


def sold_between(first: str, last: str) -> list[dict[str, Any]]:
    """Return the sales of a period."""
    return [row for row in rows() if first <= row["day"] <= last]


def sold_in(within: list[dict[str, Any]], step: str, at: str) -> list[dict[str, Any]]:
    """Return the sales of a step."""
    return [record for record in within if first_day(record["day"], step) == at]


@pytest.mark.parametrize("step", ["day", "week", "month", "quarter", "year"])
@pytest.mark.parametrize("fn", ["count", "sum", "avg", "median"])
async def test_every_point_is_what_counting_by_hand_gives(sales: InProcessService, fn: str, step: str) -> None:
    asked: dict[str, Any] = {"fn": fn, "date": "day", "step": step, "from": "2026-02-03", "to": "2026-09-30"}
    if fn != "count":
        asked["field"] = "amount"

    found = await value(sales, sales.administrator(), "sale.series", **asked)

    within = sold_between(asked["from"], asked["to"])
    steps = [point["at"] for point in found["points"]]
    assert found["points"] == [{"at": at, "value": by_hand(fn, sold_in(within, step, at))} for at in steps]
    assert found["total"] == by_hand(fn, within)
    assert steps == sorted({*steps, *(first_day(record["day"], step) for record in within)})


async def test_the_previous_period_has_the_same_length(sales: InProcessService) -> None:
    found = await value(sales, sales.administrator(), "sale.series", date="day", **days("2026-02-01", "2026-02-10"))

    previous = found["previous"]
    assert (previous["from"], previous["to"]) == ("2026-01-22", "2026-01-31")
    assert previous["total"] == len(sold_between("2026-01-22", "2026-01-31"))


def days(first: str, last: str) -> dict[str, str]:
    """Return the members of an input that define a period."""
    return {"from": first, "to": last}


async def test_groups_add_up_to_the_whole(sales: InProcessService) -> None:
    year = days("2026-01-01", "2026-12-31")
    root = sales.administrator()

    kinds = await value(sales, root, "sale.series", fn="sum", field="amount", date="day", by="kind", **year)
    shops = await value(sales, root, "sale.series", date="day", by="shop", **year)

    assert {group["key"] for group in kinds["groups"]} == {"cash", "card", None}
    assert sum(group["total"] for group in kinds["groups"]) == kinds["total"]
    assert list(shops["names"].values()) == ["Main street"]


async def test_a_filter_limits_the_series(sales: InProcessService) -> None:
    only = [{"field": "kind", "op": "eq", "value": "cash"}]

    found = await value(sales, sales.administrator(), "sale.series", date="day", filter=only, **days(*YEAR))

    assert found["total"] == 20


YEAR = ("2026-01-01", "2026-12-31")


async def test_only_visible_records_are_counted(sales: InProcessService) -> None:
    some = await sales.person(
        Grant(model="sale", commands="*", clear=("title", "day", "amount", "kind"), rows=(where("kind", eq="card"),))
    )

    found = await value(sales, some, "sale.series", date="day", by="kind", **days(*YEAR))

    assert found["total"] == 20
    assert [group["key"] for group in found["groups"]] == ["card"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"fn": "sum", "field": "secret"}, "unknown field sale.secret"),
        ({"fn": "sum", "field": "nothing"}, "unknown field sale.nothing"),
        ({"by": "secret"}, "unknown field sale.secret"),
        ({"date": "shop"}, "unknown field sale.shop"),
        ({"date": "title"}, "sale.title cannot be the date of a series: its kind must be date"),
        ({"fn": "sum", "field": "title"}, "sale.title cannot be added up: its kind must be number or money"),
        ({"fn": "sum"}, "field must be the name of a field"),
        ({"field": "amount"}, "a count has no field"),
        ({"fn": "max"}, "fn must be one of count, sum, avg, median"),
        ({"step": "hour"}, "step must be one of day, week, month, quarter, year"),
        ({"from": "2027-01-01"}, "from must not be after to"),
        ({"from": "yesterday"}, "from must be a real calendar date"),
        ({"from": "2024-01-01", "step": "day"}, "a series has 400 points at most: give a shorter period"),
    ],
)
async def test_an_unanswerable_series_is_refused(sales: InProcessService, body: dict[str, Any], text: str) -> None:
    some = await sales.person(Grant(model="sale", commands="*", clear=("title", "day", "amount")))
    asked = {"date": "day", **days(*YEAR), **body}

    with pytest.raises(BadInput) as refused:
        await value(sales, some, "sale.series", **asked)

    assert refused.value.detail.startswith(text)
