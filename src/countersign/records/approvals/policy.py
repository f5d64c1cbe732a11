"""Decides which commands need approval and who must approve them. A declaration or a setting requires approval, or the
response would reveal hidden data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec

from countersign.declare import BadValue, Declared, Field, Setting, Where
from countersign.declare.condition import OPERATORS, Operator
from countersign.declare.fields.field import Stored
from countersign.declare.model import computed
from countersign.declare.registry import Registry
from countersign.kernel.validation_messages import sentence
from countersign.records.access.view import ModelView
from countersign.records.access.visibility import Commands
from countersign.records.approvals import rights
from countersign.records.base_models import RULING
from countersign.records.commands import checks, dependents, preconditions, record_writer, select, workflow
from countersign.records.commands.command import is_writing
from countersign.records.commands.errors import BadInput
from countersign.records.commands.prepared_command import PlannedCommand, PreparedCommand
from countersign.records.commands.run import Run
from countersign.records.commands.select import record_of

PREFIX = "approval:"
"""The prefix of the titles of approval settings."""

_SETTING = "SELECT value FROM setting WHERE title = $1"


class _When(msgspec.Struct, forbid_unknown_fields=True):
    field: str
    op: str
    value: object


class _Policy(msgspec.Struct, forbid_unknown_fields=True):
    """The setting `approval:<model>.<command>`. If `n` is 0, the setting removes an approval that the declaration
    requires by default."""

    n: int = 1
    group: str | None = None
    not_owner: bool = False
    when: _When | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """The approval that a plan needs: how many people must approve (`needs`), the roles that each of them must have,
    and whether the person for whom the agent acts is excluded."""

    needs: int = 1
    groups: frozenset[str] = frozenset()
    not_owner: bool = False


async def needs_approval(run: Run, prepared_command: PreparedCommand) -> bool:
    """Return whether the command becomes a plan when this caller runs it. People run their permitted commands directly,
    with one exception: a deletion that cascades to records that the caller may not delete or change. A person who may
    delete or change them must approve the deletion."""
    if not run.caller.is_agent:
        missing = await rights.missing_cascade_right(run, prepared_command, locks=True)
        return missing is not None and not await _is_refused(run, prepared_command)
    if is_declared(run.engine.registry, prepared_command.model, prepared_command.command):
        return True
    return (
        await _requires_by_default(run, prepared_command)
        or await _requires_by_setting(run, prepared_command)
        or _would_reveal_hidden(run, prepared_command)
        or await rights.widens_readers(run, prepared_command)
    )


async def _requires_by_default(run: Run, prepared_command: PreparedCommand) -> bool:
    """Return whether the declaration requires approval by default and no setting removes this approval."""
    model = run.engine.registry.models[prepared_command.model]
    names = settings_of(run.engine.registry, prepared_command)
    default_names = {name for name in names if is_default(model, name.partition(".")[2])}
    if prepared_command.command != "create" and await _changes_marked(run, prepared_command):
        default_names.add(f"{model.name}.update")
    settings = [await _setting(run, default_name) for default_name in default_names]
    return any(setting is None or setting.n > 0 for setting in settings)


async def _changes_marked(run: Run, prepared_command: PreparedCommand) -> bool:
    """Return whether the input changes a field for which `needs_approval` applies (see `_is_marked`)."""
    model = run.engine.registry.models[prepared_command.model]
    field_inputs = {
        name: field_input for name, field_input in prepared_command.given.items() if model.fields[name].needs_approval
    }
    if not field_inputs:
        return False
    record = await record_writer.find(run, model, None, prepared_command.record_id)
    view = run.view_of(prepared_command.model)
    marked = {
        name: field_input
        for name, field_input in field_inputs.items()
        if _is_marked(view, record.values, model.fields[name])
    }
    return any([await record_writer.is_change(run, model, record, name, value) for name, value in marked.items()])


def _is_marked(view: ModelView, values: Mapping[str, Stored], field: Field) -> bool:
    """Return whether agents can only propose a change of the field in a record with these values. The result is also
    True if the agent cannot read the fields of the condition. Otherwise the response would reveal whether the record
    meets the condition."""
    rule = field.needs_approval
    if isinstance(rule, Where):
        return not preconditions.are_guards_readable(view, [rule]) or preconditions.is_met(view.model, values, rule)
    return rule


def is_default(model: Declared, command: str) -> bool:
    """Return whether agents can only propose the command, unless a setting allows them to run it."""
    move = None if model.workflow is None else model.workflow.moves.get(command)
    return command in model.needs_approval or (move is not None and move.needs_approval == "default")


def is_liftable(model: Declared, command: str) -> bool:
    """Return whether a setting may remove the approval that the declaration requires by default for the command or, for
    `update`, for changes of fields."""
    return is_default(model, command) or (
        command == "update" and any(field.needs_approval for field in model.fields.values())
    )


async def _is_refused(run: Run, prepared_command: PreparedCommand) -> bool:
    """Return whether the deletion is refused for every caller."""
    dependent_records = await dependents.find(
        run, prepared_command.model, prepared_command.record_id or "", cascade=prepared_command.cascade
    )
    return bool(dependent_records.blocking) or not dependent_records.complete


def is_declared(registry: Registry, model: str, command: str) -> bool:
    """Return whether agents can only propose the command and no setting can change this. This applies to actions that
    are declared so, to every `delete`, to creating and updating records that define access rights, and to every writing
    command on rows of a connected table."""
    declared = registry.models[model]
    if command == "delete" or (model in RULING and command in ("create", "update")):
        return True
    if declared.table is not None:
        return is_writing(declared, command)
    workflow = declared.workflow
    return workflow is not None and command in workflow.moves and workflow.moves[command].needs_approval is True


def _would_reveal_hidden(run: Run, prepared_command: PreparedCommand) -> bool:
    """Return whether the success or the refusal of the command would reveal a value that the agent may not read. If so,
    the command becomes a plan, so that a person decides first."""
    view = run.view_of(prepared_command.model)
    model = view.model
    move = None if model.workflow is None else model.workflow.moves.get(prepared_command.command)
    is_changing = prepared_command.command in ("update", "delete")
    is_changing = is_changing or (move is not None and workflow.sets_more(move, prepared_command.given))
    if (is_changing or model.locked_with) and not preconditions.are_locks_readable(run, model):
        return True
    if move is not None and not workflow.is_action_readable(run, view, move):
        return True
    return not _reads_rules(run, view, prepared_command) or _may_conflict_with_hidden(view, prepared_command)


def _knows_checks(view: ModelView, prepared_command: PreparedCommand) -> bool:
    """Return whether the agent knows all values that the validators of the written fields read. A validator must not
    tell an agent whether the value of a token is valid."""
    model, command = view.model, prepared_command.command
    is_new = command == "create"
    move = None if model.workflow is None else model.workflow.moves.get(command)
    may_write_all = is_new or (move is not None and move.effect is not None)
    written_fields = {*prepared_command.given, *moved(model, command), *cleared(model, command)}
    known = checks.sent_values(model, prepared_command.given, is_new=is_new)
    return checks.are_results_known(view, model.fields if may_write_all else written_fields, known)


def _reads_rules(run: Run, view: ModelView, prepared_command: PreparedCommand) -> bool:
    """Return whether the agent sees all fields of the rules and validators that apply to the input."""
    if not _knows_checks(view, prepared_command):
        return False
    written_fields = list(view.model.fields) if prepared_command.command == "create" else list(prepared_command.given)
    return all(
        preconditions.is_rule_readable(run, view, rule, written_fields)
        for rule in preconditions.rules_naming(view.model, written_fields)
    )


def _may_conflict_with_hidden(view: ModelView, prepared_command: PreparedCommand) -> bool:
    """Return whether another record may have the same unique value, but the agent does not see that record or does not
    read the value in clear."""
    unique = _unique_written(view.model, prepared_command)
    is_looked_up = view.reads_any_by("list", "search", "export")
    return any(not is_looked_up or not view.sees_in_clear(name) for name in unique)


def _unique_written(model: Declared, prepared_command: PreparedCommand) -> list[str]:
    """Return the unique fields whose new values may already belong to another record."""
    unique_fields = {name for name, field_input in prepared_command.given.items() if field_input.stored is not None}
    # A new record has only the given values. An existing record may get another parent, and a record of that parent may
    # already have the same value.
    moved_by = unique_fields if prepared_command.command != "create" else frozenset[str]()
    fields = model.fields.items()
    unique = [name for name, field in fields if name in unique_fields and (field.unique or field.unique_with)]
    return unique + [name for name, field in fields if field.unique_with in moved_by]


def settings_of(registry: Registry, planned_command: PlannedCommand) -> tuple[str, ...]:
    """Return the commands whose settings apply: the command itself and, for an action that sets fields other than its
    inputs, `update`. Only an update can run an action with other fields."""
    model = registry.models[planned_command.model]
    move = None if model.workflow is None else model.workflow.moves.get(planned_command.command)
    own_name = f"{planned_command.model}.{planned_command.command}"
    return (
        (own_name, f"{planned_command.model}.update")
        if move is not None and workflow.sets_more(move, planned_command.given)
        else (own_name,)
    )


async def _requires_by_setting(run: Run, prepared_command: PreparedCommand) -> bool:
    settings = [await _setting(run, setting) for setting in settings_of(run.engine.registry, prepared_command)]
    active_settings = [setting for setting in settings if setting is not None and setting.n > 0]
    if not active_settings or any(active_setting.when is None for active_setting in active_settings):
        return bool(active_settings)
    return any(
        [
            await _is_met(run, prepared_command, condition_of(active_setting.when))
            for active_setting in active_settings
            if active_setting.when is not None
        ]
    )


async def _is_met(run: Run, prepared_command: PreparedCommand, condition: Where) -> bool:
    """Return whether the record meets the condition before or after the command. The result is also True if the agent
    cannot read the fields of the condition. Otherwise the response would reveal that the record does not meet the
    condition."""
    model = run.engine.registry.models[prepared_command.model]
    if not preconditions.are_guards_readable(run.view_of(prepared_command.model), [condition]):
        return True
    values_before: dict[str, Stored] = {}
    if prepared_command.record_id is not None:
        statement = select.lock_existing(model, None, prepared_command.record_id, run.engine.dialect)
        row = await run.transaction.fetch_one(statement.text, *statement.values)
        if row is None:
            return True
        values_before = dict(record_of(model, row).values)
    values_after = (
        values_before
        | {name: given.stored for name, given in prepared_command.given.items()}
        | moved(model, prepared_command.command)
    )
    values_after |= dict.fromkeys(cleared(model, prepared_command.command))
    known_values = {name: values_after.get(name, 0 if field.sum_of else None) for name, field in model.fields.items()}
    values_after = known_values | computed(model, known_values)
    return preconditions.is_met(model, values_after, condition) or (
        bool(values_before) and preconditions.is_met(model, values_before, condition)
    )


def moved(model: Declared, command: str) -> dict[str, Stored]:
    """Return the state field with its value after the action, or an empty mapping if the action does not change the
    state."""
    workflow = model.workflow
    if workflow is None or command not in workflow.moves or not (target_state := workflow.moves[command].to):
        return {}
    return {workflow.field: target_state}


def cleared(model: Declared, command: str) -> tuple[str, ...]:
    """Return the fields that the action empties."""
    workflow = model.workflow
    return () if workflow is None or command not in workflow.moves else workflow.moves[command].clears


def condition_of(condition: _When) -> Where:
    """Return the condition of a setting.

    Raises:
        LookupError: the operator does not exist.
    """
    operator: Operator | None = next((operator for operator in OPERATORS if operator == condition.op), None)
    if operator is None:
        raise LookupError(f"the setting's op {condition.op!r} is not one of {', '.join(OPERATORS)}")
    return Where(condition.field, operator, condition.value)


async def policy_of(run: Run, commands: Sequence[PlannedCommand]) -> Policy:
    """Return the combined approval policy of all commands of a plan."""
    needs, groups, not_owner = 1, set[str](), False
    for command in {name for named in commands for name in settings_of(run.engine.registry, named)}:
        setting = await _setting(run, command)
        if setting is not None:
            needs = max(needs, setting.n)
            not_owner = not_owner or setting.not_owner
            groups |= {setting.group} if setting.group else set()
    return Policy(needs, frozenset(groups), not_owner)


def check_setting(registry: Registry, commands: Commands, values: Mapping[str, Stored]) -> None:
    """Require that a setting exists and that its value is valid.

    Raises:
        BadInput: the setting does not exist, or its value is invalid.
    """
    title = str(values["title"])
    if title in registry.settings:
        return _check_declared(registry.settings[title], str(values["value"]))
    return _check_approval(registry, commands, title, str(values["value"]))


def _check_approval(registry: Registry, commands: Commands, title: str, value: str) -> None:
    model_name, _, command = title.removeprefix(PREFIX).partition(".")
    model = registry.models.get(model_name)
    if not title.startswith(PREFIX) or model is None or command not in commands.get(model_name, ()):
        known_settings = ", ".join(sorted(registry.settings)) or "a setting of a module"
        raise BadInput(f"setting.title must be {PREFIX}<model>.<command>, of a command there is, or {known_settings}")
    try:
        policy = msgspec.json.decode(value, type=_Policy)
    except msgspec.DecodeError as error:
        raise BadInput(f'setting.value must be like {{"n": 2, "group": "sales_manager"}}: {sentence(error)}') from error
    if policy.n < 1:
        _check_lifting(model, command, policy)
    if policy.when is not None:
        _check_when(model, policy.when)


def _check_lifting(model: Declared, command: str, policy: _Policy) -> None:
    if policy != _Policy(n=0):
        raise BadInput("setting.value: n is how many people must approve, 1 or more; 0 alone lifts approval")
    if not is_liftable(model, command):
        command_id = f"{model.name}.{command}"
        raise BadInput(f"setting.value: n must be 1 or more, since no setting lifts the approval of {command_id}")


def _check_declared(setting: Setting, value: str) -> None:
    try:
        option = msgspec.json.decode(value)
    except msgspec.DecodeError:
        option = None
    if option not in setting.options:
        known_options = ", ".join(f'"{option}"' for option in setting.options)
        raise BadInput(f"setting.value of {setting.name} must be one of {known_options}")


def _check_when(model: Declared, condition: _When) -> None:
    field = model.fields.get(condition.field)
    if field is None or condition.op not in field.operators:
        raise BadInput(f"setting.value: when must name a field of {model.name} and an operator that fits it")
    try:
        _ = [field.operand(operand) for operand in _operands(condition)]
    except BadValue as error:
        raise BadInput(f"setting.value: when on {model.name}.{condition.field}: value {error}") from error


def _operands(condition: _When) -> list[object]:
    if condition.op == "is_null":
        if not isinstance(condition.value, bool):
            raise BadInput("setting.value: when with is_null needs true or false")
        return []
    if condition.op == "in":
        return cast("list[object]", condition.value) if isinstance(condition.value, list) else [None]
    return [condition.value]


def lifts(value: str) -> bool:
    """Return whether the value of a setting removes the approval of its command."""
    try:
        return msgspec.json.decode(value, type=_Policy).n == 0
    except msgspec.DecodeError:
        return False


async def _setting(run: Run, command: str) -> _Policy | None:
    row = await run.reader.fetch_one(_SETTING, f"{PREFIX}{command}")
    if row is None:
        return None
    try:
        return msgspec.json.decode(cast(str, row[0]), type=_Policy)
    except msgspec.DecodeError:
        # If the setting cannot be read, require approval to be on the safe side.
        return _Policy()
