"""The command `update`: some fields of a record; a governed field moves by the workflow's action."""

from collections.abc import Mapping

from countersign.declare import Move
from countersign.declare.fields.field import Stored
from countersign.records.access.view import ModelView
from countersign.records.commands import action, bounds, granting, incoming, locks, proposal_checks, writing
from countersign.records.commands.given import Given
from countersign.records.commands.prepared import Prepared
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.revision import require_revision
from countersign.records.commands.run import Body, Run
from countersign.records.commands.stored import StoredRecord


async def check(run: Run, view: ModelView, body: Body) -> Prepared:
    """The input read and compared with the record. The result may be an action instead of an update.

    Raises:
        BadInput: no such record; it has changed since `revision`; it is locked; a field is unknown or does not fit;
            no action leads to the governed field's new value, or that action is not allowed; or the record would no
            longer be one the caller may update.
    """
    record = await writing.find(run, view.model, view.reach("update"), body.get("id"))
    await require_revision(run, view, record, body)
    fields = {name: value for name, value in body.items() if name not in ("id", "revision")}
    seen = await incoming.as_seen(run, view, record)
    given = incoming.to_change(view, seen, await incoming.values(run, view, fields))
    workflow = view.model.workflow
    if workflow is not None and workflow.field in given:
        now, wanted = record.values[workflow.field], given.pop(workflow.field).stored
        if now != wanted:
            move = workflow.between(str(now), str(wanted))
            if move is None or move.name not in view.commands:
                raise BadInput(f"no action leads {view.model.name}.{workflow.field} from {now} to {wanted}")
            return await _moved(run, view, record, move, body)
    bounds.require_within(view, "update", _left(record, given), record.id)
    await proposal_checks.require_changeable(run, view, record, given, f"{view.model.name}.update")
    return Prepared(view.model.name, "update", record.id, record.revision, given)


async def _moved(run: Run, view: ModelView, record: StoredRecord, move: Move, body: Body) -> Prepared:
    governed = "" if view.model.workflow is None else view.model.workflow.field
    rest = {name: value for name, value in body.items() if name != governed}
    prepared = await action.check_move(run, view, record, move, rest, allowed=frozenset(view.writable))
    if action.sets_more(move, prepared.given):
        bounds.require_within(view, "update", _left(record, prepared.given), record.id)
    return prepared


async def apply(run: Run, prepared: Prepared) -> str:
    """Change the record; its id.

    Raises:
        BadInput: it is gone or locked, or a value that must be unique is taken.
    """
    model = run.engine.registry.models[prepared.model]
    record = await writing.find(run, model, None, prepared.record_id)
    await locks.require_open(run, model, record.values, prepared.id)
    if model.locked_with and model.locked_with in prepared.given:
        moved = {model.locked_with: prepared.given[model.locked_with].stored}
        await locks.require_open(run, model, {**record.values, **moved}, prepared.id)
    left = _left(record, prepared.given)
    bounds.require_within(run.caller.view.models.get(model.name), "update", left, record.id)
    await granting.require_own(run, model, record.id, record.values, left, prepared.id)
    await writing.update(run, model, record, prepared.given, prepared.id)
    await granting.settle(run, model, record.id, left)
    return record.id


def _left(record: StoredRecord, given: Mapping[str, Given]) -> dict[str, Stored]:
    return {**record.values, **{name: each.stored for name, each in given.items()}}
