"""Checks commands before an agent proposes them in a plan. A plan that would certainly fail is refused if the agent may
see the reason."""

from collections.abc import Collection, Mapping

from countersign.declare.fields.field import Stored
from countersign.declare.model import computed
from countersign.declare.registry import Total
from countersign.kernel.concurrency import CooperativeIterator
from countersign.records.access.view import ModelView
from countersign.records.commands import checks, comments, dependents, preconditions, record_writer, unmask_input
from countersign.records.commands.prepared_command import FieldInput, PreparedCommand
from countersign.records.commands.run import Run
from countersign.records.commands.select import StoredRecord


async def require_creatable(run: Run, view: ModelView, field_inputs: Mapping[str, FieldInput], command: str) -> None:
    """Check the locks, the rules, the validators and the unique values of a new record, as far as the agent sees them.

    Raises:
        BadInput: the record cannot be created.
    """
    if not run.caller.is_agent:
        return
    values: dict[str, Stored] = {name: None for name in view.model.fields}
    values |= {name: field_input.stored for name, field_input in field_inputs.items()}
    if view.model.name == "comment":
        await comments.check_comment(run, values)
    await preconditions.require_unlocked_as_seen(run, view.model, values, command)
    if not _is_touched(run, values):
        await preconditions.require_rules_as_seen(run, view, values, list(view.model.fields), command)
    await _require_unique(run, view, values, field_inputs, None)
    values |= computed(view.model, values)
    checks.require_valid_as_seen(run, view, values, field_inputs, command)
    record_writer.require_in_range(run, view.model, values)
    await _require_totals(run, view, values, None)


async def require_changeable(
    run: Run, view: ModelView, record: StoredRecord, field_inputs: Mapping[str, FieldInput], command: str
) -> None:
    """Check the locks, the rules and the unique values of a changed record, as far as the agent sees them. If the
    parent record changes, check the locks of both parents.

    Raises:
        BadInput: the change is not possible.
    """
    if not run.caller.is_agent or run.is_touched(record.id):
        return
    values = {**record.values, **{name: field_input.stored for name, field_input in field_inputs.items()}}
    await preconditions.require_unlocked_as_seen(run, view.model, record.values, command)
    if view.model.locked_with in field_inputs:
        await preconditions.require_unlocked_as_seen(run, view.model, values, command)
    if not _is_touched(run, values):
        await preconditions.require_rules_as_seen(run, view, values, list(field_inputs), command)
    await _require_unique(run, view, values, field_inputs, record.id)
    values |= computed(view.model, values)
    checks.require_valid_as_seen(run, view, values, field_inputs, command)
    await _require_totals(run, view, values, record.values)


async def require_deletable(run: Run, view: ModelView, record: StoredRecord, prepared_command: PreparedCommand) -> None:
    """Check the locks of a record to delete and of the records that the cascade deletes or changes, as far as the agent
    sees them.

    Raises:
        BadInput: the record cannot be deleted, or a record of the cascade cannot be deleted or changed.
    """
    if not run.caller.is_agent or run.is_touched(record.id):
        return
    await preconditions.require_unlocked_as_seen(run, view.model, record.values, prepared_command.id)
    if not prepared_command.cascade:
        return
    dependent_records = await dependents.find(run, view.model.name, record.id, cascade=True, seen_by=run.caller.view)
    affected_keys = dict.fromkeys(
        (*dependent_records.deleted[1:], *(link.source for link in dependent_records.cleared))
    )
    async for name, record_id in CooperativeIterator(affected_keys):
        model = run.engine.registry.models[name]
        if (model.locked or model.locked_with) and not run.is_touched(record_id):
            affected_record = await record_writer.find(run, model, None, record_id)
            await preconditions.require_unlocked_as_seen(run, model, affected_record.values, prepared_command.id)


async def _require_totals(
    run: Run, view: ModelView, values: Mapping[str, Stored], values_before: Mapping[str, Stored] | None
) -> None:
    """Require that JSON clients can represent the visible totals that include the record exactly. `values_before` are
    the previous values of an existing record, or None."""
    for total in run.engine.registry.totals[view.model.name]:
        parent_id = values[total.by]
        is_known = values_before is None or (view.knows(total.of) and view.knows(total.by))
        if not is_known or not isinstance(parent_id, str) or not await _sees_total(run, total, parent_id):
            continue
        parent = await record_writer.find(run, total.parent, None, parent_id)
        was_counted = values_before is not None and values_before[total.by] == parent_id
        total_after = _number(parent.values[total.field]) + _number(values[total.of])
        total_after -= _number(values_before[total.of]) if values_before and was_counted else 0
        record_writer.require_in_range(run, total.parent, {total.field: total_after})


def _number(stored_value: Stored) -> int:
    return 0 if stored_value is None else int(stored_value)


async def _sees_total(run: Run, total: Total, parent_id: str) -> bool:
    parent_view = run.caller.view.models.get(total.parent.name)
    if run.is_touched(parent_id):
        return False
    return (
        parent_view is not None
        and parent_view.knows(total.field)
        and await unmask_input.exists(run, total.parent.name, parent_id)
    )


def _is_touched(run: Run, values: Mapping[str, Stored]) -> bool:
    """Return whether an earlier step of the plan changes a record to which these values refer."""
    return any(run.is_touched(value) for value in values.values() if isinstance(value, str))


async def _require_unique(
    run: Run, view: ModelView, values: Mapping[str, Stored], given_fields: Collection[str], own_id: str | None
) -> None:
    """Require that no record that the caller sees has one of the unique values."""
    # A caller that can use none of list, search and export must not learn that a record has this value.
    looked_up = next((command for command in ("list", "search", "export") if command in view.commands), None)
    if run.earlier or looked_up is None or view.model.table is not None:
        return
    for name in given_fields:
        tests = _unique_among(view, name, values)
        if tests and await record_writer.exists_with_values(
            run, view.model, view.reach(looked_up), tests, own_id or ""
        ):
            raise record_writer.not_unique(view.model, name)


def _unique_among(view: ModelView, name: str, values: Mapping[str, Stored]) -> dict[str, Stored]:
    """Return the combination of values that must be unique. It is empty if the caller does not see these fields."""
    field = view.model.fields[name]
    names = (name,) if field.unique else (name, field.unique_with) if field.unique_with else ()
    is_seen = all(view.knows(name) and values[name] is not None for name in names)
    return {name: values[name] for name in names} if is_seen else {}
