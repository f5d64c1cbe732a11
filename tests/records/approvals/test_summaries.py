"""The summary of a plan for a person: risk, title, record, affected records, and whose approval is still needed."""

from typing import Any

import pytest

from countersign.records.approvals import plan_summary, risk
from tests.records.office import Office


@pytest.fixture
async def agent(office: Office) -> str:
    """An agent of alice."""
    return await office.agent("alice", label="mailbot")


async def lead(office: Office, title: str = "Trial at Harbour Tools", **values: object) -> str:
    """Create a lead."""
    return str((await office.value("alice", "lead.create", title=title, **values))["id"])


async def plan(office: Office, who: str, plan_id: str) -> dict[str, Any]:
    """Return a plan as this caller sees it."""
    shown_plan: dict[str, Any] = await office.value(who, "plan.get", id=plan_id)
    return shown_plan


async def test_a_deletion_is_of_high_risk_and_names_its_record(office: Office, agent: str) -> None:
    record_id = await lead(office)

    deletion_plan = await plan(office, "alice", await office.proposed(agent, "lead.delete", id=record_id))

    assert deletion_plan["title"] == "Delete lead “Trial at Harbour Tools”"
    assert (deletion_plan["risk"], deletion_plan["risk_reasons"]) == ("high", ["deletes", "personal_data"])
    assert deletion_plan["record_name"] == "Trial at Harbour Tools"
    assert deletion_plan["record_url"] == f"/models/lead/records/{record_id}"
    assert deletion_plan["reversible"] is False
    assert deletion_plan["affected"] == [
        {"model": "lead", "id": record_id, "name": "Trial at Harbour Tools", "change": "deleted"}
    ]
    assert (deletion_plan["needs"], deletion_plan["needs_left"]) == (1, 1)


async def test_a_plan_summary_keeps_the_record_name_after_the_record_is_deleted(office: Office, agent: str) -> None:
    record_id = await lead(office)
    plan_id = await office.proposed(agent, "lead.delete", id=record_id)
    await office.approve("alice", plan_id)

    decided_plan = await plan(office, "alice", plan_id)

    assert decided_plan["title"] == "Delete lead “Trial at Harbour Tools”"
    assert (decided_plan["record_url"], decided_plan["needs_left"]) == (None, 0)


async def test_records_deleted_with_a_record_are_listed_as_affected(office: Office, agent: str) -> None:
    record_id = await lead(office)
    for number in range(2):
        await office.value("alice", "activity.create", lead=record_id, subject=f"Call {number}")

    plan_id = await office.proposed(agent, "lead.delete", id=record_id, cascade=True)

    affected = (await plan(office, "alice", plan_id))["affected"]
    assert sorted((record["model"], record["name"], record["change"]) for record in affected[1:]) == [
        ("activity", "Call 0", "deleted"),
        ("activity", "Call 1", "deleted"),
    ]


async def test_more_than_twenty_records_are_of_high_risk(office: Office) -> None:
    record_id = await lead(office)
    for number in range(risk.BULK):
        await office.value("alice", "activity.create", lead=record_id, subject=f"Call {number}")
    agent = await office.agent("alice", label="cleaner")

    plan_id = await office.proposed(agent, "lead.delete", id=record_id, cascade=True)

    assert "bulk" in (await plan(office, "alice", plan_id))["risk_reasons"]


async def test_an_action_is_of_medium_risk_and_reads_as_a_sentence(office: Office, agent: str) -> None:
    record_id = await lead(office, party=(await office.first_record("party"))["id"])
    await office.value("alice", "lead.qualify", id=record_id)

    action_plan = await plan(office, "alice", await office.proposed(agent, "lead.win", id=record_id))

    assert action_plan["title"] == "Mark lead “Trial at Harbour Tools” as won"
    assert (action_plan["risk"], action_plan["risk_reasons"], action_plan["reversible"]) == (
        "medium",
        ["state_change"],
        True,
    )


