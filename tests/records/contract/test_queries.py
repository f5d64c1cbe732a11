"""The query object and the filter semantics of the API document, with the leads of the demonstration data."""

from typing import Any

import pytest

from tests.records.office import Office

Rows = list[dict[str, Any]]

OPERATORS = ("eq", "ne", "contains", "in", "gt", "gte", "lt", "lte", "is_null")
FITTING = {
    "title": {*OPERATORS},
    "notes": {*OPERATORS},
    "expected_revenue_minor": {*OPERATORS} - {"contains"},
    "expected_close": {*OPERATORS} - {"contains"},
    "source": {*OPERATORS} - {"contains"},
    "stage": {*OPERATORS} - {"contains"},
    "party": {"eq", "ne", "in", "is_null"},
    "id": {*OPERATORS},
}


async def _filter_leads(office: Office, *conditions: dict[str, object], who: str = "alice", **options: object) -> Rows:
    return await office.value(who, "lead.list", filter=list(conditions), **options)


def _where(field: str, op: str, value: object) -> dict[str, object]:
    return {"field": field, "op": op, "value": value}


def _value(leads: Rows, name: str) -> object:
    return sorted((lead[name] for lead in leads if lead[name] is not None), key=str)[7]


@pytest.mark.parametrize("field", FITTING)
async def test_each_operator_works_on_fitting_fields_and_gets_400_on_other_fields(office: Office, field: str) -> None:
    leads = await office.all("lead", "alice")
    value = _value(leads, field)
    for op in OPERATORS:
        operand = {"in": [value], "is_null": True}.get(op, value)
        answer = await office.call("alice", "lead.list", {"filter": [_where(field, op, operand)]})
        assert answer.status_code == (200 if op in FITTING[field] else 400), op
        if answer.status_code == 200:
            ids = {lead["id"] for lead in answer.json()["value"]}
            assert ids == {lead["id"] for lead in leads if _matches(lead[field], op, value, field)}, op


STAGES = ["new", "qualified", "proposed", "won", "lost"]
SOURCES = ["web", "fair", "phone", "referral", "other"]


def _matches(value: Any, op: str, operand: Any, field: str) -> bool:
    if value is None:
        return op in ("ne", "is_null")
    if field in ("stage", "source") and op in ("gt", "gte", "lt", "lte"):
        order = STAGES if field == "stage" else SOURCES
        value, operand = order.index(value), order.index(operand)
    return {
        "eq": lambda: value == operand,
        "in": lambda: value == operand,
        "ne": lambda: value != operand,
        "contains": lambda: str(operand).casefold() in str(value).casefold(),
        "gt": lambda: value > operand,
        "gte": lambda: value >= operand,
        "lt": lambda: value < operand,
        "lte": lambda: value <= operand,
        "is_null": lambda: False,
    }[op]()


async def test_bool_fields_take_no_order_operators(office: Office) -> None:
    for op in ("gt", "gte", "lt", "lte", "contains"):
        reason = await office.refusal_of("alice", "party.list", filter=[_where("is_active", op, True)])
        assert "party.is_active" in reason
    assert len(await office.value("alice", "party.list", filter=[_where("is_active", "eq", True)])) == 200


async def test_conditions_are_combined_with_and(office: Office) -> None:
    leads = await _filter_leads(office, _where("stage", "eq", "new"), _where("source", "is_null", True))

    assert leads
    assert {(lead["stage"], lead["source"]) for lead in leads} == {("new", None)}


async def test_only_ne_also_matches_empty_values(office: Office) -> None:
    empty = await _filter_leads(office, _where("expected_revenue_minor", "is_null", True))
    assert empty
    for op, expected in [("ne", len(empty)), ("eq", 0), ("lt", 0), ("gte", 0)]:
        leads = await _filter_leads(office, _where("expected_revenue_minor", op, 1))
        assert len([lead for lead in leads if lead["expected_revenue_minor"] is None]) == expected, op


async def test_is_null_false_matches_records_with_a_value(office: Office) -> None:
    leads = await _filter_leads(office, _where("lost_reason", "is_null", False))

    assert leads
    assert all(lead["lost_reason"] for lead in leads)


async def test_contains_ignores_case_in_every_script(office: Office) -> None:
    await office.value("alice", "lead.create", title="Straße nach ÅNGSTRÖM, ΟΔΟΣ")
    for needle in ("STRASSE", "ångström", "οδος", "A\u030angstro\u0308m", "sse nach"):
        leads = await _filter_leads(office, _where("title", "contains", needle))
        assert len(leads) == 1, needle


