"""Concurrent decisions: a plan is executed once and ends in one state, and the invoice numbers have no gaps and no
duplicates."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import httpx

from countersign.records.audit.verify import verify
from tests.figures import Figures
from tests.records.office import Office

APPROVERS = 64
POSTS, POSTS_FULL = 200, 1_000


async def _audit_entries(office: Office, command: str, plan_id: str) -> int:
    entry_filter = [
        {"field": "plan_id", "op": "eq", "value": plan_id},
        {"field": "command", "op": "eq", "value": command},
    ]
    entries = await office.value("root", "audit_entry.list", filter=entry_filter)
    return len([entry for entry in entries if entry["model"] == "lead"])


async def test_64_approvals_at_once_execute_a_plan_once(office: Office) -> None:
    agent = await office.agent("alice")
    lead = (await office.value("alice", "lead.create", title="Only once"))["id"]
    plan_id = await office.proposed(agent, "lead.delete", id=lead)
    approvers = ("alice", "root")

    answers = await asyncio.gather(*(office.approve(approvers[n % 2], plan_id) for n in range(APPROVERS)))

    assert Counter(answer.status_code for answer in answers) == {200: APPROVERS}
    assert {answer.text for answer in answers} == {answers[0].text}
    assert answers[0].json()["value"] == {"plan_id": plan_id, "state": "executed", "result": {"id": lead}}
    assert await _audit_entries(office, "lead.delete", plan_id) == 1
    records = office.service.records
    assert (await verify(records.database, records.secret)).faults == ()


async def test_approving_rejecting_and_withdrawing_at_once_end_in_one_state(office: Office) -> None:
    agent = await office.agent("alice")
    state_counts: Counter[str] = Counter()
    for number in range(12):
        lead = (await office.value("alice", "lead.create", title=f"{number}"))["id"]
        plan_id = await office.proposed(agent, "lead.delete", id=lead)
        calls = [
            office.approve("root", plan_id),
            office.call("alice", "plan.reject", {"id": plan_id, "reason": "no"}),
            office.call(agent, "plan.withdraw", {"id": plan_id}),
        ]
        answers: Sequence[httpx.Response] = await asyncio.gather(*calls[number % 3 :], *calls[: number % 3])

        state = (await office.value("alice", "plan.get", id=plan_id))["state"]
        is_there = (await office.call("alice", "lead.get", {"id": lead})).status_code == 200
        assert state in ("executed", "rejected", "withdrawn")
        assert is_there is (state != "executed")
        assert sorted(answer.status_code for answer in answers) == [200, 400, 400]
        state_counts[state] += 1
    assert len(state_counts) > 1


async def test_a_plan_for_two_approvers_needs_both_in_any_order(office: Office) -> None:
    await office.value("root", "setting.create", title="approval:lead.delete", value='{"n": 2}')
    agent = await office.agent("alice")
    lead = (await office.value("alice", "lead.create", title="Two"))["id"]
    plan_id = await office.proposed(agent, "lead.delete", id=lead)

    single_approvals = await asyncio.gather(*(office.approve("alice", plan_id) for _ in range(8)))

    assert {response.json()["value"]["state"] for response in single_approvals} == {"pending"}
    assert [approval["by"] for approval in single_approvals[0].json()["value"]["approvals"]] == ["alice"]
    results = await asyncio.gather(*(office.approve(who, plan_id) for who in ("alice", "root", "alice", "root")))
    assert "executed" in {result.json()["value"]["state"] for result in results}
    assert await _audit_entries(office, "lead.delete", plan_id) == 1


async def _draft(office: Office) -> str:
    """Create an invoice that can be posted, and return its id."""
    created_invoice = await office.value("carol", "invoice.create", party=(await office.first_record("party"))["id"])
    line = {"description": "Work", "quantity": 1, "unit_price_minor": 100}
    await office.value("carol", "invoice_line.create", invoice=created_invoice["id"], **line)
    return str(created_invoice["id"])


async def _posted(office: Office, invoices: list[str]) -> list[httpx.Response]:
    responses: list[httpx.Response] = []
    for start in range(0, len(invoices), 50):
        some = invoices[start : start + 50]
        calls = [office.call(who, "invoice.post", {"id": invoice}) for invoice in some for who in ("carol", "root")]
        responses += await asyncio.gather(*calls)
    return responses


async def test_invoices_posted_at_once_are_numbered_without_gap_or_double(
    office: Office, is_full: bool, figures: Figures
) -> None:
    count = POSTS_FULL if is_full else POSTS
    invoices = [await _draft(office) for _ in range(count)]

    # Two people post each invoice at the same time, and one of them is refused.
    answers = await _posted(office, invoices)

    assert Counter(answer.status_code for answer in answers) == {200: count, 400: count}
    numbers = sorted(invoice["number"] for invoice in await office.all("invoice") if invoice["number"])
    year = max(numbers)[:4]
    own_numbers = [number for number in numbers if number.startswith(year)]
    assert own_numbers == [f"{year}-{number:06d}" for number in range(1, len(own_numbers) + 1)]
    figures.update({"posts": 2 * count, "numbers": len(own_numbers), "gaps": 0, "doubles": 0})
