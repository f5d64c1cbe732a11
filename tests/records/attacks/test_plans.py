"""Attacks that try to get a plan executed that no approver would have accepted, or that read hidden data from plans."""

import asyncio
import hashlib
import json
from collections.abc import Sequence

import msgspec
import pytest

from countersign.records.approvals import policy
from countersign.records.commands.prepared_command import PlannedCommand
from countersign.records.commands.run import Run
from tests.records.office import Office
from tests.servers.transaction_waits import TransactionWaits


async def propose(office: Office, who: str, *steps: tuple[str, dict[str, object]]) -> str:
    """Propose a plan with these commands, and return its id."""
    body = {"steps": [{"command": command, "input": command_input} for command, command_input in steps]}
    answer = await office.call(who, "plan.propose", body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["plan_id"])


async def asks(office: Office, command: str, **policy: object) -> None:
    """Require approval for the command from now on."""
    await office.value("root", "setting.create", title=f"approval:{command}", value=json.dumps(policy))


async def role(office: Office, title: str) -> str:
    """Return the id of a role."""
    return str((await office.first_record("role", title=title))["id"])


async def lead(office: Office, **values: object) -> str:
    """Create a lead of alice, and return its id."""
    return str((await office.value("alice", "lead.create", **{"title": "x", **values}))["id"])


async def test_a_right_guess_is_another_proposal_than_the_token(office: Office) -> None:
    agent = await office.agent("alice", "*")
    for model, field in (("lead", "contact_email"), ("address", "postcode")):
        guessed_record, other_record = await office.value(agent, f"{model}.list", limit=2)
        clear_value = (await office.value("alice", f"{model}.get", id=guessed_record["id"]))[field]
        plans = [
            await propose(office, agent, (f"{model}.update", {"id": other_record["id"], field: guess}))
            for guess in (guessed_record[field], clear_value, "wrong@guess.example", guessed_record[field], clear_value)
        ]

        assert len(set(plans)) == 3
        assert plans[:2] == plans[3:]


async def test_a_digest_cannot_be_made_from_guesses(office: Office) -> None:
    await office.person("dan", {"model": "product", "commands": "get,list,delete", "clear": "sku,name"})
    agent = await office.agent("dan", "product.*")
    product = await office.first_record("product", "dan")
    plan = await office.proposed(agent, "product.delete", id=product["id"])

    digest = (await office.value("dan", "plan.get", id=plan))["digest"]

    ((stored_input, diff, effects),) = await office.service.records.database.fetch(
        "SELECT input, diff, effects FROM plan WHERE id = $1", plan
    )
    text = msgspec.json.encode([plan, *(msgspec.json.decode(text) for text in (stored_input, diff, effects))])
    assert digest.startswith("sha256:")
    assert digest != f"sha256:{hashlib.sha256(text).hexdigest()}"


async def test_an_agent_only_proposes_changes_of_rights(office: Office) -> None:
    agent = await office.agent("root", "*")
    bob, administrator = (await office.first_record("user", username="bob"))["id"], await role(office, "administrator")
    await asks(office, "lead.update", n=2)
    setting = (await office.first_record("setting"))["id"]

    await office.proposed(agent, "user_role.create", user=bob, role=administrator)
    await office.proposed(agent, "role.create", title="mine")
    await office.proposed(agent, "grant.create", role=administrator, model="lead", commands="*")
    await office.proposed(agent, "user.update", id=bob, is_active=False)
    await office.proposed(agent, "setting.update", id=setting, title="approval:lead.delete")


async def test_an_agent_can_revoke_only_itself(office: Office) -> None:
    agent = await office.agent("alice", "session.*", "agent_token.*")
    other_agent = await office.agent("alice", "lead.get", label="other")
    tokens = {agent_token["label"]: agent_token["id"] for agent_token in await office.value(agent, "agent_token.list")}
    session = (await office.value(agent, "session.list"))[0]

    assert (await office.call(agent, "session.revoke", {"id": session["id"]})).status_code == 404
    assert await office.refusal_of(agent, "agent_token.revoke", id=tokens["other"]) == "no such record"
    await office.value(agent, "agent_token.revoke", id=tokens["alice's agent"])

    assert (await office.call(agent, "session.list")).status_code == 401
    assert (await office.call(other_agent, "lead.get", {"id": await lead(office)})).status_code == 200


async def test_an_update_that_changes_the_state_needs_the_right_to_update(office: Office) -> None:
    await asks(office, "lead.update", n=1)
    agent = await office.agent("alice", "lead.*")
    new = await lead(office)

    await office.proposed(agent, "lead.update", id=new, title="y", expected_revenue_minor=1, stage="qualified")
    assert (await office.value(agent, "lead.update", id=new, stage="qualified"))["stage"] == "qualified"


