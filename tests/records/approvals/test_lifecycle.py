"""The life cycle of plans: all final states, who may decide, and what the proposer and the approver see."""

import pytest

from countersign.kernel import clock
from countersign.records import app
from tests.records.office import Office


async def _plan(office: Office, agent: str) -> tuple[str, str]:
    lead = (await office.value("alice", "lead.create", title="Doomed", contact_email="ada@x.example"))["id"]
    return await office.proposed(agent, "lead.delete", id=lead), str(lead)


async def _state(office: Office, plan_id: str) -> str:
    return str((await office.value("alice", "plan.get", id=plan_id))["state"])


@pytest.fixture
async def agent(office: Office) -> str:
    """An agent of alice."""
    return await office.agent("alice", label="mailbot")


async def test_an_executed_plan_returns_the_same_answer_when_approved_again(office: Office, agent: str) -> None:
    plan_id, lead = await _plan(office, agent)

    first_approval = await office.approve("alice", plan_id, note="fine")
    second_approval = await office.approve("root", plan_id)

    assert (
        first_approval.json()
        == second_approval.json()
        == {
            "denied": [],
            "value": {"plan_id": plan_id, "state": "executed", "result": {"id": lead}},
        }
    )
    plan = await office.value("alice", "plan.get", id=plan_id)
    assert (plan["state"], plan["approvals"][0]["by"]) == ("executed", "alice")


async def test_rejected_with_a_reason_that_the_proposer_reads(office: Office, agent: str) -> None:
    plan_id, lead = await _plan(office, agent)

    assert "reason" in await office.refusal_of("alice", "plan.reject", id=plan_id)
    await office.value("alice", "plan.reject", id=plan_id, reason="not now")

    assert (await office.value(agent, "plan.get", id=plan_id))["reason"] == "not now"
    answer = await office.approve("alice", plan_id)
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "plan is rejected", "plan_id": plan_id, "state": "rejected"},
    )
    assert (await office.value("alice", "lead.get", id=lead))["id"] == lead


async def test_a_plan_is_withdrawn_only_by_its_proposer(office: Office, agent: str) -> None:
    plan_id, _ = await _plan(office, agent)
    other_agent = await office.agent("alice", label="other")

    assert await office.refusal_of(other_agent, "plan.withdraw", id=plan_id) == "no such record"
    await office.value(agent, "plan.withdraw", id=plan_id)

    assert await _state(office, plan_id) == "withdrawn"


async def test_expired_when_its_time_has_come(office: Office, agent: str) -> None:
    plan_id, lead = await _plan(office, agent)
    later_time = clock.later(clock.now(), seconds=8 * 86400)

    with clock.fixed(later_time):
        office.tokens["later"] = (
            await office.http.post("/api/auth/login", json={"username": "alice", "password": "countersign-demo"})
        ).json()["token"]
        answer = await office.approve("later", plan_id)
        await app.run_periodic_tasks(office.service)

    assert answer.json()["state"] == "expired"
    assert await _state(office, plan_id) == "expired"
    assert (await office.value("alice", "lead.get", id=lead))["id"] == lead


async def test_tending_ends_plans_whose_time_has_come(office: Office, agent: str) -> None:
    plan_id, _ = await _plan(office, agent)

    with clock.fixed(clock.later(clock.now(), seconds=8 * 86400)):
        await app.run_periodic_tasks(office.service)

    assert await _state(office, plan_id) == "expired"
    expiry_entry = await office.first_record("audit_entry", command="plan.expired")
    assert expiry_entry["plan_id"] == plan_id


async def test_stale_when_the_record_changed_even_back(office: Office, agent: str) -> None:
    plan_id, lead = await _plan(office, agent)
    await office.value("alice", "lead.update", id=lead, title="Other")
    await office.value("alice", "lead.update", id=lead, title="Doomed")

    answer = await office.approve("alice", plan_id)

    assert answer.json()["state"] == "stale"
    assert answer.json()["error"].startswith("plan is stale: lead ")
    assert (await office.value(agent, "plan.get", id=plan_id))["error"] == "stale"


