"""Whether somebody may do a step of a plan now: the approver, those who approved before, and the agent itself."""

from dataclasses import replace

from countersign.declare import Declared, Ref
from countersign.records.access.view import Caller, ModelView
from countersign.records.approvals.steps import Step, Value
from countersign.records.commands import conditions, incoming, promise
from countersign.records.commands.run import Run
from countersign.records.commands.sql import Parameters


async def lacking(run: Run, caller: Caller, step: Step) -> str | None:
    """What the caller would be refused at: the command, a field or the record; None when it may do the step itself.

    What has gone since the step was proposed is no matter of rights: the plan is found stale, or fails.
    """
    view = caller.view.models.get(step.model)
    if view is None or step.command not in view.commands:
        return step.id
    theirs = replace(run, caller=caller)
    for name, value in step.given.items():
        if not value.is_default and not await _may_set(theirs, view, step, name, value):
            return f"{step.model}.{name}"
    return None if await _reaches(run, view, step) else f"this {step.model}"


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
    return frozenset() if move is None else frozenset(move.inputs)


async def _is_there(run: Run, field: Ref, record_id: str) -> bool:
    return await run.transaction.fetch_one(f'SELECT 1 FROM "{field.target}" WHERE id = $1', record_id) is not None


async def _reaches(run: Run, view: ModelView, step: Step) -> bool:
    if step.record_id is None:
        return True
    parameters = Parameters(step.record_id)
    scope = conditions.Scope(run.engine.dialect, parameters, "t")
    reached = conditions.any_of(scope, view.model, view.reach(step.command))
    text = f'SELECT count(*), count(CASE WHEN {reached} THEN 1 END) FROM "{step.model}" AS t WHERE t.id = $1'
    row = await run.transaction.fetch_one(text, *parameters.values)
    return row is None or bool(row[0] == row[1])