async def test_contains_finds_entries_of_the_audit(office: Office) -> None:
    agent = await office.agent("alice", label="Harbour Pilot")
    await office.value(agent, "lead.list", limit=1)
    lead = await office.value("alice", "lead.create", title="Told of")
    await office.value(agent, "lead.qualify", id=lead["id"])

    for field, needle in (("command", "QUALIFY"), ("agent", "harbour"), ("record_id", str(lead["id"])[4:])):
        audit_entries = await office.value("root", "audit_entry.list", filter=[_where(field, "contains", needle)])
        assert any(audit_entry["record_id"] == lead["id"] for audit_entry in audit_entries), field


async def test_contains_takes_signs_of_patterns_literally(office: Office) -> None:
    await office.value("alice", "lead.create", title="100%_sure\\ [a-z]*")
    for needle in ("%_s", "\\ [", "]*", "%"):
        assert len(await _filter_leads(office, _where("title", "contains", needle))) == 1, needle
    assert await _filter_leads(office, _where("title", "contains", "1_0%")) == []


@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("field", ["expected_revenue_minor", "expected_close", "source", "lost_reason", "party"])
async def test_empty_values_sort_last_in_both_directions(office: Office, field: str, direction: str) -> None:
    leads = await office.value("alice", "lead.list", order=[{"field": field, "dir": direction}])

    values = [lead[field] for lead in leads]
    filled = [value for value in values if value is not None]
    assert 0 < len(filled) < 500
    assert values == filled + [None] * (500 - len(filled))
    ranked = [SOURCES.index(value) for value in filled] if field == "source" else filled
    assert ranked == sorted(ranked, reverse=direction == "desc")


async def test_ties_and_the_default_order_are_by_id(office: Office) -> None:
    ids = [lead["id"] for lead in await office.all("lead", "alice")]
    assert ids == sorted(ids)
    by_stage = await office.value("alice", "lead.list", order=[{"field": "stage"}])
    assert [(STAGES.index(lead["stage"]), lead["id"]) for lead in by_stage] == sorted(
        (STAGES.index(lead["stage"]), lead["id"]) for lead in by_stage
    )


async def test_id_may_be_used_as_a_field(office: Office) -> None:
    wanted_id = (await office.all("lead", "alice"))[3]["id"]
    assert [lead["id"] for lead in await _filter_leads(office, _where("id", "eq", wanted_id))] == [wanted_id]
    down = await office.value("alice", "lead.list", order=[{"field": "id", "dir": "desc"}], limit=5)
    ids = [lead["id"] for lead in down]
    assert ids == sorted(ids, reverse=True)


async def test_the_default_direction_is_asc(office: Office) -> None:
    order = {"field": "title"}
    default_order = await office.value("alice", "lead.list", order=[order], limit=20)
    ascending_order = await office.value("alice", "lead.list", order=[{**order, "dir": "asc"}], limit=20)

    assert default_order == ascending_order
    assert [lead["title"] for lead in default_order] == sorted(lead["title"] for lead in default_order)


async def test_text_is_ordered_by_code_point(office: Office) -> None:
    titles = ["a", "B", "Z", "é", "z", "🚀", "ﬀ", "\uffee"]
    for title in titles:
        await office.value("alice", "lead.create", title=f"!order {title}")
    condition = _where("title", "contains", "!order ")

    leads = await _filter_leads(office, condition, order=[{"field": "title"}])

    assert [lead["title"][7:] for lead in leads] == sorted(titles)


async def test_limit_and_offset_cut_the_page(office: Office) -> None:
    whole_ids = [lead["id"] for lead in await office.all("lead", "alice")]

    assert [lead["id"] for lead in await office.value("alice", "lead.list", limit=7, offset=11)] == whole_ids[11:18]
    assert [lead["id"] for lead in await office.value("alice", "lead.list", offset=490)] == whole_ids[490:]
    assert await office.value("alice", "lead.list", limit=7, offset=500) == []


async def test_search_answers_rows_and_the_total_before_limit_and_offset(office: Office) -> None:
    condition = _where("stage", "eq", "won")
    for limits in ({"limit": 3}, {"limit": 3, "offset": 99}, {"limit": 3, "offset": 1000}, {}):
        leads = await office.value("alice", "lead.search", filter=[condition], **limits)
        assert list(leads) == ["rows", "total"]
        assert leads["total"] == 100
        assert len(leads["rows"]) == min(limits.get("limit", 500), max(0, 100 - limits.get("offset", 0)))


