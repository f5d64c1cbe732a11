"""The meaning of each operator and each order, sentence by sentence (API document, Filter semantics)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from countersign.declare import Bool, Date, Model, Number, Select, Text
from tests.records import inside
from tests.records.inside import InProcessService


class Item(Model):
    """A record with a field of most kinds."""

    word = Text()
    indexed = Text(index=True)
    size = Number(index=True)
    day = Date()
    done = Bool()
    stage = Select("zulu", "mike", "alpha", index=True)


@pytest.fixture
async def items(database_url: str, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """A service without items, once on SQLite and once on PostgreSQL."""
    async with inside.open_service(database_url, tmp_path, Item) as service:
        yield service


async def put(items: InProcessService, name: str, *values: Any) -> None:
    """Create items with these values of one field."""
    for value in values:
        await items.value(items.administrator(), "item", "create", **{name: value})


async def matching_values(items: InProcessService, name: str, operator: str, value: Any) -> list[Any]:
    """Return the values of the field in the items that meet a condition."""
    condition = {"field": name, "op": operator, "value": value}
    rows = await items.value(items.administrator(), "item", "list", filter=[condition], order=[{"field": name}])
    return [row[name] for row in rows]


async def in_order(items: InProcessService, name: str, direction: str) -> list[Any]:
    """Return the values of the field in all items, in the order of the field."""
    order = [{"field": name, "dir": direction}]
    return [row[name] for row in await items.value(items.administrator(), "item", "list", order=order)]


CONTAINED = [
    ("Straße", "STRASSE"),
    ("STRASSE", "straße"),
    ("gROẞ", "groß"),
    ("ﬁne", "FI"),
    ("e\u0301tude", "É"),
    ("Étude", "e\u0301"),
    ("ΟΔΟΣ", "οδος"),
    ("ὈΔΥΣΣΕΎΣ", "ὀδυσσεύς"),
    ("\u212bngström", "å"),
    ("\uac00", "\u1100\u1161"),
    ("100%", "%"),
    ("a_b", "_"),
    ("back\\slash", "\\"),
    ("it's", "'"),
    ("x", ""),
    ("", ""),
]
NOT_CONTAINED = [("1000", "%"), ("ab", "_"), ("a", "a "), ("ı", "i"), ("e\u0301", "e"), ("", "x"), ("a", "\\")]


async def test_contains_compares_without_case_and_composition(items: InProcessService) -> None:
    await put(items, "word", *(text for text, _ in CONTAINED + NOT_CONTAINED), None)

    for text, needle in CONTAINED:
        assert text in await matching_values(items, "word", "contains", needle), (text, needle)
    for text, needle in NOT_CONTAINED:
        assert text not in await matching_values(items, "word", "contains", needle), (text, needle)
    assert None not in await matching_values(items, "word", "contains", "")


async def test_equality_of_texts_is_exact(items: InProcessService) -> None:
    texts = ["a", "A", "a ", "é", "e\u0301", ""]
    await put(items, "word", *texts)

    for text_value in texts:
        assert await matching_values(items, "word", "eq", text_value) == [text_value]
        assert text_value not in await matching_values(items, "word", "ne", text_value)


@pytest.mark.parametrize("name", ["word", "indexed"])
async def test_texts_are_ordered_by_code_point(items: InProcessService, name: str) -> None:
    ordered = ["", "10", "9", "A", "Z", "a", "b", "z", "~", "é", "ﬁ", "\uffff", "\U00010000", "\U0001f600"]
    await put(items, name, *reversed(ordered), None)

    assert await in_order(items, name, "asc") == [*ordered, None]
    assert await in_order(items, name, "desc") == [*reversed(ordered), None]
    assert await matching_values(items, name, "gt", "\uffff") == ["\U00010000", "\U0001f600"]
    assert await matching_values(items, name, "lte", "9") == ["", "10", "9"]


async def test_options_are_compared_and_ordered_as_declared(items: InProcessService) -> None:
    await put(items, "stage", "alpha", None, "zulu", "mike")

    assert await in_order(items, "stage", "asc") == ["zulu", "mike", "alpha", None]
    assert await in_order(items, "stage", "desc") == ["alpha", "mike", "zulu", None]
    assert await matching_values(items, "stage", "gt", "zulu") == ["mike", "alpha"]
    assert await matching_values(items, "stage", "gte", "mike") == ["mike", "alpha"]
    assert await matching_values(items, "stage", "lt", "alpha") == ["zulu", "mike"]
    assert await matching_values(items, "stage", "lte", "zulu") == ["zulu"]


@pytest.mark.parametrize(
    ("name", "values"),
    [("size", [-(2**53) + 1, -1, 0, 10, 9_999, 2**53 - 1]), ("day", ["0001-01-01", "2024-02-29", "9999-12-31"])],
)
async def test_numbers_and_days_are_compared_by_value(items: InProcessService, name: str, values: list[Any]) -> None:
    await put(items, name, None, *reversed(values))

    assert await in_order(items, name, "asc") == [*values, None]
    assert await in_order(items, name, "desc") == [*reversed(values), None]
    assert await matching_values(items, name, "gt", values[1]) == values[2:]
    assert await matching_values(items, name, "lt", values[1]) == values[:1]


@pytest.mark.parametrize(
    ("name", "value", "other_value"),
    [
        ("word", "a", "b"),
        ("size", 0, 1),
        ("day", "2024-02-29", "2024-03-01"),
        ("done", False, True),
        ("stage", "zulu", "mike"),
    ],
)
async def test_only_ne_and_is_null_match_an_empty_value(
    items: InProcessService, name: str, value: Any, other_value: Any
) -> None:
    await put(items, name, value, None)

    assert await matching_values(items, name, "eq", value) == [value]
    assert await matching_values(items, name, "in", [value, other_value]) == [value]
    assert await matching_values(items, name, "ne", value) == [None]
    assert await matching_values(items, name, "ne", other_value) == [value, None]
    assert await matching_values(items, name, "is_null", True) == [None]
    assert await matching_values(items, name, "is_null", False) == [value]
    if name != "done":
        assert (
            await matching_values(items, name, "gte", value)
            == await matching_values(items, name, "lte", value)
            == [value]
        )
        assert await matching_values(items, name, "gt", value) == await matching_values(items, name, "lt", value) == []
