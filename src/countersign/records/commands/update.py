"""The command `update`: changes the fields of a record, or runs the action that leads to a new state."""

from collections.abc import Mapping

from countersign.declare import Move
from countersign.declare.fields.field import Stored
from countersign.records.access.view import ModelView
from countersign.records.base_models import SET_ONCE
from countersign.records.commands import no_escalation, preconditions, proposal_checks, record_writer, unmask_input
from countersign.records.commands.errors import BadInput
from countersign.records.commands.preconditions import require_revision
from countersign.records.commands.prepared_command import FieldInput, PreparedCommand
from countersign.records.commands.run import Body, Run
from countersign.records.commands.select import StoredRecord
from countersign.records.commands.workflow import check_move, sets_more


async def check_update(run: Run, view: ModelView, body: Body) -> PreparedCommand:
    """Read the input and compare it with the record. If the input changes the state, return the action that leads to
    the new state instead of an update.

    Raises:
        BadInput: the record does not exist, has changed since `revision` or is locked. A field is unknown or invalid.
            No action leads to the new state, or that action is not allowed. The caller could not update the record
            after the change.
    """
    record = await record_writer.find(run, view.model, view.reach("update"), body.get("id"))
    await require_revision(run, view, record, body)
    fields = {name: value for name, value in body.items() if name not in ("id", "revision")}
    visible_record = await unmask_input.seen_record(run, view, record)
    changed_inputs = unmask_input.changed_fields(
        view, visible_record, await unmask_input.read_fields(run, view, fields)
    )
    _refuse_set_once(view, changed_inputs)
    workflow = view.model.workflow
    if workflow is not None and workflow.field in changed_inputs:
        now, target = record.values[workflow.field], changed_inputs.pop(workflow.field).stored
        if now != target:
            move = workflow.between(str(now), str(target))
            if move is None or move.name not in view.commands:
                raise BadInput(f"no action leads {view.model.name}.{workflow.field} from {now or 'empty'} to {target}")
            return await _check_state_change(run, view, record, move, body)
    preconditions.require_within_rows(view, "update", _values_after(record, changed_inputs), record.id)
    await proposal_checks.require_changeable(run, view, record, changed_inputs, f"{view.model.name}.update")
    return PreparedCommand(view.model.name, "update", record.id, record.revision, changed_inputs)


def _refuse_set_once(view: ModelView, changed_inputs: Mapping[str, FieldInput]) -> None:
    for name in SET_ONCE.get(view.model.name, ()):
        if name in changed_inputs:
            raise BadInput(f"{view.model.name}.{name} cannot change: create a new {view.model.name} instead")


async def _check_state_change(
    run: Run, view: ModelView, record: StoredRecord, move: Move, body: Body
) -> PreparedCommand:
    state_field = "" if view.model.workflow is None else view.model.workflow.field
    other_fields = {name: value for name, value in body.items() if name != state_field}
    prepared_command = await check_move(run, view, record, move, other_fields, allowed_fields=frozenset(view.writable))
    if sets_more(move, prepared_command.given):
        preconditions.require_within_rows(view, "update", _values_after(record, prepared_command.given), record.id)
    return prepared_command


async def apply_update(run: Run, prepared_command: PreparedCommand) -> str:
    """Update the record and return its id.

    Raises:
        BadInput: the record is deleted or locked, or a unique value is taken.
    """
    model = run.engine.registry.models[prepared_command.model]
    record = await record_writer.find(run, model, None, prepared_command.record_id)
    await preconditions.require_unlocked(run, model, record.values, prepared_command.id)
    if model.locked_with and model.locked_with in prepared_command.given:
        moved_values = {model.locked_with: prepared_command.given[model.locked_with].stored}
        await preconditions.require_unlocked(run, model, {**record.values, **moved_values}, prepared_command.id)
    values_after = _values_after(record, prepared_command.given)
    preconditions.require_within_rows(run.caller.view.models.get(model.name), "update", values_after, record.id)
    await no_escalation.require_no_escalation(run, model, record.id, record.values, values_after, prepared_command.id)
    await record_writer.update(run, model, record, prepared_command.given, prepared_command.id)
    await no_escalation.end_unsafe_links(run, model, record.id, values_after)
    return record.id


def _values_after(record: StoredRecord, field_inputs: Mapping[str, FieldInput]) -> dict[str, Stored]:
    return {**record.values, **{name: field_input.stored for name, field_input in field_inputs.items()}}
