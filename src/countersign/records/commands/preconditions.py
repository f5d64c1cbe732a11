"""Checks the preconditions for writing a record: guards, row conditions, locks, the revision, and rules."""

import decimal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from countersign.declare import TODAY, Decimal, Declared, Field, FieldOf, Ref, Where
from countersign.declare.fields.field import Stored
from countersign.declare.model import computed
from countersign.records.access.people import folded
from countersign.records.access.view import Condition, ModelView
from countersign.records.commands import filters, prepared_command, select, unmask_input
from countersign.records.commands.errors import BadInput, no_such_record
from countersign.records.commands.filters import field_named, today
from countersign.records.commands.prepared_command import FieldInput
from countersign.records.commands.run import Body, Run
from countersign.records.commands.select import StoredRecord, record_of

_RANGES: Mapping[str, Callable[[int], bool]] = {
    "gt": lambda order: order > 0,
    "gte": lambda order: order >= 0,
    "lt": lambda order: order < 0,
    "lte": lambda order: order <= 0,
}


def is_met(model: Declared, values: Mapping[str, Stored], condition: Where) -> bool:
    """Return whether the stored values meet the condition. The comparison is the same as in a filter."""
    field = field_named(model, condition.field)
    stored_value = _comparable(field, values.get(condition.field))
    if condition.operator == "is_null":
        return (stored_value is None) == condition.value
    if condition.operator == "ne":
        return stored_value is None or stored_value != _stored_operand(field, condition.value)
    if stored_value is None:
        return False
    if condition.operator == "in":
        return stored_value in [_stored_operand(field, member) for member in cast("Sequence[object]", condition.value)]
    operand = _stored_operand(field, condition.value)
    if condition.operator == "eq":
        return stored_value == operand
    if condition.operator == "contains":
        return folded(str(operand)) in folded(str(stored_value))
    return _RANGES[condition.operator](_compared(field, stored_value, operand))


def _stored_operand(field: Field, value: object) -> Stored | decimal.Decimal:
    return _comparable(field, field.operand(today() if value is TODAY else value))


def _comparable(field: Field, value: Stored) -> Stored | decimal.Decimal:
    """Return the value with a decimal number as a number, because the texts 10.0 and 10.00 differ, and 10 sorts before
    9."""
    return decimal.Decimal(value) if isinstance(field, Decimal) and isinstance(value, str) else value


def _compared(field: Field, stored_value: Stored | decimal.Decimal, right: Stored | decimal.Decimal) -> int:
    if isinstance(stored_value, decimal.Decimal) and isinstance(right, decimal.Decimal):
        # PostgreSQL sorts NaN after all numbers.
        return 1 if stored_value.is_nan() else int(stored_value.compare(right))
    stored_value, right = field.rank(cast("Stored", stored_value)), field.rank(cast("Stored", right))
    if isinstance(stored_value, int) and isinstance(right, int):
        return (stored_value > right) - (stored_value < right)
    return (str(stored_value) > str(right)) - (str(stored_value) < str(right))


def are_guards_readable(view: ModelView | None, conditions: Sequence[Where]) -> bool:
    """Return whether the caller sees every field of the conditions and can therefore evaluate them itself."""
    return view is not None and all(view.knows(condition.field) for condition in conditions)


def require_guards(
    model: Declared, view: ModelView | None, conditions: Sequence[Where], values: Mapping[str, Stored], command: str
) -> None:
    """Require that a record meets all conditions. `view` is the caller's view of the model, or None if it has none.

    Raises:
        BadInput: the record does not meet a condition. The error names an unmet condition that the caller can read. If
            there is none, the error states only that the command is not allowed in this state.
    """
    for readable in (True, False):
        for condition in conditions:
            is_seen = view is not None and view.knows(condition.field)
            if is_seen is readable and not is_met(model, values, condition):
                reason = filters.refusal(condition) if readable else ""
                raise BadInput(f"{command} is not allowed in this state{reason}")


def is_locked(model: Declared, values: Mapping[str, Stored]) -> bool:
    """Return whether the record is locked. Only actions can change a locked record."""
    return are_met(model, values, model.locked)