async def test_an_approval_condition_applies_to_computed_fields(office: Office) -> None:
    high = {"when": {"field": "net_minor", "op": "gt", "value": 100_000}}
    await asks(office, "invoice_line.create", **high)
    await asks(office, "invoice_line.update", **high)
    agent = await office.agent("carol", "*")
    line: dict[str, object] = {
        "invoice": (await office.first_record("invoice", state="draft"))["id"],
        "description": "x",
    }

    await office.proposed(agent, "invoice_line.create", **line, quantity=1000, unit_price_minor=1_000_000)
    small = await office.value(agent, "invoice_line.create", **line, quantity=1, unit_price_minor=1)

    await office.proposed(agent, "invoice_line.update", id=small["id"], quantity=1_000_000, unit_price_minor=1000)


async def test_a_condition_of_approval_looks_at_before_and_after(office: Office) -> None:
    await asks(office, "lead.update", when={"field": "expected_revenue_minor", "op": "gt", "value": 100_000})
    agent = await office.agent("alice", "lead.*")
    high = await lead(office, expected_revenue_minor=200_000)

    await office.proposed(agent, "lead.update", id=high, title="y", expected_revenue_minor=1)


async def test_every_group_of_a_batch_must_approve(office: Office) -> None:
    await asks(office, "lead.delete", group="sales_manager")
    await asks(office, "invoice.post", group="accountant")
    agent = await office.agent("root", "*")
    dave = await office.person("dave", {"model": "lead", "commands": "get,list,delete", "clear": "*"})
    await office.value("root", "user_role.create", user=dave, role=await role(office, "accountant"))
    draft = (await office.first_record("invoice", state="draft"))["id"]

    plan = await propose(office, agent, ("lead.delete", {"id": await lead(office)}), ("invoice.post", {"id": draft}))

    assert (await office.approve("dave", plan)).status_code == 404


async def test_a_person_who_may_not_write_a_record_may_not_approve_its_plan(office: Office) -> None:
    await asks(office, "lead.update", n=1)
    agent = await office.agent("alice", "lead.*")
    new = await lead(office)
    plan = await office.proposed(agent, "lead.update", id=new, expected_revenue_minor=424_242)

    await office.refusal_of("bob", "lead.update", id=new, expected_revenue_minor=424_242)

    assert (await office.approve("bob", plan)).status_code == 404
    assert (await office.approve("alice", plan)).status_code == 200


async def test_an_approver_cannot_link_a_hidden_record(office: Office) -> None:
    await asks(office, "lead.update", n=1)
    await office.person(
        "dan",
        {"model": "lead", "commands": "*", "clear": "*", "write": "*"},
        {"model": "party", "commands": "*", "clear": "*", "rows": '[{"field": "kind", "op": "eq", "value": "person"}]'},
    )
    agent = await office.agent("alice", "*")
    company = (await office.first_record("party", kind="company"))["id"]

    plan = await office.proposed(agent, "lead.update", id=await lead(office), party=company)

    assert (await office.approve("dan", plan)).status_code == 404


async def test_an_agent_that_may_no_longer_write_gets_nothing_carried_out(office: Office) -> None:
    await asks(office, "lead.update", n=1)
    await office.person(
        "dan", {"model": "lead", "commands": "get,list,update", "clear": "title,stage", "write": "title"}
    )
    agent = await office.agent("dan", "lead.*")
    grant = await office.first_record("grant", role=await role(office, "role of dan"))
    for change in ({"write": None}, {"write": "title", "rows": '[{"field": "stage", "op": "eq", "value": "lost"}]'}):
        await office.value("root", "grant.update", id=grant["id"], write="title", rows=None)
        plan = await office.proposed(agent, "lead.update", id=await lead(office), title="new title")

        await office.value("root", "grant.update", id=grant["id"], **change)
        answer = await office.approve("alice", plan)

        assert answer.status_code == 400
        assert answer.json()["state"] == "failed"


async def test_a_deletion_takes_no_more_than_was_shown(office: Office) -> None:
    agent = await office.agent("alice", "*")
    doomed_lead = await lead(office)
    await office.value("alice", "activity.create", lead=doomed_lead, subject="one")
    plan = await office.proposed(agent, "lead.delete", id=doomed_lead, cascade=True)
    digest = (await office.value("alice", "plan.get", id=plan))["digest"]

    await office.value(agent, "activity.create", lead=doomed_lead, subject="another")
    answer = await office.approve("alice", plan, digest=digest)

    assert (answer.status_code, answer.json()["state"]) == (400, "stale")
    second_plan = await office.proposed(agent, "lead.delete", id=doomed_lead, cascade=True)
    assert (await office.value("alice", "plan.get", id=second_plan))["effects"] == ["2 activities deleted"]
    assert (await office.approve("alice", second_plan)).status_code == 200


