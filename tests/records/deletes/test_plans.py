"""Deletions that agents propose: they are refused at once if the agent sees a reference, and become stale if a
reference is added later."""

import pytest

from tests.records.office import Office

REFUSAL = "another record refers to this one"


async def lead(office: Office) -> str:
    """Create a lead without references to it."""
    return str((await office.value("alice", "lead.create", title="x"))["id"])


async def activity(office: Office, lead_id: str) -> str:
    """Create an activity of the lead."""
    return str((await office.value("alice", "activity.create", lead=lead_id, subject="call"))["id"])


async def test_a_reference_that_the_agent_sees_is_refused_at_once(office: Office) -> None:
    agent, doomed_lead = await office.agent("alice", "*"), await lead(office)
    await activity(office, doomed_lead)

    assert await office.refusal_of(agent, "lead.delete", id=doomed_lead) == REFUSAL
    reason = await office.refusal_of(
        agent, "plan.propose", steps=[{"command": "lead.delete", "input": {"id": doomed_lead}}]
    )
    assert reason == f"step 0: {REFUSAL}"


async def test_a_reference_that_the_agent_does_not_see_is_found_by_the_approver(office: Office) -> None:
    agent, doomed_lead = await office.agent("alice", "lead.*"), await lead(office)
    await activity(office, doomed_lead)

    plan = await office.proposed(agent, "lead.delete", id=doomed_lead)

    answer = await office.approve("alice", plan)
    assert (answer.status_code, answer.json()["state"]) == (400, "failed")
    assert REFUSAL in answer.json()["error"]


@pytest.mark.parametrize("cascade", [False, True])
async def test_a_reference_added_after_the_proposal_makes_the_deletion_plan_stale(
    office: Office, cascade: bool
) -> None:
    agent, doomed_lead = await office.agent("alice", "*"), await lead(office)
    plan = await office.proposed(agent, "lead.delete", id=doomed_lead, cascade=cascade)
    await activity(office, doomed_lead)

    answer = await office.approve("alice", plan)

    assert (answer.status_code, answer.json()["state"]) == (400, "stale")
    assert (await office.value("alice", "lead.get", id=doomed_lead))["id"] == doomed_lead


async def test_a_plan_lists_the_deleted_records_to_callers_who_see_them(office: Office) -> None:
    party = str((await office.value("root", "party.create", name="Gone Ltd"))["id"])
    doomed_lead = str((await office.value("root", "lead.create", title="x", party=party))["id"])
    await office.value("root", "address.create", party=party, street="1 Road", city="Graz", country="AT")
    for _ in range(2):
        await office.value("root", "ticket.create", subject="x", party=party)
    agent = await office.agent("alice", "*")

    plan = await office.proposed(agent, "party.delete", id=party, cascade=True)

    effects = ["1 address deleted", "party of 1 lead emptied", "party of 2 tickets emptied"]
    for who in ("root", "alice", agent):
        shown_plan = await office.value(who, "plan.get", id=plan)
        assert sorted(shown_plan["effects"]) == effects, who
        assert shown_plan["input"] == {"id": party, "cascade": True}
    assert (await office.approve("alice", plan)).status_code == 200
    assert (await office.value("alice", "lead.get", id=doomed_lead))["party"] is None


async def test_a_plan_reveals_no_record_that_its_proposer_does_not_see(office: Office) -> None:
    agent, doomed_lead = await office.agent("alice", "lead.*"), await lead(office)
    await activity(office, doomed_lead)

    plan = await office.proposed(agent, "lead.delete", id=doomed_lead, cascade=True)

    assert (await office.value(agent, "plan.get", id=plan))["effects"] == []
    assert (await office.value("alice", "plan.get", id=plan))["effects"] == ["1 activity deleted"]


async def test_a_plan_may_delete_referring_records_before_the_record_they_refer_to(office: Office) -> None:
    agent, doomed_lead = await office.agent("alice", "*"), await lead(office)
    activity_id = await activity(office, doomed_lead)
    steps = [{"command": f"{model}.delete", "input": {"id": record_id}} for model, record_id in
             (("activity", activity_id), ("lead", doomed_lead))]  # fmt: skip
    assert await office.refusal_of(agent, "plan.propose", steps=steps[::-1]) == f"step 0: {REFUSAL}"

    plan = await office.proposed(agent, "plan.propose", steps=steps)

    assert (await office.approve("alice", plan)).json()["value"]["state"] == "executed"


async def test_a_person_without_rights_to_the_cascade_cannot_decide_the_plan(office: Office) -> None:
    await office.person("eve", {"model": "lead", "commands": "*", "clear": "*", "write": "*"})
    doomed_lead = await lead(office)
    await activity(office, doomed_lead)
    agent = await office.agent("alice", "*")

    plan = await office.proposed(agent, "lead.delete", id=doomed_lead, cascade=True)

    assert (await office.approve("eve", plan)).status_code == 404
    assert await office.refusal_of("eve", "plan.get", id=plan) == "no such record"
    assert (await office.approve("alice", plan)).json()["value"]["state"] == "executed"


async def test_a_person_withdraws_a_proposal_of_their_own(office: Office) -> None:
    await office.person("eve", {"model": "lead", "commands": "*", "clear": "*", "write": "*"})
    doomed_lead = await lead(office)
    await activity(office, doomed_lead)
    plan = await office.proposed("eve", "lead.delete", id=doomed_lead, cascade=True)
    assert await office.proposed("eve", "lead.delete", id=doomed_lead, cascade=True) == plan
    assert (await office.value("alice", "plan.get", id=plan))["proposed_by"] == {"agent": None, "person": "eve"}

    withdrawn_plan = await office.value("eve", "plan.withdraw", id=plan)

    assert withdrawn_plan["state"] == "withdrawn"
    assert (await office.value("alice", "lead.get", id=doomed_lead))["id"] == doomed_lead
