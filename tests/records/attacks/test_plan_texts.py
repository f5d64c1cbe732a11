"""The texts of a plan are shown only to people who can read the values at their source. The same applies to approving
the plan."""

from typing import Any

from tests.records.office import Office

WITHHELD = "[withheld]"


async def propose_copy(office: Office) -> tuple[str, str]:
    """Let an agent of a person with more rights than alice propose a plan that copies a tax number into notes. Return
    the plan and the tax number in clear."""
    await office.person("dave", {"model": "lead", "commands": "*", "clear": "*", "write": "*"})
    dave, accountant = (
        await office.first_record("user", username="dave"),
        await office.first_record("role", title="accountant"),
    )
    await office.value("root", "user_role.create", user=dave["id"], role=accountant["id"])
    agent = await office.agent("dave", "*", name="agent")
    party = next(party for party in await office.all("party", agent) if party["tax_id"])
    tax_id = (await office.value("carol", "party.get", id=party["id"]))["tax_id"]
    plan = await office.proposed(agent, "lead.create", title="hello", notes=f"see {party['tax_id']}")
    return plan, tax_id


async def test_a_plan_shows_no_value_its_viewer_may_not_read_where_it_comes_from(office: Office) -> None:
    plan, tax_id = await propose_copy(office)

    for who, is_shown in (("alice", False), ("dave", True), ("root", True)):
        seen_plan = await office.value(who, "plan.get", id=plan)
        notes = next(change["after"] for change in seen_plan["diff"] if change["field"] == "notes")
        assert seen_plan["input"]["notes"] == notes == (f"see {tax_id}" if is_shown else WITHHELD)
    assert "NOTES_" in (await office.value("agent", "plan.get", id=plan))["input"]["notes"]


async def test_a_plan_is_not_approved_blind(office: Office) -> None:
    plan, tax_id = await propose_copy(office)

    assert (await office.approve("alice", plan)).status_code == 404
    approval = await office.approve("dave", plan)

    assert approval.status_code == 200
    lead = approval.json()["value"]["result"]["id"]
    assert (await office.value("dave", "lead.get", id=lead))["notes"] == f"see {tax_id}"
    for who in ("alice", "dave"):
        assert tax_id not in str(await office.value(who, "plan.get", id=plan))


async def test_anyone_who_sees_the_field_and_its_source_masked_may_approve(office: Office) -> None:
    await office.value("root", "setting.create", title="approval:lead.update", value="{}")
    agent = await office.agent("bob", "*")
    lead, other_lead = await office.value(agent, "lead.list", limit=2)
    plan = await office.proposed(agent, "lead.update", id=lead["id"], contact_email=other_lead["contact_email"])

    shown_email = (await office.value("bob", "plan.get", id=plan))["input"]["contact_email"]
    approval = await office.approve("bob", plan)

    assert shown_email == (await office.value("bob", "lead.get", id=other_lead["id"]))["contact_email"]
    assert approval.status_code == 200
    assert (await office.value(agent, "lead.get", id=lead["id"]))["contact_email"] == other_lead["contact_email"]


async def test_a_removed_value_is_shown_only_to_callers_who_read_its_field_in_every_record(
    office: Office,
) -> None:
    plan, tax_id = await propose_copy(office)
    party = await office.first_record("party", tax_id=tax_id)
    await office.value("carol", "party.update", id=party["id"], tax_id="XX1")

    plan_by_caller: dict[str, Any] = {
        who: await office.value(who, "plan.get", id=plan) for who in ("alice", "dave", "root")
    }

    notes = [plan_by_caller[who]["input"]["notes"] for who in ("alice", "dave", "root")]
    assert notes == [WITHHELD, WITHHELD, f"see {tax_id}"]
    assert (await office.approve("dave", plan)).status_code == 404
    assert (await office.value("agent", "plan.withdraw", id=plan))["state"] == "withdrawn"


async def test_a_decided_plan_no_longer_shows_a_linked_value_of_other_records(office: Office) -> None:
    agent = await office.agent("alice", "*")
    lead, other_lead = await office.value(agent, "lead.list", limit=2)
    await office.value("root", "setting.create", title="approval:lead.update", value="{}")
    plan = await office.proposed(agent, "lead.update", id=lead["id"], contact_email=other_lead["contact_email"])
    assert (await office.approve("alice", plan)).status_code == 200

    shown_plan = await office.value("alice", "plan.get", id=plan)

    assert shown_plan["input"]["contact_email"] == "[erased]"
