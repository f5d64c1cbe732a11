"""Rights on plans: which plans a caller sees, who may run their steps, and who reads the values in them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from countersign.declare import Declared, Ref, where
from countersign.declare.registry import Registry
from countersign.kernel.database.port import Dialect, Value
from countersign.records.access.view import Caller, ModelView, Rows, View, Visibility
from countersign.records.approvals.step_storage import Step
from countersign.records.commands import (
    dependents,
    filters,
    preconditions,
    prepared_command,
    record_writer,
    select,
    unmask_input,
)
from countersign.records.commands.dependents import Dependents
from countersign.records.commands.errors import BadInput, NoSuchRecord
from countersign.records.commands.filters import DelegatedParameters, Parameters, Scope, any_of
from countersign.records.commands.prepared_command import FieldInput, PlannedCommand, PreparedCommand
from countersign.records.commands.run import Run

REWRITTEN = frozenset({"digest", "error"})
"""The fields of a plan whose content depends on the viewer. Filters on these fields are not allowed, because a filter
would apply to the stored text."""


@dataclass(frozen=True, eq=False)
class Decidable:
    """An SQL condition that selects the plans of which the person may run every step on the record of the step."""

    view: View
    dialect: Dialect

    def sql(self, alias: str, add_parameter: Callable[[Value], str]) -> str:
        """Return the condition that the plan has no step that the person may not run."""
        runnable = " OR ".join(self._runnable(add_parameter)) or "1 = 0"
        return (
            f"NOT EXISTS (SELECT 1 FROM plan_step AS step WHERE step.plan_id = {alias}.id AND NOT ({runnable}))"
        )

    def _runnable(self, add_parameter: Callable[[Value], str]) -> list[str]:
        unconditional: list[str] = []
        conditions: list[str] = []
        for name, view in self.view.models.items():
            for rows, commands in _by_rows(view):
                if view.model.table is not None and rows is not None:
                    # Their conditions apply to another database, so a person needs the right for all records.
                    continue
                command_list = ", ".join(add_parameter(f"{name}.{command}") for command in commands)
                if rows is None:
                    unconditional.append(command_list)
                    continue
                reach_condition = any_of(
                    Scope(self.dialect, DelegatedParameters(add_parameter), "target"), view.model, rows
                )
                # A new comment is about a record that this statement does not know, so only its proposer decides on it.
                is_new = "1 = 0" if name == "comment" else "step.record_id IS NULL"
                conditions.append(
                    f"(step.command IN ({command_list}) AND ({is_new} OR EXISTS "
                    f'(SELECT 1 FROM "{name}" AS target WHERE target.id = step.record_id AND {reach_condition})))'
                )
        return [f"step.command IN ({', '.join(unconditional)})", *conditions] if unconditional else conditions


def _by_rows(view: ModelView) -> list[tuple[Rows, list[str]]]:
    """Group the commands by the filter of the records that they may use. Most commands share one filter, and each
    filter in the statement costs time."""
    commands_by_rows: list[tuple[Rows, list[str]]] = []
    for command in sorted(view.commands):
        rows = view.reach(command)
        commands = next((commands for known_rows, commands in commands_by_rows if known_rows == rows), None)
        if commands is None:
            commands_by_rows.append((rows, [command]))
        else:
            commands.append(command)
    return commands_by_rows


def with_plans(caller: Caller, dialect: Dialect) -> Caller:
    """Return the caller with a view of plans that is limited to the plans that exist for the caller."""
    view = caller.view.models.get("plan")
    if view is None:
        return caller
    own_condition = where("person", eq=caller.user_id)
    rows: Rows
    if caller.is_agent:
        rows = ((own_condition, where("agent", eq=caller.agent)),)
    else:
        rows = ((own_condition,), (where("decided_by", eq=caller.user_id),), (Decidable(caller.view, dialect),))
    narrowed_view = replace(view, rows={command: rows for command in view.commands}, rewritten=REWRITTEN)
    models, own_values = {**caller.view.models, "plan": narrowed_view}, dict(caller.view.own)
    tokens = caller.view.models.get("agent_token")
    if caller.is_agent and (tokens is None or not tokens.is_readable):
        own_values[view.model.fields["agent_token"]] = caller.credential_id
    return replace(caller, view=replace(caller.view, models=models, own=own_values))


_READERS = """
SELECT r.title, g.clear, g.commands, g.rows
FROM "grant" AS g
JOIN role AS r ON r.id = g.role
WHERE g.model = $1
"""
_ROLES = "SELECT title FROM role"
_READING = ("get", "list", "search")
_LABEL = "SELECT label FROM pii_value WHERE id = $1"
_LABELS = "SELECT id, label FROM pii_value WHERE id IN ({places})"


async def widens_readers(run: Run, prepared_command: PreparedCommand) -> bool:
    """Return whether writing the input would let a role read a tokenized value in clear that it cannot read in clear
    now.

    The readers of a value are the roles that read a field with this value in clear. The result is False if every reader
    of the target field is also a reader of the value. A role with row conditions may see the target record but not the
    source record, from which the value was copied. Such a role is a reader of the value only if both are the same
    record.
    """
    for name, field_input in prepared_command.given.items():
        if not field_input.origins:
            continue
        readers = (await _readers(run, prepared_command.model, name)).some
        for value_id in set(field_input.origins):
            if not readers <= await _readers_of_value(run, value_id, prepared_command):
                return True
    return False


class _Readers(NamedTuple):
    """The roles that read a field in clear. `some` are the roles that do so in at least some records, and `all` the
    roles that do so in all records."""

    some: frozenset[str]
    all: frozenset[str]


async def _readers(run: Run, model: str, field: str) -> _Readers:
    if model == "comment":
        # Everyone who sees the record reads its comments, so each role may be a reader.
        return _Readers(frozenset([title for (title,) in await run.reader.fetch(_ROLES)]), frozenset())
    return await _readers_by_grant(run, model, field)


async def _readers_by_grant(run: Run, model: str, field: str) -> _Readers:
    restricted_roles = run.engine.registry.models[model].fields[field].restricted
    reader_ids: set[str] = set()
    by_command: dict[str, dict[str, bool]] = {}
    for role, clear, commands, rows in await run.reader.fetch(_READERS, model):
        if _includes(clear, field) and (not restricted_roles or role in restricted_roles):
            reader_ids.add(role)
        for command in _READING:
            if _includes(commands, command):
                sees_all = by_command.setdefault(role, {})
                sees_all[command] = sees_all.get(command, False) or not rows
    return _Readers(
        frozenset(reader_ids), _of_every_row(run, model, {role: by_command.get(role, {}) for role in reader_ids})
    )


def _of_every_row(run: Run, model: str, by_command: Mapping[str, Mapping[str, bool]]) -> frozenset[str]:
    """Return the roles that see all records of the model. Policies of a connected database hide records from people of
    every role."""
    registry = run.engine.registry
    if registry.models[model].table is not None and registry.session:
        return frozenset()
    return frozenset(role for role, sees_all in by_command.items() if _sees_every_row(sees_all))


def _includes(names: object, name: str) -> bool:
    return bool({word.strip() for word in str(names or "").split(",")} & {name, "*"})


def _sees_every_row(by_command: Mapping[str, bool]) -> bool:
    """Return whether a role sees all records: the records of `get` or, without `get`, the records of the other reading
    commands."""
    return by_command.get("get", any(by_command.values()))


async def _readers_of_value(run: Run, value_id: int, prepared_command: PreparedCommand) -> frozenset[str]:
    """Return the readers of the value in the records that the caller sees. Hidden records must not influence the
    response."""
    row = await run.reader.fetch_one(_LABEL, value_id)
    if row is None:
        return frozenset()
    readers: frozenset[str] = frozenset()
    for model, name in unmask_input.fields_labelled(run, row[0]):
        if await unmask_input.text_in(run, model, name, f"{name}__value", value_id) is not None:
            is_same = model == prepared_command.model and await unmask_input.contains_value(
                run, model, name, prepared_command.record_id, value_id
            )
            readers |= (await _readers(run, model, name))[0 if is_same else 1]
    aliased = await unmask_input.places_of_alias(run, value_id, row[0])
    for model, name, record_id in [*aliased, *await unmask_input.places_with_value(run, value_id)]:
        is_same = (model, record_id) == (prepared_command.model, prepared_command.record_id)
        readers |= (await _readers(run, model, name))[0 if is_same else 1]
    return readers


async def hidden_fields(run: Run, model: str, origins: Mapping[str, Sequence[int]]) -> frozenset[str]:
    """Return the input fields of a plan whose text is hidden from the caller. `origins` maps each field to the value
    ids of the tokens in its text. A text of a field that the caller reads in clear is hidden unless the caller may read
    all these values in clear. A text of a masked field is hidden unless the caller may see all these values, in clear
    or masked."""
    view = run.caller.view.models.get(model)
    hidden_names: set[str] = set()
    for name, value_ids in origins.items():
        visibility = None if view is None else view.fields.get(name)
        if value_ids and (visibility is None or not await _sees_all(run, visibility, sorted(set(value_ids)))):
            hidden_names.add(name)
    return frozenset(hidden_names)


async def _sees_all(run: Run, visibility: Visibility, value_ids: Sequence[int]) -> bool:
    """Return whether the caller sees all of these values either with this visibility or in clear."""
    places = ", ".join(f"${number}" for number in range(1, len(value_ids) + 1))
    labels: dict[int, str] = dict(await run.reader.fetch(_LABELS.format(places=places), *value_ids))
    if len(labels) < len(value_ids) and not _sees_everywhere(run, visibility, None):
        # A deleted value has no label. It is visible only to callers who see every personal field.
        return False
    for label in set(labels.values()):
        if not _sees_everywhere(run, visibility, label):
            same_label = [value_id for value_id in value_ids if labels.get(value_id) == label]
            readable = await unmask_input.readable_value_ids(run, label, same_label, in_clear=visibility == "clear")
            if readable < frozenset(same_label):
                return False
    return True


def _sees_everywhere(run: Run, visibility: Visibility, label: str | None) -> bool:
    """Return whether the caller sees every field with this label in all records, either with this visibility or in
    clear. Without a label, this applies to the fields with any label."""
    return all(
        _sees_field(run.caller.view.models.get(name), field.name, visibility)
        for name, model in run.engine.registry.models.items()
        for field in model.fields.values()
        if field.personal and label in (None, field.personal)
    )


def _sees_field(view: ModelView | None, name: str, visibility: Visibility) -> bool:
    return view is not None and view.visible is None and view.fields.get(name) in ("clear", visibility)


_IDS_AT_ONCE = 500


async def missing_right(run: Run, caller: Caller, step: Step, *, decides: bool = True) -> str | None:
    """Return the right that the caller lacks for the step: the name of a command, a field or a record. Return None if
    the caller may run the step.

    A caller that decides also needs the rights for a cascading deletion, but the proposer does not. Records that were
    deleted after the proposal are not checked, because they make the plan stale or let it fail.
    """
    view = caller.view.models.get(step.model)
    if view is None or step.command not in view.commands:
        return step.id
    caller_run = replace(run, caller=caller)
    for name, value in step.given.items():
        if not value.is_default and not await _may_set(caller_run, view, step, name, value):
            return f"{step.model}.{name}"
    unseen = await _unseen_record(caller_run, view, step)
    return await missing_cascade_right(caller_run, step) if unseen is None and decides else unseen


async def _unseen_record(run: Run, view: ModelView, step: Step) -> str | None:
    """Return the name of the record of the step that the caller does not see, or None."""
    if not await _reaches(run, view, step.command, [step.record_id] if step.record_id else []):
        return f"this {step.model}"
    if step.id == "comment.create" and not await _sees_subject(run, step):
        return "the record of the comment"
    return None


async def _sees_subject(run: Run, step: Step) -> bool:
    """Return whether the caller sees the record that a new comment is about."""
    model, record_id = (step.given[name].stored for name in ("model", "record"))
    return await unmask_input.exists(run, str(model), str(record_id))


class RequiredRight(NamedTuple):
    """A command that the caller must be allowed to run on records, and the field that the command writes in them."""

    model: str
    command: str
    field: str


async def missing_cascade_right(run: Run, step: PlannedCommand, *, locks: bool = False) -> str | None:
    """Return the right that the caller lacks to delete the records of a cascading deletion, or to clear their refs, by
    separate commands. Return None if the caller lacks no right.

    For a model without such a command, and for a ref that only the engine writes, no separate right exists. The right
    to delete the first record is then sufficient.

    With `locks`, the records are locked until the transaction ends, so that no other record is added to them.
    """
    for right, record_ids in (await cascade_needs(run, step, locks=locks)).items():
        view = run.caller.view.models.get(right.model)
        if view is None or right.command not in view.commands:
            return f"{right.model}.{right.command}"
        if right.field and (right.field not in view.fields or right.field not in view.writable):
            return f"{right.model}.{right.field}"
        if not await _reaches(run, view, right.command, record_ids):
            return f"this {right.model}"
        if right.field and not await _stays_within(run, view, right.field, record_ids):
            return f"this {right.model}"
    return None


async def cascade_needs(run: Run, step: PlannedCommand, *, locks: bool = False) -> dict[RequiredRight, list[str]]:
    """Map each command that a cascading deletion replaces (deleting records or clearing their refs) to the ids of the
    records. The result is empty if there are too many records, because the deletion is then refused."""
    if not step.cascade or step.record_id is None:
        return {}
    dependent_records = await dependents.find(run, step.model, step.record_id, cascade=True, locks=locks)
    return _required_rights(run.engine.registry, dependent_records) if dependent_records.complete else {}


def _required_rights(registry: Registry, dependents: Dependents) -> dict[RequiredRight, list[str]]:
    needs: dict[RequiredRight, list[str]] = {}
    for name, record_id in dependents.deleted[1:]:
        if "delete" in registry.models[name].commands:
            needs.setdefault(RequiredRight(name, "delete", ""), []).append(record_id)
    for link in dependents.cleared:
        name, record_id = link.source
        model = registry.models[name]
        if "update" in model.commands and not model.fields[link.field].readonly:
            needs.setdefault(RequiredRight(name, "update", link.field), []).append(record_id)
    return needs


async def _stays_within(run: Run, view: ModelView, field: str, record_ids: Sequence[str]) -> bool:
    """Return whether the caller may still update the records after the ref is cleared."""
    if view.rows.get("update") is None:
        return True
    for record_id in record_ids:
        record = await record_writer.find(run, view.model, None, record_id)
        try:
            preconditions.require_within_rows(view, "update", {**record.values, field: None}, record_id)
        except BadInput:
            return False
    return True


async def _may_set(run: Run, view: ModelView, step: Step, name: str, value: FieldInput) -> bool:
    """Return whether the caller may set the field, either as an input of the action or with `update`."""
    if name not in view.fields:
        return False
    is_input = name in _inputs(view.model, step.command)
    if not is_input and (name not in view.writable or (step.command != "create" and "update" not in view.commands)):
        return False
    field = view.model.fields[name]
    if (
        not isinstance(field, Ref)
        or not isinstance(value.stored, str)
        or prepared_command.step_index(value.stored) is not None
    ):
        return True
    return await unmask_input.exists(run, field.target, value.stored) or not await _exists(run, field, value.stored)


def _inputs(model: Declared, command: str) -> frozenset[str]:
    move = None if model.workflow is None else model.workflow.moves.get(command)
    return frozenset() if move is None else frozenset(move.accepted_fields)


async def _exists(run: Run, field: Ref, record_id: str) -> bool:
    try:
        await record_writer.find(run, run.engine.registry.models[field.target], None, record_id, locks=False)
    except NoSuchRecord:
        return False
    return True


async def _reaches(run: Run, view: ModelView, command: str, record_ids: Sequence[str]) -> bool:
    """Return whether the caller may use the command on all those records that exist."""
    rows = view.reach(command)
    if rows is None:
        return True
    if view.model.table is not None:
        record_reader = run.engine.reading(run.caller, view)
        query = filters.Query(filter=(filters.Condition("id", "in", list(record_ids)),))
        visible_rows = await run.read_all(record_reader, select.page(record_reader, rows, query))
        return {row[0] for row in visible_rows} >= set(record_ids)
    for start in range(0, len(record_ids), _IDS_AT_ONCE):
        parameters = Parameters()
        places = ", ".join(parameters.put(record_id) for record_id in record_ids[start : start + _IDS_AT_ONCE])
        scope = filters.Scope(run.engine.dialect, parameters, "t")
        reach_condition = filters.any_of(scope, view.model, rows)
        text = (
            f'SELECT count(*), count(CASE WHEN {reach_condition} THEN 1 END) FROM "{view.model.name}" AS t '
            f"WHERE t.id IN ({places})"
        )
        row = await run.transaction.fetch_one(text, *parameters.values)
        if row is not None and row[0] != row[1]:
            return False
    return True