async def test_a_pending_plan_shows_that_its_record_is_deleted_or_changed(office: Office, agent: str) -> None:
    gone_plan, changed_plan, same_plan = [await _plan(office, agent) for _ in range(3)]
    moving_plan = await office.proposed(
        await office.agent("alice", "lead.*", "plan.propose", label="mover"),
        "plan.propose",
        steps=[{"command": "lead.qualify", "input": {"id": gone_plan[1]}}],
    )
    assert (await office.value("alice", "plan.get", id=moving_plan))["error"] is None

    assert (await office.approve("alice", gone_plan[0])).status_code == 200
    await office.value("alice", "lead.update", id=changed_plan[1], title="Other")

    errors_by_plan = {
        plan["id"]: plan["error"] for plan in await office.all("plan", "alice") if plan["state"] == "pending"
    }
    shown_states = {plan: errors_by_plan[plan] for plan in (moving_plan, changed_plan[0], same_plan[0])}
    assert shown_states == {moving_plan: "stale", changed_plan[0]: "stale", same_plan[0]: None}
    assert (await office.value(agent, "plan.get", id=changed_plan[0]))["error"] is None
    assert (await office.approve("alice", moving_plan)).json()["state"] == "stale"


async def test_the_withheld_parts_of_a_plan_belong_to_its_models(office: Office) -> None:
    await office.person(
        "dora",
        {"model": "lead", "commands": "get,list,delete", "clear": "title"},
        {"model": "party", "commands": "get,list", "clear": "kind"},
    )
    lead = (await office.value("alice", "lead.create", title="Doomed"))["id"]
    plan_id = await office.proposed(await office.agent("dora", "lead.*"), "lead.delete", id=lead)

    denied_fields = await office.denied("dora", "plan.get", id=plan_id)

    assert denied_fields == await office.denied("dora", "lead.get", id=lead)
    assert "lead.notes" in denied_fields
    assert await office.denied("dora", "plan.list", limit=5) == denied_fields
    assert await office.denied("dora", "plan.reject", id=plan_id, reason="not now") == denied_fields


async def test_an_agent_that_gives_a_reason_with_a_command_is_shown_where_it_belongs(office: Office) -> None:
    lead = (await office.value("alice", "lead.create", title="Doomed"))["id"]
    agent = await office.agent("alice", "lead.*", "plan.propose")

    for command in ("lead.delete", "lead.qualify", "lead.update"):
        reason = await office.refusal_of(agent, command, id=lead, why="she asked")
        assert reason.startswith(f"unknown key why in {command}: ")
        assert "plan.propose" in reason
    steps = [{"command": "lead.delete", "input": {"id": lead}}]
    plan_id = await office.proposed(agent, "plan.propose", steps=steps, why="she asked")

    assert (await office.value("alice", "plan.get", id=plan_id))["why"] == "she asked"
    assert "plan.propose" not in await office.refusal_of("alice", "lead.update", id=lead, why="she asked")


async def test_a_caller_does_not_learn_that_a_hidden_field_changed(office: Office) -> None:
    lead = (await office.value("alice", "lead.create", title="Seen", notes="hidden"))["id"]
    await office.person("dora", {"model": "lead", "commands": "get,list,delete", "clear": "title"})
    plan_id = await office.proposed(await office.agent("dora", "lead.*"), "lead.delete", id=lead)

    await office.value("alice", "lead.update", id=lead, notes="hidden change")
    assert (await office.value("dora", "plan.get", id=plan_id))["error"] is None
    await office.value("root", "lead.delete", id=lead)

    assert (await office.value("dora", "plan.get", id=plan_id))["error"] == "stale"


