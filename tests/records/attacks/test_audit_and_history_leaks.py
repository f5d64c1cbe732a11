"""Audit entries and history hide whatever the plan or user record hides from the same caller."""

import json

from tests.records.office import Office


async def test_the_audit_shows_an_agent_only_the_kind_of_a_plans_error(office: Office) -> None:
    await office.person(
        "dan",
        {"model": "party", "commands": "get,list,delete", "clear": "kind"},
        {"model": "audit_entry", "commands": "get,list,search", "clear": "*"},
    )
    agent = await office.agent("dan", "*")
    party_in_use = (await office.first_record("invoice"))["party"]
    plan = await office.proposed(agent, "party.delete", id=party_in_use)
    assert (await office.approve("root", plan)).status_code == 400
    entry_filter = [{"field": "record_id", "op": "eq", "value": plan}]

    entries = await office.value(agent, "audit_entry.list", filter=entry_filter)

    assert "invoice" not in json.dumps(entries)
    errors = [entry["changes"]["error"] for entry in entries if "error" in entry["changes"]]
    assert errors == [[None, (await office.value(agent, "plan.get", id=plan))["error"]]] == [[None, "refused"]]


async def test_history_names_only_people_whom_the_caller_may_see(office: Office) -> None:
    lead = (await office.value("alice", "lead.create", title="x"))["id"]
    await office.person("dan", {"model": "lead", "commands": "*", "clear": "*", "write": "*"})
    await office.value("dan", "lead.update", id=lead, title="y")
    agent = await office.agent("dan", "lead.*")
    reader = await office.agent("alice", "*")

    names_by_caller = {who: [entry["by"] for entry in await office.value(who, "lead.history", id=lead)] for who in
             ("dan", agent, "alice", reader, "root")}

    assert names_by_caller["dan"] == names_by_caller[agent] == ["dan", None]
    assert names_by_caller["alice"] == names_by_caller[reader] == names_by_caller["root"] == ["dan", "alice"]
