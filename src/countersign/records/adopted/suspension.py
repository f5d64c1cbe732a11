"""Suspends the models whose tables cannot be read as declared, or have changed since somebody has reviewed them,
because the changed table may show personal values in clear. A suspended model is hidden from every caller until its
table is as reviewed again."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final

from countersign.declare import Declared, Ref
from countersign.kernel import telemetry
from countersign.kernel.database import table_fingerprints
from countersign.kernel.database.read_only import ExistingDatabase, TableChanged
from countersign.kernel.database.table_fingerprints import TableDefinition
from countersign.records.access.view import Caller, ModelView
from countersign.records.adopted.columns import table_id
from countersign.records.adopted.reader import AdoptedTable

CHECK_EVERY_S = 15.0
CHANGED: Final = (
    "the table has changed since it was reviewed, so its model is hidden; run `countersign connect diff` and "
    "`countersign connect accept` with the module text, then start again"
)
UNREADABLE: Final = "the table cannot be read as declared, so its model is hidden until it can"

ReadTables = Callable[[], Awaitable[Mapping[str, AdoptedTable | str]]]
"""Return the table of each model as it is now, or the reason why it cannot be read as declared."""


class Suspensions:
    """The suspended models of one existing database. Each process has one object. `reasons` maps each suspended model
    to the reason."""

    def __init__(
        self,
        database: ExistingDatabase,
        models: Mapping[str, Declared],
        read_tables: ReadTables,
        by_model: dict[str, AdoptedTable],
    ) -> None:
        """`models` are the models with a table of the database. `by_model` gets the tables of those that are not
        suspended."""
        self._database = database
        self._read_tables = read_tables
        self._by_model = by_model
        self._tables = {name: table_id(database.dialect, each) for name, each in models.items()}
        self._keys = {name: each.table.key_columns for name, each in models.items() if each.table is not None}
        self._used = {name: _used_columns(each) for name, each in models.items()}
        self._reviewed = {name: each.table.fingerprint for name, each in models.items() if each.table is not None}
        self._when_changed: list[Callable[[], None]] = []
        self.reasons: Mapping[str, str] = {}

    @property
    def models(self) -> frozenset[str]:
        """The names of the suspended models."""
        return frozenset(self.reasons)

    @property
    def count(self) -> int:
        """The number of models with a table of the database."""
        return len(self._tables)

    def on_change(self, action: Callable[[], None]) -> None:
        """Call the action whenever other models are suspended."""
        self._when_changed.append(action)

    async def check(self) -> None:
        """Compare each table with its declaration and its fingerprint, and suspend the models of tables that differ. A
        model without a fingerprint takes that of the first check that can read its table.

        Raises:
            Unavailable: the database cannot answer now.
        """
        try:
            await self._check()
        except TableChanged:
            # Another file has taken the place of the SQLite file, and is open now.
            await self._check()

    async def _check(self) -> None:
        found = await self._read_tables()
        definitions = await table_fingerprints.read(
            self._database.dialect, self._database.scan, sorted(set(self._tables.values()))
        )
        reasons: dict[str, str] = {}
        for name, table in found.items():
            definition = definitions.get(self._tables[name])
            if not isinstance(table, str) and definition is not None and not self._reviewed[name]:
                self._reviewed[name] = definition.fingerprint(self._keys[name])
            if definition is not None and not self._is_as_reviewed(name, definition):
                reasons[name] = CHANGED
            elif isinstance(table, str):
                reasons[name] = table
            else:
                self._by_model[name] = table
        self._set(reasons, found, definitions)

    def _set(
        self,
        reasons: Mapping[str, str],
        found: Mapping[str, AdoptedTable | str],
        definitions: Mapping[table_fingerprints.TableId, TableDefinition],
    ) -> None:
        before, self.reasons = self.models, reasons
        if before == self.models:
            return
        for name in sorted(self.models - before):
            self._log_suspension(name, definitions.get(self._tables[name]), found[name])
        for name in sorted(before - self.models):
            telemetry.logger("connected-database").warning("the table is as reviewed again", model=name)
        for action in self._when_changed:
            action()

    def _is_as_reviewed(self, name: str, definition: TableDefinition) -> bool:
        reviewed = self._reviewed[name]
        return not reviewed or definition.matches(reviewed, self._keys[name], self._used[name])

    def _log_suspension(self, name: str, definition: TableDefinition | None, found: AdoptedTable | str) -> None:
        # The model is hidden from every caller, so only this log line, the readiness check and the metric give the
        # reason.
        telemetry.logger("connected-database").error(
            CHANGED if self.reasons[name] == CHANGED else UNREADABLE,
            model=name,
            table=".".join(filter(None, self._tables[name])),
            problem=found if isinstance(found, str) else "",
            fingerprint=definition.fingerprint(self._keys[name]) if definition is not None else "",
        )

    def narrowed(self, caller: Caller) -> Caller:
        """Return the caller without the suspended models, and without the refs to them."""
        suspended = self.models
        if suspended.isdisjoint(caller.view.models):
            return caller
        models = {
            name: _without_refs(each, suspended) for name, each in caller.view.models.items() if name not in suspended
        }
        return replace(caller, view=replace(caller.view, models=models))


def _used_columns(model: Declared) -> frozenset[str]:
    """Return the columns that the fields of the model read, and the one that marks deleted rows."""
    deleted = () if model.table is None else model.table.deleted_columns
    return frozenset(deleted).union(*(field.table_columns for field in model.fields.values()))


def _without_refs(view: ModelView, suspended: frozenset[str]) -> ModelView:
    fields = view.model.fields
    hidden = {name for name in view.fields if isinstance(ref := fields[name], Ref) and ref.target in suspended}
    if not hidden:
        return view
    return replace(
        view,
        fields={name: each for name, each in view.fields.items() if name not in hidden},
        denied=tuple(sorted({*view.denied, *(f"{view.model.name}.{name}" for name in hidden)})),
        partly_visible=view.partly_visible - hidden,
    )
