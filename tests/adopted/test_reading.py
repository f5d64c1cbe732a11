"""Lists, searches and exports of tables of others: values, filters, orders and totals."""

from typing import Any

import pytest

from countersign.declare import Grant, where
from countersign.kernel.errors import NotFound
from countersign.records.commands import select
from countersign.records.commands.errors import BadInput
from countersign.records.commands.filters import Condition, Query
from countersign.records.dispatch import require_command
from tests.adopted.shop import MARK, Shop

GRANTS_WITHOUT_NOTE = (Grant(model="customer", clear=("first_name", "email", "visits")),)


async def test_values_are_those_of_the_rows(shop: Shop) -> None:
    root = shop.inside.administrator()

    ada, bob, zoe = await shop.inside.value(root, "customer", "list")

    assert {**ada, "id": "", "revision": 0, "country": ""} == {
        "id": "",
        "revision": 0,
        "first_name": f"Ada {MARK}",
        "email": f"ada{MARK}@example.com",
        "note": f"calls {MARK}",
        "born": "1985-12-10",
        "active": True,
        "country": "",
        "balance_minor": 1234,
        "rating": ada["rating"],
        "status": "new",
        "visits": 7,
        "seen": "2026-01-02T03:04:05.678Z",
    }
    assert float(ada["rating"]) == 4.5
    assert (bob["active"], bob["balance_minor"], bob["status"], bob["note"]) == (False, -5, "blocked", None)
    assert (zoe["country"], zoe["balance_minor"], zoe["rating"], zoe["status"]) == (None, None, None, "other")


async def names(shop: Shop, *conditions: tuple[str, str, object], order: str = "visits") -> list[str]:
    """Return the first names of the matching customers, in order."""
    wanted = [{"field": field, "op": operator, "value": value} for field, operator, value in conditions]
    root = shop.inside.administrator()
    page = await shop.inside.value(root, "customer", "search", filter=wanted, order=[{"field": order}])
    assert page["total"] == len(page["rows"])
    return [each["first_name"].split()[0] for each in page["rows"]]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (("first_name", "eq", f"Ada {MARK}"), ["Ada"]),
        (("first_name", "eq", f"ada {MARK}"), []),
        (("first_name", "ne", f"Ada {MARK}"), ["Bob", "Zoë"]),
        (("first_name", "in", [f"Ada {MARK}", f"Zoë {MARK}"]), ["Ada", "Zoë"]),
        (("first_name", "gt", "B"), ["Bob", "Zoë"]),
        (("first_name", "contains", "ZOË"), ["Zoë"]),
        (("note", "contains", "äpfel"), ["Zoë"]),
        (("note", "is_null", True), ["Bob"]),
        (("born", "gte", "1985-12-10"), ["Ada", "Zoë"]),
        (("born", "lt", "1985-12-11"), ["Ada"]),
        (("born", "ne", "1985-12-10"), ["Bob", "Zoë"]),
        (("active", "eq", False), ["Bob"]),
        (("balance_minor", "lte", -5), ["Bob"]),
        (("balance_minor", "is_null", True), ["Zoë"]),
        (("rating", "eq", "4.5"), ["Ada"]),
        (("rating", "lt", "1"), ["Bob"]),
        (("rating", "ne", "4.5"), ["Bob", "Zoë"]),
        (("rating", "in", ["4.5", "0.125"]), ["Ada", "Bob"]),
        (("status", "eq", "other"), ["Zoë"]),
        (("status", "gt", "new"), ["Bob", "Zoë"]),
        (("visits", "gte", 10), ["Bob"]),
        (("visits", "eq", 2**53 - 1), []),
        (("visits", "in", list(range(200))), ["Ada", "Bob"]),
        (("seen", "eq", "2026-01-02T03:04:05.678Z"), ["Ada"]),
        (("seen", "gt", "2026-01-02T03:04:05.678Z"), []),
    ],
)
async def test_filters_find_the_rows(shop: Shop, condition: tuple[str, str, object], expected: list[str]) -> None:
    assert await names(shop, condition) == expected


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("first_name", ["Ada", "Bob", "Zoë"]),
        ("rating", ["Bob", "Ada", "Zoë"]),
        ("balance_minor", ["Bob", "Ada", "Zoë"]),
        ("born", ["Ada", "Zoë", "Bob"]),
        ("status", ["Ada", "Bob", "Zoë"]),
        ("id", ["Ada", "Bob", "Zoë"]),
    ],
)
async def test_lists_are_ordered_with_empty_values_last(shop: Shop, order: str, expected: list[str]) -> None:
    assert await names(shop, order=order) == expected


