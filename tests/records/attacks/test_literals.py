"""Everything in a response that looks like a token is a token: in history, plans and the audit as well as in
records."""

import json

from tests.records.office import Office


async def test_history_and_plans_send_token_like_text_as_records_do(office: Office) -> None:
    agent = await office.agent("alice", "*")
    lead = await office.value("alice", "lead.create", title="ask EMAIL_12")
    title = (await office.value(agent, "lead.get", id=lead["id"]))["title"]
    plan = await office.proposed(agent, "lead.delete", id=lead["id"])

    (entry,) = await office.value(agent, "lead.history", id=lead["id"])
    diff = (await office.value(agent, "plan.get", id=plan))["diff"]

    assert title.startswith("ask LITERAL_")
    assert entry["changes"]["title"] == [None, title]
    assert {"title": title}.items() <= {change["field"]: change["before"] for change in diff}.items()
    second_lead = await office.value(agent, "lead.update", id=lead["id"], title=entry["changes"]["title"][1])
    assert second_lead["title"] == title


async def test_a_plans_input_and_its_notes_hold_no_text_that_looks_like_a_token(office: Office) -> None:
    await office.value("root", "setting.create", title="approval:lead.update", value='{"n": 2}')
    agent = await office.agent("alice", "*")
    lead = await office.value("alice", "lead.create", title="ask EMAIL_12")
    title = (await office.value(agent, "lead.get", id=lead["id"]))["title"]
    plan = await office.proposed(agent, "lead.update", id=lead["id"], title=f"{title} again")
    assert (await office.approve("alice", plan, note='as EMAIL_12 said, {"EMAIL_13"}')).status_code == 200

    shown_plan = await office.value(agent, "plan.get", id=plan)

    assert shown_plan["input"]["title"] == f"{title} again"
    assert shown_plan["approvals"][0]["note"].startswith(f"as {title.removeprefix('ask ')} said")
    assert "EMAIL_1" not in json.dumps(shown_plan)
    assert (await office.value("alice", "plan.get", id=plan))["approvals"][0]["note"].startswith("as EMAIL_12 said")


async def test_names_that_look_like_tokens_are_sent_as_literals(office: Office) -> None:
    await office.person("EMAIL_77", {"model": "lead", "commands": "*", "clear": "*", "write": "*"})
    agent = await office.agent("root", "*")
    lead = await office.value("EMAIL_77", "lead.create", title="x")

    (entry,) = await office.value(agent, "lead.history", id=lead["id"])

    assert entry["by"].startswith("LITERAL_")
    assert (await office.value("root", "lead.history", id=lead["id"]))[0]["by"] == "EMAIL_77"


async def test_the_audit_sends_token_like_text_as_records_do(office: Office) -> None:
    agent = await office.agent("root", "*")
    lead = await office.value("root", "lead.create", title="EMAIL_12")
    entry_filter = [{"field": "record_id", "op": "eq", "value": lead["id"]}]

    (entry,) = await office.value(agent, "audit_entry.list", filter=entry_filter)

    assert entry["changes"]["title"] == [None, (await office.value(agent, "lead.get", id=lead["id"]))["title"]]
