"""Decisions on plans. The last required approval runs the commands of a plan in one transaction. Rejection, withdrawal
and expiry end a plan without running it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import msgspec

from countersign.kernel import clock
from countersign.kernel.concurrency import CooperativeIterator
from countersign.kernel.database.port import ConstraintViolation, Reader
from countersign.kernel.errors import InvalidRequest, NotFound
from countersign.records.access import agent_tokens
from countersign.records.access.view import Caller
from countersign.records.approvals import changes, policy, rights, step_storage
from countersign.records.approvals.plan_dependencies import Dependencies, ReadRow
from countersign.records.approvals.policy import Policy
from countersign.records.approvals.step_storage import Step
from countersign.records.audit.chain import ChainEntry
from countersign.records.base_models import PLAN
from countersign.records.commands import command, prepared_command, record_writer, select, unmask_input
from countersign.records.commands.errors import BadInput, NoSuchRecord
from countersign.records.commands.prepared_command import FieldInput
from countersign.records.commands.run import Actor, Engine, Run
from countersign.records.commands.select import StoredRecord, record_of

_TOKEN_ENDED = "the proposing agent's token is no longer valid"
_APPROVE = "INSERT INTO plan_approval (plan_id, user_id, at, note) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING"
_APPROVALS = """
SELECT u.id, u.username, a.at, a.note
FROM plan_approval AS a
JOIN "user" AS u ON u.id = a.user_id
WHERE a.plan_id = $1
ORDER BY a.at, u.username
"""


class Agents(Protocol):
    """Reads the current rights of agents and people, such as the proposing agent and the people who approved
    earlier."""

    async def agent(self, reader: Reader, token_id: str) -> Caller | None:
        """Return the agent to which this token record belongs, with the agent's current rights. Return None if the
        agent can no longer authenticate."""
        ...

    async def person(self, reader: Reader, user_id: str) -> Caller | None:
        """Return the person with the person's current rights, or None if the person can no longer sign in."""
        ...


class Decision(msgspec.Struct):
    """The response to an approval."""

    plan_id: str
    state: str
    result: object = None
    approvals: list[dict[str, object]] | msgspec.UnsetType = msgspec.UNSET


class PlanEnded(Exception):
    """The plan ends without being executed. `error` is stored with the plan, so it must be a text that every reader of
    the plan may see. Only the person who decides receives `detail`."""

    def __init__(self, state: str, error: str, detail: str = "") -> None:
        super().__init__(state)
        self.state = state
        self.error = error
        self.detail = detail or error


class NotPending(BadInput):
    """The plan is already in a final state. The response contains the state."""

    def __init__(self, plan_id: str, state: str, reason: str = "") -> None:
        super().__init__(f"plan is {state}" + (f": {reason}" if reason else ""))
        self.members: Mapping[str, object] = {"plan_id": plan_id, "state": state}


class Approval(NamedTuple):
    """The input of an approval: the digest of the plan as the person saw it, and a note."""

    digest: str | None = None
    note: str | None = None


async def approve(run: Run, agents: Agents, plan_id: str, read_input: Callable[[], Approval] = Approval) -> Decision:
    """Approve a plan. The last required approval runs the plan, exactly once. `read_input` is called after the plan is
    found: for a plan that the caller may not see, the response is "not found" even if the input is invalid.

    Raises:
        NotFound: the plan is unknown, hidden or forbidden to this caller, or the caller is an agent. The error is the
            same in all cases.
        NotPending: the plan was rejected, expired, withdrawn, stale or failed already, or it expires, becomes stale or
            fails in this call.
        BadInput: the digest does not match, because the plan that the caller saw differs from the stored plan.
    """
    if run.caller.is_agent:
        raise NotFound("not found")
    async with run.engine.records.database.transaction() as transaction:
        write_run = run.within(transaction)
        plan = await find_plan(write_run, plan_id)
        outcome = await _decide(write_run, agents, plan, read_input())
        if plan.values["state"] == "pending":
            await changes.record_change(transaction, plan_id)
    if isinstance(outcome, PlanEnded):
        raise NotPending(plan_id, outcome.state, outcome.detail)
    return outcome


async def _decide(run: Run, agents: Agents, plan: StoredRecord, approval: Approval) -> Decision | PlanEnded:
    """Return the response to the approval, or the reason why the plan ended without being executed. The reason is
    returned and not raised, so that the transaction commits the final state of the plan."""
    state = str(plan.values["state"])
    if state == "executed":
        return Decision(plan.id, state, msgspec.Raw(str(plan.values["result"]).encode()))
    if state != "pending":
        raise NotPending(plan.id, state)
    plan_steps = step_storage.decode_steps(str(plan.values["input"]))
    if not await _sees_values(run, plan_steps):
        raise NotFound("not found")
    try:
        return await _approve_pending(run, agents, plan, plan_steps, approval)
    except PlanEnded as ended:
        await end_plan(run, plan, ended.state, error=ended.error)
        return ended