LIMITS: list[tuple[str, dict[str, object], dict[str, object]]] = [
    ("50 conditions", {"filter": [_where("title", "ne", "x")] * 50}, {"filter": [_where("title", "ne", "x")] * 51}),
    ("5 keys", {"order": [{"field": "title"}] * 5}, {"order": [{"field": "title"}] * 6}),
    ("5000 rows", {"limit": 5000}, {"limit": 5001}),
    ("at least one row", {"limit": 1}, {"limit": 0}),
    ("offset 0 or more", {"limit": 1, "offset": 0}, {"limit": 1, "offset": -1}),
    (
        "1000 values",
        {"filter": [_where("title", "in", [str(number) for number in range(1000)])]},
        {"filter": [_where("title", "in", [str(number) for number in range(1001)])]},
    ),
    ("at least one value", {"filter": [_where("title", "in", ["x"])]}, {"filter": [_where("title", "in", [])]}),
]


@pytest.mark.parametrize(("name", "within", "beyond"), LIMITS, ids=[limit[0] for limit in LIMITS])
async def test_the_limit_is_enforced(
    office: Office, name: str, within: dict[str, object], beyond: dict[str, object]
) -> None:
    for command in ("lead.list", "lead.search"):
        assert (await office.call("alice", command, within)).status_code == 200
        await office.refusal_of("alice", command, **beyond)


MALFORMED: list[dict[str, object]] = [
    {"filters": []},
    {"filter": {}},
    {"filter": [[]]},
    {"filter": [{}]},
    {"filter": [{"field": "title", "op": "eq"}]},
    {"filter": [{"field": "title", "value": "x"}]},
    {"filter": [{"op": "eq", "value": "x"}]},
    {"filter": [{"field": "title", "op": "eq", "value": "x", "not": True}]},
    {"filter": [_where("title", "like", "x")]},
    {"filter": [_where("title", "eq", None)]},
    {"filter": [_where("title", "eq", 1)]},
    {"filter": [_where("title", "contains", ["x"])]},
    {"filter": [_where("title", "in", "x")]},
    {"filter": [_where("title", "in", ["x", 1])]},
    {"filter": [_where("title", "in", ["x", None])]},
    {"filter": [_where("title", "is_null", "true")]},
    {"filter": [_where("title", "is_null", None)]},
    {"filter": [_where("expected_close", "gt", "2026-02-30")]},
    {"filter": [_where("expected_revenue_minor", "eq", 1.5)]},
    {"filter": [_where("expected_revenue_minor", "eq", "1")]},
    {"filter": [_where("stage", "eq", "sold")]},
    {"filter": [_where("party.name", "eq", "x")]},
    {"order": {"field": "title"}},
    {"order": ["title"]},
    {"order": [{"dir": "asc"}]},
    {"order": [{"field": "title", "dir": "down"}]},
    {"order": [{"field": "title", "nulls": "first"}]},
    {"order": [{"field": "titel"}]},
    {"limit": "5"},
    {"limit": 5.0},
    {"limit": True},
    {"limit": None},
    {"offset": "5"},
    {"offset": 10**20},
    {"filter": None},
]


@pytest.mark.parametrize("command", ["lead.list", "lead.search"])
async def test_unknown_keys_operators_and_malformed_values_are_400(office: Office, command: str) -> None:
    for body in MALFORMED:
        await office.refusal_of("alice", command, **body)


@pytest.mark.parametrize("field", ["contact_email", "notes", "nothing"])
async def test_only_fields_read_in_clear_may_be_filtered(office: Office, field: str) -> None:
    for op in OPERATORS:
        value = {"in": ["x"], "is_null": True}.get(op, "x")
        reason = await office.refusal_of("bob", "lead.list", filter=[_where(field, op, value)])
        assert reason == f"unknown field lead.{field}"
        assert (await office.call("bob", "lead.list", {"filter": [_where("title", op, value)]})).status_code == 200


@pytest.mark.parametrize("field", ["name", "tax_id", "nothing"])
async def test_only_fields_read_in_clear_may_be_sorted_on(office: Office, field: str) -> None:
    for order in ([{"field": field}], [{"field": "kind"}, {"field": field, "dir": "desc"}]):
        assert await office.refusal_of("bob", "party.list", order=order) == f"unknown field party.{field}"


async def test_count_by_groups_and_counts(office: Office) -> None:
    counts = await office.value("alice", "lead.count_by", field="stage")

    assert str(counts).count("100") == 5


async def test_the_error_for_an_unknown_key_lists_the_known_keys(office: Office) -> None:
    order = await office.refusal_of("alice", "lead.list", order=[{"field": "title", "desc": True}])
    command = await office.refusal_of("alice", "lead.get", ident="x")
    refusal = await office.refusal_of("root", "audit_entry.verify", since="2026-01-01")

    assert order.startswith("unknown key desc in ")
    assert order.endswith("(known: field, dir)")
    assert command == "unknown key ident in lead.get (known: id)"
    assert refusal == "unknown key since in audit_entry.verify (known: none)"
