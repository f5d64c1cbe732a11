"""The commands `get`, `create` and `delete`. The module `update` contains the command `update`."""

from collections.abc import Mapping
from dataclasses import replace

from countersign.declare import CALLER, TODAY, BadValue, Declared, Field, Ref, Select
from countersign.declare.condition import AGENT
from countersign.declare.fields.field import Stored
from countersign.records.access.view import ModelView
from countersign.records.commands import (
    dependents,
    mask_output,
    no_escalation,
    preconditions,
    proposal_checks,
    record_writer,
    select,
    unmask_input,
)
from countersign.records.commands.dependents import Dependents, Key
from countersign.records.commands.errors import BadInput, no_such_record, refuse_unknown_keys
from countersign.records.commands.filters import today
from countersign.records.commands.preconditions import require_revision
from countersign.records.commands.prepared_command import FieldInput, PreparedCommand, step_index
from countersign.records.commands.run import Body, Run
from countersign.records.commands.select import Record, StoredRecord


async def get(run: Run, model: str, body: Body) -> Record:
    """Return the record with this `id`.

    Raises:
        BadInput: a key is unknown, or the record does not exist for the caller.
    """
    refuse_unknown_keys(body, ("id",), f"{model}.get")
    return await read_record(run, model, body.get("id"))


async def read_record(run: Run, model: str, record_id: object) -> Record:
    """Return the record as the caller may see it.

    Raises:
        BadInput: the id is not a string, or the record does not exist for the caller.
    """
    if not isinstance(record_id, str):
        raise BadInput("id must be a string")
    view = run.view_of(model)
    record_reader = run.engine.reading(run.caller, view)
    statement = select.one(record_reader, view.visible, record_id)
    row = await run.read_one(record_reader, statement)
    if row is None:
        raise no_such_record()
    return (await mask_output.masked_records(run, record_reader, [row]))[0]


class WrongInitialState(BadInput):
    """The input of `create` sets a state other than the initial state of the workflow."""


async def check_create(run: Run, view: ModelView, body: Body) -> PreparedCommand:
    """Read the input and add the default values.

    Raises:
        BadInput: a field is unknown, missing or invalid; the workflow field has a value other than its first option;
            or the caller may not create such a record.
    """
    field_inputs = await unmask_input.read_fields(run, view, body)
    workflow = view.model.workflow
    if workflow is not None:
        field = view.model.fields[workflow.field]
        first_input = FieldInput(first_option(field), is_default=True)
        if workflow.field in field_inputs and field_inputs[workflow.field].stored not in (None, first_input.stored):
            raise WrongInitialState(
                f"{view.model.name}.{workflow.field} starts at {first_input.stored}: leave it out on create"
            )
        field_inputs[workflow.field] = first_input
    field_inputs |= await _values_from_refs(run, view, field_inputs)
    for name, field in view.model.fields.items():
        if name not in field_inputs and field.default is not None:
            field_inputs[name] = FieldInput(default(run, field), is_default=True)
        if field.required and (name not in field_inputs or field_inputs[name].stored is None):
            raise _required_error(view, name)
    _require_within_rows(view, field_inputs)
    await proposal_checks.require_creatable(run, view, field_inputs, f"{view.model.name}.create")
    return PreparedCommand(view.model.name, "create", given=field_inputs)


async def _values_from_refs(run: Run, view: ModelView, field_inputs: Mapping[str, FieldInput]) -> dict[str, FieldInput]:
    """Copy values for omitted fields from referenced records, if the caller can read the source fields in clear."""
    copied_inputs: dict[str, FieldInput] = {}
    for ref in (field for field in view.model.fields.values() if isinstance(field, Ref) and field.name in field_inputs):
        missing = {name: source for name, source in ref.fills.items() if name not in field_inputs}
        if missing:
            copied_inputs |= await _copies(run, view, ref, field_inputs[ref.name].stored, missing)
    return copied_inputs