async def _approve_pending(
    run: Run, agents: Agents, plan: StoredRecord, plan_steps: Sequence[Step], approval: Approval
) -> Decision:
    """Add the approval to the pending plan. If the plan now has enough approvals, run it.

    Raises:
        BadInput: the digest does not match, or this person may not approve the plan. PlanEnded: the plan has expired,
        can no longer be run, or fails.
    """
    _require_not_expired(plan)
    proposer = await _require_proposer(run, agents, plan, plan_steps)
    await _require_unchanged(run, plan_steps, proposer)
    if approval.digest is not None and approval.digest != plan.values["digest"]:
        raise BadInput("digest does not match; read the plan again before you approve it")
    approvals, are_enough = await _add_approval(run, agents, plan, plan_steps, approval.note)
    if not are_enough:
        await set_fields(run, plan, {"approvals": _json(approvals)}, "plan.approve")
        return Decision(plan.id, "pending", None, approvals)
    result = await _execute(replace(run, writer_domain=proposer.domain), plan, plan_steps)
    plan = await set_fields(run, plan, {"approvals": _json(approvals), "result": _json(result)}, "plan.approve")
    await end_plan(run, plan, "executed", reason=approval.note)
    return Decision(plan.id, "executed", result)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


async def find_plan(run: Run, plan_id: str, *, decides: bool = True) -> StoredRecord:
    """Return the plan and lock it until the transaction ends. For a pending plan, require that the caller has the right
    to run each step. With `decides`, the caller wants to decide on the plan (see `rights.missing_right`).

    Raises:
        NotFound: the plan does not exist for the caller, or the caller may not run the steps of the plan.
    """
    view = run.caller.view.models.get("plan")
    if view is None:
        raise NotFound("not found")
    statement = select.lock_existing(PLAN, view.visible, plan_id, run.engine.dialect)
    row = await run.transaction.fetch_one(statement.text, *statement.values)
    if row is None:
        raise NotFound("not found")
    plan = record_of(PLAN, row)
    if plan.values["state"] == "pending":
        await _require_right(run, plan, decides=decides)
    return plan


async def _require_right(run: Run, plan: StoredRecord, *, decides: bool) -> None:
    """Require that the caller currently has the right to run every step of a pending plan."""
    async for step in CooperativeIterator(step_storage.decode_steps(str(plan.values["input"]))):
        if await rights.missing_right(run, run.caller, step, decides=decides) is not None:
            raise NotFound("not found")


async def _sees_values(run: Run, plan_steps: Sequence[Step]) -> bool:
    """Return whether the caller may see every value that the plan writes."""
    async for step in CooperativeIterator(plan_steps):
        if await rights.hidden_fields(run, step.model, {name: value.origins for name, value in step.given.items()}):
            return False
    return True


async def _may_run_all(run: Run, caller: Caller, plan_steps: Sequence[Step]) -> bool:
    async for step in CooperativeIterator(plan_steps):
        if await rights.missing_right(run, caller, step) is not None:
            return False
    return True


async def may_approve(run: Run, plan_steps: Sequence[Step], proposer: str | None) -> bool:
    """Return whether the caller has the rights to approve a pending plan with these steps. `proposer` is the id of the
    person for whom the proposing agent acts."""
    if not await _may_run_all(run, run.caller, plan_steps):
        return False
    policies = await policy.policy_of(run, plan_steps)
    if not policies.groups <= run.caller.roles or (policies.not_owner and proposer == run.caller.user_id):
        return False
    return await _sees_values(run, plan_steps)


def _require_not_expired(plan: StoredRecord) -> None:
    if int(plan.values["expires_at"] or 0) <= clock.now():
        raise PlanEnded("expired", "")


async def _require_proposer(run: Run, agents: Agents, plan: StoredRecord, plan_steps: Sequence[Step]) -> Caller:
    """Return the agent or the person that proposed the plan, with its current rights.

    Raises:
        PlanEnded: the proposer can no longer authenticate, or may no longer run a proposed command.
    """
    if plan.values["agent"] is not None:
        kind, proposer = "agent", await agents.agent(run.reader, str(plan.values["agent_token"] or ""))
    else:
        kind, proposer = "person", await agents.person(run.reader, str(plan.values["person"] or ""))
    if proposer is None:
        raise PlanEnded("failed", f"the proposing {kind} can no longer sign in" if kind == "person" else _TOKEN_ENDED)
    async for step in CooperativeIterator(plan_steps):
        missing = await rights.missing_right(run, proposer, step, decides=False)
        if missing is not None:
            raise PlanEnded("failed", f"the proposing {kind} may no longer use {missing}")
    return proposer