async def test_pages_and_sums_are_those_of_the_rows(shop: Shop) -> None:
    root = shop.inside.administrator()

    page = await shop.inside.value(root, "customer", "search", limit=1, offset=1, sums=["balance_minor", "visits"])
    empty = await shop.inside.value(root, "customer", "search", limit=1, offset=9)

    assert [each["visits"] for each in page["rows"]] == [10]
    assert page["total"] == 3
    assert page["sums"] == {"balance_minor": {"sum": 1229, "count": 2}, "visits": {"sum": 17, "count": 2}}
    assert empty == {"rows": [], "total": 3}


async def test_refs_are_the_ids_of_their_records_and_can_be_expanded_and_filtered(shop: Shop) -> None:
    root = shop.inside.administrator()

    lines = await shop.inside.value(root, "line", "search", expand=["order"], order=[{"field": "number"}])
    first, second = lines["rows"][0]["order"], lines["rows"][1]["order"]
    orders = {each["id"]: each["state"] for each in await shop.inside.value(root, "order", "list")}
    of_second = [{"field": "order", "op": "eq", "value": second}]
    not_second = [{"field": "order", "op": "ne", "value": second}]
    customers = {each["id"] for each in await shop.inside.value(root, "customer", "list")}

    assert first != second
    assert {orders[first], orders[second]} == {"new", "on_hold"}
    assert [each["number"] for each in await shop.inside.value(root, "line", "list", filter=of_second)] == [1]
    assert [each["number"] for each in await shop.inside.value(root, "line", "list", filter=not_second)] == [1, 2]
    assert {each["customer"] for each in await shop.inside.value(root, "order", "list")} < customers
    assert (await shop.inside.value(root, "order", "get", id=first))["state"] == orders[first]


async def test_counts_by_a_field_and_by_a_ref(shop: Shop) -> None:
    root = shop.inside.administrator()

    by_status = await shop.inside.value(root, "customer", "count_by", field="status")
    by_order = await shop.inside.value(root, "line", "count_by", field="order")
    by_country = await shop.inside.value(root, "customer", "count_by", field="country")

    assert [(each["value"], each["count"]) for each in by_status] == [("new", 1), ("blocked", 1), ("other", 1)]
    assert sorted(each["count"] for each in by_order) == [1, 2]
    assert [each["count"] for each in by_country] == [1, 1, 1]
    assert by_country[-1]["value"] is None
    orders = await shop.inside.value(root, "order", "list")
    assert {each["value"] for each in by_order} == {each["id"] for each in orders}


async def test_an_export_has_the_rows_and_the_names_of_refs(shop: Shop) -> None:
    root = shop.inside.administrator()

    shown = await shop.inside.value(
        root, "customer", "export", form="shown", fields=["first_name", "country", "balance_minor"]
    )
    raw = await shop.inside.value(root, "line", "export", content_type="application/x-ndjson", fields=["title"])

    lines = shown["text"].splitlines()
    assert [each.split(",")[1] for each in lines[1:]] == ["Austria", "日本", ""]
    assert [each.split(",")[2] for each in lines[1:]] == ["12.34", "-0.05", ""]
    assert raw["text"].splitlines() == ['{"title":"Tea"}', '{"title":"Éclair"}', '{"title":null}']


async def test_a_change_of_others_changes_the_revision_of_those_who_see_it(shop: Shop) -> None:
    root = shop.inside.administrator()
    agent = await shop.inside.agent("scout", *GRANTS_WITHOUT_NOTE)
    ada, seen = [(await shop.inside.value(each, "customer", "list"))[0] for each in (root, agent)]

    shop.change("UPDATE customer SET note = 'other' WHERE customer_id = 1")
    ada_after, seen_after = [(await shop.inside.value(each, "customer", "list"))[0] for each in (root, agent)]

    assert ada_after["revision"] != ada["revision"]
    assert seen_after == seen
    assert 0 <= ada["revision"] < 2**48
    assert ada["revision"] != seen["revision"]