def are_met(model: Declared, values: Mapping[str, Stored], conditions: Sequence[Where]) -> bool:
    """Return whether there is at least one condition and the values meet all conditions."""
    return bool(conditions) and all(is_met(model, values, condition) for condition in conditions)


def require_within_rows(
    view: ModelView | None, command: str, values: Mapping[str, Stored], record_id: str | None = None
) -> None:
    """Require that the caller's row conditions for the command allow a record with these values. They apply to existing
    records and to values to be written.

    Raises:
        BadInput: the command may not use the record. The error is the same as for a record that does not exist.
    """
    rows = () if view is None else view.rows.get(command, ())
    if rows is None or view is None:
        return
    empty: dict[str, Stored] = {name: 0 if field.sum_of else None for name, field in view.model.fields.items()}
    known_values = {**empty, **values, "id": record_id}
    known_values |= computed(view.model, known_values)
    if not any(all(_is_within(view, known_values, condition) for condition in alternative) for alternative in rows):
        raise no_such_record()


def _is_within(view: ModelView, values: Mapping[str, Stored], condition: Where | Condition) -> bool:
    """Return whether the values meet the condition. The result for an SQL condition is False, because no input can
    guarantee that it is met."""
    return isinstance(condition, Where) and is_met(view.model, values, condition)


async def require_unlocked(run: Run, model: Declared, values: Mapping[str, Stored], command: str) -> None:
    """Require that a record is not locked, either by its own state or by the record that `locked_with` refers to.

    Raises:
        BadInput: the record is locked. The error names the locking state only if the caller can read it.
    """
    if is_locked(model, values):
        raise _refusal(run, model, command)
    parent = parent_of(run, model)
    parent_id = values.get(model.locked_with) if model.locked_with else None
    if parent is None or not isinstance(parent_id, str):
        return
    # Lock the parent row, so that a concurrent call cannot post the parent record while this record is written.
    statement = select.lock_existing(parent, None, parent_id, run.engine.dialect)
    row = await run.transaction.fetch_one(statement.text, *statement.values)
    if row is not None and are_met(parent, record_of(parent, row).values, locks_of(model, parent)):
        raise _refusal(run, parent, command) if not model.locked_while else _refusal_with(run, model, parent, command)


async def require_unlocked_as_seen(run: Run, model: Declared, values: Mapping[str, Stored], command: str) -> None:
    """Do what `require_unlocked` does, for a proposal: check only the locks whose conditions the caller can read.

    Raises:
        BadInput: the record is locked.
    """
    views = run.caller.view.models
    if are_guards_readable(views.get(model.name), model.locked) and is_locked(model, values):
        raise _refusal(run, model, command)
    parent = parent_of(run, model)
    parent_id = values.get(model.locked_with) if model.locked_with else None
    if parent is None or not isinstance(parent_id, str) or not await unmask_input.exists(run, parent.name, parent_id):
        return
    if not run.is_touched(parent_id) and are_guards_readable(views.get(parent.name), locks_of(model, parent)):
        await require_unlocked(run, replace(model, locked=()), values, command)


def locks_of(model: Declared, parent: Declared) -> tuple[Where, ...]:
    """Return the conditions that lock a record of the model. They apply to the record that `locked_with` refers to."""
    return model.locked_while or parent.locked


def parent_of(run: Run, model: Declared) -> Declared | None:
    """Return the model that `locked_with` refers to, or None."""
    ref = model.fields.get(model.locked_with) if model.locked_with else None
    return run.engine.registry.models[ref.target] if isinstance(ref, Ref) else None


def are_locks_readable(run: Run, model: Declared) -> bool:
    """Return whether the caller can find out if a record of the model is locked."""
    parent = parent_of(run, model)
    views = run.caller.view.models
    if not are_guards_readable(views.get(model.name), model.locked):
        return False
    if parent is None:
        return True
    parent_view = views.get(parent.name)
    # The ref only identifies the record. To see its fields, the caller also needs a command that reads it.
    is_read = parent_view is not None and parent_view.reads_any_by("get", "list", "search", "export")
    return is_read and are_guards_readable(parent_view, locks_of(model, parent))


