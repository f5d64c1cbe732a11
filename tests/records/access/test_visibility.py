"""Roles and grants that an administrator creates while the service runs: fields, rows, and how grants add up."""

from typing import Any

import pytest

from countersign.kernel import clock
from countersign.records.commands import unmask_input
from countersign.records.commands.run import Run
from tests.records.office import Office

Grant = dict[str, object]


LIST: Grant = {"model": "lead", "commands": "get,list,search,update", "clear": "title,stage", "write": "title"}


async def test_a_field_that_no_role_grants_is_hidden(office: Office) -> None:
    await office.person("dan", LIST)

    rows: list[dict[str, Any]] = await office.value("dan", "lead.list", limit=3)

    assert {tuple(row) for row in rows} == {("id", "revision", "title", "stage")}
    denied_names = await office.denied("dan", "lead.list", limit=1)
    assert denied_names == sorted(denied_names)
    assert {"lead.contact_email", "lead.party", "lead.notes"} <= set(denied_names)


async def test_grants_are_combined_and_the_most_visible_grant_has_precedence(office: Office) -> None:
    await office.person(
        "dan",
        {**LIST, "masked": "contact_email,contact_name"},
        {"model": "lead", "commands": "qualify", "clear": "contact_email"},
    )

    row = (await office.value("dan", "lead.list", limit=1))[0]

    assert "@" in row["contact_email"]
    assert row["contact_name"].startswith("PERSON_")
    new = await office.first_record("lead", stage="new")
    assert (await office.value("dan", "lead.qualify", id=new["id"]))["stage"] == "qualified"


async def test_a_row_rule_hides_every_other_record_from_every_command(office: Office) -> None:
    rule = '[{"field": "stage", "op": "in", "value": ["new", "won"]}]'
    await office.person("dan", {**LIST, "commands": "*", "rows": rule})

    rows = await office.value("dan", "lead.search", limit=5)
    assert rows["total"] == 200
    counts = await office.value("dan", "lead.count_by", field="stage")
    assert "lost" not in str(counts)
    hidden_id = (await office.first_record("lead", stage="lost"))["id"]
    missing = "0" * 24
    for command, body in (
        ("get", {}), ("update", {"title": "x"}), ("delete", {}), ("qualify", {}), ("history", {}),
    ):  # fmt: skip
        answers = [
            await office.call("dan", f"lead.{command}", {"id": record_id, **body}) for record_id in (hidden_id, missing)
        ]
        assert answers[0].status_code == 400
        assert answers[0].content == answers[1].content, command


async def test_a_rule_may_refer_to_the_caller(office: Office) -> None:
    rule = '[{"field": "owner", "op": "eq", "value": {"stand": "CALLER"}}]'
    dan = await office.person("dan", {**LIST, "commands": "*", "clear": "*", "write": "*", "rows": rule})

    assert await office.all("lead", "dan") == []
    lead = await office.value("dan", "lead.create", title="mine")

    assert [lead["id"] for lead in await office.all("lead", "dan")] == [lead["id"]]
    # The owner is a user whom dan sees: dan himself.
    assert lead["owner"] == dan


async def test_a_rule_with_today_uses_the_day_of_each_call(office: Office) -> None:
    rule = '[{"field": "expected_close", "op": "lte", "value": {"stand": "TODAY"}}]'
    await office.person("dan", {**LIST, "rows": rule})
    now = clock.now()
    lead = await office.value("alice", "lead.create", title="due", expected_close=clock.rfc3339(now)[:10])

    with clock.fixed(clock.later(now, seconds=-86_400)):
        assert await office.refusal_of("dan", "lead.get", id=lead["id"]) == "no such record"
    with clock.fixed(now):
        assert (await office.value("dan", "lead.get", id=lead["id"]))["title"] == "due"


