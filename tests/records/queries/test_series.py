"""A series has the values that the test computes itself, on both databases, and covers only visible records."""

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

FIRST_DAY = date(2026, 1, 1)


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


def sale_rows() -> list[dict[str, Any]]:
    """Return sixty sales, one every fifth day. Some have no amount."""
    return [
        {
            "title": f"Sale {n}",
            "day": (FIRST_DAY + timedelta(days=5 * n)).isoformat(),
            "amount": None if n % 7 == 3 else n * 3 - 20,
            "secret": n,
            "kind": ("cash", "card", None)[n % 3],
        }
        for n in range(60)
    ]


@pytest.fixture
async def sales(database_url: str, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """A service with one shop and all sales."""
    async with inside.open_service(database_url, tmp_path, Shop, Sale) as service:
        root = service.administrator()
        shop = (await run_decoded(service, root, "shop.create", title="Main street"))["id"]
        for row in sale_rows():
            await service.value(root, "sale", "create", **row, shop=shop)
        yield service


async def run_decoded(service: InProcessService, caller: Caller, command: str, /, **body: object) -> Any:
    """Run a command, and return its value as decoded JSON."""
    model, _, name = command.partition(".")
    return msgspec.json.decode(msgspec.json.encode(await service.value(caller, model, name, **body)))


def first_day(day_text: str, step: str) -> str:
    """Return the first day of the step that contains the day. The service computes it in another way."""
    day = date.fromisoformat(day_text)
    if step == "week":
        year, week, _ = day.isocalendar()
        return date.fromisocalendar(year, week, 1).isoformat()
    months = {"month": day.month, "quarter": [1, 1, 1, 4, 4, 4, 7, 7, 7, 10, 10, 10][day.month - 1], "year": 1}
    return day_text if step == "day" else f"{day.year}-{months[step]:02}-01"


def expected_value(fn: str, rows: list[dict[str, Any]]) -> float | None:
    """Return the value that a series should have for these rows."""
    amounts = [record["amount"] for record in rows if record["amount"] is not None]
    if fn == "count":
        return len(rows)
    if fn == "sum":
        return sum(amounts)
    mean = statistics.mean if fn == "avg" else statistics.median
    return round(mean(amounts), 2) if amounts else None


def sold_between(first_day: str, last_day: str) -> list[dict[str, Any]]:
    """Return the sales from the first to the last day."""
    return [row for row in sale_rows() if first_day <= row["day"] <= last_day]


def sold_in(rows: list[dict[str, Any]], step: str, start: str) -> list[dict[str, Any]]:
    """Return those of the rows that belong to the step with this first day."""
    return [record for record in rows if first_day(record["day"], step) == start]


@pytest.mark.parametrize("step", ["day", "week", "month", "quarter", "year"])
@pytest.mark.parametrize("fn", ["count", "sum", "avg", "median"])
async def test_every_point_equals_the_value_computed_in_the_test(sales: InProcessService, fn: str, step: str) -> None:
    query: dict[str, Any] = {"fn": fn, "date": "day", "step": step, "from": "2026-02-03", "to": "2026-09-30"}
    if fn != "count":
        query["field"] = "amount"

    series = await run_decoded(sales, sales.administrator(), "sale.series", **query)

    sold_rows = sold_between(query["from"], query["to"])
    steps = [point["at"] for point in series["points"]]
    assert series["points"] == [{"at": at, "value": expected_value(fn, sold_in(sold_rows, step, at))} for at in steps]
    assert series["total"] == expected_value(fn, sold_rows)
    assert steps == sorted({*steps, *(first_day(record["day"], step) for record in sold_rows)})


async def test_the_previous_period_has_the_same_length(sales: InProcessService) -> None:
    series = await run_decoded(
        sales, sales.administrator(), "sale.series", date="day", **period("2026-02-01", "2026-02-10")
    )

    previous = series["previous"]
    assert (previous["from"], previous["to"]) == ("2026-01-22", "2026-01-31")
    assert previous["total"] == len(sold_between("2026-01-22", "2026-01-31"))


def period(first_day: str, last_day: str) -> dict[str, str]:
    """Return the members `from` and `to` of an input."""
    return {"from": first_day, "to": last_day}


async def test_groups_add_up_to_the_whole(sales: InProcessService) -> None:
    year = period("2026-01-01", "2026-12-31")
    root = sales.administrator()

    kinds = await run_decoded(sales, root, "sale.series", fn="sum", field="amount", date="day", by="kind", **year)
    shops = await run_decoded(sales, root, "sale.series", date="day", by="shop", **year)

    assert {group["key"] for group in kinds["groups"]} == {"cash", "card", None}
    assert sum(group["total"] for group in kinds["groups"]) == kinds["total"]
    assert list(shops["names"].values()) == ["Main street"]


async def test_a_filter_limits_the_series(sales: InProcessService) -> None:
    cash_only = [{"field": "kind", "op": "eq", "value": "cash"}]

    series = await run_decoded(
        sales, sales.administrator(), "sale.series", date="day", filter=cash_only, **period(*YEAR)
    )

    assert series["total"] == 20


YEAR = ("2026-01-01", "2026-12-31")


async def test_only_visible_records_are_counted(sales: InProcessService) -> None:
    card_seller = await sales.person(
        Grant(model="sale", commands="*", clear=("title", "day", "amount", "kind"), rows=(where("kind", eq="card"),))
    )

    series = await run_decoded(sales, card_seller, "sale.series", date="day", by="kind", **period(*YEAR))

    assert series["total"] == 20
    assert [group["key"] for group in series["groups"]] == ["card"]


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
async def test_an_invalid_series_is_refused(sales: InProcessService, body: dict[str, Any], text: str) -> None:
    seller = await sales.person(Grant(model="sale", commands="*", clear=("title", "day", "amount")))
    query = {"date": "day", **period(*YEAR), **body}

    with pytest.raises(BadInput) as refusal:
        await run_decoded(sales, seller, "sale.series", **query)

    assert refusal.value.detail.startswith(text)