async def test_failed_when_the_agent_lost_its_token(office: Office, agent: str) -> None:
    plan_id, lead = await _plan(office, agent)
    token = next(
        agent_token for agent_token in await office.all("agent_token", "alice") if agent_token["label"] == "mailbot"
    )
    await office.value("alice", "agent_token.revoke", id=token["id"])

    assert (await office.approve("alice", plan_id)).json()["state"] == "failed"
    assert (await office.value("alice", "lead.get", id=lead))["id"] == lead


async def test_failed_when_a_reference_is_in_the_way_and_the_agent_does_not_learn_which(office: Office) -> None:
    agent = await office.agent("root", "party.*")
    party = (await office.first_record("invoice"))["party"]
    plan_id = await office.proposed(agent, "party.delete", id=party)

    answer = await office.approve("root", plan_id)

    assert answer.json()["state"] == "failed"
    assert "another record refers to this one" in answer.json()["error"]
    assert (await office.value(agent, "plan.get", id=plan_id))["error"] == "refused"


async def test_only_a_person_who_could_run_the_command_sees_and_decides_the_plan(office: Office, agent: str) -> None:
    plan_id, _ = await _plan(office, agent)

    for who in ("bob", "carol", agent):
        answer = await office.approve(who, plan_id)
        assert (answer.status_code, answer.json()) == (404, {"error": "not found"})
    for who in ("bob", "carol"):
        assert await office.refusal_of(who, "plan.get", id=plan_id) == "no such record"
        assert await office.refusal_of(who, "plan.reject", id=plan_id, reason="x") == "no such record"
    assert await _state(office, plan_id) == "pending"


async def test_an_approval_may_move_the_record_out_of_the_rows_of_the_approver(office: Office) -> None:
    """The right to run the command is checked when the plan is approved, as for a person who runs the command."""
    rows = '[{"field": "stage", "op": "ne", "value": "lost"}]'
    grant = {"model": "lead", "commands": "get,list,update,lose", "clear": "*", "write": "*", "rows": rows}
    await office.person("dan", grant)
    agent = await office.agent("root", "lead.*")
    await office.value("root", "setting.create", title="approval:lead.lose", value='{"n": 1}')
    direct, proposed_lead = [lead["id"] for lead in await office.all("lead") if lead["stage"] == "new"][:2]

    await office.value("dan", "lead.lose", id=direct, lost_reason="price")
    answer = await office.approve(
        "dan", await office.proposed(agent, "lead.lose", id=proposed_lead, lost_reason="price")
    )

    assert (answer.status_code, answer.json()["value"]["state"]) == (200, "executed")
    assert (await office.value("root", "lead.get", id=proposed_lead))["stage"] == "lost"


async def test_another_digest_is_refused(office: Office, agent: str) -> None:
    plan_id, _ = await _plan(office, agent)

    assert (await office.approve("alice", plan_id, digest="sha256:0")).status_code == 400
    assert await _state(office, plan_id) == "pending"
    digest = (await office.value("alice", "plan.get", id=plan_id))["digest"]
    assert (await office.approve("alice", plan_id, digest=digest)).status_code == 200


async def test_a_repeated_proposal_returns_the_same_plan(office: Office, agent: str) -> None:
    plan_id, lead = await _plan(office, agent)

    assert await office.proposed(agent, "lead.delete", id=lead) == plan_id
    await office.value("alice", "lead.update", id=lead, title="Changed")
    assert await office.proposed(agent, "lead.delete", id=lead) != plan_id


async def test_a_hundred_plans_may_be_pending(office: Office, agent: str) -> None:
    leads = await office.all("lead", "alice")
    for lead in leads[:100]:
        await office.proposed(agent, "lead.delete", id=lead["id"], cascade=True)

    assert "100" in await office.refusal_of(agent, "lead.delete", id=leads[100]["id"], cascade=True)


