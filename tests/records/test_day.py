"""The day of the API's promise: an agent works leads on masked data and proposes, a person approves."""

import pytest

from countersign.records.audit.verify import verify
from tests.records.office import Office

pytestmark = pytest.mark.filterwarnings("error")


async def test_an_agent_works_a_lead_on_masked_data_and_a_person_approves(office: Office) -> None:
    agent = await office.agent("alice", "lead.*", "party.*", label="mailbot")

    answer = await office.call(agent, "lead.list", {"order": [{"field": "title"}]})
    leads = answer.json()["value"]
    assert answer.json()["denied"] == []
    assert len(leads) == 500
    assert all(lead["contact_email"].startswith("EMAIL_") for lead in leads)
    assert "@" not in answer.text
    assert await office.denied(agent, "party.list", limit=1) == ["party.tax_id"]

    # Two leads of the same contact have equal tokens.
    by_contact: dict[str, list[str]] = {}
    for lead in leads:
        if lead["stage"] == "new":
            by_contact.setdefault(lead["contact_email"], []).append(lead["id"])
    first, second = next(ids for ids in by_contact.values() if len(ids) > 1)[:2]
    mine = [await office.value("alice", "lead.get", id=each) for each in (first, second)]
    assert mine[0]["contact_email"] == mine[1]["contact_email"]

    qualified = await office.value(agent, "lead.qualify", id=first)
    assert qualified["stage"] == "qualified"

    token = next(lead["contact_email"] for lead in leads if lead["id"] == first)
    written = await office.value(agent, "lead.update", id=first, notes=f"Write to {token} on Monday.")
    assert written["notes"].startswith("NOTES_")
    seen = await office.value("alice", "lead.get", id=first)
    assert seen["notes"] == f"Write to {mine[0]['contact_email']} on Monday."

    said = await office.refused(agent, "lead.update", id=first, title=f"Ask {token}")
    assert said == "token not allowed in lead.title"
    assert (await office.value("alice", "lead.get", id=first))["title"] == seen["title"]

    plan_id = await office.proposed(agent, "lead.delete", id=second)
    assert (await office.approve(agent, plan_id)).status_code == 404
    assert (await office.value("alice", "lead.get", id=second))["id"] == second

    plan = await office.value("alice", "plan.get", id=plan_id)
    assert plan["state"] == "pending"
    assert plan["command"] == "lead.delete"
    before = {change["field"]: change["before"] for change in plan["diff"]}
    assert before["contact_email"] == mine[1]["contact_email"]
    own = await office.value(agent, "plan.get", id=plan_id)
    assert mine[1]["contact_email"] not in str(own)

    approved = await office.approve("alice", plan_id, digest=plan["digest"])
    assert approved.status_code == 200, approved.text
    assert approved.json()["value"]["state"] == "executed"
    assert await office.refused("alice", "lead.get", id=second) == "no such record"

    story = await office.value("root", "audit_entry.list", filter=[{"field": "plan_id", "op": "eq", "value": plan_id}])
    assert "lead.delete" in [each["command"] for each in story]
    assert {each["agent"] for each in story if each["command"] == "lead.delete"} == {"mailbot"}
    records = office.service.records
    assert (await verify(records.database, records.secret)).faults == ()
