"""Leak channels through filters, order, totals and the shape of queries."""

import json
from typing import Any

import pytest

from countersign.kernel import json_reader
from countersign.records.commands import filters, select
from tests.records.leaks.channel import (
    OPERATORS,
    assert_same_response,
    channel,
    create_dan,
    filter_with,
    replace_defence,
)
from tests.records.office import Office
from tests.records.worlds import leaking


@channel(1, leaking.hidden_fields_are_filtered)
async def l01(office: Office) -> None:
    """A filter on a hidden field has the same error as a filter on a misspelt name."""
    hidden_response = await office.call("bob", "party.list", filter_with("tax_id", "eq", "x"))
    misspelt = await office.call("bob", "party.list", filter_with("tax_ix", "eq", "x"))
    assert hidden_response.status_code == 400
    assert hidden_response.text == misspelt.text.replace("tax_ix", "tax_id")


@channel(2, leaking.masked_fields_are_filtered)
async def l02(office: Office) -> None:
    """No operator compares a hidden or masked field."""
    for field in ("tax_id", "email", "name", "notes"):
        for op in OPERATORS:
            value = {"in": ["a"], "is_null": True}.get(op, "a")
            reason = await office.refusal_of("bob", "party.list", **filter_with(field, op, value))
            assert reason == f"unknown field party.{field}"


@channel(3, leaking.hidden_fields_are_filtered)
async def l03(office: Office) -> None:
    """No order key can be a hidden field, in any position and direction."""
    for order in ([{"field": "tax_id"}], [{"field": "kind"}, {"field": "tax_id", "dir": "desc"}]):
        assert await office.refusal_of("bob", "party.list", order=order) == "unknown field party.tax_id"


@channel(4, leaking.masked_fields_are_filtered)
async def l04(office: Office) -> None:
    """No order key can be a masked field."""
    agent = await office.agent("root")
    for field in ("name", "email", "tax_id", "notes"):
        assert await office.refusal_of(agent, "party.list", order=[{"field": field}]) == f"unknown field party.{field}"


def _searching_more(patch: pytest.MonkeyPatch) -> None:
    original_contains = filters._contains

    def contained(scope: Any, field: Any, needle: str) -> str:
        condition = original_contains(scope, field, needle)
        return f"({condition} OR coalesce({scope.alias}.\"contact_email\", '') = {scope.parameters.put(needle)})"

    replace_defence(patch, filters, "_contains", contained)


@channel(5, _searching_more)
async def l05(office: Office) -> None:
    """A search does not find records by values that the caller cannot read in clear."""
    lead = await office.first_record("lead")
    for field in ("title", "lost_reason", "id"):
        assert await office.value("bob", "lead.list", **filter_with(field, "contains", lead["contact_email"])) == []


def _following_paths(patch: pytest.MonkeyPatch) -> None:
    original_field = filters.clear_field
    replace_defence(
        patch, filters, "clear_field", lambda view, name: original_field(view, "title" if "." in name else name)
    )


@channel(6, _following_paths)
async def l06(office: Office) -> None:
    """A query cannot follow a ref to another record."""
    for path in ("party.tax_id", "owner.username", "party.name", "party.id"):
        refusal = await office.refusal_of("bob", "lead.list", **filter_with(path, "eq", "x"))
        assert refusal == f"unknown field lead.{path}"
        assert await office.refusal_of("bob", "lead.list", order=[{"field": path}]) == f"unknown field lead.{path}"


@channel(7, leaking.totals_count_everything)
async def l07(office: Office) -> None:
    """A total counts only the records that the caller's own query matches."""
    who = await create_dan(office)
    for limits in ({"limit": 1}, {"limit": 5, "offset": 9_999}):
        assert (await office.value(who, "lead.search", **limits))["total"] == 200


@channel(8, leaking.masked_fields_are_filtered)
async def l08(office: Office) -> None:
    """Records cannot be grouped or counted by a field that the caller cannot read in clear."""
    for field in ("contact_email", "contact_name", "notes"):
        assert await office.refusal_of("bob", "lead.count_by", field=field) == f"unknown field lead.{field}"
    for command in ("lead.min", "lead.max", "lead.sum", "lead.group_by", "lead.aggregate"):
        assert (await office.call("root", command)).status_code == 404


def _taking_unknown_keys(patch: pytest.MonkeyPatch) -> None:
    replace_defence(patch, filters, "_members", lambda value, value_place, known_members: value)
    original_read = filters.read
    names = ("filter", "order", "limit", "offset")
    replace_defence(
        patch,
        filters,
        "read",
        lambda body, command: original_read({n: v for n, v in body.items() if n in names}, command),
    )