async def test_a_setting_requires_other_people_of_a_role_above_an_amount(office: Office, agent: str) -> None:
    when = '{"field": "expected_revenue_minor", "op": "gt", "value": 1000}'
    value = f'{{"not_owner": true, "group": "administrator", "when": {when}}}'
    await office.value("root", "setting.create", title="approval:lead.update", value=value)
    lead = (await office.value("alice", "lead.create", title="x", expected_revenue_minor=10))["id"]

    assert (await office.value(agent, "lead.update", id=lead, title="small"))["title"] == "small"
    plan_id = await office.proposed(agent, "lead.update", id=lead, expected_revenue_minor=5000)

    assert (await office.approve("alice", plan_id)).status_code in (400, 404)
    assert (await office.approve("root", plan_id)).json()["value"]["state"] == "executed"


async def test_steps_are_approved_together_and_refer_to_records_of_earlier_steps(office: Office, agent: str) -> None:
    steps = [
        {"command": "party.create", "input": {"name": "Ada Lovelace", "kind": "person"}},
        {"command": "lead.create", "input": {"title": "For Ada", "party": {"$step": 0}}},
    ]
    plan_id = await office.proposed(agent, "plan.propose", steps=steps, why="she called")
    shown_plan = await office.value("alice", "plan.get", id=plan_id)
    assert shown_plan["input"]["steps"][1]["input"]["party"] == {"$step": 0}

    result = (await office.approve("alice", plan_id)).json()["value"]["result"]

    party, lead = [step["id"] for step in result["steps"]]
    assert (await office.value("alice", "lead.get", id=lead))["party"] == party


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [("lead.fly", {})],
        [("lead.create", {"title": "x", "party": {"$step": 0}})],
        [("lead.create", {"title": {"$step": 0}})],
        [("party.create", {"name": "x"}), ("lead.create", {"title": {"$step": 0}})],
        [("lead.create", {"title": "x"}), ("lead.create", {"title": "y", "party": {"$step": 0}})],
        [("party.create", {})],
    ],
)
async def test_steps_that_cannot_be_are_refused(
    office: Office, agent: str, steps: list[tuple[str, dict[str, object]]]
) -> None:
    await office.refusal_of(agent, "plan.propose", steps=[{"command": name, "input": body} for name, body in steps])


async def test_all_steps_or_none(office: Office, agent: str) -> None:
    lead = await office.first_record("lead", stage="new")
    steps = [
        {"command": "lead.create", "input": {"title": "Beside"}},
        {"command": "lead.qualify", "input": {"id": lead["id"]}},
        {"command": "lead.qualify", "input": {"id": lead["id"]}},
    ]
    plan_id = await office.proposed(agent, "plan.propose", steps=steps)

    assert (await office.approve("alice", plan_id)).json()["state"] == "failed"

    titles = {lead["title"] for lead in await office.all("lead", "alice")}
    assert "Beside" not in titles
    assert (await office.value("alice", "lead.get", id=lead["id"]))["stage"] == "new"


async def test_watching_reports_plans_as_they_come(office: Office, agent: str) -> None:
    cursor = (await office.value("alice", "plan.watch"))["cursor"]
    assert (await office.value("alice", "plan.watch", since=cursor, wait_s=0))["plans"] == []

    plan_id, _ = await _plan(office, agent)

    reported = await office.value("alice", "plan.watch", since=cursor, wait_s=5)
    assert [plan["id"] for plan in reported["plans"]] == [plan_id]


async def test_a_decided_plan_keeps_no_personal_value(office: Office, agent: str) -> None:
    lead = (await office.value("alice", "lead.create", title="x"))["id"]
    await office.value("root", "setting.create", title="approval:lead.update", value="{}")
    plan_id = await office.proposed(agent, "lead.update", id=lead, contact_email="secret@x.example")
    assert "secret@x.example" in str(await office.value("alice", "plan.get", id=plan_id))

    await office.value("alice", "plan.reject", id=plan_id, reason="no")

    assert "secret@x.example" not in str(await office.value("alice", "plan.get", id=plan_id))
    rows = await office.service.records.database.fetch("SELECT plan_id FROM plan_value")
    assert rows == []
