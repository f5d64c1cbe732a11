"""Pages and totals, and queries that are refused with their reason."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from countersign.declare import Bool, Date, LongText, Model, Money, Number, Ref, Select, Text
from countersign.records.access.view import Caller
from countersign.records.commands.refusals import BadInput
from tests.records import inside
from tests.records.inside import Inside


class Sample(Model):
    """One field of each kind."""

    title = Text()
    story = LongText()
    size = Number()
    price_minor = Money()
    day = Date()
    done = Bool()
    stage = Select("late", "early")
    parent = Ref("sample")


FITTING: dict[str, Any] = {
    "title": "a", "story": "a", "size": 1, "price_minor": 1, "day": "2026-11-20", "done": True, "stage": "late",
    "parent": "0" * 24, "id": "0" * 24,
}  # fmt: skip
RANGES = ("gt", "gte", "lt", "lte")


@pytest.fixture
async def samples(database_url: str, tmp_path: Path) -> AsyncIterator[Inside]:
    """No samples yet: once on SQLite, once on PostgreSQL."""
    async with inside.opened(database_url, tmp_path, Sample) as opened:
        yield opened


@pytest.fixture
def caller(samples: Inside) -> Caller:
    """Who sees everything in clear."""
    return samples.administrator()


async def refused(samples: Inside, caller: Caller, **query: object) -> str:
    """Why a query is refused, by list and search alike."""
    reasons: set[str] = set()
    for command in ("list", "search"):
        with pytest.raises(BadInput) as caught:
            await samples.value(caller, "sample", command, **query)
        reasons.add(str(caught.value).replace(f"sample.{command}", "sample.…"))
    (reason,) = reasons
    return reason


async def test_a_search_is_in_order_with_and_without_a_limit(samples: Inside, caller: Caller) -> None:
    ids = sorted([(await samples.value(caller, "sample", "create", size=n % 3))["id"] for n in range(30)])

    queries: list[dict[str, Any]] = [{}, {"limit": 30}, {"offset": 0}, {"filter": []}, {"filter": [], "order": []}]
    for query in queries:
        found = await samples.value(caller, "sample", "search", **query)
        assert [row["id"] for row in found["rows"]] == ids

    found = await samples.value(caller, "sample", "search", order=[{"field": "id", "dir": "desc"}])
    assert [row["id"] for row in found["rows"]] == ids[::-1]


async def test_a_page_beyond_the_end_is_empty_and_tells_the_total(samples: Inside, caller: Caller) -> None:
    for number in range(3):
        await samples.value(caller, "sample", "create", size=number)

    assert await samples.value(caller, "sample", "search", offset=3) == {"rows": [], "total": 3}
    assert await samples.value(caller, "sample", "search", offset=2**53 - 1, limit=1) == {"rows": [], "total": 3}
    nothing = [{"field": "size", "op": "gt", "value": 2}]
    assert await samples.value(caller, "sample", "search", filter=nothing) == {"rows": [], "total": 0}
    assert await samples.value(caller, "sample", "list", offset=2**53 - 1) == []


async def test_pages_put_together_are_the_whole(samples: Inside, caller: Caller) -> None:
    for number in range(25):
        await samples.value(caller, "sample", "create", size=number % 2 or None, title="x" * (number % 3))
    order = [{"field": "size", "dir": "desc"}, {"field": "title"}]

    whole = await samples.value(caller, "sample", "list", order=order)
    pages = [await samples.value(caller, "sample", "list", order=order, limit=4, offset=at) for at in range(0, 28, 4)]

    assert [row for page in pages for row in page] == whole
    assert len(whole) == 25


async def test_operators_that_do_not_fit_the_kind_are_refused(samples: Inside, caller: Caller) -> None:
    misfits = [(name, "contains") for name in FITTING if name not in ("title", "story", "id")]
    misfits += [(name, operator) for name in ("done", "parent") for operator in RANGES]
    for field, operator in misfits:
        condition = {"field": field, "op": operator, "value": FITTING[field]}
        assert f"op {operator} does not fit sample.{field}" in await refused(samples, caller, filter=[condition])


@pytest.mark.parametrize("field", list(FITTING))
async def test_a_value_of_another_kind_is_refused(samples: Inside, caller: Caller, field: str) -> None:
    strange: list[Any] = [None, 1.5, True, 1, "1", "late ", "2026-02-30", "a\0", [], {}, [[]], "\ud800", 2**53]
    ids = ("parent", "id")
    fits = {
        **{each: (str,) for each in ("title", "story", *ids)},
        **{each: (int,) for each in ("size", "price_minor")},
        "done": (bool,),
    }.get(field, ())
    wrong = [each for each in strange if type(each) not in fits or each in ("a\0", "\ud800", 2**53)]
    # What is no id is the id of no record: no record has it.
    wrong = [each for each in wrong if not (field in ids and isinstance(each, str))]
    for value in wrong:
        for operator, operand in (("eq", value), ("ne", value), ("in", [FITTING[field], value])):
            condition = {"field": field, "op": operator, "value": operand}
            assert f"sample.{field}" in await refused(samples, caller, filter=[condition]), (operator, value)


MALFORMED: list[dict[str, Any]] = [
    {"filter": {}},
    {"filter": None},
    {"filter": "x"},
    {"filter": [1]},
    {"filter": [{}]},
    {"filter": [{"field": "size", "op": "eq"}]},
    {"filter": [{"field": "size", "value": 1}]},
    {"filter": [{"op": "eq", "value": 1}]},
    {"filter": [{"field": "size", "op": "like", "value": 1}]},
    {"filter": [{"field": "size", "op": ["eq"], "value": 1}]},
    {"filter": [{"field": "size", "op": "eq", "value": 1, "not": True}]},
    {"filter": [{"field": 1, "op": "eq", "value": 1}]},
    {"filter": [{"field": "size", "op": "in", "value": 1}]},
    {"filter": [{"field": "size", "op": "in", "value": []}]},
    {"filter": [{"field": "size", "op": "in", "value": [1] * 1_001}]},
    {"filter": [{"field": "size", "op": "is_null", "value": 1}]},
    {"filter": [{"field": "size", "op": "is_null", "value": None}]},
    {"filter": [{"field": "size", "op": "eq", "value": 1}] * 51},
    {"order": {}},
    {"order": ["size"]},
    {"order": [{"dir": "asc"}]},
    {"order": [{"field": "size", "dir": "ASC"}]},
    {"order": [{"field": "size", "dir": None}]},
    {"order": [{"field": "size", "nulls": "first"}]},
    {"order": [{"field": "size"}] * 6},
    {"limit": 0},
    {"limit": 5_001},
    {"limit": -1},
    {"limit": True},
    {"limit": 1.0},
    {"limit": "1"},
    {"limit": None},
    {"offset": -1},
    {"offset": False},
    {"offset": None},
    {"offset": 2**53},
    {"where": []},
    {"filters": []},
]


async def test_malformed_queries_are_refused(samples: Inside, caller: Caller) -> None:
    for query in MALFORMED:
        assert await refused(samples, caller, **query), query


async def test_queries_at_the_limits_are_answered(samples: Inside, caller: Caller) -> None:
    await samples.value(caller, "sample", "create", size=1)
    conditions = [{"field": "size", "op": "in", "value": list(range(each, each + 1_000))} for each in range(-998, -948)]
    order = [{"field": name} for name in ("title", "size", "day", "stage", "id")]

    found = await samples.value(caller, "sample", "search", filter=conditions, order=order, limit=5_000)

    assert found["total"] == 1


@pytest.mark.parametrize("others", [3, 500])
async def test_few_and_many_values_of_in_find_the_same(samples: Inside, caller: Caller, others: int) -> None:
    values = {"title": 'a"\\\u00e9\U0001f600\n', "size": 2**53 - 1, "day": "2024-02-29", "done": True, "stage": "late"}
    made = await samples.value(caller, "sample", "create", **values)
    await samples.value(caller, "sample", "create")
    fill: dict[str, Any] = {"title": "x", "size": 1, "day": "2026-11-20", "done": True, "stage": "late", "id": "0"}

    for name, value in (*values.items(), ("id", made["id"])):
        condition = {"field": name, "op": "in", "value": [fill[name]] * others + [value]}
        found = await samples.value(caller, "sample", "list", filter=[condition])
        assert [row["id"] for row in found] == [made["id"]], name


async def test_names_that_are_no_fields_are_unknown(samples: Inside, caller: Caller) -> None:
    for name in ("changed", "revision", "title__folded", "x", "Title", "", "size ", "id.id", "t.id"):
        condition = {"field": name, "op": "is_null", "value": True}
        assert await refused(samples, caller, filter=[condition]) == f"unknown field sample.{name}"
        assert await refused(samples, caller, order=[{"field": name}]) == f"unknown field sample.{name}"


async def test_moments_are_filtered_and_ordered_as_instants(samples: Inside, caller: Caller) -> None:
    for _ in range(5):
        await samples.value(caller, "sample", "create")
    entries = await samples.value(caller, "audit_entry", "list", order=[{"field": "at"}, {"field": "number"}])
    moments = [entry["at"] for entry in entries]

    async def found(operator: str, value: Any) -> list[str]:
        condition = {"field": "at", "op": operator, "value": value}
        rows = await samples.value(caller, "audit_entry", "list", filter=[condition], order=[{"field": "at"}])
        return [row["at"] for row in rows]

    assert moments == sorted(moments)
    assert await found("is_null", False) == moments
    assert await found("is_null", True) == []
    for shown in moments:
        # They are kept in microseconds and compared as they are shown.
        assert await found("eq", shown) == await found("in", [shown]) == [each for each in moments if each == shown]
        assert await found("ne", shown) == [each for each in moments if each != shown]
        assert await found("gt", shown) == [each for each in moments if each > shown]
        assert await found("gte", shown) == [each for each in moments if each >= shown]
        assert await found("lt", shown) == [each for each in moments if each < shown]
        assert await found("lte", shown) == [each for each in moments if each <= shown]
        between = shown[:-1] + "5Z"
        assert await found("eq", between) == await found("in", [between]) == []
        assert await found("gt", between) == await found("gte", between) == [each for each in moments if each > shown]
        assert await found("lt", between) == await found("lte", between) == [each for each in moments if each <= shown]
    assert await found("lt", "9999-12-31T23:59:59Z") == moments
    assert await found("gt", "9999-12-31T23:59:59.999999Z") == []
    east = moments[0][:19] + "+23:00"
    assert await found("gt", east) == moments
    for wrong in ("2026-11-20", "2026-11-20T10:00:00", "2026-02-30T10:00:00Z", "2026-11-20T25:00:00Z", 5, None, True):
        condition = {"field": "at", "op": "gt", "value": wrong}
        with pytest.raises(BadInput, match=r"audit_entry\.at"):
            await samples.value(caller, "audit_entry", "list", filter=[condition])
