"""In all responses, a ref to a record that the caller does not see is equal to an empty ref."""

import json
from typing import Any

import httpx

from tests.records.office import Office

DAN = {"model": "lead", "commands": "*", "clear": "title,party,stage,owner", "write": "title,party"}
PEOPLE_ALONE = {"model": "party", "commands": "get,list", "clear": "kind",
                "rows": '[{"field":"kind","op":"eq","value":"person"}]'}  # fmt: skip


async def two_leads(office: Office) -> tuple[str, str]:
    """Create an agent of dan, who sees leads but only those parties that are people, and two leads: one with a company,
    and one without a party."""
    await office.person("dan", DAN, PEOPLE_ALONE)
    await office.agent("dan", "*", name="agent")
    party = (await office.first_record("party", kind="company"))["id"]
    leads = [await office.value("root", "lead.create", title="x", party=party_id) for party_id in (party, None)]
    return leads[0]["id"], leads[1]["id"]


def without_lead_id(answer: httpx.Response | Any, lead: str) -> str:
    """Return the response without the id of the lead."""
    text = f"{answer.status_code} {answer.text}" if isinstance(answer, httpx.Response) else json.dumps(answer)
    return text.replace(lead, "LEAD")


async def test_the_diff_of_a_plan_shows_a_hidden_ref_like_an_empty_ref(office: Office) -> None:
    diffs: list[str] = []
    for lead in await two_leads(office):
        plan = await office.proposed("agent", "lead.delete", id=lead)
        diffs.append(without_lead_id((await office.value("agent", "plan.get", id=plan))["diff"], lead))

    assert diffs[0] == diffs[1]


async def test_history_shows_a_hidden_ref_like_an_empty_ref(office: Office) -> None:
    histories: list[str] = []
    for lead in await two_leads(office):
        entries = await office.value("agent", "lead.history", id=lead)
        histories.append(without_lead_id([entry["changes"] for entry in entries], lead))

    assert histories[0] == histories[1]


async def test_a_guard_over_a_hidden_ref_does_not_reveal_the_ref(office: Office) -> None:
    leads = await two_leads(office)
    for who in ("agent", "dan"):
        response_texts: list[str] = []
        for lead in leads:
            if who == "agent":
                await office.value("root", "lead.qualify", id=lead)
            response_texts.append(without_lead_id(await office.call(who, "lead.win", {"id": lead}), lead))
        assert response_texts == ['400 {"error":"lead.win is not allowed in this state"}'] * 2


async def test_a_guard_that_only_seems_to_hold_is_for_a_person_to_decide(office: Office) -> None:
    rows = '[{"field":"kind","op":"eq","value":"person"}]'
    await office.person(
        "eve",
        {"model": "lead", "commands": "*", "clear": "*", "write": "*"},
        {"model": "party", "commands": "get", "clear": "kind", "rows": rows},
    )
    agent = await office.agent("eve", "*")
    visible_party = (await office.first_record("party", kind="person"))["id"]
    lead = await office.value("root", "lead.create", title="x", party=visible_party)
    await office.value("root", "lead.qualify", id=lead["id"])

    await office.proposed(agent, "lead.win", id=lead["id"])


async def test_a_guard_over_a_visible_ref_needs_no_approval(office: Office) -> None:
    agent = await office.agent("alice", "*")
    party = (await office.first_record("party"))["id"]
    lead = await office.value("alice", "lead.create", title="x", party=party)
    await office.value("alice", "lead.qualify", id=lead["id"])
    await office.value("root", "setting.create", title="approval:lead.win", value='{"n": 0}')

    assert (await office.value(agent, "lead.win", id=lead["id"]))["stage"] == "won"


async def test_emptying_a_hidden_ref_changes_nothing(office: Office) -> None:
    leads = await two_leads(office)
    party = (await office.value("root", "lead.get", id=leads[0]))["party"]
    for who in ("agent", "dan"):
        response_texts: list[str] = []
        for lead in leads:
            lead_before = await office.value(who, "lead.get", id=lead)
            lead_after = await office.value(who, "lead.update", id=lead, party=None)
            response_texts.append(
                without_lead_id([lead_before, lead_after, len(await office.value(who, "lead.history", id=lead))], lead)
            )
        assert response_texts[0] == response_texts[1]

    assert (await office.value("root", "lead.get", id=leads[0]))["party"] == party


async def test_emptying_a_hidden_ref_is_not_proposed_either(office: Office) -> None:
    await office.value("root", "setting.create", title="approval:lead.update", value="{}")
    response_texts: list[str] = []
    for lead in await two_leads(office):
        plan = await office.proposed("agent", "lead.update", id=lead, party=None, title="y")
        assert (await office.approve("root", plan)).status_code == 200
        shown_plan = await office.value("agent", "plan.get", id=plan)
        response_texts.append(
            without_lead_id(
                [shown_plan["input"], shown_plan["diff"], await office.value("agent", "lead.get", id=lead)], lead
            )
        )

    assert response_texts[0] == response_texts[1]


async def test_emptying_a_visible_ref_empties_the_field(office: Office) -> None:
    agent = await office.agent("alice", "*")
    party = (await office.first_record("party"))["id"]
    lead = await office.value("alice", "lead.create", title="x", party=party)

    assert (await office.value(agent, "lead.update", id=lead["id"], party=None))["party"] is None