async def _copies(
    run: Run, view: ModelView, ref: Ref, record_id: Stored, missing: Mapping[str, str]
) -> dict[str, FieldInput]:
    target_view = run.caller.view.models.get(ref.target)
    if target_view is None or record_id is None or step_index(record_id) is not None:
        return {}
    record = await record_writer.find(run, target_view.model, None, record_id, locks=False)
    shown_values = {
        name: target_view.model.fields[source].show(stored_value)
        for name, source in missing.items()
        if target_view.sees_in_clear(source) and (stored_value := record.values[source]) is not None
    }
    return {name: FieldInput(_copied(view, ref, name, value), is_default=True) for name, value in shown_values.items()}


def _copied(view: ModelView, ref: Ref, name: str, value: object) -> Stored:
    try:
        return view.model.fields[name].read(value)
    except BadValue as error:
        reason = f"the value copied from {ref.name} does not fit ({error}); set {name} explicitly"
        raise BadInput(f"{view.model.name}.{name}: {reason}") from error


def _require_within_rows(view: ModelView | None, field_inputs: Mapping[str, FieldInput]) -> None:
    """Require that the caller's row conditions for `create` allow the record.

    For a caller that may only import, the row conditions for `import` apply.
    """
    command = "create" if view is None or "create" in view.commands else "import"
    preconditions.require_within_rows(
        view, command, {name: field_input.stored for name, field_input in field_inputs.items()}
    )


def first_option(field: Field) -> Stored:
    """Return the initial state of a workflow: the first option of its select field."""
    if not isinstance(field, Select):
        raise LookupError(f"{field.name} governs a workflow and is no select; the declaration's check should say so")
    return field.options[0]


def default(run: Run, field: Field) -> Stored:
    """Return the default value of the field in a new record."""
    if field.default is CALLER:
        return run.caller.user_id
    if field.default is AGENT:
        return run.caller.agent
    try:
        return field.read(today() if field.default is TODAY else field.default)
    except BadValue as error:
        raise LookupError(f"the default of {field.name} does not fit; the declaration's check should say so") from error


def _required_error(view: ModelView, name: str) -> BadInput:
    if name in view.fields:
        return BadInput(f"{view.model.name}.{name} is required")
    # The error must not name a hidden field.
    return BadInput(f"{view.model.name}.create needs rights that you may not give; ask a person with wider rights")


async def apply_create(run: Run, prepared_command: PreparedCommand) -> str:
    """Create the record and return its id.

    Raises:
        BadInput: another record has a unique value of this record, or the parent record is locked.
    """
    model = run.engine.registry.models[prepared_command.model]
    values = {name: field_input.stored for name, field_input in prepared_command.given.items()}
    await preconditions.require_unlocked(run, model, values, prepared_command.id)
    _require_within_rows(run.caller.view.models.get(prepared_command.model), prepared_command.given)
    await no_escalation.require_no_escalation(run, model, "", {}, values, prepared_command.id)
    record_id = await record_writer.insert(run, model, prepared_command.given, prepared_command.id)
    await no_escalation.end_unsafe_links(run, model, record_id, values)
    return record_id


async def check_delete(run: Run, view: ModelView, body: Body) -> PreparedCommand:
    """Read the input. For an agent, check only the referring records that the agent can see. The deletion itself checks
    all referring records.

    Raises:
        BadInput: a key is unknown, the record does not exist or has changed since `revision`, or a record that
            the agent can see prevents the deletion.
    """
    name = view.model.name
    refuse_unknown_keys(body, ("id", "revision", "cascade"), f"{name}.delete")
    cascade = body.get("cascade", False)
    if not isinstance(cascade, bool):
        raise BadInput("cascade must be true or false")
    # An agent only proposes the deletion, so other records may still refer to the record until it is approved.
    deletes = not run.caller.is_agent
    record = await record_writer.find(run, view.model, view.reach("delete"), body.get("id"), deletes=deletes)
    await require_revision(run, view, record, body)
    prepared_command = PreparedCommand(name, "delete", record.id, record.revision, cascade=cascade)
    if run.caller.is_agent and await dependents.is_blocked_as_seen(run, prepared_command):
        raise BadInput(dependents.REFUSAL)
    await proposal_checks.require_deletable(run, view, record, prepared_command)
    return prepared_command


