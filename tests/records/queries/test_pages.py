"""Pages and totals, and queries that are refused with a reason."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from countersign.declare import Bool, Date, LongText, Model, Moment, Money, Number, Ref, Select, Text
from countersign.records.access.view import Caller
from countersign.records.commands.errors import BadInput
from tests.records import inside
from tests.records.inside import InProcessService
from tests.records.queries import oracle


class Sample(Model):
    """A model with one field of each kind."""

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
async def samples(database_url: str, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """A service without samples, once on SQLite and once on PostgreSQL."""
    async with inside.open_service(database_url, tmp_path, Sample) as service:
        yield service


@pytest.fixture
def caller(samples: InProcessService) -> Caller:
    """A caller who sees everything in clear."""
    return samples.administrator()


async def refusal_of(samples: InProcessService, caller: Caller, **query: object) -> str:
    """Return the error of a query, which must be the same for list and search."""
    reasons: set[str] = set()
    for command in ("list", "search"):
        with pytest.raises(BadInput) as refusal:
            await samples.value(caller, "sample", command, **query)
        reasons.add(str(refusal.value).replace(f"sample.{command}", "sample.…").partition(" (known")[0])
    (reason,) = reasons
    return reason


async def test_a_search_is_in_order_with_and_without_a_limit(samples: InProcessService, caller: Caller) -> None:
    ids = sorted([(await samples.value(caller, "sample", "create", size=n % 3))["id"] for n in range(30)])

    queries: list[dict[str, Any]] = [{}, {"limit": 30}, {"offset": 0}, {"filter": []}, {"filter": [], "order": []}]
    for query in queries:
        result = await samples.value(caller, "sample", "search", **query)
        assert [row["id"] for row in result["rows"]] == ids

    result = await samples.value(caller, "sample", "search", order=[{"field": "id", "dir": "desc"}])
    assert [row["id"] for row in result["rows"]] == ids[::-1]


async def test_a_page_beyond_the_end_is_empty_and_shows_the_total(samples: InProcessService, caller: Caller) -> None:
    for number in range(3):
        await samples.value(caller, "sample", "create", size=number)

    assert await samples.value(caller, "sample", "search", offset=3) == {"rows": [], "total": 3}
    assert await samples.value(caller, "sample", "search", offset=2**53 - 1, limit=1) == {"rows": [], "total": 3}
    empty_filter = [{"field": "size", "op": "gt", "value": 2}]
    assert await samples.value(caller, "sample", "search", filter=empty_filter) == {"rows": [], "total": 0}
    assert await samples.value(caller, "sample", "list", offset=2**53 - 1) == []


async def test_pages_put_together_are_the_whole(samples: InProcessService, caller: Caller) -> None:
    for number in range(25):
        await samples.value(caller, "sample", "create", size=number % 2 or None, title="x" * (number % 3))
    order = [{"field": "size", "dir": "desc"}, {"field": "title"}]

    whole_list = await samples.value(caller, "sample", "list", order=order)
    pages = [await samples.value(caller, "sample", "list", order=order, limit=4, offset=at) for at in range(0, 28, 4)]

    assert [row for page in pages for row in page] == whole_list
    assert len(whole_list) == 25


async def test_operators_that_do_not_fit_the_kind_are_refused(samples: InProcessService, caller: Caller) -> None:
    misfits = [(name, "contains") for name in FITTING if name not in ("title", "story", "id")]
    misfits += [(name, operator) for name in ("done", "parent") for operator in RANGES]
    for field, operator in misfits:
        condition = {"field": field, "op": operator, "value": FITTING[field]}
        assert f"op {operator} does not fit sample.{field}" in await refusal_of(samples, caller, filter=[condition])


# Maps each kind to values that do not belong to it. A text that is not an id is not an error: it is the id of no
# record.
NEVER: list[Any] = [None, 1.5, [], {}, [[]]]
NO_TEXT: list[Any] = [True, 1, "a\0", "\ud800"]
NO_NUMBER: list[Any] = [True, "1", 2**53]
MISFITS: dict[str, list[Any]] = {
    "title": NO_TEXT, "story": NO_TEXT, "size": NO_NUMBER, "price_minor": NO_NUMBER,
    "day": [1, "1", "2026-02-30", "2026-1-1", " 2026-11-20"], "done": [1, 0, "true"], "stage": [1, "1", "late "],
    "parent": [1, True], "id": [1, True],
}  # fmt: skip


@pytest.mark.parametrize("field", list(FITTING))
async def test_a_value_of_another_kind_is_refused(samples: InProcessService, caller: Caller, field: str) -> None:
    for value in NEVER + MISFITS[field]:
        for operator, operand in (("eq", value), ("ne", value), ("in", [FITTING[field], value])):
            condition = {"field": field, "op": operator, "value": operand}
            assert f"sample.{field}" in await refusal_of(samples, caller, filter=[condition]), (operator, value)


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


async def test_malformed_queries_are_refused(samples: InProcessService, caller: Caller) -> None:
    for query in MALFORMED:
        assert await refusal_of(samples, caller, **query), query


async def test_queries_at_the_limits_are_answered(samples: InProcessService, caller: Caller) -> None:
    await samples.value(caller, "sample", "create", size=1)
    conditions = [
        {"field": "size", "op": "in", "value": list(range(number, number + 1_000))} for number in range(-998, -948)
    ]
    order = [{"field": name} for name in ("title", "size", "day", "stage", "id")]

    result = await samples.value(caller, "sample", "search", filter=conditions, order=order, limit=5_000)

    assert result["total"] == 1


@pytest.mark.parametrize("other_count", [3, 500])
async def test_the_in_operator_finds_the_same_records_with_few_and_many_values(
    samples: InProcessService, caller: Caller, other_count: int
) -> None:
    values = {"title": 'a"\\\u00e9\U0001f600\n', "size": 2**53 - 1, "day": "2024-02-29", "done": True, "stage": "late"}
    created_sample = await samples.value(caller, "sample", "create", **values)
    await samples.value(caller, "sample", "create")
    fill: dict[str, Any] = {"title": "x", "size": 1, "day": "2026-11-20", "done": True, "stage": "late", "id": "0"}

    for name, value in (*values.items(), ("id", created_sample["id"])):
        condition = {"field": name, "op": "in", "value": [fill[name]] * other_count + [value]}
        rows = await samples.value(caller, "sample", "list", filter=[condition])
        assert [row["id"] for row in rows] == [created_sample["id"]], name


async def test_names_that_are_not_fields_are_unknown(samples: InProcessService, caller: Caller) -> None:
    for name in ("changed", "revision", "title__folded", "x", "Title", "", "size ", "id.id", "t.id"):
        condition = {"field": name, "op": "is_null", "value": True}
        assert await refusal_of(samples, caller, filter=[condition]) == f"unknown field sample.{name}"
        assert await refusal_of(samples, caller, order=[{"field": name}]) == f"unknown field sample.{name}"


async def moments(samples: InProcessService, caller: Caller, operator: str, operand: Any) -> list[str]:
    """Return the instants of the audit entries that meet a condition, in order."""
    condition = {"field": "at", "op": operator, "value": operand}
    rows = await samples.value(caller, "audit_entry", "list", filter=[condition], order=[{"field": "at"}])
    return [row["at"] for row in rows]


async def test_date_times_are_compared_in_their_displayed_precision(samples: InProcessService, caller: Caller) -> None:
    """Instants are stored in microseconds and shown in milliseconds."""
    at = Moment()
    for _ in range(5):
        await samples.value(caller, "sample", "create")
    every = await moments(samples, caller, "is_null", False)
    assert every == sorted(every)
    assert len(every) == 5

    for shown_moment in every:
        for operand in (shown_moment, f"{shown_moment[:-1]}5Z", f"{shown_moment[:19]}Z", f"{shown_moment[:-1]}+01:00"):
            for operator in ("eq", "ne", "gt", "gte", "lt", "lte"):
                met = [moment for moment in every if oracle.matches(None, at.read(moment), operator, at.read(operand))]
                assert await moments(samples, caller, operator, operand) == met, (operator, operand)
            assert await moments(samples, caller, "in", [operand]) == [moment for moment in every if moment == operand]


async def test_a_value_that_is_not_an_instant_is_refused(samples: InProcessService, caller: Caller) -> None:
    for wrong_moment in (
        "2026-11-20",
        "2026-11-20T10:00:00",
        "2026-02-30T10:00:00Z",
        "2026-11-20T25:00:00Z",
        5,
        None,
        True,
    ):
        with pytest.raises(BadInput, match=r"audit_entry\.at"):
            await moments(samples, caller, "gt", wrong_moment)
