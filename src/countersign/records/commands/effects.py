"""The hands of a workflow action's effect: what a module may do beside moving its record."""

from collections.abc import Mapping
from typing import NoReturn

from countersign.declare import BadValue, Declared, Field, Text
from countersign.declare.fields.field import Stored
from countersign.records.commands import aliases, create, locks, select, writing
from countersign.records.commands.conditions import today
from countersign.records.commands.given import Given
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Run
from countersign.records.commands.stored import StoredRecord, record_of

_NEXT = """
INSERT INTO sequence (name, next) VALUES ($1, 2)
ON CONFLICT (name) DO UPDATE SET next = sequence.next + 1
RETURNING next - 1
"""
_SETTING = "SELECT value FROM setting WHERE title = $1"


class Linked(str):
    """A linked value of the record, as an effect gets it: where it is written again, as it is, its token stays."""

    __slots__ = ("label", "value_id")

    label: str | None
    value_id: int

    @classmethod
    def of(cls, text: str, label: str | None, value_id: int) -> "Linked":
        """The text, with the label and the value id that its token is made from."""
        made = cls(text)
        made.label, made.value_id = label, value_id
        return made


async def linked(run: Run, model: Declared, record: StoredRecord, inputs: Mapping[str, Given]) -> dict[str, int]:
    """By field of a record with an action's inputs, the value ids whose tokens whoever acts knows the values by."""
    kept = {name: value_id for name, value_id in record.value_ids.items() if name not in inputs}
    given = {name: each.value_id for name, each in inputs.items() if each.value_id is not None}
    return await aliases.displayed(run, model, record.id, kept) | given


class Hands:
    """The `Work` of one effect; what it changes on its own record is collected and written by the action."""

    def __init__(
        self,
        run: Run,
        model: Declared,
        record_id: str,
        values: Mapping[str, Stored],
        command: str,
        value_ids: Mapping[str, int] | None = None,
    ) -> None:
        """Takes the record's values, and of `linked` the value ids of those that keep their tokens."""
        self._run = run
        self._model = model
        self._command = command
        known = value_ids or {}
        shown = {
            name: None if value is None else _shown(model.fields[name], value, known.get(name))
            for name, value in values.items()
        }
        self._record: Mapping[str, object] = {"id": record_id, **shown}
        self.changes: dict[str, Given] = {}

    @property
    def record(self) -> Mapping[str, object]:
        """The record before the action with the action's inputs, every field in clear."""
        return self._record

    @property
    def today(self) -> str:
        """The present day in UTC."""
        return today()

    async def change(self, **values: object) -> None:
        """Set fields of the record.

        Raises:
            BadInput: a value does not fit.
        """
        self.changes |= _read(self._run, self._model, values)

    async def create(self, model: str, /, **values: object) -> str:
        """Make a record of another model; its id.

        Raises:
            BadInput: a value does not fit, is missing, or must be unique and is taken.
        """
        declared = self._run.engine.registry.models[model]
        given = _read(self._run, declared, values)
        for name, field in declared.fields.items():
            if name not in given and field.default is not None:
                given[name] = Given(create.default(self._run, field), is_default=True)
            if field.required and (name not in given or given[name].stored is None):
                raise BadInput(f"{self._command} cannot be done: {model}.{name} is required")
        if declared.workflow is not None and declared.workflow.field not in given:
            first = create.first_option(declared.fields[declared.workflow.field])
            given[declared.workflow.field] = Given(first, is_default=True)
        stored = {name: each.stored for name, each in given.items()}
        await locks.require_open(self._run, declared, stored, self._command)
        return await writing.insert(self._run, declared, given, f"{model}.create")

    async def find(self, model: str, /, **values: object) -> str | None:
        """The id of the first record with exactly these values, or None."""
        text, bound = self._matching("id", model, values)
        row = await self._run.transaction.fetch_one(f"{text} ORDER BY id LIMIT 1", *bound)
        return None if row is None else str(row[0])

    async def read(self, model: str, record_id: str, /, *, locks: bool = True) -> Mapping[str, object] | None:
        """The record of that id, every field in clear; None if it does not exist."""
        declared = self._run.engine.registry.models[model]
        statement = select.existing(declared, None, record_id, self._run.engine.dialect, locks=locks)
        row = await self._run.transaction.fetch_one(statement.text, *statement.values)
        if row is None:
            return None
        record = record_of(declared, row)
        value_ids = await linked(self._run, declared, record, {})
        shown = {
            name: None if value is None else _shown(declared.fields[name], value, value_ids.get(name))
            for name, value in record.values.items()
        }
        return {"id": record_id, **shown}

    async def setting(self, name: str, /) -> str:
        """The value of a setting that a module declares.

        Raises:
            LookupError: no module declares it.
        """
        declared = self._run.engine.registry.settings[name]
        row = await self._run.transaction.fetch_one(_SETTING, name)
        found = None if row is None else row[0].strip().strip('"')
        return found if found in declared.options else declared.options[0]

    async def count(self, model: str, /, **values: object) -> int:
        """How many records have exactly these values."""
        text, bound = self._matching("count(*)", model, values)
        row = await self._run.transaction.fetch_one(text, *bound)
        return 0 if row is None else int(row[0])

    def _matching(self, what: str, model: str, values: Mapping[str, object]) -> tuple[str, list[Stored]]:
        given = _read(self._run, self._run.engine.registry.models[model], values)
        tests = [f'"{name}" = ${number}' for number, name in enumerate(given, 1)]
        where = f" WHERE {' AND '.join(tests)}" if tests else ""
        return f'SELECT {what} FROM "{model}"{where}', [each.stored for each in given.values()]

    async def next_number(self, sequence: str) -> int:
        """The next number, from 1; given back when the action fails, so that there is no gap."""
        row = await self._run.transaction.fetch_one(_NEXT, sequence)
        if row is None:
            raise LookupError(f"the sequence {sequence} gave no number")
        return int(row[0])

    def refuse(self, reason: str) -> NoReturn:
        """End the action with this reason.

        Raises:
            BadInput: always.
        """
        raise BadInput(reason)


def _shown(field: Field, value: Stored, value_id: int | None) -> object:
    if isinstance(value, str) and value_id is not None:
        return Linked.of(value, field.personal, value_id)
    return field.show(value)


def _read(run: Run, model: Declared, values: Mapping[str, object]) -> dict[str, Given]:
    found: dict[str, Given] = {}
    for name, value in values.items():
        field = model.field(name)
        try:
            found[name] = _given(run, field, value)
        except BadValue as error:
            raise BadInput(f"{model.name}.{name} {error}") from error
    return found


def _given(run: Run, field: Field, value: object) -> Given:
    """A value as if whoever acts had written it: by token what it has a token for, else in clear. What an effect makes
    of a guess must not be joined with what is there, any more than the guess itself."""
    if value is None:
        return Given(None, is_default=True)
    if isinstance(value, Linked):
        # A value that is there already is copied as it is: it may be older than the field's format.
        stored = field.of_any_length(str(value)) if isinstance(field, Text) else field.read(str(value))
        if field.linked and field.personal == value.label:
            return Given(stored, value.value_id, is_default=True)
    else:
        stored = field.read(value)
    is_plain_text = run.domain is not None and field.personal is not None
    return Given(stored, is_plain_text=is_plain_text, is_default=True)