async def _require_unchanged(run: Run, plan_steps: Sequence[Step], proposer: Caller) -> None:
    """Require that no record that the plan depends on has changed since it was proposed. Lock these records until the
    transaction ends.

    Raises:
        BadInput: a policy of the connected database hides a record from the caller. The plan stays pending.
        PlanEnded: a record that a step changes, reads or depends on indirectly was changed, added or deleted.
    """
    dependencies = Dependencies(run, plan_steps, locks=True)
    deleted = {(step.model, step.record_id) for step in plan_steps if step.command == "delete"}
    async for step in CooperativeIterator(plan_steps):
        if step.record_id is not None:
            key = step.model, step.record_id
            await _require_same_revision(run, key, step.revision, proposer, deletes=key in deleted)
        reads = await dependencies.reads(step)
        if reads != step.read_revisions or await dependencies.fingerprint(step) != step.dependents_fingerprint:
            about = f"{step.id} of {step.record_id}" if step.record_id else step.id
            error = f"a record that {about} depends on changed since it was proposed"
            record = await _visible_change(run, step.read_revisions, reads)
            raise PlanEnded("stale", error, "" if record is None else f"{error}: {record}")


async def _require_same_revision(
    run: Run, key: tuple[str, str], revision: int | None, proposer: Caller, *, deletes: bool
) -> None:
    """Lock a record, and require that it has this revision.

    Raises:
        BadInput: a policy of the connected database hides the record from the caller.
        PlanEnded: the record was changed or deleted.
    """
    model, record_id = key
    if await _locked_revision(run, model, record_id, deletes=deletes) == revision:
        return
    if await _is_hidden_by_policy(run, model, record_id, proposer):
        raise BadInput(f"a policy of the connected database hides this {model} from you")
    raise PlanEnded("stale", f"{model} {record_id} changed since it was proposed")


async def _is_hidden_by_policy(run: Run, model: str, record_id: str, proposer: Caller) -> bool:
    """Return whether a record of a connected table exists for the proposer, but not for the caller."""
    if model not in run.engine.adopted or await _locked_revision(run, model, record_id) is not None:
        return False
    return await _locked_revision(replace(run, caller=proposer), model, record_id) is not None


async def _locked_revision(run: Run, model: str, record_id: str, *, deletes: bool = False) -> int | None:
    """Lock a record until the transaction ends. Return its revision, or None if it does not exist."""
    try:
        record = await record_writer.find(
            run, run.engine.registry.models[model], None, record_id, deletes=deletes
        )
    except NoSuchRecord:
        return None
    return record.revision


async def _visible_change(run: Run, reads_before: Sequence[ReadRow], now: Sequence[ReadRow]) -> str | None:
    """Return the model and the id of a changed record of which the person sees all fields, or None if there is no such
    record. Changes of other records must not be revealed."""
    changed_fields: dict[str, list[str]] = {}
    for model, record_id, _ in sorted(set(reads_before) ^ set(now)):
        changed_fields.setdefault(model, []).append(record_id)
    for model, record_ids in changed_fields.items():
        view = run.caller.view.models.get(model)
        if view is None or view.denied:
            continue
        visible_revisions = await unmask_input.revisions(run, view, record_ids)
        if visible_revisions:
            return f"{model} {min(visible_revisions)}"
    return None


async def _add_approval(
    run: Run, agents: Agents, plan: StoredRecord, plan_steps: Sequence[Step], note: str | None
) -> tuple[list[dict[str, object]], bool]:
    """Add this approval. Return all approvals that count, and whether they are enough. Approvals of people who may no
    longer approve the plan do not count. The required number is the larger of the number that the settings require now
    and the number that they required when the plan was proposed."""
    policies = await policy.policy_of(run, plan_steps)
    if not policies.groups <= run.caller.roles:
        raise NotFound("not found")
    if policies.not_owner and plan.values["person"] == run.caller.user_id:
        raise BadInput("this plan must be approved by a person other than the agent's own person")
    await run.transaction.run(_APPROVE, plan.id, run.caller.user_id, clock.now(), note)
    approvals: list[dict[str, object]] = []
    for user_id, name, approved_at, note_text in await run.transaction.fetch(_APPROVALS, plan.id):
        if user_id == run.caller.user_id or await _may_still_approve(run, agents, policies, plan_steps, user_id):
            approvals.append({"by": name, "at": clock.rfc3339(approved_at), "note": note_text})
    return approvals, len(approvals) >= max(policies.needs, int(plan.values["needs"] or 1))


