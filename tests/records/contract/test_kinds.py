"""Field kinds and their JSON values: values that create and update write are read back."""

import pytest

from tests.records.office import Office

LARGEST = 2**53 - 1

GOOD: list[tuple[str, str, object]] = [
    ("text", "lead.title", "Ada's order, “à la carte” 🚀"),
    ("text", "lead.title", "x" * 1000),
    ("longtext", "lead.notes", "line\nline\ttab\n\n" + "y" * 999_980),
    ("number", "invoice_line.quantity", -3),
    ("money", "lead.expected_revenue_minor", 1234),
    ("money", "lead.expected_revenue_minor", 0),
    ("money", "lead.expected_revenue_minor", LARGEST),
    ("date", "lead.expected_close", "2028-02-29"),
    ("date", "lead.expected_close", "0001-01-01"),
    ("date", "lead.expected_close", "9999-12-31"),
    ("bool", "party.is_active", False),
    ("bool", "party.is_active", True),
    ("select", "lead.source", "fair"),
]
BAD: list[tuple[str, str, object]] = [
    ("text", "lead.title", 5),
    ("text", "lead.title", True),
    ("text", "lead.title", ["a"]),
    ("text", "lead.title", "x" * 1001),
    ("text", "lead.title", " \t\n"),
    ("text", "lead.title", ""),
    ("text", "lead.title", "a\x1b[2J"),
    ("longtext", "lead.notes", "a\x07b"),
    ("longtext", "lead.notes", "x" * 1_000_001),
    ("longtext", "lead.notes", {"a": 1}),
    ("number", "invoice_line.quantity", 1.5),
    ("number", "invoice_line.quantity", 1.0),
    ("number", "invoice_line.quantity", "1"),
    ("number", "invoice_line.quantity", True),
    ("money", "lead.expected_revenue_minor", 12.34),
    ("money", "lead.expected_revenue_minor", "1234"),
    ("money", "lead.expected_revenue_minor", LARGEST + 1),
    ("money", "lead.expected_revenue_minor", 10**30),
    ("money", "lead.expected_revenue_minor", -1),
    ("money", "lead.expected_revenue_minor", False),
    ("date", "lead.expected_close", "2026-02-29"),
    ("date", "lead.expected_close", "2026-13-01"),
    ("date", "lead.expected_close", "2026-1-1"),
    ("date", "lead.expected_close", "20260101"),
    ("date", "lead.expected_close", "2026-01-01T00:00:00Z"),
    ("date", "lead.expected_close", "２０２６-01-01"),
    ("date", "lead.expected_close", 20260101),
    ("bool", "party.is_active", 1),
    ("bool", "party.is_active", "true"),
    ("bool", "party.is_active", "yes"),
    ("select", "lead.source", "Fair"),
    ("select", "lead.source", "nowhere"),
    ("select", "lead.source", 1),
    ("ref", "lead.party", "000000000000000000000000"),
    ("ref", "lead.party", "x"),
    ("ref", "lead.party", 7),
    ("ref", "lead.party", ""),
]


KINDS = ("text", "longtext", "number", "money", "date", "bool", "select", "ref")


async def _record(office: Office, model: str) -> str:
    if model == "lead":
        return str((await office.value("root", "lead.create", title="Kinds"))["id"])
    if model == "invoice_line":
        invoice = await office.first_record("invoice", state="draft")
        return str((await office.first_record("invoice_line", invoice=invoice["id"]))["id"])
    return str((await office.first_record(model))["id"])


@pytest.mark.parametrize("kind", KINDS[:-1])
async def test_a_value_of_the_kind_is_kept_exactly(office: Office, kind: str) -> None:
    for model, name, value in ((*field.split("."), value) for of, field, value in GOOD if of == kind):
        record_id = await _record(office, model)

        written_record = await office.value("root", f"{model}.update", id=record_id, **{name: value})

        assert written_record[name] == value
        assert type(written_record[name]) is type(value)
        assert (await office.value("root", f"{model}.get", id=record_id))[name] == value


@pytest.mark.parametrize("kind", KINDS)
async def test_another_value_is_400_and_changes_nothing(office: Office, kind: str) -> None:
    for model, name, value in ((*field.split("."), value) for of, field, value in BAD if of == kind):
        record_id = await _record(office, model)
        record_before = await office.value("root", f"{model}.get", id=record_id)

        reason = await office.refusal_of("root", f"{model}.update", id=record_id, **{name: value})

        assert f"{model}.{name}" in reason
        assert await office.value("root", f"{model}.get", id=record_id) == record_before, str(value)[:80]


async def test_a_ref_is_the_id_of_an_existing_record(office: Office) -> None:
    lead, party = await _record(office, "lead"), await office.first_record("party")

    written_lead = await office.value("root", "lead.update", id=lead, party=party["id"])

    assert written_lead["party"] == party["id"]


async def test_null_empties_a_field_that_may_be_empty(office: Office) -> None:
    optional_values = {"notes": "n", "source": "web", "contact_email": "a@b.example", "expected_revenue_minor": 1}
    lead = await office.value("root", "lead.create", title="x", expected_close="2026-01-01", **optional_values)

    for name in (*optional_values, "expected_close", "party"):
        assert (await office.value("root", "lead.update", id=lead["id"], **{name: None}))[name] is None


async def test_null_in_a_required_field_is_400(office: Office) -> None:
    lead = await _record(office, "lead")

    assert "lead.title" in await office.refusal_of("root", "lead.update", id=lead, title=None)


async def test_every_record_has_an_id_that_reveals_nothing(office: Office) -> None:
    ids = [(await office.value("alice", "lead.create", title=f"{number}"))["id"] for number in range(20)]

    assert len(set(ids)) == 20
    assert ids != sorted(ids)
    assert {len(id_) for id_ in ids} == {24}
