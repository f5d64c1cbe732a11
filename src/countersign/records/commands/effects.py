"""The object that code of a package receives: the implementation of `Work` in actions and hooks."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import NoReturn

from countersign.declare import BadValue, Declared, Field, Text, Where
from countersign.declare.fields.field import Stored
from countersign.kernel import clock
from countersign.records import base_models
from countersign.records.access.view import ModelView
from countersign.records.commands import crud, preconditions, record_writer, select, value_aliases
from countersign.records.commands.code_report import CodeReport, RecordValues
from countersign.records.commands.errors import BadInput, NoSuchRecord
from countersign.records.commands.filters import today
from countersign.records.commands.prepared_command import FieldInput
from countersign.records.commands.run import Run
from countersign.records.commands.select import StoredRecord, record_of

MAX_RECORDS = 1_000
"""The maximum number of records that `each` returns."""

_NEXT = """
INSERT INTO sequence (name, next) VALUES ($1, 2)
ON CONFLICT (name) DO UPDATE SET next = sequence.next + 1
RETURNING next - 1
"""
_SETTING = "SELECT value FROM setting WHERE title = $1"


class LinkedText(str):
    """A value of a linked field (a field in which equal values have equal placeholder tokens), as an effect reads it.
    If the effect writes the value unchanged, its token stays the same."""

    __slots__ = ("label", "value_id")

    label: str | None
    value_id: int

    @classmethod
    def of(cls, text: str, label: str | None, value_id: int) -> "LinkedText":
        """Return the text with the label and the value id of its token."""
        linked_text = cls(text)
        linked_text.label, linked_text.value_id = label, value_id
        return linked_text


class CodeRefusal(BadInput):
    """The code of a package refuses the command."""


async def linked_value_ids(
    run: Run, model: Declared, record: StoredRecord, inputs: Mapping[str, FieldInput]
) -> dict[str, int]:
    """Map each linked field to the value id of the token that the caller sees. The inputs of an action replace values
    of the record."""
    unchanged_ids = {name: value_id for name, value_id in record.value_ids.items() if name not in inputs}
    input_ids = {name: field_input.value_id for name, field_input in inputs.items() if field_input.value_id is not None}
    return await value_aliases.displayed(run, model, record, unchanged_ids) | input_ids


class EffectContext:
    """The implementation of `Work`, the object that an effect receives. It collects the changes of the action's record;
    the action writes them after the effect."""

    def __init__(
        self,
        run: Run,
        model: Declared,
        record_id: str,
        values: Mapping[str, Stored],
        command: str,
        value_ids: Mapping[str, int] | None = None,
        *,
        before: Mapping[str, Stored] | None = None,
        report: CodeReport | None = None,
        sent: frozenset[str] = frozenset(),
        deadline_s: float | None = None,
    ) -> None:
        """`value_ids` maps fields to the value ids of the values that keep their tokens. `before` are the values before
        the command. Reads and changes are noted in the `report`. The caller knows the values of the fields in `sent`,
        because it sent them or because they are those of the declaration. After `deadline_s`, the next call of the
        package raises TimeoutError: on SQLite no call waits, so that a timeout of asyncio cannot end a loop."""
        self._run = run
        self._deadline_s = deadline_s
        self._model = model
        self._command = command
        self._report = report or CodeReport()
        view = run.caller.view.models.get(model.name)
        self._record = self._values(
            model, record_id, values, value_ids or {}, lambda name: name in sent or _knows(view, name)
        )
        self._before = self._values(model, record_id, before or {}, {}, lambda name: _knows(view, name))
        self.changes: dict[str, FieldInput] = {}

    def _values(
        self,
        model: Declared,
        record_id: str,
        values: Mapping[str, Stored],
        value_ids: Mapping[str, int],
        knows: Callable[[str], bool],
    ) -> Mapping[str, object]:
        shown_values = {
            name: None if value is None else _effect_value(model.fields[name], value, value_ids.get(name))
            for name, value in values.items()
        }
        return RecordValues(model, {"id": record_id, **shown_values}, self._report, knows)

    @property
    def record(self) -> Mapping[str, object]:
        """Return the record as stored before the action, with the action's inputs in place of the stored values. Every
        field is in clear."""
        return self._record

    @property
    def now(self) -> Mapping[str, object]:
        """Return the values of the record as the command writes them."""
        return self._record

    @property
    def was(self) -> Mapping[str, object]:
        """Return the values of the record before the command."""
        return self._before

    @property
    def today(self) -> str:
        """The current day in UTC."""
        return today()

    @property
    def caller_roles(self) -> frozenset[str]:
        """Return the roles of the person who runs or approves the command."""
        return self._run.caller.roles

    async def change(self, **values: object) -> None:
        """Set fields of the record.

        Raises:
            BadInput: a value is invalid for its field.
        """
        self.changes |= _field_inputs(self._run, self._model, values)

    async def create(self, model: str, /, **values: object) -> str:
        """Create a record of another model and return its id.

        Raises:
            BadInput: a value is invalid, a required value is missing, a unique value is taken, or the new record would
                be locked.
        """
        model_declaration = self._run.engine.registry.models[model]
        field_inputs = _field_inputs(self._run, model_declaration, values)
        self._add_defaults(model_declaration, field_inputs)
        if model_declaration.workflow is not None and model_declaration.workflow.field not in field_inputs:
            first_state = crud.first_option(model_declaration.fields[model_declaration.workflow.field])
            field_inputs[model_declaration.workflow.field] = FieldInput(first_state, is_default=True)
        stored_values = {name: field_input.stored for name, field_input in field_inputs.items()}
        self._use(model_declaration, *model_declaration.fields)
        self._report.note_change(model_declaration, None, "created", pairs_of({}, field_inputs))
        await preconditions.require_unlocked(self._run, model_declaration, stored_values, self._command)
        async with self._atomic():
            return await record_writer.insert(self._run, model_declaration, field_inputs, f"{model}.create")

    def _atomic(self) -> AbstractAsyncContextManager[None]:
        """Return a block for a write of a hook. If the hook catches the refusal of the write, or of hooks that it runs,
        nothing of it stays."""
        return nullcontext() if self._deadline_s is None else self._run.transaction.savepoint()

    def _add_defaults(self, model: Declared, field_inputs: dict[str, FieldInput]) -> None:
        for name, field in model.fields.items():
            if name not in field_inputs and field.default is not None:
                field_inputs[name] = FieldInput(crud.default(self._run, field), is_default=True)
            if field.required and (name not in field_inputs or field_inputs[name].stored is None):
                raise BadInput(f"{self._command} cannot be done: {model.name}.{name} is required")

    async def update(self, model: str, record_id: str, /, **values: object) -> None:
        """Set fields of another record.

        Raises:
            BadInput: the record does not exist or is locked, or a value is invalid.
            LookupError: the model belongs to the service itself, such as `plan` or `user`.
        """
        registry = self._run.engine.registry
        if registry.module_of[model].name == base_models.MODULE.name:
            raise LookupError(f"the code of a package cannot update records of {model}")
        model_declaration = registry.models[model]
        field_inputs = _field_inputs(self._run, model_declaration, values)
        self._use(model_declaration, *model_declaration.fields)
        record = await record_writer.find(self._run, model_declaration, None, record_id)
        self._report.note_change(model_declaration, record_id, "changed", pairs_of(record.values, field_inputs))
        await preconditions.require_unlocked(self._run, model_declaration, record.values, self._command)
        async with self._atomic():
            await record_writer.update(self._run, model_declaration, record, field_inputs, f"{model}.update")

    async def find(self, model: str, /, **values: object) -> str | None:
        """Return the id of the first record with exactly these values, or None if there is no such record."""
        text, bound_values = self._matching("id", model, values)
        row = await self._run.transaction.fetch_one(f"{text} ORDER BY id LIMIT 1", *bound_values)
        return None if row is None else str(row[0])

    async def read(self, model: str, record_id: str, /, *, locks: bool = True) -> Mapping[str, object] | None:
        """Return the record with this id, with every field in clear. Return None if it does not exist."""
        model_declaration = self._run.engine.registry.models[model]
        self._use(model_declaration, is_by_id=True)
        try:
            record = await record_writer.find(self._run, model_declaration, None, record_id, locks=locks)
        except NoSuchRecord:
            return None
        return await self._shown(model_declaration, record)

    async def get(self, model: str, record_id: object, /) -> Mapping[str, object]:
        """Return the record with this id, without a lock and with every field in clear.

        Raises:
            LookupError: the record does not exist.
        """
        record = await self.read(model, str(record_id), locks=False)
        if record is None:
            raise LookupError(f"there is no such {model}")
        return record

    async def each(
        self, model: str, /, *conditions: Where, limit: int = MAX_RECORDS
    ) -> AsyncIterator[Mapping[str, object]]:
        """Yield the records that meet all conditions, in the order of their ids, with every field in clear."""
        model_declaration = self._run.engine.registry.models[model]
        self._use(model_declaration, *(condition.field for condition in conditions))
        statement = select.matching(
            model_declaration, conditions, self._run.engine.dialect, max(0, min(limit, MAX_RECORDS))
        )
        for row in await self._run.transaction.fetch(statement.text, *statement.values):
            yield await self._shown(model_declaration, record_of(model_declaration, row))

    async def _shown(self, model: Declared, record: StoredRecord) -> Mapping[str, object]:
        value_ids = await linked_value_ids(self._run, model, record, {})
        view = self._run.caller.view.models.get(model.name)
        return self._values(model, record.id, record.values, value_ids, lambda name: _knows(view, name))

    def _use(self, model: Declared, *names: str, is_by_id: bool = False) -> None:
        """Note that the outcome depends on which records of the model exist, and on these fields of all of them. A
        caller that may only `get` records knows whether one with a known id exists, and nothing about the others.

        Raises:
            TimeoutError: the time of the package is over.
        """
        if self._deadline_s is not None and clock.monotonic_s() > self._deadline_s:
            raise TimeoutError
        view = self._run.caller.view.models.get(model.name)
        commands = ("get", "list", "search", "export") if is_by_id else ("list", "search", "export")
        is_seen = view is not None and view.reads_any_by(*commands)
        is_known = is_seen and all(name == "id" or _knows(view, name) for name in names)
        self._report.is_known = self._report.is_known and is_known

    async def setting(self, name: str, /) -> str:
        """Return the value of a setting that a module declares.

        Raises:
            LookupError: no module declares the setting.
        """
        setting_declaration = self._run.engine.registry.settings[name]
        row = await self._run.transaction.fetch_one(_SETTING, name)
        stored_text = None if row is None else row[0].strip().strip('"')
        return stored_text if stored_text in setting_declaration.options else setting_declaration.options[0]

    async def count(self, model: str, /, **values: object) -> int:
        """Return the number of records with exactly these values."""
        text, bound_values = self._matching("count(*)", model, values)
        row = await self._run.transaction.fetch_one(text, *bound_values)
        return 0 if row is None else int(row[0])

    def _matching(self, selected_columns: str, model: str, values: Mapping[str, object]) -> tuple[str, list[Stored]]:
        field_inputs = _field_inputs(self._run, self._run.engine.registry.models[model], values)
        self._use(self._run.engine.registry.models[model], *field_inputs)
        tests = [f'"{name}" = ${number}' for number, name in enumerate(field_inputs, 1)]
        where_text = f" WHERE {' AND '.join(tests)}" if tests else ""
        return f'SELECT {selected_columns} FROM "{model}"{where_text}', [
            field_input.stored for field_input in field_inputs.values()
        ]

    async def next_number(self, sequence: str) -> int:
        """Return the next number of the sequence, which starts at 1. The number is rolled back if the action fails, so
        that the numbers have no gaps."""
        row = await self._run.transaction.fetch_one(_NEXT, sequence)
        if row is None:
            raise LookupError(f"the sequence {sequence} gave no number")
        return int(row[0])

    def refuse(self, reason: str) -> NoReturn:
        """End the action with this reason.

        Raises:
            CodeRefusal: always.
        """
        raise CodeRefusal(reason)


def pairs_of(before: Mapping[str, Stored], changes: Mapping[str, FieldInput]) -> dict[str, tuple[Stored, Stored]]:
    """Map each field whose value changes to its values before and after."""
    pairs = {name: (before.get(name), value.stored) for name, value in changes.items()}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _knows(view: ModelView | None, name: str) -> bool:
    return view is not None and view.knows(name)


def _effect_value(field: Field, value: Stored, value_id: int | None) -> object:
    if isinstance(value, str) and value_id is not None:
        return LinkedText.of(value, field.personal, value_id)
    return field.show(value)


def _field_inputs(run: Run, model: Declared, values: Mapping[str, object]) -> dict[str, FieldInput]:
    field_inputs: dict[str, FieldInput] = {}
    for name, value in values.items():
        field = model.field(name)
        try:
            field_inputs[name] = _field_input(run, field, value)
        except BadValue as error:
            raise BadInput(f"{model.name}.{name} {error}") from error
    return field_inputs


def _field_input(run: Run, field: Field, value: object) -> FieldInput:
    """Return a value that an effect writes, as an input of the caller. An unchanged linked value keeps its token. Any
    other value counts as written in clear: if it could get the token of an equal existing value, a caller could confirm
    a guess."""
    if value is None:
        return FieldInput(None, is_default=True)
    if isinstance(value, LinkedText):
        # Copy an existing value unchanged, because it may be older than the format of the field.
        stored_value = field.of_any_length(str(value)) if isinstance(field, Text) else field.read(str(value))
        if field.linked and field.personal == value.label:
            return FieldInput(stored_value, value.value_id, is_default=True)
    else:
        stored_value = field.read(value)
    is_plain_text = run.domain is not None and field.personal is not None
    return FieldInput(stored_value, is_plain_text=is_plain_text, is_default=True)
