"""Imports: no cell breaks the service, and no plan is created that could never be executed."""

import asyncio
from collections.abc import Awaitable
from itertools import pairwise
from typing import TypeVar

import pytest

from countersign.kernel.concurrency import CooperativeIterator
from tests.records.office import Office

T = TypeVar("T")


@pytest.mark.parametrize("cell", ["--5", "-", "5-", "- 5", "+5", "1_0", "٣", "9" * 19, "9" * 5000, "5.0", "0x5", "²"])
async def test_a_cell_that_is_not_an_integer_is_an_error_of_its_row(office: Office, cell: str) -> None:
    report = await office.value("alice", "lead.import", csv=f"title,expected_revenue_minor\nx,{cell}\n")
    assert [(error["row"], "expected_revenue_minor" in error["error"]) for error in report["errors"]] == [(1, True)]
    assert report["created"] == 0


@pytest.mark.parametrize("csv", ['title\n"x', "title,\nx,y", "title\nx,y", "title\n\0", "\0", ",\n", '"'])
async def test_a_text_that_is_not_a_table_is_refused(office: Office, csv: str) -> None:
    answer = await office.call("alice", "lead.import", {"csv": csv})
    assert answer.status_code in (200, 400)
    if answer.status_code == 200:
        assert answer.json()["value"]["errors"]


async def test_a_field_may_be_as_long_as_a_long_text(office: Office) -> None:
    for length, status in ((1_000_000, 200), (1_000_002, 400)):
        answer = await office.call("alice", "lead.import", {"csv": f"title\n{'x' * length}\n", "dry_run": True})
        assert answer.status_code == status, answer.text[:300]
    assert "at most 1,000,000 characters in a field" in answer.json()["error"]


@pytest.mark.parametrize("csv", ['title\n"x', 'title\n"x"y\n'])
async def test_a_broken_csv_is_refused_with_a_message_of_our_own(office: Office, csv: str) -> None:
    answer = await office.call("alice", "lead.import", {"csv": csv})

    assert answer.status_code == 400
    assert answer.json()["error"].startswith("csv cannot be read after row 1: it must be RFC 4180")
    assert "unexpected end" not in answer.text
    assert "expected after" not in answer.text


async def test_an_agent_that_may_not_create_learns_the_scope_its_import_lacks(office: Office) -> None:
    agent = await office.agent("alice", "lead.import", name="narrow")
    reason = await office.refusal_of(agent, "lead.import", csv="title\nx\n")
    assert reason.startswith("lead.import needs the scope lead.create too")
    assert (await office.value(agent, "lead.import", csv="title\nx\n", dry_run=True))["rows"] == 1
    agent = await office.agent("alice", "lead.import", "lead.create", name="wide")
    plan = await office.proposed(agent, "lead.import", csv="title\nx\n")
    assert (await office.approve("alice", plan)).status_code == 200


async def turns_during(call: Awaitable[T]) -> tuple[T, int]:
    """Await the call. Return its response, and the number of turns of the event loop that another task had in the
    meantime."""
    turn_count = 0

    async def count_turns() -> None:
        nonlocal turn_count
        while True:
            await asyncio.sleep(0)
            turn_count += 1

    other_task = asyncio.create_task(count_turns())
    try:
        return await call, turn_count
    finally:
        other_task.cancel()


async def test_other_requests_are_served_while_a_large_import_is_checked(office: Office) -> None:
    rows = 600
    report, turn_count = await turns_during(
        office.value("alice", "lead.import", csv="title\n" + "x\n" * rows, dry_run=True)
    )
    assert report["rows"] == rows
    # Without pauses, the number of turns is very small, however many rows there are.
    assert turn_count > rows / CooperativeIterator.EACH / 2


async def test_other_requests_are_served_between_the_checks_of_long_rows(office: Office) -> None:
    agent = await office.agent("alice", "lead.*")
    csv = "title,notes\n" + f"x,{'EMAIL_1 ' * 50_000}\n" * 8
    loop = asyncio.get_running_loop()
    turn_times = [loop.time()]

    async def watch() -> None:
        while True:
            turn_times.append(loop.time())
            await asyncio.sleep(0)

    watching_task = asyncio.create_task(watch())
    report = await office.value(agent, "lead.import", csv=csv, dry_run=True)
    turn_times.append(loop.time())
    watching_task.cancel()
    assert len(report["errors"]) == 8
    # Without pauses between rows, the longest turn takes nearly the whole time. One row takes about an eighth of it.
    assert max(later - earlier for earlier, later in pairwise(turn_times)) < (turn_times[-1] - turn_times[0]) / 2


async def test_other_requests_are_served_during_the_work_on_a_plan_of_many_steps(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, turn_count, sleep = 300, 0, asyncio.sleep

    async def sleep_counted(delay: float) -> None:
        nonlocal turn_count
        turn_count += delay == 0
        await sleep(delay)

    monkeypatch.setattr(asyncio, "sleep", sleep_counted)
    agent = await office.agent("alice", "lead.*")
    csv = "title,contact_email\n" + "".join(f"x{number},x{number}@example.org\n" for number in range(rows))

    # The rows are checked, compared with an earlier proposal and stored. Then they are read for the differences, the
    # effects and, twice, the steps.
    plan = await office.proposed(agent, "lead.import", csv=csv)
    assert turn_count >= 7 * (rows // CooperativeIterator.EACH)
    for command, body in (("plan.get", {"id": plan}), ("plan.list", {}), ("plan.watch", {})):
        turn_count = 0
        assert (await office.call("alice", command, body)).status_code == 200
        # The response contains the withheld fields, the values, the input and the difference.
        assert turn_count >= 5 * (rows // CooperativeIterator.EACH)
    turn_count = 0
    assert (await office.approve("alice", plan)).status_code == 200
    # An approval checks the rights of the proposer and the approver, reads what the approver sees, locks the records,
    # runs the commands and releases the values.
    assert turn_count >= 6 * (rows // CooperativeIterator.EACH)


@pytest.mark.parametrize("lines", ["\n", "x\n"])
async def test_an_import_with_too_many_lines_is_read_only_until_the_limit_is_exceeded(
    office: Office, lines: str
) -> None:
    # The last line cannot be read, so the response contains no error for it.
    reason = await office.refusal_of("alice", "lead.import", csv="title\n" + lines * 200_000 + '"x', dry_run=True)

    assert reason.startswith("csv may have ")
