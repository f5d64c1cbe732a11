"""From one snapshot to the next: the steps in order, each a sentence for people and the statements it takes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from countersign.declare.registry import Registry
from countersign.kernel.database.port import Dialect
from countersign.records.schema.snapshot import Column, Index, Snapshot, Table, table


@dataclass(frozen=True, slots=True)
class Step:
    """One change, done in one transaction together with writing down what is installed after it.

    `fill` names a column whose values are made by code once it exists: `table.column`.
    """

    sentence: str
    statements: tuple[str, ...]
    after: Snapshot
    is_destructive: bool = False
    fill: str | None = None


def wanted(registry: Registry, before: Snapshot) -> Snapshot:
    """What the declarations ask to be installed.

    Raises:
        DeclarationError: see `snapshot.table`.
    """
    tables = {
        name: table(model, registry.module_of[name].name, before.tables.get(name))
        for name, model in registry.models.items()
    }
    return Snapshot(tables, {module.name: module.version for module in registry.modules})


def between(before: Snapshot, after: Snapshot, dialect: Dialect) -> list[Step]:
    """The steps that lead from what is installed to what is wanted."""
    planning = _Planning(before, dialect)
    for name, each in after.tables.items():
        if name not in before.tables:
            planning.create(each)
    for name, each in after.tables.items():
        planning.change(name, each)
    for name in before.tables:
        if name not in after.tables:
            planning.drop(name)
    if planning.now.versions != after.versions:
        planning.versions(after.versions)
    return planning.steps


class _Planning:
    """Collects steps, each starting from where the one before it ends."""

    def __init__(self, before: Snapshot, dialect: Dialect) -> None:
        self.now = before
        self.steps: list[Step] = []
        self._dialect: Dialect = dialect

    def _step(
        self, sentence: str, statements: Iterable[str], each: Table, *, destroys: bool = False, fill: str | None = None
    ) -> None:
        tables = {**self.now.tables, each.name: each}
        self.now = Snapshot(tables, self.now.versions)
        self.steps.append(Step(sentence, tuple(statements), self.now, destroys, fill))

    def create(self, each: Table) -> None:
        """A new table with its columns; refs to others wait until all tables are there."""
        own = [column for column in each.columns if column.references is None]
        columns = "".join(f', "{column.name}" {column.type}' for column in own)
        text = (
            f'CREATE TABLE "{each.name}" (id TEXT PRIMARY KEY NOT NULL, revision BIGINT NOT NULL, '
            f"changed BIGINT NOT NULL{columns})"
        )
        bare = msgspec.structs.replace(each, columns=own, indexes=[])
        self._step(f"create the table {each.name}", [text], bare)

    def change(self, name: str, each: Table) -> None:
        """Columns and indexes of a table that is there."""
        present = {column.name: column for column in self.now.tables[name].columns}
        asked = {column.name: column for column in each.columns}
        gone_indexes = [index for index in self.now.tables[name].indexes if index not in each.indexes]
        for index in gone_indexes:
            self._drop_index(name, index)
        for column in present.values():
            if column.name not in asked or asked[column.name] != column:
                self._drop_column(name, column)
        present = {column.name: column for column in self.now.tables[name].columns}
        for column in each.columns:
            if column.name not in present:
                self._add_column(name, column)
        for index in each.indexes:
            if index not in self.now.tables[name].indexes:
                self._create_index(name, index)
        if self.now.tables[name] != each:
            self._step(f"note the fields of {name}", [], each)

    def _with(self, name: str, columns: list[Column] | None = None, indexes: list[Index] | None = None) -> Table:
        each = self.now.tables[name]
        return msgspec.structs.replace(
            each,
            columns=each.columns if columns is None else columns,
            indexes=each.indexes if indexes is None else indexes,
        )

    def _add_column(self, name: str, column: Column) -> None:
        references = f' REFERENCES "{column.references}" (id)' if column.references else ""
        text = f'ALTER TABLE "{name}" ADD COLUMN "{column.name}" {column.type}{references}'
        after = self._with(name, columns=[*self.now.tables[name].columns, column])
        derived = column.name.endswith(("__folded", "__value"))
        fill = f"{name}.{column.name}" if derived else None
        self._step(f"add {name}.{column.name}", [text], after, fill=fill)

    def _drop_column(self, name: str, column: Column) -> None:
        left = [each for each in self.now.tables[name].columns if each.name != column.name]
        text = f'ALTER TABLE "{name}" DROP COLUMN "{column.name}"'
        self._step(f"drop {name}.{column.name} with its values", [text], self._with(name, columns=left), destroys=True)

    def _create_index(self, name: str, index: Index) -> None:
        unique = "UNIQUE " if index.is_unique else ""
        text = f'CREATE {unique}INDEX "{index.name}" ON "{name}" ({index.terms(self._dialect)})'
        after = self._with(name, indexes=[*self.now.tables[name].indexes, index])
        self._step(f"index {name} by {index.sqlite}", [text], after)

    def _drop_index(self, name: str, index: Index) -> None:
        left = [each for each in self.now.tables[name].indexes if each.name != index.name]
        self._step(f"drop the index {index.name}", [f'DROP INDEX "{index.name}"'], self._with(name, indexes=left))

    def drop(self, name: str) -> None:
        """A table whose model is gone."""
        tables = {each: known for each, known in self.now.tables.items() if each != name}
        self.now = Snapshot(tables, self.now.versions)
        text = f'DROP TABLE "{name}"'
        self.steps.append(Step(f"drop the table {name} with its records", (text,), self.now, is_destructive=True))

    def versions(self, versions: Mapping[str, str]) -> None:
        """Which versions are installed, once all else is done."""
        self.now = Snapshot(self.now.tables, dict(versions))
        self.steps.append(Step("note the versions of the modules", (), self.now))