async def apply_delete(run: Run, prepared_command: PreparedCommand) -> str:
    """Delete the record and return its id. With `cascade`, also apply `on_delete` of the references to it.

    Raises:
        BadInput: the record does not exist or is locked; a remaining record refers to a record to delete; another
            record to delete or change is locked; or the deletion would delete or change too many records.
    """
    model = run.engine.registry.models[prepared_command.model]
    record = await record_writer.find(run, model, None, prepared_command.record_id, deletes=True)
    await preconditions.require_unlocked(run, model, record.values, prepared_command.id)
    limit = dependents.max_records(run, model.name) if prepared_command.cascade else 0
    dependent_records = await dependents.find(
        run, model.name, record.id, cascade=prepared_command.cascade, locks=True, limit=limit
    )
    if dependent_records.blocking:
        raise BadInput(dependents.REFUSAL)
    if not dependent_records.complete:
        excess_text = f"more than {limit} other records"
        raise BadInput(
            f"{prepared_command.id} is refused: it would delete or change {excess_text}; delete some of them first"
        )
    await _clear(run, dependent_records, prepared_command.id)
    await _remove(run, dependent_records, record, prepared_command.id)
    return record.id


async def _clear(run: Run, dependents: Dependents, command: str) -> None:
    """Set the refs of remaining records to deleted records to null, with one update for each record."""
    fields: dict[Key, dict[str, FieldInput]] = {}
    for link in dependents.cleared:
        fields.setdefault(link.source, {})[link.field] = FieldInput(None, is_default=True)
    for key, cleared_fields in fields.items():
        model, record = await _lock(run, key, command)
        await record_writer.update(run, model, record, cleared_fields, command)


async def _remove(run: Run, dependents: Dependents, root: StoredRecord, command: str) -> None:
    """Delete the records, each one after the records that refer to it."""
    order, has_order = dependents.leaves_first()
    if not has_order and dependents.deleted[0][0] in run.engine.adopted:
        raise BadInput(f"{command} is refused: records to delete refer to each other in a circle; empty a ref first")
    cleared_refs = {} if has_order else await _clear_between(run, dependents)
    deleted_keys = frozenset(dependents.deleted)
    for key in order:
        model, record = run.engine.registry.models[key[0]], root
        if key != dependents.deleted[0]:
            model, record = await _lock(run, key, command)
            record = replace(record, values={**record.values, **cleared_refs.get(key, {})})
        await record_writer.delete(run, model, record, command, deleted_keys)


async def _lock(run: Run, key: Key, command: str) -> tuple[Declared, StoredRecord]:
    """Read and lock a record that a cascading deletion deletes or changes.

    Raises:
        BadInput: the model's lock conditions forbid the change.
    """
    model = run.engine.registry.models[key[0]]
    record = await record_writer.find(run, model, None, key[1])
    await preconditions.require_unlocked(run, model, record.values, command)
    return model, record


async def _clear_between(run: Run, dependents: Dependents) -> dict[Key, dict[str, Stored]]:
    """Set the refs between records to delete to null and return the previous values.

    This is needed for circular references, because the database checks the references at each deletion.
    """
    deleted_keys = frozenset(dependents.deleted)
    previous_values: dict[Key, dict[str, Stored]] = {}
    for link in dependents.links:
        if link.source in deleted_keys and link.target in deleted_keys:
            name, record_id = link.source
            previous_values.setdefault(link.source, {})[link.field] = link.target[1]
            await run.transaction.run(f'UPDATE "{name}" SET "{link.field}" = NULL WHERE id = $1', record_id)
    return previous_values
