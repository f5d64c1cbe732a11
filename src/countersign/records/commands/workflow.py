"""Runs workflow actions with their guards, inputs and effects."""

from collections.abc import Mapping

from countersign.declare import TODAY, Declared, Move
from countersign.declare.fields.field import Stored
from countersign.declare.model import computed
from countersign.declare.rules.computed_fields import refs_to
from countersign.records.access.view import ModelView
from countersign.records.commands import (
    checks,
    preconditions,
    proposal_checks,
    record_writer,
    unmask_input,
)
from countersign.records.commands.effects import CodeRefusal, EffectContext, linked_value_ids
from countersign.records.commands.errors import BadInput, unknown_field
from countersign.records.commands.filters import today
from countersign.records.commands.preconditions import require_revision
from countersign.records.commands.prepared_command import FieldInput, PreparedCommand
from countersign.records.commands.run import Body, Run
from countersign.records.commands.select import StoredRecord


def move_of(model: Declared, command: str) -> Move:
    """Return the declared action of a command.

    Raises:
        LookupError: the model has no such action.
    """
    if model.workflow is None:
        raise LookupError(f"{model.name} has no workflow")
    return model.workflow.moves[command]


async def check_action(run: Run, view: ModelView, command: str, body: Body) -> PreparedCommand:
    """Read the input and compare it with the record.

    Raises:
        BadInput: the record does not exist, has changed since `revision` or is in another state, an input is missing,
            unknown or invalid, or the record does not meet a guard that the caller can read.
    """
    record = await record_writer.find(run, view.model, view.reach(command), body.get("id"))
    await require_revision(run, view, record, body)
    return await check_move(run, view, record, move_of(view.model, command), body, allowed_fields=frozenset())


async def check_move(
    run: Run, view: ModelView, record: StoredRecord, move: Move, body: Body, *, allowed_fields: frozenset[str]
) -> PreparedCommand:
    """Do what `check_action` does, for a record that is already read. `allowed_fields` names the fields that the input
    may set in addition to the action's inputs."""
    fields = {name: value for name, value in body.items() if name not in ("id", "revision")}
    _require_known(view, move, fields, allowed_fields)
    visible_record = await unmask_input.seen_record(run, view, record)
    read_inputs = await unmask_input.read_fields(run, view, fields, inputs=frozenset(move.accepted_fields))
    changed_inputs = unmask_input.changed_fields(view, visible_record, read_inputs)
    values = {**visible_record.values, **{name: changed_input.stored for name, changed_input in changed_inputs.items()}}
    if not run.is_touched(record.id):
        await _require_allowed(run, view, record, move, values, changed_inputs)
    if run.caller.is_agent and sets_more(move, changed_inputs):
        await proposal_checks.require_changeable(run, view, record, changed_inputs, f"{view.model.name}.update")
    return PreparedCommand(view.model.name, move.name, record.id, record.revision, changed_inputs)


async def _require_allowed(
    run: Run,
    view: ModelView,
    record: StoredRecord,
    move: Move,
    values: Mapping[str, Stored],
    field_inputs: Mapping[str, FieldInput],
) -> None:
    """Check the preconditions for running or proposing the action."""
    if run.caller.is_agent:
        await _require_as_seen(run, view, record, move, values, field_inputs)
    else:
        _require_state(view.model, view, record, move)
        _require_inputs(view.model, view, move, values)
    readable = [guard for guard in move.guards if view.sees_in_clear(guard.field)]
    preconditions.require_guards(view.model, view, readable, values, f"{view.model.name}.{move.name}")


async def _require_as_seen(
    run: Run,
    view: ModelView,
    record: StoredRecord,
    move: Move,
    values: Mapping[str, Stored],
    field_inputs: Mapping[str, FieldInput],
) -> None:
    """Check the preconditions that the caller can see: state, inputs, required records, rules and validators. A
    proposal that does not meet them would certainly fail, so it is refused."""
    if view.model.workflow is not None and view.sees_in_clear(view.model.workflow.field):
        _require_state(view.model, view, record, move)
    if all(name in view.fields for name in move.inputs):
        _require_inputs(view.model, view, move, values)
    if _sees_records(run, view, move):
        await _require_records(run, view.model, record, move)
    values_after = {
        **values,
        **{name: value.stored for name, value in _values_of_omitted(view.model, move, field_inputs).items()},
    }
    known_fields = [*field_inputs, *(name for name in move.optional if name in view.fields)]
    command = f"{view.model.name}.{move.name}"
    await preconditions.require_rules_as_seen(run, view, values_after, known_fields, command, move.rules)
    values_after |= computed(view.model, values_after)
    checks.require_valid_as_seen(run, view, values_after, field_inputs, command)


def _values_of_omitted(model: Declared, move: Move, field_inputs: Mapping[str, FieldInput]) -> dict[str, FieldInput]:
    """Return the values that optional fields get when the input omits them or sets them to null."""
    omitted_inputs: dict[str, FieldInput] = {}
    for name, value in move.optional.items():
        if name not in field_inputs or field_inputs[name].stored is None:
            stored_value = None if value is None else model.fields[name].read(today() if value is TODAY else value)
            omitted_inputs[name] = FieldInput(stored_value, is_default=True)
    return omitted_inputs


def _require_known(view: ModelView, move: Move, fields: Mapping[str, object], allowed_fields: frozenset[str]) -> None:
    for name in fields:
        if name not in move.accepted_fields and name not in allowed_fields:
            if name in view.fields:
                raise BadInput(f"unknown key {name} in {view.model.name}.{move.name}")
            raise unknown_field(view.model.name, name)


