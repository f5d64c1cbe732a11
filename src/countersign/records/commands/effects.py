"""The hands of a workflow action's effect: what a module may do beside moving its record."""

from collections.abc import Mapping
from typing import NoReturn

from countersign.declare import BadValue, Declared
from countersign.declare.fields.field import Stored
from countersign.records.commands import create, locks, writing
from countersign.records.commands.conditions import today
from countersign.records.commands.given import Given
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Run

_NEXT = """
INSERT INTO sequence (name, next) VALUES ($1, 2)
ON CONFLICT (name) DO UPDATE SET next = sequence.next + 1
RETURNING next - 1
"""


class Hands:
    """The `Work` of one effect; what it changes on its own record is collected and written by the action."""

    def __init__(
        self, run: Run, model: Declared, record_id: str, values: Mapping[str, Stored], command: str
    ) -> None:
        self._run = run
        self._model = model
        self._command = command
        shown = {
            name: None if value is None else model.fields[name].show(value)
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
        self.changes |= _read(self._model, values)

    async def create(self, model: str, /, **values: object) -> str:
        """Make a record of another model; its id.

        Raises:
            BadInput: a value does not fit, is missing, or must be unique and is taken.
        """
        declared = self._run.engine.registry.models[model]
        given = _read(declared, values)
        for name, field in declared.fields.items():
            if name not in given and field.default is not None:
                given[name] = Given(create.default(self._run, field))
            if field.required and (name not in given or given[name].stored is None):
                raise BadInput(f"{self._command} cannot be done: {model}.{name} is required")
        if declared.workflow is not None and declared.workflow.field not in given:
            given[declared.workflow.field] = Given(create.first_option(declared.fields[declared.workflow.field]))
        stored = {name: each.stored for name, each in given.items()}
        await locks.require_open(self._run, declared, stored, self._command)
        return await writing.insert(self._run, declared, given, f"{model}.create")

    async def find(self, model: str, /, **values: object) -> str | None:
        """The id of the first record with exactly these values, or None."""
        text, bound = self._matching("id", model, values)
        row = await self._run.transaction.fetch_one(f"{text} ORDER BY id LIMIT 1", *bound)
        return None if row is None else str(row[0])

    async def count(self, model: str, /, **values: object) -> int:
        """How many records have exactly these values."""
        text, bound = self._matching("count(*)", model, values)
        row = await self._run.transaction.fetch_one(text, *bound)
        return 0 if row is None else int(row[0])

    def _matching(self, what: str, model: str, values: Mapping[str, object]) -> tuple[str, list[Stored]]:
        given = _read(self._run.engine.registry.models[model], values)
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


def _read(model: Declared, values: Mapping[str, object]) -> dict[str, Given]:
    found: dict[str, Given] = {}
    for name, value in values.items():
        try:
            found[name] = Given(None if value is None else model.field(name).read(value))
        except BadValue as error:
            raise BadInput(f"{model.name}.{name} {error}") from error
    return found
