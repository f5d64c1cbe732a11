"""The built-in commands of plans: reject, withdraw, propose and watch."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import msgspec

from countersign.declare import BadValue
from countersign.declare.fields.text import plain
from countersign.kernel import clock
from countersign.kernel.concurrency import CooperativeIterator
from countersign.kernel.errors import NotFound
from countersign.records.approvals import changes, decisions, proposals, risk, step_storage
from countersign.records.commands import (
    command,
    crud,
    list_search,
    prepared_command,
    record_names,
    select,
    unmask_input,
)
from countersign.records.commands.errors import BadInput, no_such_record, refuse_unknown_keys
from countersign.records.commands.filters import Condition, Query
from countersign.records.commands.prepared_command import PreparedCommand
from countersign.records.commands.run import Body, Run
from countersign.records.commands.select import Record

OWN: Mapping[str, str] = {
    "reject": "Rejects a pending plan. Requires id and a reason.",
    "withdraw": "Withdraws a pending plan of the caller. Requires id.",
    "propose": "Proposes one or several commands as one plan, which is executed as a whole or not at all. "
    "Requires steps; returns a plan_id.",
    "watch": "Waits up to 25 seconds (wait_s) for plans to change. Returns the changed plans "
    "and the cursor of the next call.",
}
MAX_STEPS = prepared_command.MAX_STEPS
MAX_REASON_LENGTH = 1_000


def text_of(run: Run, body: Body, name: str, field_name: str, *, is_required: bool) -> str | None:
    """Return a member of the input that is shown to people as text.

    Raises:
        BadInput: the member is missing, not a text, too long, or contains a placeholder token.
    """
    value = body.get(name)
    if value is None and not is_required:
        return None
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_REASON_LENGTH:
        raise BadInput(f"{field_name} must be a text of 1 to {MAX_REASON_LENGTH} characters")
    try:
        text = plain(value)
    except BadValue as error:
        raise BadInput(f"{field_name} {error}") from error
    unmask_input.refuse_tokens(run, text, field_name)
    return text


def require_known(body: Body, command_id: str, *known_key: str) -> None:
    """Require that all members are known.

    Raises:
        BadInput: a member is unknown. The error names it.
    """
    refuse_unknown_keys(body, known_key, command_id)


async def reject(run: Run, model: str, body: Body) -> object:
    """Reject a pending plan.

    Raises:
        BadInput: the reason is missing, or the plan does not exist or is decided already.
    """
    require_known(body, "plan.reject", "id", "reason")
    reason = text_of(run, body, "reason", "plan.reason", is_required=True)
    return await _end(run, body, "rejected", reason)


async def withdraw(run: Run, model: str, body: Body) -> object:
    """Withdraw a plan of the caller.

    Raises:
        BadInput: the caller has no such plan, or the plan is decided already.
    """
    require_known(body, "plan.withdraw", "id", "reason")
    reason = text_of(run, body, "reason", "plan.reason", is_required=False)
    return await _end(run, body, "withdrawn", reason)


async def _end(run: Run, body: Body, state: str, reason: str | None) -> object:
    plan_id = body.get("id")
    if not isinstance(plan_id, str):
        raise BadInput("id must be a string")
    async with run.writing() as write_run:
        try:
            plan = await decisions.find_plan(write_run, plan_id, decides=state != "withdrawn")
        except NotFound as error:
            raise no_such_record() from error
        is_own = plan.values["person"] == run.caller.user_id
        if (state == "withdrawn" and not is_own) or (state == "rejected" and run.caller.is_agent):
            raise no_such_record()
        if plan.values["state"] != "pending":
            raise decisions.NotPending(plan.id, str(plan.values["state"]))
        await decisions.end_plan(write_run, plan, state, reason=reason)
        ended_plan = await crud.read_record(write_run, "plan", plan_id)
        await changes.record_change(write_run.transaction, plan_id)
        return ended_plan


async def propose_steps(run: Run, model: str, body: Body) -> object:
    """Propose commands as one plan.

    Raises:
        BadInput: there are no steps, there are too many steps, or a step is refused. The error names the position of a
            refused step.
    """
    require_known(body, "plan.propose", "steps", "why")
    reason = text_of(run, body, "why", "plan.why", is_required=False)
    step_bodies = body.get("steps")
    if not isinstance(step_bodies, list) or not 1 <= len(cast("list[object]", step_bodies)) <= MAX_STEPS:
        raise BadInput(f"steps must be an array of 1 to {MAX_STEPS} objects with command and input")
    if not run.caller.is_agent:
        raise BadInput("plans are proposed by agents; run the commands themselves")
    async with run.writing() as write_run:
        prepared_commands: list[PreparedCommand] = []
        for position, step_body in enumerate(cast("list[object]", step_bodies)):
            created_models = {
                prepared_command.step_ref(n): step.model
                for n, step in enumerate(prepared_commands)
                if step.command == "create"
            }
            prepared_commands.append(
                await _step(
                    replace(write_run, created=created_models, earlier=tuple(prepared_commands)), position, step_body
                )
            )
        return await proposals.propose(write_run, prepared_commands, reason=reason)


async def _step(run: Run, position: int, value: object) -> PreparedCommand:
    if not isinstance(value, dict):
        raise BadInput(f"step {position} must be an object with command and input")
    members = cast("dict[str, object]", value)
    require_known(members, f"step {position}", "command", "input")
    model, _, name = str(members.get("command", "")).partition(".")
    body = members.get("input", {})
    view = run.caller.view.models.get(model)
    if view is None or name not in view.commands or not command.is_writing(view.model, name):
        raise BadInput(f"step {position}: unknown command")
    if not isinstance(body, dict):
        raise BadInput(f"step {position}: input must be an object")
    try:
        resolved_body = prepared_command.resolve_step_refs(view.model, cast("dict[str, object]", body), run.created)
        return await command.check(run, view, name, resolved_body)
    except BadInput as refused:
        raise BadInput(f"step {position}: {refused.detail}") from refused


MAX_WAIT_S = 25
_PAUSE_S = 0.1
_NEWEST: Body = {"order": [{"field": "proposed_at", "dir": "desc"}], "limit": changes.MAX_ROWS}


class WatchResult(msgspec.Struct):
    """Changed plans, and the cursor for the next call. If the rights of callers have changed, the cursor is 0, and the
    next call starts from the beginning.

    The cursor is the number of a change that the caller sees, so it does not reveal hidden changes. `waiting` is the
    number of pending plans that the caller sees, and `high` the number of those with a high risk. Both are missing if
    rights have changed during the call.
    """

    plans: list[Record]
    cursor: int
    waiting: int | msgspec.UnsetType = msgspec.UNSET
    high: int | msgspec.UnsetType = msgspec.UNSET


MAX_ASSESSED = 1_000
"""The maximum number of pending plans for which `count_waiting` assesses the risk."""
_FIELDS_FOR_RISK = ("state", "input", "why")


async def count_waiting(run: Run) -> tuple[int, int]:
    """Return the number of pending plans that the caller sees, and the number of those with a high risk."""
    view = run.caller.view.models.get("plan")
    if view is None:
        return 0, 0
    record_reader = record_names.narrow_reader(run, view, _FIELDS_FOR_RISK)
    pending = Query(filter=(Condition("state", "eq", "pending"),), limit=MAX_ASSESSED)
    statement = select.page_with_total(record_reader, view.visible, pending)
    rows = await run.engine.records.database.scan(statement.text, *statement.values)
    columns = {name: 1 + index for index, name in enumerate(record_reader.names)}
    high_risk_count = 0
    async for row in CooperativeIterator([row for row in rows if row[1] is not None]):
        plan_steps = step_storage.decode_steps(row[columns["input"]])
        high_risk_count += risk.assess(run.caller.view.models, plan_steps, row[columns["why"]]).level == "high"
    return int(rows[0][0]), high_risk_count


async def watch(run: Run, model: str, body: Body) -> object:
    """Wait for plans that have changed (see `_wait_for_changes`), and count the pending plans.

    Raises:
        BadInput: a value is out of range.
    """
    records = run.engine.records
    rights = await records.versions()
    watch_result = await _wait_for_changes(run, body)
    waiting_count, high_risk_count = await count_waiting(run)
    # The plans were counted with the rights at the beginning of the call, so omit the numbers if rights have changed.
    if await records.versions() == rights:
        watch_result.waiting, watch_result.high = waiting_count, high_risk_count
    return watch_result


async def _wait_for_changes(run: Run, body: Body) -> WatchResult:
    """Wait for plans that have changed after `since_number`, which is the cursor of the previous response. The wait
    ends after `wait_s` seconds or when the server stops.

    Without `since_number`, or if it is 0, return the newest plans.

    Raises:
        BadInput: a value is out of range.
    """
    require_known(body, "plan.watch", "since", "wait_s")
    since_number = _integer(body, "since", 2**53 - 1)
    until_s = clock.monotonic_s() + _integer(body, "wait_s", MAX_WAIT_S)
    records = run.engine.records
    rights = await records.versions()
    looked_up_to: int | None = since_number or None
    while True:
        if await records.versions() != rights:
            return WatchResult([], 0)
        (number,) = await records.plan_version()
        watch_result = WatchResult([], since_number)
        if looked_up_to is None:
            watch_result, looked_up_to = await _newest(run, number), number
        elif number > looked_up_to:
            watch_result, looked_up_to = await _changed(run, since_number, looked_up_to, number)
        if watch_result.plans or _is_over(run, until_s):
            return watch_result
        if looked_up_to >= number:
            await asyncio.sleep(_PAUSE_S)


def _is_over(run: Run, until_s: float) -> bool:
    """Return whether the requested wait is over or the server is stopping."""
    return clock.monotonic_s() >= until_s or (run.stopping is not None and run.stopping.is_set())


def _integer(body: Body, name: str, max_value: int) -> int:
    value = body.get(name, 0)
    if type(value) is not int or not 0 <= value <= max_value:
        raise BadInput(f"{name} must be an integer from 0 to {max_value}")
    return value


async def _newest(run: Run, number: int) -> WatchResult:
    """Return the newest plans. A plan that changes after this number, while the plans are read, is returned again by
    the next call."""
    plans = await list_search.records(run, "plan", _NEWEST)
    changed_ids = await changes.newest_changes(run.reader, number)
    # If none of the plans has a recent change, the cursor is 1, and old changes are returned again. A cursor of 0 would
    # make every call start from the beginning.
    return WatchResult(plans, max((changed_ids.get(_id(plan), 1) for plan in plans), default=0))


async def _changed(run: Run, since_number: int, after_number: int, up_to: int) -> tuple[WatchResult, int]:
    """Return the changed plans that the caller sees, in the order of their changes, and the number of the last change
    that was examined."""
    change_numbers = await changes.changes_between(run.reader, after_number, up_to)
    if not change_numbers:
        return WatchResult([], since_number), up_to
    query: Body = {"filter": [{"field": "id", "op": "in", "value": list(change_numbers)}], "limit": changes.MAX_ROWS}
    plans = sorted(await list_search.records(run, "plan", query), key=lambda plan: change_numbers[_id(plan)])
    looked_up_to = up_to if len(change_numbers) < changes.MAX_ROWS else max(change_numbers.values())
    return WatchResult(plans, change_numbers[_id(plans[-1])] if plans else since_number), looked_up_to


def _id(record: Record) -> str:
    return str(msgspec.structs.astuple(record)[0])