def is_action_readable(run: Run, view: ModelView, move: Move) -> bool:
    """Return whether the caller can find out if the action is allowed. The caller must see the state, the inputs, the
    fields of guards and rules, and the required records."""
    workflow = view.model.workflow
    sees_state = workflow is not None and view.sees_in_clear(workflow.field)
    sees_inputs = all(name in view.fields for name in move.inputs)
    rules = (*move.rules, *preconditions.rules_naming(view.model, move.optional))
    sees_inputs = sees_inputs and all(preconditions.is_rule_readable(run, view, rule, ()) for rule in rules)
    return (
        sees_state
        and sees_inputs
        and preconditions.are_guards_readable(view, move.guards)
        and _sees_records(run, view, move)
    )


def _sees_records(run: Run, view: ModelView, move: Move) -> bool:
    """Return whether the caller can find out if the records that the action needs exist."""
    for name in move.needs_records:
        child = run.caller.view.models.get(name)
        if child is None or not child.reads_any_by("list", "search", "export"):
            return False
        if any(ref not in child.fields for ref in refs_to(child.model, view.model)):
            return False
    return True


async def _require_records(run: Run, model: Declared, record: StoredRecord, move: Move) -> None:
    for name in move.needs_records:
        (ref,) = refs_to(run.engine.registry.models[name], model)
        if not await record_writer.is_referred_to(run, name, ref, record.id):
            command, view = f"{model.name}.{move.name}", run.caller.view.models.get(model.name)
            is_seen = view is not None and _sees_records(run, view, move)
            reason = f": it needs at least one {name}; create one first" if is_seen else ""
            raise BadInput(f"{command} is not allowed in this state{reason}")


def _require_state(model: Declared, view: ModelView | None, record: StoredRecord, move: Move) -> None:
    state_field = "" if model.workflow is None else model.workflow.field
    now = record.values[state_field]
    if now not in move.sources:
        reason = f": {state_field} is {now or 'empty'}" if view is not None and view.sees_in_clear(state_field) else ""
        raise BadInput(f"{model.name}.{move.name} is not allowed in this state{reason}")


def _require_inputs(model: Declared, view: ModelView | None, move: Move, values: Mapping[str, Stored]) -> None:
    for name in move.inputs:
        if values[name] is None:
            if view is not None and name in view.fields:
                raise BadInput(f"{model.name}.{name} is required")
            raise BadInput(f"{model.name}.{move.name} is not allowed in this state")


async def apply_action(run: Run, prepared_command: PreparedCommand) -> str:
    """Run the action and return the record's id.

    Raises:
        BadInput: the record is deleted or in another state, a guard is not met, or the effect refuses the action. An
            input that sets fields other than the action's inputs is also refused if the record is locked.
    """
    model = run.engine.registry.models[prepared_command.model]
    record = await record_writer.find(run, model, None, prepared_command.record_id)
    move = move_of(model, prepared_command.command)
    if sets_more(move, prepared_command.given):
        await _require_changeable(run, model, record, prepared_command)
    values = {**record.values, **{name: field_input.stored for name, field_input in prepared_command.given.items()}}
    _require_inputs(model, run.caller.view.models.get(model.name), move, values)
    await perform(run, model, record, move, prepared_command.given)
    return record.id


def sets_more(move: Move, given_fields: Mapping[str, object]) -> bool:
    """Return whether the input sets fields other than the action's inputs. This is possible if an update runs the
    action."""
    return not given_fields.keys() <= set(move.accepted_fields)


async def _require_changeable(
    run: Run, model: Declared, record: StoredRecord, prepared_command: PreparedCommand
) -> None:
    """Check the fields that are not inputs of the action like the fields of an update: the record must not be locked,
    and after the change it must still be among the rows that the caller may update."""
    await preconditions.require_unlocked(run, model, record.values, f"{model.name}.update")
    values_after = {
        **record.values,
        **{name: field_input.stored for name, field_input in prepared_command.given.items()},
    }
    preconditions.require_within_rows(run.caller.view.models.get(model.name), "update", values_after, record.id)


async def perform(
    run: Run, model: Declared, record: StoredRecord, move: Move, inputs: Mapping[str, FieldInput]
) -> None:
    """Run the action and its effect on a locked record.

    Raises:
        BadInput: the record is in another state, a guard or a rule is not met, a required record is missing, or the
            effect refuses the action.
    """
    command = f"{model.name}.{move.name}"
    view = run.caller.view.models.get(model.name)
    _require_state(model, view, record, move)
    values = {**record.values, **{name: field_input.stored for name, field_input in inputs.items()}}
    preconditions.require_guards(model, view, move.guards, values, command)
    await _require_records(run, model, record, move)
    field_inputs = dict(inputs) | _values_of_omitted(model, move, inputs)
    values |= {name: field_input.stored for name, field_input in field_inputs.items()}
    await preconditions.require_all_rules(run, model, values, move.rules, field_inputs, command)
    field_inputs |= {name: FieldInput(None, is_default=True) for name in move.clears}
    if model.workflow is not None and move.to is not None:
        field_inputs[model.workflow.field] = FieldInput(move.to, is_default=True)
    if move.effect is not None:
        value_ids = await linked_value_ids(run, model, record, inputs)
        work = EffectContext(run, model, record.id, values, command, value_ids, before=record.values)
        try:
            await move.effect(work)
        except CodeRefusal as refused:
            # What an effect reads is not in the report, so a trial must not tell an agent that it refuses.
            raise BadInput(refused.detail) from refused
        field_inputs |= work.changes
        # Read the record again, because the effect may have written records that change its totals.
        record = await record_writer.find(run, model, None, record.id)
    await record_writer.update(run, model, record, field_inputs, command)