async def test_a_field_without_an_index_is_not_ordered_or_compared(shop: Shop) -> None:
    root = shop.inside.administrator()

    with pytest.raises(BadInput, match=r"line\.title cannot be ordered on: no index"):
        await shop.inside.value(root, "line", "list", order=[{"field": "title"}])
    with pytest.raises(BadInput, match=r"line\.title cannot be compared with gt: no index"):
        await shop.inside.value(root, "line", "list", filter=[{"field": "title", "op": "gt", "value": "A"}])
    with pytest.raises(BadInput, match="ids of a connected database have no order"):
        await shop.inside.value(root, "line", "list", filter=[{"field": "id", "op": "gt", "value": "0"}])


@pytest.mark.parametrize("command", ["create", "update", "delete", "import", "history"])
async def test_nothing_can_be_written(shop: Shop, command: str) -> None:
    with pytest.raises(NotFound):
        require_command(shop.inside.administrator(), "customer", command)


async def test_people_comment_on_records_that_they_see(shop: Shop) -> None:
    root = shop.inside.administrator()
    limited = await shop.inside.person(
        Grant(model="order", clear="*", rows=(where("state", eq="new"),)), Grant(model="comment", clear="*")
    )
    (order, *_) = await shop.inside.value(root, "order", "list")

    member = await shop.inside.member()
    written = await shop.inside.value(member, "comment", "create", model="order", record=order["id"], text="Call back")
    with pytest.raises(BadInput, match="no such record"):
        await shop.inside.value(member, "comment", "create", model="order", record="0" * 32, text="Call back")

    about = [{"field": "record", "op": "eq", "value": order["id"]}]
    seen = await shop.inside.value(shop.narrowed(root), "comment", "list", filter=about)
    hidden = await shop.inside.value(shop.narrowed(limited), "comment", "list", filter=about)
    assert ([each["id"] for each in seen], hidden) == ([written["id"]], [])


async def test_find_searches_connected_tables_and_never_masked_fields(shop: Shop) -> None:
    person = await shop.inside.member()
    hits = await shop.inside.value(shop.narrowed(person), "user", "find", q="ZOË")
    agent = await shop.http.post(
        "/api/user/find", json={"q": "zoë"}, headers={"Authorization": f"Bearer {await shop.token_of(person)}"}
    )

    assert [(each["model"], each["title"]) for each in hits] == [("customer", f"Zoë {MARK}")]
    assert MARK not in agent.text


@pytest.mark.parametrize(
    ("field", "operator", "value"),
    [("visits", "eq", 7), ("visits", "in", [7, 8]), ("visits", "lt", 0), ("born", "eq", "1985-12-10"),
     ("born", "in", ["1985-12-10"]), ("born", "lt", "0002-01-01")],
)  # fmt: skip
async def test_filters_on_numbers_and_days_use_the_index(shop: Shop, field: str, operator: Any, value: object) -> None:
    if field == "born" and shop.url.startswith("sqlite"):
        pytest.skip("SQLite has no type of dates")
    shop.change(f"CREATE INDEX customer_by_field ON customer ({field})")
    engine, root = shop.inside.service.engine, shop.inside.administrator()
    record_reader = engine.reading(root, root.view.models["customer"])
    statement = select.page(record_reader, None, Query(filter=(Condition(field, operator, value),)))

    # Few rows can as well be read in the order of the key, so the order is left out.
    plan = shop.plan_of(statement.text.partition(" ORDER BY")[0], statement.values)

    assert "customer_by_field" in plan, plan


async def test_values_that_a_field_shows_as_empty_match_no_comparison(shop: Shop) -> None:
    if shop.url.startswith("sqlite"):
        shop.change("UPDATE customer SET visits = 7.5 WHERE customer_id = 1")
        condition = {"field": "visits", "op": "lt", "value": 8}
    else:
        shop.change("UPDATE customer SET born = 'infinity' WHERE customer_id = 1")
        condition = {"field": "born", "op": "gt", "value": "2999-01-01"}

    page = await shop.inside.value(shop.inside.administrator(), "customer", "search", filter=[condition])

    assert page["rows"] == []