async def _may_still_approve(
    run: Run, agents: Agents, policy: Policy, plan_steps: Sequence[Step], user_id: str
) -> bool:
    person = await agents.person(run.reader, user_id)
    if person is None or not policy.groups <= person.roles:
        return False
    if not await _may_run_all(run, person, plan_steps):
        return False
    return await _sees_values(replace(run, caller=person), plan_steps)


async def _execute(run: Run, plan: StoredRecord, plan_steps: Sequence[Step]) -> object:
    """Run all commands of the plan for the proposer and return the result. If a command is refused, no command takes
    effect.

    Raises:
        PlanEnded: a command was refused.
    """
    actor = Actor(
        run.caller.user_id,
        None if plan.values["agent_token"] is None else str(plan.values["agent_token"]),
        None if plan.values["agent"] is None else str(plan.values["agent"]),
        plan.id,
        run.actor.request_id,
    )
    acting = replace(run, actor=actor)
    try:
        async with run.transaction.savepoint():
            prepared_commands = await step_storage.prepared_of(run, plan.id, plan_steps)
            results: list[dict[str, str]] = []
            async for each in CooperativeIterator(prepared_commands):
                fields = run.engine.registry.models[each.model].fields
                resolved_command = prepared_command.step_ids_replaced(each, fields, [one["id"] for one in results])
                results.append({"id": await command.apply(acting, resolved_command)})
            await command.finish(acting)
    except (BadInput, InvalidRequest) as refused:
        raise PlanEnded("failed", refused.detail) from refused
    except ConstraintViolation as error:
        raise PlanEnded("failed", "it conflicts with a concurrent change") from error
    return results[0] if len(results) == 1 else {"steps": results}


async def end_plan(
    run: Run, plan: StoredRecord, state: str, *, reason: str | None = None, error: str | None = None
) -> None:
    """Set the final state of a pending plan."""
    await set_fields(
        run,
        plan,
        {
            "state": state,
            "decided_by": run.caller.user_id,
            "decided_at": clock.now(),
            "reason": reason,
            "error": error or None,
        },
        f"plan.{state}",
    )
    await step_storage.release_values(run.engine.vault, run.transaction, plan.id)
    await changes.emit(run.transaction, plan.id, state)
    if plan.values["person"] is not None:
        await agent_tokens.close_unused_domains(run.transaction, str(plan.values["person"]))


async def set_fields(run: Run, plan: StoredRecord, values: Mapping[str, Any], command_id: str) -> StoredRecord:
    """Write fields of the plan, with an audit entry, and return the changed plan."""
    field_inputs = {name: FieldInput(value) for name, value in values.items()}
    is_changed = await record_writer.update(run.about_plan(plan.id), PLAN, plan, field_inputs, command_id)
    return replace(plan, revision=plan.revision + 1, values={**plan.values, **values}) if is_changed else plan


_DUE = """
SELECT id, person, agent, agent_token
FROM plan
WHERE state = 'pending' AND expires_at <= $1
ORDER BY expires_at
LIMIT 500
"""
_EXPIRE = """
UPDATE plan SET state = 'expired', decided_at = $2, revision = revision + 1
WHERE id = $1 AND state = 'pending'
"""


async def expire_plans(engine: Engine) -> int:
    """End pending plans that have expired, at most 500, and return how many pending plans were due."""
    database = engine.records.database
    now = clock.now()
    expired_plans = await database.fetch(_DUE, now)
    for plan_id, person, agent, agent_token in expired_plans:
        async with database.transaction() as transaction:
            if await transaction.run(_EXPIRE, plan_id, now):
                await step_storage.release_values(engine.vault, transaction, plan_id)
                await changes.emit(transaction, plan_id, "expired")
                entry = ChainEntry(
                    at=now,
                    user_id=person or "",
                    agent_token=agent_token,
                    agent=agent,
                    command="plan.expired",
                    model="plan",
                    record_id=plan_id,
                    fields="state",
                    changes='{"state":["pending","expired"]}',
                    plan_id=plan_id,
                    request_id="",
                )
                await engine.chain.append(transaction, entry)
                await agent_tokens.close_unused_domains(transaction, person)
                await changes.record_change(transaction, plan_id)
    return len(expired_plans)