async def test_a_change_names_its_field_and_equal_changes_share_a_key(office: Office) -> None:
    agent = await office.agent("carol", label="biller")
    products = [product["id"] for product in (await office.all("product", "carol"))[:2]]

    plans = [
        await plan(office, "carol", await office.proposed(agent, "product.update", id=product, tax_bp=700))
        for product in products
    ]
    dearer = await office.proposed(agent, "product.update", id=products[0], unit_price_minor=5)

    assert plans[0]["title"].startswith("Change tax, in hundredths of a percent of product “")
    assert plans[0]["risk"] == "low"
    assert plans[0]["group_key"] == plans[1]["group_key"]
    priced = await plan(office, "carol", dearer)
    assert (priced["risk"], priced["risk_reasons"]) == ("medium", ["money_field"])
    assert priced["group_key"] != plans[0]["group_key"]


async def test_an_outgoing_payment_is_high_risk(office: Office) -> None:
    agent = await office.agent("carol", label="biller")
    invoice = (await office.first_record("invoice", "carol", state="posted"))["id"]

    plan_id = await office.proposed(agent, "payment.create", invoice=invoice, amount_minor=-500)

    payment_plan = await plan(office, "carol", plan_id)
    assert (payment_plan["risk"], payment_plan["risk_reasons"]) == ("high", ["money_out", "money_field"])


@pytest.mark.parametrize(
    ("why", "is_quoting"),
    [
        ("The contact wrote that the trial is cancelled.", True),
        ("See https://example.com/terms", True),
        ("It says “please delete my data now”.", True),
        ("Duplicate of another lead.", False),
    ],
)
async def test_a_reason_that_quotes_a_text_from_outside_is_marked(office: Office, why: str, is_quoting: bool) -> None:
    agent = await office.agent("alice", label="mailbot")
    step = {"command": "lead.delete", "input": {"id": await lead(office)}}

    plan_id = await office.proposed(agent, "plan.propose", steps=[step], why=why)

    assert ("outside_text" in (await plan(office, "alice", plan_id))["risk_reasons"]) == is_quoting


async def test_several_steps_are_counted_in_the_title(office: Office, agent: str) -> None:
    steps = [{"command": "lead.delete", "input": {"id": await lead(office, f"Lead {n}")}} for n in range(3)]
    mixed = [steps[0], {"command": "lead.qualify", "input": {"id": await lead(office)}}]

    several = await office.proposed(agent, "plan.propose", steps=steps)
    different = await office.proposed(agent, "plan.propose", steps=mixed)

    assert (await plan(office, "alice", several))["title"] == "Delete 3 leads"
    assert (await plan(office, "alice", different))["title"] == "2 changes"


async def test_the_agent_reads_a_personal_name_as_a_token(office: Office) -> None:
    agent = await office.agent("alice", label="cleaner")
    party = (await office.value("alice", "party.create", name="Ada Lovelace"))["id"]

    plan_id = await office.proposed(agent, "party.delete", id=party)

    agents_view = await plan(office, agent, plan_id)
    assert "Ada Lovelace" in (await plan(office, "alice", plan_id))["title"]
    assert "Ada" not in str(agents_view)
    assert agents_view["record_name"].startswith("PERSON_")
    assert agents_view["title"] == f"Delete party “{agents_view['record_name']}”"


async def test_a_viewer_without_the_model_reads_neither_its_name_nor_its_fields(office: Office) -> None:
    summary = risk.assess({}, [], None)

    assert (summary.level, summary.reasons) == ("low", ())
    assert set(plan_summary.COMPUTED_MEMBERS) >= {"risk", "title", "needs_left"}


async def test_watching_counts_the_pending_plans_and_the_high_risk_plans(office: Office, agent: str) -> None:
    counts_before = await office.value("alice", "plan.watch")
    record_id = await lead(office, party=(await office.first_record("party"))["id"])
    await office.value("alice", "lead.qualify", id=record_id)
    await office.proposed(agent, "lead.win", id=record_id)
    await office.proposed(agent, "lead.delete", id=await lead(office))

    counts_after = await office.value("alice", "plan.watch")

    assert (counts_after["waiting"] - counts_before["waiting"], counts_after["high"] - counts_before["high"]) == (2, 1)
    assert (await office.value("bob", "plan.watch"))["waiting"] == counts_before["waiting"]