def _refusal_with(run: Run, model: Declared, parent: Declared, command: str) -> BadInput:
    """Return the error for a record that is locked because the record of `locked_with` meets `locked_while`."""
    if not are_guards_readable(run.caller.view.models.get(parent.name), model.locked_while):
        return BadInput(f"{command} is not allowed in this state")
    conditions = filters.clauses(
        [replace(condition, field=f"{parent.name}.{condition.field}") for condition in model.locked_while]
    )
    return BadInput(f"{command} is not allowed in this state: {model.name} is locked while {conditions}")


def _refusal(run: Run, model: Declared, command: str) -> BadInput:
    if are_guards_readable(run.caller.view.models.get(model.name), model.locked):
        conditions = filters.clauses(model.locked)
        return BadInput(f"{command} is not allowed in this state: {model.name} is locked while {conditions}")
    return BadInput(f"{command} is not allowed in this state")


async def require_revision(run: Run, view: ModelView, record: StoredRecord, body: Body) -> None:
    """Require that the record has not changed since the `revision` in the input, if the input has one.

    Raises:
        BadInput: the caller sees a change since that revision, or `revision` is not an integer.
    """
    if "revision" not in body:
        return
    if type(body["revision"]) is not int:
        raise BadInput("revision must be an integer")
    record_reader = run.engine.reading(run.caller, view)
    statement = select.one(record_reader, None, record.id)
    row = await run.read_one(record_reader, statement)
    if row is None or row[1] != body["revision"]:
        raise BadInput("record has changed")


READING = ("get", "list", "search", "export")


async def require_rules(
    run: Run,
    model: Declared,
    values: Mapping[str, Stored],
    written_fields: Collection[str],
    field_inputs: Mapping[str, FieldInput],
    command: str,
) -> None:
    """Require that the record meets the rules that name one of the written fields.

    Raises:
        BadInput: the record does not meet a rule. The error names the rule only if the caller reads or sent each of its
            fields.
    """
    await _require_met(run, model, values, rules_naming(model, written_fields), _sent_fields(field_inputs), command)


async def require_all_rules(
    run: Run,
    model: Declared,
    values: Mapping[str, Stored],
    rules: Collection[Where],
    field_inputs: Mapping[str, FieldInput],
    command: str,
) -> None:
    """Require that the record with the given fields meets the rules of an action.

    Raises:
        BadInput: the record does not meet a rule. The error names the rule only if the caller reads or sent each of its
            fields.
    """
    await _require_met(run, model, values, rules, _sent_fields(field_inputs), command)


def _sent_fields(field_inputs: Mapping[str, FieldInput]) -> list[str]:
    """Return the names of the fields that the caller sent, without the fields that a default, an effect or another
    command has set."""
    return [name for name, field_input in field_inputs.items() if not field_input.is_default]


async def require_rules_as_seen(
    run: Run,
    view: ModelView,
    values: Mapping[str, Stored],
    given_fields: Collection[str],
    command: str,
    more_rules: Collection[Where] = (),
) -> None:
    """Do what `require_rules` does, for a proposal: check only the rules whose fields the caller sees. `more_rules` are
    additional rules to check, those of an action.

    Raises:
        BadInput: the record would not meet a rule.
    """
    named_rules = (*rules_naming(view.model, given_fields), *more_rules)
    rules = [named_rule for named_rule in named_rules if is_rule_readable(run, view, named_rule, given_fields)]
    await _require_met(run, view.model, values, rules, given_fields, command)


def rules_naming(model: Declared, written_fields: Collection[str]) -> list[Where]:
    """Return the rules that name at least one of these fields."""
    return [rule for rule in model.rules if _fields(rule) & set(written_fields)]


def is_rule_readable(run: Run, view: ModelView, rule: Where, given_fields: Collection[str]) -> bool:
    """Return whether a caller who sends these fields can find out if a record meets the rule."""
    return all(_knows(run, view, path, given_fields) for path in _paths(rule))


