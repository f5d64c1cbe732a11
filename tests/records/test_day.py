"""The scenario of the API document: an agent works with masked leads and proposes changes, and a person approves
them."""

from pathlib import Path
from typing import Any

import httpx

from countersign.records import app
from countersign.records.audit.verify import verify
from tests.records.conftest import OfficeSettings
from tests.records.office import ROOT_URL, Office
from tests.servers.countersign import served


async def test_an_agent_works_a_lead_on_masked_data_and_a_person_approves(office_settings: OfficeSettings) -> None:
    settings = {
        "COUNTERSIGN_MASTER_KEY": office_settings.settings.master_key,
        "COUNTERSIGN_DATABASE_URL": office_settings.settings.database_url,
        "COUNTERSIGN_RESERVE_MIB": "0",
    }
    data = Path(office_settings.settings.data)
    with served(data, service="records", settings=settings) as running:
        async with httpx.AsyncClient(base_url=running.url, timeout=30) as client:
            await _day(Office(client, office_settings.tokens))
        assert ".example" not in running.log.read_text()
    async with app.open_records(office_settings.settings, ROOT_URL, is_loopback=True) as service:
        assert (await verify(service.records.database, service.records.secret)).faults == ()


async def _day(office: Office) -> None:
    agent = await office.agent("alice", "lead.*", "party.*", label="mailbot")
    leads = await _listed_leads(office, agent)
    first_lead, second_lead = _of_one_contact(leads)

    await _work_lead(office, agent, first_lead)
    plan_id = await _propose_deletion(office, agent, second_lead)
    await _approve_deletion(office, plan_id, second_lead)


async def _listed_leads(office: Office, agent: str) -> list[dict[str, Any]]:
    answer = await office.call(agent, "lead.list", {"order": [{"field": "title"}]})
    leads = answer.json()["value"]
    assert answer.json()["denied"] == ["lead.owner"], "its scopes name no command that reads users"
    assert len(leads) == 500
    assert all(lead["contact_email"].startswith("EMAIL_") for lead in leads)
    assert "@" not in answer.text
    assert await office.denied(agent, "party.list", limit=1) == ["party.tax_id"]

    return leads


def _of_one_contact(leads: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return two leads with the same contact. The agent recognizes them by equal tokens."""
    by_contact: dict[str, list[dict[str, Any]]] = {}
    for lead in leads:
        if lead["stage"] == "new":
            by_contact.setdefault(lead["contact_email"], []).append(lead)
    return next(group for group in by_contact.values() if len(group) > 1)[:2]


async def _work_lead(office: Office, agent: str, lead: dict[str, Any]) -> None:
    assert (await office.value(agent, "lead.qualify", id=lead["id"]))["stage"] == "qualified"

    token = lead["contact_email"]
    updated_lead = await office.value(agent, "lead.update", id=lead["id"], notes=f"Write to {token} on Monday.")
    assert updated_lead["notes"].startswith("NOTES_")
    seen_lead = await office.value("alice", "lead.get", id=lead["id"])
    assert seen_lead["notes"] == f"Write to {seen_lead['contact_email']} on Monday."

    reason = await office.refusal_of(agent, "lead.update", id=lead["id"], title=f"Ask {token}")
    assert reason == "token not allowed in lead.title"
    assert (await office.value("alice", "lead.get", id=lead["id"]))["title"] == seen_lead["title"]


async def _propose_deletion(office: Office, agent: str, lead: dict[str, Any]) -> str:
    plan_id = await office.proposed(agent, "lead.delete", id=lead["id"], cascade=True)
    assert (await office.approve(agent, plan_id)).status_code == 404
    assert (await office.value("alice", "lead.get", id=lead["id"]))["id"] == lead["id"]
    own_plan = await office.call(agent, "plan.get", {"id": plan_id})
    assert own_plan.json()["value"]["state"] == "pending"
    assert "@" not in own_plan.text
    return plan_id


async def _approve_deletion(office: Office, plan_id: str, lead: dict[str, Any]) -> None:
    clear_lead = await office.value("alice", "lead.get", id=lead["id"])
    plan = await office.value("alice", "plan.get", id=plan_id)
    assert plan["state"] == "pending"
    assert plan["command"] == "lead.delete"
    values_before = {change["field"]: change["before"] for change in plan["diff"]}
    assert values_before["contact_email"] == clear_lead["contact_email"]

    approval = await office.approve("alice", plan_id, digest=plan["digest"])
    assert approval.status_code == 200, approval.text
    assert approval.json()["value"]["state"] == "executed"
    assert await office.refusal_of("alice", "lead.get", id=lead["id"]) == "no such record"

    story = await office.value("root", "audit_entry.list", filter=[{"field": "plan_id", "op": "eq", "value": plan_id}])
    assert "lead.delete" in [entry["command"] for entry in story]
    assert {entry["agent"] for entry in story if entry["command"] == "lead.delete"} == {"mailbot"}
