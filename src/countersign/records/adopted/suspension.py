"""Suspends the models whose tables have changed since somebody has reviewed them, because the changed table may show
personal values in clear. A suspended model is hidden from every caller until its table is as reviewed again."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from countersign.declare import Declared, Ref
from countersign.kernel import telemetry
from countersign.kernel.database import table_fingerprints
from countersign.kernel.database.read_only import ExistingDatabase
from countersign.kernel.database.table_fingerprints import TableDefinition
from countersign.records.access.view import Caller, ModelView
from countersign.records.adopted.columns import table_id

CHECK_EVERY_S = 15.0


class Suspensions:
    """The suspended models of one existing database. Each process has one object."""

    def __init__(self, database: ExistingDatabase, models: Mapping[str, Declared]) -> None:
        """`models` are the models with a table of the database."""
        self._database = database
        self._tables = {name: table_id(database.dialect, each) for name, each in models.items()}
        self._reviewed = {name: each.table.fingerprint for name, each in models.items() if each.table is not None}
        self._when_changed: list[Callable[[], None]] = []
        self.models: frozenset[str] = frozenset()

    def on_change(self, action: Callable[[], None]) -> None:
        """Call the action whenever other models are suspended."""
        self._when_changed.append(action)

    async def check(self) -> None:
        """Compare each table with its fingerprint, and suspend the models of changed tables. A model without a
        fingerprint takes that of the first check.

        Raises:
            Unavailable: the database cannot answer now.
        """
        definitions = await table_fingerprints.read(
            self._database.dialect, self._database.scan, sorted(set(self._tables.values()))
        )
        changed = frozenset(
            name for name, table in self._tables.items() if not self._is_as_reviewed(name, definitions.get(table))
        )
        if changed == self.models:
            return
        for name in sorted(changed - self.models):
            self._log_suspension(name, definitions.get(self._tables[name]))
        for name in sorted(self.models - changed):
            telemetry.logger("connected-database").warning("the table is as reviewed again", model=name)
        self.models = changed
        for action in self._when_changed:
            action()

    def _is_as_reviewed(self, name: str, definition: TableDefinition | None) -> bool:
        if definition is None:
            return False
        if not self._reviewed[name]:
            self._reviewed[name] = definition.fingerprint
        return definition.fits(self._reviewed[name])

    def _log_suspension(self, name: str, definition: TableDefinition | None) -> None:
        # The model is hidden from everybody, so this is the only place that says why.
        telemetry.logger("connected-database").error(
            "the table has changed since it was reviewed, so its model is hidden; check the columns of the model, then "
            "write the new fingerprint into the module text and start again",
            model=name,
            table=".".join(filter(None, self._tables[name])),
            fingerprint=definition.fingerprint if definition is not None else "",
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