async def test_records_locked_with_a_record_are_part_of_the_shown_plan(office: Office) -> None:
    agent = await office.agent("carol", "*")
    draft = (await office.first_record("invoice", state="draft"))["id"]
    line = await office.first_record("invoice_line", invoice=draft)
    plan = await office.proposed(agent, "invoice.post", id=draft)

    await office.value(agent, "invoice_line.update", id=line["id"], description="something else altogether")
    answer = await office.approve("carol", plan)

    assert (answer.status_code, answer.json()["state"]) == (400, "stale")


async def test_an_approval_that_is_required_later_also_applies_to_waiting_plans(office: Office) -> None:
    agent = await office.agent("alice", "*")
    plan = await office.proposed(agent, "lead.delete", id=await lead(office))
    await asks(office, "lead.delete", n=2)

    answer = await office.approve("alice", plan)

    assert answer.json()["value"]["state"] == "pending"


async def test_the_approval_of_a_person_who_lost_the_right_does_not_count(office: Office) -> None:
    await asks(office, "lead.delete", n=2)
    eve = await office.person("eve", {"model": "lead", "commands": "get,list,delete", "clear": "*"})
    agent = await office.agent("alice", "*")
    plan = await office.proposed(agent, "lead.delete", id=await lead(office))
    assert (await office.approve("eve", plan)).json()["value"]["state"] == "pending"

    await office.value("root", "user.update", id=eve, is_active=False)
    answer = await office.approve("alice", plan)
    assert answer.json()["value"]["state"] == "pending"
    assert [approval["by"] for approval in answer.json()["value"]["approvals"]] == ["alice"]

    assert (await office.approve("root", plan)).json()["value"]["state"] == "executed"


async def test_a_caller_that_waits_gets_no_plan_after_its_token_was_revoked(office: Office) -> None:
    first_token = await office.agent("alice", "plan.*", label="watching")
    second_token = await office.agent("alice", "lead.*", label="watching", name="the same agent again")
    doomed_lead = await lead(office)
    cursor = (await office.value(first_token, "plan.watch"))["cursor"]
    watch_task = asyncio.create_task(office.call(first_token, "plan.watch", {"since": cursor, "wait_s": 20}))
    finished_tasks, _ = await asyncio.wait([watch_task], timeout=0.1)
    assert not finished_tasks
    tokens = await office.value("alice", "agent_token.list", order=[{"field": "issued_at"}])
    watching = next(token["id"] for token in tokens if token["label"] == "watching" and "plan" in token["scopes"])

    await office.value("alice", "agent_token.revoke", id=watching)
    await office.proposed(second_token, "lead.delete", id=doomed_lead)
    answer = await watch_task

    assert answer.status_code == 401 or answer.json()["value"]["plans"] == []
    assert (await office.call(first_token, "plan.watch")).status_code == 401


async def test_nothing_changes_between_the_last_look_and_the_execution(
    office: Office, monkeypatch: pytest.MonkeyPatch, transaction_waits: TransactionWaits
) -> None:
    transaction_waits.allow("approvals/decisions.py:_add_approval")
    await asks(office, "lead.update", n=1)
    agent = await office.agent("alice", "*")
    new = await lead(office)
    plan = await office.proposed(agent, "lead.update", id=new, title="by plan")
    looked, other_changes = policy.policy_of, list[asyncio.Task[object]]()

    async def after_the_look(run: Run, commands: Sequence[PlannedCommand]) -> policy.Policy:
        other_changes.append(asyncio.create_task(office.value("alice", "lead.update", id=new, title="meanwhile")))
        await asyncio.wait(other_changes, timeout=0.3)
        return await looked(run, commands)

    monkeypatch.setattr(policy, "policy_of", after_the_look)
    answer = await office.approve("alice", plan)
    await asyncio.gather(*other_changes)

    assert answer.status_code == 200
    # The other change waited, and was applied after the approved plan.
    assert (await office.value("alice", "lead.get", id=new))["title"] == "meanwhile"


async def test_everyone_who_decided_on_a_plan_sees_why_the_plan_failed(office: Office) -> None:
    agent = await office.agent("alice", "party.*", "plan.*")
    used_party = (await office.first_record("invoice"))["party"]
    plan = await office.proposed(agent, "party.delete", id=used_party)

    answer = await office.approve("root", plan)

    assert "another record refers to this one" in answer.json()["error"]
    errors = {who: (await office.value(who, "plan.get", id=plan))["error"] for who in ("root", "alice", agent)}
    assert errors.pop("root") == "another record refers to this one"
    assert set(errors.values()) == {"refused"}