async def test_a_ref_to_a_record_that_does_not_exist_for_the_caller_is_empty(office: Office) -> None:
    rule = '[{"field": "kind", "op": "eq", "value": "person"}]'
    await office.person(
        "dan",
        {**LIST, "clear": "title,party", "write": "title,party"},
        {"model": "party", "commands": "get,list", "clear": "kind", "rows": rule},
    )
    companies = {party["id"] for party in await office.all("party") if party["kind"] == "company"}
    leads = {lead["id"]: lead for lead in await office.all("lead")}

    for row in await office.all("lead", "dan"):
        party = leads[row["id"]]["party"]
        assert row["party"] == (None if party in companies else party)
    lead = next(iter(leads))
    refusals = [
        await office.refusal_of("dan", "lead.update", id=lead, party=record_id)
        for record_id in (min(companies), "0" * 24)
    ]
    assert refusals[0] == refusals[1]


async def test_a_revision_counts_only_visible_changes(office: Office) -> None:
    await office.person("dan", LIST)
    lead = (await office.first_record("lead"))["id"]
    revision_before = (await office.value("dan", "lead.get", id=lead))["revision"]

    await office.value("alice", "lead.update", id=lead, notes="not for dan")

    assert (await office.value("dan", "lead.get", id=lead))["revision"] == revision_before
    changed_lead = await office.value("dan", "lead.update", id=lead, title="for dan", revision=revision_before)
    assert changed_lead["revision"] == revision_before + 1


async def test_restricted_fields_stay_with_their_roles_under_any_grant(office: Office) -> None:
    await office.person("dan", {"model": "party", "commands": "*", "clear": "*", "write": "*"})

    assert await office.denied("dan", "party.list", limit=1) == ["party.tax_id"]
    for who, sees in (("alice", False), ("bob", False), ("carol", True), ("root", True)):
        assert ("tax_id" in (await office.value(who, "party.list", limit=1))[0]) is sees


async def test_an_invalid_grant_is_refused_or_grants_nothing(office: Office) -> None:
    role = (await office.first_record("role", title="clerk"))["id"]
    for broken in (
        {"model": "nothing", "commands": "get"},
        {"model": "lead", "commands": "fly"},
        {"model": "lead", "commands": "get", "clear": "titel"},
        {"model": "lead", "commands": "get", "rows": "stage = new"},
        {"model": "lead", "commands": "get", "rows": '[{"field": "stage", "op": "eq", "value": "sold"}]'},
    ):
        assert "grant." in await office.refusal_of("root", "grant.create", role=role, **broken), broken


async def test_a_setting_that_cannot_be_understood_is_refused(office: Office) -> None:
    for title, value in (
        ("color", '"red"'),
        ("approval:lead.fly", "{}"),
        ("approval:lead.update", "two"),
        ("approval:activity.update", '{"n": 0}'),
        ("approval:lead.update", '{"people": 2}'),
        ("approval:lead.update", '{"when": {"field": "titel", "op": "eq", "value": "x"}}'),
        ("approval:lead.update", '{"when": {"field": "expected_revenue_minor", "op": "gt", "value": "x"}}'),
        ("approval:lead.update", '{"when": {"field": "stage", "op": "in", "value": "new"}}'),
    ):
        assert "setting." in await office.refusal_of("root", "setting.create", title=title, value=value), value
    large = '{"n": 2, "when": {"field": "expected_revenue_minor", "op": "gt", "value": 100000}}'
    await office.value("root", "setting.create", title="approval:lead.update", value=large)


async def test_a_role_has_only_existing_rights(office: Office) -> None:
    assert "role.rights" in await office.refusal_of("root", "role.create", title="x", rights="base.everything")
    await office.value("root", "role.create", title="x", rights="base.unmask")


async def test_an_update_reads_the_record_of_a_ref_only_for_callers_who_see_some_records_of_its_model(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = '[{"field": "kind", "op": "eq", "value": "person"}]'
    await office.person(
        "dan",
        {**LIST, "clear": "title,party", "write": "title"},
        {"model": "party", "commands": "get,list", "clear": "kind", "rows": rule},
    )
    lead = next(lead for lead in await office.all("lead") if lead["party"] is not None)["id"]
    read_models: list[str] = []
    exists = unmask_input.exists

    async def recorded(run: Run, model: str, record_id: str) -> bool:
        read_models.append(model)
        return await exists(run, model, record_id)

    monkeypatch.setattr(unmask_input, "exists", recorded)

    await office.value("root", "lead.update", id=lead, title="A")
    assert read_models == []
    await office.value("dan", "lead.update", id=lead, title="B")
    assert read_models == ["party"]
