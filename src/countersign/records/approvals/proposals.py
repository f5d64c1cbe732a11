"""Stores proposals: commands that an agent may not run itself become a plan, and a person decides on it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from countersign.declare import Declared
from countersign.declare.fields.field import Stored
from countersign.kernel import clock, ids
from countersign.kernel.concurrency import CooperativeIterator
from countersign.records.approvals import changes, emails, policy, previews, rights, step_storage
from countersign.records.approvals.plan_dependencies import Dependencies
from countersign.records.approvals.step_storage import Step
from countersign.records.base_models import PLAN
from countersign.records.commands import dependents, record_writer, select, unmask_input
from countersign.records.commands.dependents import Key
from countersign.records.commands.errors import NoSuchRecord, TryAgain
from countersign.records.commands.prepared_command import PlannedCommand, PreparedCommand
from countersign.records.commands.run import Run
from countersign.records.commands.select import StoredRecord, insert_statement, insert_values

MAX_PENDING = 100

_TAKE_KEY = """
INSERT INTO plan_key (same, plan_id) VALUES ($1, $2)
ON CONFLICT (same) DO UPDATE SET plan_id = plan_key.plan_id
RETURNING plan_id
"""
_PENDING = "SELECT expires_at FROM plan WHERE id = $1 AND state = 'pending' AND expires_at > $2"
_SET_KEY = "UPDATE plan_key SET plan_id = $2 WHERE same = $1"
_COUNT_PENDING = (
    "SELECT count(*) FROM plan WHERE person = $1 AND coalesce(agent, '') = $2 AND state = 'pending' AND expires_at > $3"
)
_ADD_STEP = "INSERT INTO plan_step (plan_id, position, command, model, record_id) VALUES ($1, $2, $3, $4, $5)"


class Proposal(msgspec.Struct):
    """The response to a command that needs approval (API document, Approval proposal)."""

    approval_required: bool
    plan_id: str
    expires_at: str


async def propose(run: Run, prepared_commands: Sequence[PreparedCommand], *, reason: str | None) -> Proposal:
    """Store the commands as a plan. If an equal plan is already pending, return that plan instead. Call this function
    last in the transaction.

    Raises:
        TryAgain: the agent has too many pending plans.
        CodeRefusal: the code of a package refuses the commands, and the agent may know why.
    """
    report = await previews.preview(run, prepared_commands)
    now = clock.now()
    new_key = step_storage.proposal_key(run, prepared_commands, await _visible_revisions(run, prepared_commands))
    plan_id = ids.new_record_id()
    row = await run.transaction.fetch_one(_TAKE_KEY, new_key, plan_id)
    if row is not None and row[0] != plan_id:
        pending = await run.transaction.fetch_one(_PENDING, row[0], now)
        if pending is not None:
            return Proposal(True, row[0], clock.rfc3339(pending[0]))
        await run.transaction.run(_SET_KEY, new_key, plan_id)
    count_row = await run.transaction.fetch_one(_COUNT_PENDING, run.caller.user_id, run.caller.agent or "", now)
    if count_row is not None and count_row[0] >= MAX_PENDING:
        raise TryAgain(f"{MAX_PENDING} of your plans are pending: wait for decisions, or withdraw some")
    expires_at = clock.later(now, seconds=run.engine.records.settings.plan_ttl_s)
    code_effects = [] if report is None else report.effects
    await _store(run, plan_id, prepared_commands, reason, now, expires_at=expires_at, code_effects=code_effects)
    await changes.record_change(run.transaction, plan_id)
    return Proposal(True, plan_id, clock.rfc3339(expires_at))


async def _store(
    run: Run,
    plan_id: str,
    prepared_commands: Sequence[PreparedCommand],
    reason: str | None,
    now: int,
    *,
    expires_at: int,
    code_effects: Sequence[dict[str, Any]],
) -> None:
    plan_steps = await step_storage.store_steps(run, plan_id, prepared_commands)
    diff = [change async for step in CooperativeIterator(plan_steps) for change in await _diff(run, step)]
    effects = [
        effect
        async for prepared_command in CooperativeIterator(prepared_commands)
        for effect in await _effects(run, prepared_command)
    ]
    effects += await _connected_effects(run, prepared_commands, effects)
    effects += code_effects
    policies = await policy.policy_of(run, prepared_commands)
    only_command = prepared_commands[0] if len(prepared_commands) == 1 else None
    values: dict[str, Stored] = {
        "state": "pending",
        "command": "plan.propose" if only_command is None else only_command.id,
        "target": _json(None if only_command is None else {"model": only_command.model, "id": only_command.record_id}),
        "input": _json(plan_steps),
        "diff": _json(diff),
        "effects": _json(effects),
        "digest": step_storage.digest(run.engine.vault, plan_id, plan_steps, diff, effects),
        "why": reason,
        "person": run.caller.user_id,
        "agent": run.caller.agent,
        "agent_token": run.caller.credential_id if run.caller.is_agent else None,
        "proposed_by": _json({"agent": run.caller.agent, "person": run.caller.username}),
        "proposed_at": now,
        "expires_at": expires_at,
        "needs": policies.needs,
        "approvals": "[]",
    }
    await run.transaction.run(insert_statement(PLAN), *insert_values(PLAN, plan_id, values, {}))
    await _add_steps(run, plan_id, prepared_commands)
    # The audit entry only records that the plan was proposed. The plan contains the values.
    await record_writer.record_audit(run.about_plan(plan_id), "plan.propose", PLAN, plan_id, {})
    await changes.emit(run.transaction, plan_id, "pending")
    await emails.add_notice(run.transaction, plan_id, now)


async def _add_steps(run: Run, plan_id: str, prepared_commands: Sequence[PreparedCommand]) -> None:
    """Store the commands that an approver must be allowed to run. These are the steps of the plan, and one command for
    each record that a cascading deletion deletes or changes."""
    steps_of = [
        (prepared_command.id, prepared_command.model, prepared_command.record_id)
        for prepared_command in prepared_commands
    ]
    async for prepared_command in CooperativeIterator(prepared_commands):
        for need, record_ids in (await rights.cascade_needs(run, prepared_command)).items():
            steps_of += [(f"{need.model}.{need.command}", need.model, record_id) for record_id in record_ids]
    async for position, (command, model, record_id) in CooperativeIterator(enumerate(steps_of)):
        await run.transaction.run(_ADD_STEP, plan_id, position, command, model, record_id)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


async def _visible_revisions(run: Run, prepared_commands: Sequence[PreparedCommand]) -> list[object]:
    """Return the revisions of the records as the agent sees them. They are a part of the key that identifies equal
    proposals, so a hidden change does not lead to a new plan."""
    visible_revisions: list[object] = []
    dependencies = Dependencies(run, prepared_commands)
    revisions: dict[Key, int | None] = {}
    async for prepared_command in CooperativeIterator(prepared_commands):
        if prepared_command.record_id is not None:
            visible_revisions.append(await _visible_revision(run, prepared_command.model, prepared_command.record_id))
        for model, record_id, _ in await dependencies.reads(
            prepared_command, read_fields=run.view_of(prepared_command.model).fields
        ):
            if (model, record_id) not in revisions:
                is_seen = await unmask_input.exists(run, model, record_id)
                revisions[model, record_id] = await _visible_revision(run, model, record_id) if is_seen else None
            if revisions[model, record_id] is not None:
                visible_revisions.append([model, record_id, revisions[model, record_id]])
        if prepared_command.cascade and prepared_command.record_id is not None:
            dependent_records = await dependents.find(
                run, prepared_command.model, prepared_command.record_id, cascade=True, seen_by=run.caller.view
            )
            visible_revisions.append([[*link.source, link.field] for link in dependent_records.links])
    return visible_revisions


async def _visible_revision(run: Run, model: str, record_id: str) -> int | None:
    """Return the revision of the record for the caller. Changes that the caller does not see are not counted."""
    record_reader = run.engine.reading(run.caller, run.view_of(model))
    row = await run.read_one(record_reader, select.one(record_reader, None, record_id))
    return None if row is None else int(row[1])


async def _record(run: Run, step: PlannedCommand) -> StoredRecord | None:
    if step.record_id is None:
        return None
    with suppress(NoSuchRecord):
        return await record_writer.find(run, run.engine.registry.models[step.model], None, step.record_id)
    return None


async def _diff(run: Run, step: Step) -> list[dict[str, Any]]:
    """Return the value of every field that the step sets, before and after the step. The values have the form in which
    audit entries and plans store them."""
    record = await _record(run, step)
    values_after = _after(run.engine.registry.models[step.model], step, record)
    values_before = {} if record is None else await record_writer.audit_copies(run, step.model, record, values_after)
    return [
        {"model": step.model, "id": step.record_id, "field": name, "before": values_before.get(name), "after": value}
        for name, value in values_after.items()
    ]


def _after(model: Declared, step: Step, record: StoredRecord | None) -> dict[str, Any]:
    """Return the value of each changed field after the step. After a deletion, all fields are empty."""
    if step.command == "delete":
        return {} if record is None else {name: None for name, value in record.values.items() if value is not None}
    values_after: dict[str, Any] = {
        name: step_storage.stored_copy(field_input) for name, field_input in step.given.items()
    }
    cleared_values = {
        name: None for name in policy.cleared(model, step.command) if record is None or record.values[name]
    }
    return values_after | cleared_values | policy.moved(model, step.command)


async def _effects(run: Run, prepared_command: PreparedCommand) -> list[dict[str, Any]]:
    """Return the references that a cascading deletion clears, or deletes with the referring record. The module
    `plan_visibility` selects the references that a viewer sees."""
    if prepared_command.command != "delete" or prepared_command.record_id is None or not prepared_command.cascade:
        return []
    dependent_records = await dependents.find(run, prepared_command.model, prepared_command.record_id, cascade=True)
    cleared_links = frozenset(dependent_records.cleared)
    links = [
        [*link.source, link.field, *link.target, "cleared" if link in cleared_links else "deleted"]
        for link in dependent_records.links
        if link in cleared_links or link.source in dependent_records.deleted
    ]
    return [{"model": prepared_command.model, "id": prepared_command.record_id, "links": links}] if links else []


async def _connected_effects(
    run: Run, prepared_commands: Sequence[PreparedCommand], effects: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return what happens in connected databases besides: triggers run, and deleted rows stay and are marked. The
    effects of a cascading deletion are separate, because a viewer may not see that it reaches a model."""
    steps: dict[str, set[str]] = {}
    for step in prepared_commands:
        steps.setdefault(step.model, set()).add(step.command)
    found = await _effects_of_tables(run, steps)
    for effect in await _effects_of_tables(run, _commands_of_cascades(effects)):
        found.append({**effect, "is_cascade": True})
    return found


async def _effects_of_tables(run: Run, commands: Mapping[str, set[str]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name in sorted(commands.keys() & run.engine.adopted.keys()):
        model = run.engine.registry.models[name]
        if "delete" in commands[name] and model.table is not None and model.table.deleted:
            found.append({"model": name, "is_marked": True})
        triggers = await run.engine.adopted[name].triggers(run, model, commands[name])
        if triggers:
            found.append({"model": name, "triggers": triggers})
    return found


def _commands_of_cascades(effects: Sequence[Mapping[str, Any]]) -> dict[str, set[str]]:
    """Map each model to the commands that cascading deletions run on its records."""
    commands: dict[str, set[str]] = {}
    for effect in effects:
        for name, *_, action in effect["links"]:
            commands.setdefault(name, set()).add("delete" if action == "deleted" else "update")
    return commands