@channel(9, _taking_unknown_keys)
async def l09(office: Office) -> None:
    """No part of a query is ignored."""
    for body in ({"filtre": []}, {"filter": [{"field": "title", "op": "eq", "value": "x", "or": 1}]}):
        assert (await office.call("alice", "lead.list", {**body, "limit": 1})).status_code == 400


def _taking_repeated_keys(patch: pytest.MonkeyPatch) -> None:
    replace_defence(patch, json_reader, "_refuse_duplicates", lambda raw, members: None)


@channel(10, _taking_repeated_keys)
async def l10(office: Office) -> None:
    """Unusual, repeated and nested keys are refused."""
    for key in ("__proto__", "where", "$where", "filter.field", "t1.password", "filter[0]"):
        assert key in await office.refusal_of("alice", "lead.list", limit=1, **{key: {}})
    headers = {**office.headers("alice"), "Content-Type": "application/json"}
    doubled_body = b'{"limit":1,"filter":[],"filter":[]}'
    assert (await office.http.post("/api/lead/list", content=doubled_body, headers=headers)).status_code == 400


@channel(25, leaking.masked_fields_are_filtered)
async def l25(office: Office) -> None:
    """A query cannot find out whether a masked field is empty."""
    reason = await office.refusal_of("bob", "lead.list", **filter_with("contact_phone", "is_null", True))
    assert reason == "unknown field lead.contact_phone"


@channel(41, leaking.order_follows_hidden_edits)
async def l41(office: Office) -> None:
    """Records with equal order keys are ordered by their random ids, independent of hidden changes."""
    who = await create_dan(office)
    lead = (await office.value(who, "lead.list", limit=50))[30]
    ids_before = [lead["id"] for lead in await office.value(who, "lead.list", order=[{"field": "stage"}])]
    await office.value("alice", "lead.update", id=lead["id"], notes="hidden from dan")
    assert [lead["id"] for lead in await office.value(who, "lead.list", order=[{"field": "stage"}])] == ids_before


def _taking_empty_lists(patch: pytest.MonkeyPatch) -> None:
    replace_defence(patch, filters, "array_of", lambda name, value: list(value))


@channel(46, _taking_empty_lists)
async def l46(office: Office) -> None:
    """An empty list of values is refused and not ignored."""
    assert (await office.call("alice", "lead.list", filter_with("title", "in", []))).status_code == 400


@channel(47, _taking_unknown_keys)
async def l47(office: Office) -> None:
    """A query cannot rename or select members of a response."""
    for key in ("fields", "alias", "select", "include", "expand"):
        assert key in await office.refusal_of("bob", "party.list", limit=1, **{key: ["tax_id"]})


@channel(48, _following_paths)
async def l48(office: Office) -> None:
    """A query cannot contain expressions."""
    for text in ("1/0.", "title || notes.", "lower(title).", "id) OR (1=1.", "title.x"):
        assert (await office.call("alice", "lead.list", filter_with(text, "eq", "x"))).status_code == 400
        assert (await office.call("alice", "lead.list", {"order": [{"field": text}]})).status_code == 400


@channel(49, leaking.totals_count_everything)
async def l49(office: Office) -> None:
    """A total is exact: it is the number of records that can be listed."""
    who = await create_dan(office)
    for stage in ("new", "won", "lost"):
        query = filter_with("stage", "eq", stage)
        listed_leads = await office.value(who, "lead.list", **query)
        assert (await office.value(who, "lead.search", **query))["total"] == len(listed_leads)


def _locking_first(patch: pytest.MonkeyPatch) -> None:
    original_lock = select.lock_existing
    replace_defence(
        patch,
        select,
        "lock_existing",
        lambda model, rows, *arguments, **options: original_lock(model, None, *arguments, **options),
    )
    leaking.bounds_bind_nothing(patch)


@channel(42, _locking_first)
async def l42(office: Office) -> None:
    """A hidden record is not locked. Its statement excludes it, so a caller never waits for it."""
    who = await create_dan(office)
    hidden_id = (await office.first_record("lead", stage="lost"))["id"]
    answers = [
        await office.call(who, "lead.update", {"id": record_id, "title": "x"}) for record_id in (hidden_id, "0" * 24)
    ]
    assert_same_response(*answers)
    assert json.loads(answers[0].content) == {"error": "no such record"}
