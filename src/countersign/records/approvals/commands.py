"""The commands of plans beside the generated ones: reject, withdraw, propose, watch."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from countersign.declare import BadValue
from countersign.declare.fields.text import plain
from countersign.kernel.errors import NotFound
from countersign.records.approvals import changes, decide, propose
from countersign.records.commands import command, get, incoming, promise
from countersign.records.commands.prepared import Prepared
from countersign.records.commands.refusals import BadInput, no_such_record, refuse_unknown_keys
from countersign.records.commands.run import Body, Run

OWN: Mapping[str, str] = {
    "reject": "Rejects a pending plan. Requires id and a reason.",
    "withdraw": "Withdraws a pending plan of the caller. Requires id.",
    "propose": "Proposes one or several commands as one plan, which is executed as a whole or not at all. Requires "
    "steps; answers a plan_id.",
    "watch": "Waits up to 25 seconds (wait_s) for plans to change. Answers the changed plans and the cursor of the "
    "next call.",
}
MAX_STEPS = promise.MAX_STEPS
MAX_REASON_LENGTH = 1_000


def text_of(run: Run, body: Body, name: str, place: str, *, required: bool) -> str | None:
    """A text member that people are going to read.

    Raises:
        BadInput: it is missing, no text, too long, or holds a placeholder token.
    """
    value = body.get(name)
    if value is None and not required:
        return None
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_REASON_LENGTH:
        raise BadInput(f"{place} must be a text of 1 to {MAX_REASON_LENGTH} characters")
    try:
        text = plain(value)
    except BadValue as error:
        raise BadInput(f"{place} {error}") from error
    incoming.refuse_tokens(run, text, place)
    return text


def require_known(body: Body, command_id: str, *known: str) -> None:
    """Insist on known members alone.

    Raises:
        BadInput: another one is there; it is named.
    """
    refuse_unknown_keys(body, known, command_id)


async def reject(run: Run, model: str, body: Body) -> object:
    """Decide against a pending plan.

    Raises:
        BadInput: no reason, no such plan, or it is decided already.
    """
    require_known(body, "plan.reject", "id", "reason")
    reason = text_of(run, body, "reason", "plan.reason", required=True)
    return await _end(run, body, "rejected", reason)


async def withdraw(run: Run, model: str, body: Body) -> object:
    """Take back a plan of one's own.

    Raises:
        BadInput: no such plan of the caller, or it is decided already.
    """
    require_known(body, "plan.withdraw", "id", "reason")
    reason = text_of(run, body, "reason", "plan.reason", required=False)
    return await _end(run, body, "withdrawn", reason)


async def _end(run: Run, body: Body, state: str, reason: str | None) -> object:
    plan_id = body.get("id")
    if not isinstance(plan_id, str):
        raise BadInput("id must be a string")
    async with run.writing() as inside:
        try:
            plan = await decide.find(inside, plan_id, decides=state != "withdrawn")
        except NotFound as error:
            raise no_such_record() from error
        is_own = plan.values["person"] == run.caller.user_id
        if (state == "withdrawn" and not is_own) or (state == "rejected" and run.caller.is_agent):
            raise no_such_record()
        if plan.values["state"] != "pending":
            raise decide.NotPending(plan.id, str(plan.values["state"]))
        await decide.end(inside, plan, state, reason=reason)
        ended = await get.read(inside, "plan", plan_id)
        await changes.note(inside.transaction, plan_id)
        return ended


async def propose_steps(run: Run, model: str, body: Body) -> object:
    """Propose commands as one plan.

    Raises:
        BadInput: there are none or too many steps, or one of them is refused; its position is named.
    """
    require_known(body, "plan.propose", "steps", "why")
    why = text_of(run, body, "why", "plan.why", required=False)
    given = body.get("steps")
    if not isinstance(given, list) or not 1 <= len(cast("list[object]", given)) <= MAX_STEPS:
        raise BadInput(f"steps must be an array of 1 to {MAX_STEPS} objects with command and input")
    if not run.caller.is_agent:
        raise BadInput("plans are proposed by agents; run the commands themselves")
    async with run.writing() as inside:
        prepared: list[Prepared] = []
        for position, each in enumerate(cast("list[object]", given)):
            made = {promise.promised(n): step.model for n, step in enumerate(prepared) if step.command == "create"}
            prepared.append(await _step(replace(inside, made=made, earlier=tuple(prepared)), position, each))
        return await propose.propose(inside, prepared, why=why)


async def _step(run: Run, position: int, value: object) -> Prepared:
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
        given = promise.redeemed(view.model, cast("dict[str, object]", body), run.made)
        return await command.check(run, view, name, given)
    except BadInput as refused:
        raise BadInput(f"step {position}: {refused.detail}") from refused
