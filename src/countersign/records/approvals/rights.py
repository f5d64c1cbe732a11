"""Whether somebody may do a step of a plan now: the approver, those who approved before, and the agent itself."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from countersign.declare import Declared, Ref
from countersign.declare.registry import Registry
from countersign.records.access.view import Caller, ModelView
from countersign.records.approvals.steps import Step, Value
from countersign.records.commands import bounds, conditions, dependents, incoming, promise, writing
from countersign.records.commands.dependents import Dependents
from countersign.records.commands.prepared import Prepared
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Run
from countersign.records.commands.sql import Parameters

_IDS_AT_ONCE = 500


async def lacking(run: Run, caller: Caller, step: Step, *, decides: bool = True) -> str | None:
    """What the caller would be refused at: the command, a field or a record; None when it may do the step itself.

    Whoever decides needs the rights on what a deletion takes along, too; the proposer does not. What has gone since the
    step was proposed is no matter of rights: the plan is found stale, or fails.
    """
    view = caller.view.models.get(step.model)
    if view is None or step.command not in view.commands:
        return step.id
    theirs = replace(run, caller=caller)
    for name, value in step.given.items():
        if not value.is_default and not await _may_set(theirs, view, step, name, value):
            return f"{step.model}.{name}"
    if not await _reaches(run, view, step.command, [step.record_id] if step.record_id else []):
        return f"this {step.model}"
    return await lacking_along(theirs, step) if decides else None


class Need(NamedTuple):
    """A command that the caller needs on records, and the field that it writes there."""

    model: str
    command: str
    field: str


async def lacking_along(run: Run, step: Step | Prepared) -> str | None:
    """What the caller would be refused at if it deleted or emptied by itself what a cascading deletion takes along.

    A model without a command of that name, and a field that only the engine writes, have no right of their own: they
    follow the record that they belong to.
    """
    for need, record_ids in (await needs_along(run, step)).items():
        view = run.caller.view.models.get(need.model)
        if view is None or need.command not in view.commands:
            return f"{need.model}.{need.command}"
        if need.field and (need.field not in view.fields or need.field not in view.writable):
            return f"{need.model}.{need.field}"
        if not await _reaches(run, view, need.command, record_ids):
            return f"this {need.model}"
        if need.field and not await _stays_within(run, view, need.field, record_ids):
            return f"this {need.model}"
    return None


async def needs_along(run: Run, step: Step | Prepared) -> dict[Need, list[str]]:
    """The commands that delete or empty what a cascading deletion takes along, with the ids of the records; none where
    there are too many records, since it is refused then."""
    if not step.cascade or step.record_id is None:
        return {}
    found = await dependents.find(run, step.model, step.record_id, cascade=True)
    return _needs(run.engine.registry, found) if found.complete else {}


def _needs(registry: Registry, found: Dependents) -> dict[Need, list[str]]:
    needs: dict[Need, list[str]] = {}
    for name, record_id in found.deleted[1:]:
        if "delete" in registry.models[name].commands:
            needs.setdefault(Need(name, "delete", ""), []).append(record_id)
    for link in found.cleared:
        name, record_id = link.source
        model = registry.models[name]
        if "update" in model.commands and not model.fields[link.field].readonly:
            needs.setdefault(Need(name, "update", link.field), []).append(record_id)
    return needs


async def _stays_within(run: Run, view: ModelView, field: str, record_ids: Sequence[str]) -> bool:
    """Whether the records are still among those that the caller may update when the ref is empty."""
    if view.rows.get("update") is None:
        return True
    for record_id in record_ids:
        record = await writing.find(run, view.model, None, record_id)
        try:
            bounds.require_within(view, "update", {**record.values, field: None}, record_id)
        except BadInput:
            return False
    return True


async def _may_set(run: Run, view: ModelView, step: Step, name: str, value: Value) -> bool:
    """As `incoming.values` lets it be given, and `update` what an action does not ask for."""
    if name not in view.fields:
        return False
    is_input = name in _inputs(view.model, step.command)
    if not is_input and (name not in view.writable or (step.command != "create" and "update" not in view.commands)):
        return False
    field = view.model.fields[name]
    if not isinstance(field, Ref) or not isinstance(value.stored, str) or promise.step_of(value.stored) is not None:
        return True
    return await incoming.exists(run, field.target, value.stored) or not await _is_there(run, field, value.stored)


def _inputs(model: Declared, command: str) -> frozenset[str]:
    move = None if model.workflow is None else model.workflow.moves.get(command)
    return frozenset() if move is None else frozenset(move.accepted_fields)


async def _is_there(run: Run, field: Ref, record_id: str) -> bool:
    return await run.transaction.fetch_one(f'SELECT 1 FROM "{field.target}" WHERE id = $1', record_id) is not None


async def _reaches(run: Run, view: ModelView, command: str, record_ids: Sequence[str]) -> bool:
    """Whether the caller's command reaches all of the records that are there."""
    rows = view.reach(command)
    if rows is None:
        return True
    for start in range(0, len(record_ids), _IDS_AT_ONCE):
        parameters = Parameters()
        places = ", ".join(parameters.put(each) for each in record_ids[start : start + _IDS_AT_ONCE])
        scope = conditions.Scope(run.engine.dialect, parameters, "t")
        reached = conditions.any_of(scope, view.model, rows)
        text = (
            f'SELECT count(*), count(CASE WHEN {reached} THEN 1 END) FROM "{view.model.name}" AS t '
            f"WHERE t.id IN ({places})"
        )
        row = await run.transaction.fetch_one(text, *parameters.values)
        if row is not None and row[0] != row[1]:
            return False
    return True