def _knows(run: Run, view: ModelView, path: str, given_fields: Collection[str]) -> bool:
    name, dot, rest_of_path = path.partition(".")
    is_known = name in given_fields or view.knows(name)
    if not dot or not is_known:
        return is_known
    ref = view.model.fields[name]
    parent_view = run.caller.view.models.get(ref.target) if isinstance(ref, Ref) else None
    # If the caller sent the ref, the referenced record exists for the caller. A ref to any other record is refused.
    return (
        parent_view is not None
        and parent_view.knows(rest_of_path)
        and (name in given_fields or parent_view.reads_any_by(*READING))
    )


async def _require_met(
    run: Run,
    model: Declared,
    values: Mapping[str, Stored],
    rules: Collection[Where],
    known_fields: Collection[str],
    command: str,
) -> None:
    """Require that the record meets the rules. `known_fields` names the fields that the caller knows in addition to the
    fields that it reads."""
    view = run.caller.view.models.get(model.name)
    parents: dict[str, tuple[Declared, Mapping[str, Stored]] | None] = {}
    for rule in rules:
        for ref in refs_of(rule):
            if ref not in parents:
                parents[ref] = await _parent(run, model, ref, values.get(ref))
        if not _is_met(model, values, rule, parents):
            is_seen = view is not None and is_rule_readable(run, view, rule, known_fields)
            reason = filters.refusal(rule) if is_seen else ""
            raise BadInput(f"{command} is refused{reason}")


async def _parent(
    run: Run, model: Declared, name: str, record_id: Stored
) -> tuple[Declared, Mapping[str, Stored]] | None:
    """Return the model and the values of the record that the ref refers to. Return None if the ref is empty, or if an
    earlier step of a plan creates the record."""
    ref = model.fields[name]
    if not isinstance(ref, Ref) or not isinstance(record_id, str) or prepared_command.step_index(record_id) is not None:
        return None
    parent = run.engine.registry.models[ref.target]
    # Lock the row, so that the referenced record still meets the rule when this record is written.
    statement = select.lock_existing(parent, None, record_id, run.engine.dialect)
    row = await run.transaction.fetch_one(statement.text, *statement.values)
    return None if row is None else (parent, record_of(parent, row).values)


def _is_met(
    model: Declared,
    values: Mapping[str, Stored],
    rule: Where,
    parents: Mapping[str, tuple[Declared, Mapping[str, Stored]] | None],
) -> bool:
    owner_found = _owner(model, values, rule.field, parents)
    if owner_found is None:
        return True
    owner, is_known, name = owner_found
    condition = replace(rule, field=name)
    if isinstance(rule.value, FieldOf):
        other_owner = _owner(model, values, rule.value.name, parents)
        value = None if other_owner is None else other_owner[1].get(other_owner[2])
        if other_owner is None or value is None or is_known.get(name) is None:
            return True
        condition = replace(condition, value=other_owner[0].fields[other_owner[2]].show(value))
    return is_met(owner, is_known, condition)


def _owner(
    model: Declared,
    values: Mapping[str, Stored],
    path: str,
    parents: Mapping[str, tuple[Declared, Mapping[str, Stored]] | None],
) -> tuple[Declared, Mapping[str, Stored], str] | None:
    """Return the model, the values and the name of the field that a path in a rule refers to. Return None if the
    referenced record does not exist."""
    name, dot, rest_of_path = path.partition(".")
    if not dot:
        return model, values, name
    parent = parents.get(name)
    return None if parent is None else (*parent, rest_of_path)


def _paths(rule: Where) -> Iterator[str]:
    yield rule.field
    if isinstance(rule.value, FieldOf):
        yield rule.value.name


def _fields(rule: Where) -> set[str]:
    """Return the model's own fields that the rule names, including refs."""
    return {path.partition(".")[0] for path in _paths(rule)}


def refs_of(rule: Where) -> set[str]:
    """Return the refs through which the rule names fields of other records."""
    return {path.partition(".")[0] for path in _paths(rule) if "." in path}
