"""The command that watches plans reports every plan of the caller, in any order of commits, and no plan of others."""

import asyncio

import pytest

from countersign.kernel import clock
from countersign.kernel.http.request import Headers
from countersign.records import app
from countersign.records.approvals import proposals
from countersign.records.commands import command
from countersign.records.commands.run import Run, actor_of
from tests.records.office import Office

MANY = 24


@pytest.fixture
async def agent(office: Office) -> str:
    """An agent of alice."""
    return await office.agent("alice", label="mailbot")


async def lead(office: Office, title: str) -> str:
    """Create a lead."""
    return str((await office.value("alice", "lead.create", title=title))["id"])


async def cursor_of(office: Office, who: str) -> int:
    """Return the cursor of a caller that has seen all current plans."""
    return int((await office.value(who, "plan.watch"))["cursor"])


async def watch_plans(office: Office, who: str, since: int, expected_plans: set[str]) -> int:
    """Watch until all these plans were reported, and return the last cursor."""
    missing = set(expected_plans)
    async with asyncio.timeout(30):
        while missing:
            answer = await office.value(who, "plan.watch", since=since, wait_s=5)
            missing -= {plan["id"] for plan in answer["plans"]}
            since = answer["cursor"]
    return since


async def test_a_plan_that_is_committed_after_the_cursor_was_read_is_reported(office: Office, agent: str) -> None:
    first_lead, second_lead = await lead(office, "Slow"), await lead(office, "Quick")
    await office.proposed(agent, "lead.delete", id=await lead(office, "Before"))
    authorization = [(name.lower().encode(), value.encode()) for name, value in office.headers(agent).items()]
    caller = await office.service.callers.caller_of(Headers(authorization))
    assert caller is not None
    engine = office.service.engine

    async with engine.records.database.transaction() as transaction:
        run = Run(engine, caller, transaction, actor_of(caller, "request"), transaction)
        prepared = await command.check(run, caller.view.models["lead"], "delete", {"id": first_lead})
        slow_plan = (await proposals.propose(run, [prepared], reason=None)).plan_id
        quick = asyncio.create_task(office.proposed(agent, "lead.delete", id=second_lead))
        # The other transaction may or may not wait for this one. In both cases, the cursor is taken before this plan
        # exists.
        await asyncio.wait([quick], timeout=0.5)
        since = await asyncio.create_task(cursor_of(office, "alice"))

    await watch_plans(office, "alice", since, {slow_plan, await quick})


async def test_no_proposal_of_many_concurrent_proposals_is_missed(office: Office, agent: str) -> None:
    leads = [await lead(office, f"{number}") for number in range(MANY)]
    since = await watch_plans(office, "alice", 0, {await office.proposed(agent, "lead.delete", id=leads.pop())})
    proposing = [asyncio.create_task(office.proposed(agent, "lead.delete", id=lead_id)) for lead_id in leads]
    plan_ids: list[str] = []

    async with asyncio.timeout(60):
        while len(set(plan_ids)) < len(leads):
            answer = await office.value("alice", "plan.watch", since=since, wait_s=1)
            plan_ids += [plan["id"] for plan in answer["plans"]]
            since = answer["cursor"]

    assert set(plan_ids) == set(await asyncio.gather(*proposing))
    assert len(plan_ids) == len(leads), "nothing is told twice"


async def test_every_end_of_a_plan_is_reported(office: Office, agent: str) -> None:
    plans = [await office.proposed(agent, "lead.delete", id=await lead(office, f"{number}")) for number in range(4)]
    since = await watch_plans(office, "alice", 0, set(plans))

    await office.approve("alice", plans[0])
    await office.value("alice", "plan.reject", id=plans[1], reason="no")
    await office.value(agent, "plan.withdraw", id=plans[2])
    with clock.fixed(clock.later(clock.now(), seconds=8 * 86400)):
        await app.run_periodic_tasks(office.service)

    answer = await office.value("alice", "plan.watch", since=since)
    assert [plan["id"] for plan in answer["plans"]] == plans
    assert [plan["state"] for plan in answer["plans"]] == ["executed", "rejected", "withdrawn", "expired"]
    assert (await office.value("alice", "plan.watch", since=answer["cursor"]))["plans"] == []


async def test_a_cursor_does_not_reveal_plans_of_other_agents(office: Office, agent: str) -> None:
    other_agent = await office.agent("alice", label="another")
    watching = await office.agent("alice", label="watching")
    own_plan = await office.proposed(watching, "lead.delete", id=await lead(office, "Own"))
    since = await watch_plans(office, watching, 0, {own_plan})

    await office.proposed(other_agent, "lead.delete", id=await lead(office, "Of another"))

    counts = {"waiting": 1, "high": 1}
    assert await office.value(watching, "plan.watch", since=since) == {"plans": [], "cursor": since, **counts}
    assert await cursor_of(office, watching) == since
    assert await office.value(agent, "plan.watch") == {"plans": [], "cursor": 0, "waiting": 0, "high": 0}


async def test_a_caller_whose_rights_change_during_the_wait_starts_again(office: Office, agent: str) -> None:
    plan_id = await office.proposed(agent, "lead.delete", id=await lead(office, "x"))
    since = await watch_plans(office, "alice", 0, {plan_id})

    watch_task = asyncio.create_task(office.value("alice", "plan.watch", since=since, wait_s=20))
    while not watch_task.done():
        await office.agent("bob", label="ended")
        token = (await office.value("bob", "agent_token.list"))[0]
        await office.value("bob", "agent_token.revoke", id=token["id"])
        await asyncio.wait([watch_task], timeout=0.5)

    assert await watch_task == {"plans": [], "cursor": 0}
    assert [plan["id"] for plan in (await office.value("alice", "plan.watch"))["plans"]] == [plan_id]
