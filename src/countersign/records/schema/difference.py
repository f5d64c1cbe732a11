"""The steps from the installed schema to the declared schema, and the order in which columns are filled."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import TypeAlias

import msgspec

from countersign.declare import Field
from countersign.declare.fields.kinds import BUILTIN_KINDS
from countersign.declare.registry import Registry
from countersign.kernel.database.port import Dialect
from countersign.records.schema.snapshot import (
    FOLDED_SUFFIX,
    VALUE_ID_SUFFIX,
    Column,
    Index,
    ModelTable,
    RowTask,
    Snapshot,
    Step,
    Unique,
    table,
)


def with_unfilled(snapshot: Snapshot, table: str, column: str, *, includes_column: bool = False) -> Snapshot:
    """Return the snapshot in which all columns derived from this column are marked as unfilled. With `includes_column`,
    this column is marked too."""
    table_columns = [*_derived_columns(snapshot, table, column), *([(table, column)] if includes_column else [])]
    tables = dict(snapshot.tables)
    for name, column_name in table_columns:
        unfilled_table = tables[name]
        if column_name not in unfilled_table.unfilled:
            tables[name] = msgspec.structs.replace(unfilled_table, unfilled=(*unfilled_table.unfilled, column_name))
    return Snapshot(tables, snapshot.versions)


def _derived_columns(snapshot: Snapshot, table: str, column: str) -> Iterator[tuple[str, str]]:
    column_path = f"{table}.{column}"
    for name, table_snapshot in snapshot.tables.items():
        for other_column in table_snapshot.columns:
            is_copy = name == table and other_column.name in (column + FOLDED_SUFFIX, column + VALUE_ID_SUFFIX)
            if is_copy or column_path in other_column.direct_sources:
                yield name, other_column.name


def next_to_fill(current: Snapshot, after_snapshot: Snapshot) -> tuple[str, Column, str, RowTask] | None:
    """Return the next column to fill, or None if all columns are filled.

    All sources of the returned column are already filled. The result is the table name, the declared column, the
    sentence for the operator, and the task.
    """
    unfilled_columns = {
        (name, column.name): column
        for name, table_snapshot in after_snapshot.tables.items()
        for column in table_snapshot.columns
        if _is_unfilled(current, name, column)
    }
    for (name, _), column in unfilled_columns.items():
        if not any((name_of, source) in unfilled_columns for name_of, source in _sources(name, column)):
            return (name, column, *_fill_task(name, column))
    return None


def _is_unfilled(current: Snapshot, table: str, new_column: Column) -> bool:
    installed_table = current.tables[table]
    installed_column = installed_table.column(new_column.name)
    if installed_column is None:
        return False
    if new_column.name in installed_table.unfilled:
        return True
    if new_column.direct_sources:
        return new_column.direct_sources != installed_column.direct_sources
    return new_column.is_required and not installed_column.is_required


def _sources(table: str, column: Column) -> Iterator[tuple[str, str]]:
    for suffix in (FOLDED_SUFFIX, VALUE_ID_SUFFIX):
        if column.name.endswith(suffix):
            yield table, column.name.removesuffix(suffix)
    for source_path in column.direct_sources:
        model, _, field = source_path.partition(".")
        yield model, field


def _fill_task(table: str, column: Column) -> tuple[str, RowTask]:
    if column.name.endswith(FOLDED_SUFFIX):
        field = column.name.removesuffix(FOLDED_SUFFIX)
        return f"fold {table}.{field} for searching", RowTask("folded", table, field)
    if column.name.endswith(VALUE_ID_SUFFIX):
        field = column.name.removesuffix(VALUE_ID_SUFFIX)
        return f"give the values of {table}.{field} ids in the vault", RowTask("value", table, field)
    if column.direct_sources:
        return f"compute {table}.{column.name}", RowTask("made", table, column.name)
    return f"fill {table}.{column.name} where it is empty", RowTask("default", table, column.name)


_NAME = attrgetter("name")
Kinds: TypeAlias = Iterable[type[Field]]


def desired_snapshot(registry: Registry, before_snapshot: Snapshot, dialect: Dialect) -> Snapshot:
    """Return the schema that the declarations require. Models with a table of an existing database have no table here.

    Raises:
        DeclarationError: see `snapshot.table`.
    """
    totals = [total for model_totals in registry.totals.values() for total in model_totals]
    tables = {
        name: table(
            model,
            registry.module_of[name].name,
            [total for total in totals if total.parent is model],
            before_snapshot.tables.get(name),
            dialect,
        )
        for name, model in registry.models.items()
        if model.table is None
    }
    return Snapshot(tables, {module.name: module.version for module in registry.modules})


def steps_between(before_snapshot: Snapshot, after_snapshot: Snapshot, kinds: Kinds = BUILTIN_KINDS) -> list[Step]:
    """Return the steps from the installed schema to the declared schema. `kinds` are the kinds of the declared fields.

    Each step records a snapshot. After an interrupted upgrade, the steps continue from the last snapshot.
    """
    return (
        []
        if _sorted_snapshot(before_snapshot) == _sorted_snapshot(after_snapshot)
        else _planner(before_snapshot, after_snapshot, kinds)
    )


def _planner(before_snapshot: Snapshot, after_snapshot: Snapshot, kinds: Kinds) -> list[Step]:
    planner = _Planner(before_snapshot, after_snapshot, kinds)
    for name in after_snapshot.tables:
        if name not in before_snapshot.tables:
            planner.create(name)
    for name in after_snapshot.tables:
        planner.rename(name)
    for name in after_snapshot.tables:
        planner.drop_undeclared(name)
    for name in after_snapshot.tables:
        planner.add(name)
    planner.fill()
    for name in after_snapshot.tables:
        planner.finish(name)
    planner.drop([name for name in before_snapshot.tables if name not in after_snapshot.tables])
    if planner.current.versions != after_snapshot.versions:
        planner.note_versions()
    return planner.steps


def _sorted_snapshot(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with columns and indexes sorted by name, since the order of their creation is irrelevant."""
    tables = {
        name: msgspec.structs.replace(
            table_snapshot,
            columns=sorted(table_snapshot.columns, key=_NAME),
            indexes=sorted(table_snapshot.indexes, key=_NAME),
        )
        for name, table_snapshot in snapshot.tables.items()
    }
    return Snapshot(tables, snapshot.versions)


class _Planner:
    """Collects the steps of an upgrade. Each step begins with the snapshot of the previous step."""

    def __init__(self, before_snapshot: Snapshot, after_snapshot: Snapshot, kinds: Kinds) -> None:
        self.current = before_snapshot
        self._kinds = kinds
        self.steps: list[Step] = []
        self._before: Snapshot = before_snapshot
        self._after: Snapshot = after_snapshot
        self._added: set[tuple[str, str]] = set()

    def _step(
        self, sentence: str, statement: str, state_after: ModelTable | Snapshot, row_task: RowTask | None = None
    ) -> None:
        """Add a step that does not delete data."""
        self._append(
            Step(sentence, (statement,) if statement else (), self._snapshot_after(state_after), row_task=row_task)
        )

    def _destructive_step(
        self,
        name: str,
        sentence: str,
        statements: Iterable[str],
        state_after: ModelTable | Snapshot,
        row_task: RowTask | None,
    ) -> None:
        """Add a step that deletes data of a table."""
        desired_snapshot = self._snapshot_after(state_after)
        self._append(
            Step(sentence, tuple(statements), desired_snapshot, is_destructive=True, row_task=row_task, loses_from=name)
        )

    def _append(self, step: Step) -> None:
        self.current = step.after
        self.steps.append(step)

    def _snapshot_after(self, state_after: ModelTable | Snapshot) -> Snapshot:
        return state_after if isinstance(state_after, Snapshot) else _with_table(self.current, state_after)

    def create(self, name: str) -> None:
        """Add a step that creates a table. Its refs are added later, when all tables exist."""
        new_table = self._after.tables[name]
        own_columns = [column for column in new_table.columns if column.references is None]
        columns = "".join(f', "{column.name}" {column.type}' for column in own_columns)
        text = (
            f'CREATE TABLE "{name}" (id TEXT PRIMARY KEY NOT NULL, revision BIGINT NOT NULL, '
            f"changed BIGINT NOT NULL{columns})"
        )
        self._step(
            f"create the table {name}", text, msgspec.structs.replace(new_table, columns=own_columns, indexes=[])
        )

    def rename(self, name: str) -> None:
        """Add steps that rename the columns of renamed fields. Their indexes are dropped and created again."""
        for column in self._after.tables[name].columns:
            renamed_column = self.current.tables[name].column(column.former_name)
            if renamed_column is not None and self.current.tables[name].column(column.name) is None:
                self._rename_column(name, renamed_column, column.name)

    def _rename_column(self, name: str, column: Column, new_name: str) -> None:
        for index in [index for index in self.current.tables[name].indexes if _is_over(index, [column])]:
            self._drop_index(name, index)
        self._added.add((name, new_name))
        text = f'ALTER TABLE "{name}" RENAME COLUMN "{column.name}" TO "{new_name}"'
        table_after = _renamed(self.current.tables[name], column, new_name)
        self._step(f"rename {name}.{column.name} to {name}.{new_name}", text, table_after)

    def drop_undeclared(self, name: str) -> None:
        """Add steps that drop the indexes, columns and options of a table that are no longer declared in the same
        form."""
        new_table = self._after.tables[name]
        present_columns = self.current.tables[name].columns
        removed_columns = [
            column for column in present_columns if not _stays(column, new_table.column(column.name), self._kinds)
        ]
        for index in list(self.current.tables[name].indexes):
            if index not in new_table.indexes or _is_over(index, removed_columns):
                self._drop_index(name, index)
        for column in removed_columns:
            self._drop_column(name, column, new_table.column(column.name))
        for column in list(self.current.tables[name].columns):
            self._remove_options(name, column, new_table.column(column.name))

    def _drop_index(self, name: str, index: Index) -> None:
        current_table = self.current.tables[name]
        other_indexes = [kept_index for kept_index in current_table.indexes if kept_index.name != index.name]
        table_after = msgspec.structs.replace(current_table, indexes=other_indexes)
        self._step(f"drop the index of {name} by {index.terms}", f'DROP INDEX "{index.name}"', table_after)

    def _drop_column(self, name: str, column: Column, new_column: Column | None) -> None:
        current_table = self.current.tables[name]
        table_after = msgspec.structs.replace(
            current_table,
            columns=[kept_column for kept_column in current_table.columns if kept_column.name != column.name],
            unfilled=tuple(name for name in current_table.unfilled if name != column.name),
        )
        text = f'ALTER TABLE "{name}" DROP COLUMN "{column.name}"'
        field = column.name.removesuffix(VALUE_ID_SUFFIX)
        if column.name.endswith(FOLDED_SUFFIX):
            self._step(f"drop the folded copies of {name}.{column.name.removesuffix(FOLDED_SUFFIX)}", text, table_after)
        elif column.label is not None:
            sentence = f"forget the {column.label} values of {name}.{field} in the vault and their copies in the audit"
            self._destructive_step(name, sentence, [text], table_after, RowTask("release", name, field))
        else:
            becomes = (
                "" if new_column is None else f", since {_column_text(column)} cannot become {_column_text(new_column)}"
            )
            self._destructive_step(
                name, f"drop {name}.{column.name} with its values{becomes}", [text], table_after, None
            )

    def _remove_options(self, name: str, column: Column, new_column: Column | None) -> None:
        if new_column is None or new_column.kind != "select":
            return
        removed_options = tuple(option for option in column.options if option not in new_column.options)
        if not removed_options:
            return
        current_table = self.current.tables[name]
        narrowed_column = msgspec.structs.replace(column, options=new_column.options)
        table_after = msgspec.structs.replace(current_table, columns=_replaced(current_table, narrowed_column))
        row_task = RowTask("options", name, column.name, removed_options)
        sentence = f"take {', '.join(removed_options)} out of {name}.{column.name}"
        self._destructive_step(
            name, sentence, [], with_unfilled(_with_table(self.current, table_after), name, column.name), row_task
        )

    def add(self, name: str) -> None:
        """Add steps that add the missing columns of a table."""
        for column in self._after.tables[name].columns:
            if self.current.tables[name].column(column.name) is not None:
                continue
            references = f' REFERENCES "{column.references}" (id)' if column.references else ""
            text = f'ALTER TABLE "{name}" ADD COLUMN "{column.name}" {column.type}{references}'
            current_table = self.current.tables[name]
            after_adding = _with_table(
                self.current, msgspec.structs.replace(current_table, columns=[*current_table.columns, column])
            )
            # A table that this upgrade creates has no rows to fill.
            if name in self._before.tables:
                after_adding = with_unfilled(after_adding, name, column.name, includes_column=_is_filled(column))
            self._added.add((name, column.name))
            self._step(f"add {name}.{column.name}", text, after_adding)

    def fill(self) -> None:
        """Add steps that fill columns of existing rows, each column after its sources."""
        while True:
            column_to_fill = next_to_fill(self.current, self._after)
            if column_to_fill is None:
                return
            name, filled_column, sentence, row_task = column_to_fill
            current_table = self.current.tables[name]
            table_after = msgspec.structs.replace(
                current_table,
                columns=_replaced(current_table, filled_column),
                unfilled=tuple(name for name in current_table.unfilled if name != filled_column.name),
            )
            row_task = replace(row_task, column_exists=self._column_exists(name, filled_column.name))
            self._step(
                sentence, "", with_unfilled(_with_table(self.current, table_after), name, filled_column.name), row_task
            )

    def _column_exists(self, name: str, column: str) -> bool:
        """Return whether the column exists before the first step, so that checks can query it."""
        return name in self._before.tables and (name, column) not in self._added

    def finish(self, name: str) -> None:
        """Add steps that create the missing indexes of a filled table and record its remaining changes."""
        new_table = self._after.tables[name]
        for index in new_table.indexes:
            current_table = self.current.tables[name]
            if index not in current_table.indexes:
                unique = "UNIQUE " if index.is_unique else ""
                text = f'CREATE {unique}INDEX "{index.name}" ON "{name}" {index.statement}'
                after_finishing = self._snapshot_after(
                    msgspec.structs.replace(current_table, indexes=[*current_table.indexes, index])
                )
                column = index.terms.strip('"')
                is_checked = index.is_unique and new_table.column(column) is not None
                sentence = f"index {name} by {index.terms}{', which must be unique' if index.is_unique else ''}"
                unique_check = Unique(name, column, self._column_exists(name, column)) if is_checked else None
                self._append(Step(sentence, (text,), after_finishing, unique=unique_check))
        if self.current.tables[name] != new_table:
            self._step(f"note the fields of {name}", "", new_table)

    def drop(self, names: list[str]) -> None:
        """Add steps that drop the tables of removed models.

        First, the references between these tables are removed, and their values are released in the vault.
        """
        for name in names:
            self._drop_references(name, names)
        for name in names:
            tables = {item: kept_table for item, kept_table in self.current.tables.items() if item != name}
            # The change log is not needed after its records are deleted.
            texts = [f'DROP TABLE "{name}"', f"DELETE FROM record_change WHERE model = '{name}'"]
            snapshot_after = Snapshot(tables, self.current.versions)
            self._destructive_step(name, f"drop the table {name} with its records", texts, snapshot_after, None)

    def _drop_references(self, name: str, names: list[str]) -> None:
        tied_columns = [
            column for column in self.current.tables[name].columns if column.label or column.references in names
        ]
        for index in [index for index in self.current.tables[name].indexes if _is_over(index, tied_columns)]:
            self._drop_index(name, index)
        for column in tied_columns:
            self._drop_column(name, column, None)

    def note_versions(self) -> None:
        """Add the last step, which records the installed versions of the modules."""
        snapshot_after = Snapshot(self.current.tables, dict(self._after.versions))
        self._step(f"note the versions: {_versions_text(snapshot_after.versions)}", "", snapshot_after)


def _is_over(index: Index, columns: Iterable[Column]) -> bool:
    return any(f'"{column.name}"' in index.terms for column in columns)


def _stays(column: Column, new_column: Column | None, kinds: Kinds) -> bool:
    """Return whether the column and its values can be kept for the declared column."""
    if new_column is None or (column.type, column.references) != (new_column.type, new_column.references):
        return False
    if (column.label, column.is_linked) != (new_column.label, new_column.is_linked):
        return False
    if column.kind != new_column.kind and not _is_wider(column.kind, new_column.kind, kinds):
        return False
    # A computation must not overwrite values that people entered.
    return bool(column.direct_sources) or not new_column.direct_sources


def _is_wider(kind: str, other_kind: str, kinds: Kinds) -> bool:
    """Return whether every stored value of the kind is valid for the other kind."""
    return any(kind in field_kind.widens for field_kind in kinds if field_kind.kind == other_kind)


def _is_filled(column: Column) -> bool:
    return column.is_required or bool(column.direct_sources) or column.name.endswith((FOLDED_SUFFIX, VALUE_ID_SUFFIX))


def _column_text(column: Column) -> str:
    if column.references is not None:
        return f"a ref to {column.references}"
    return f"a computed {column.kind}" if column.direct_sources else f"a {column.kind}"


def _with_table(snapshot: Snapshot, table: ModelTable) -> Snapshot:
    return Snapshot({**snapshot.tables, table.name: table}, snapshot.versions)


def _renamed(table: ModelTable, column: Column, new_name: str) -> ModelTable:
    def name(column_name: str) -> str:
        return new_name if column_name == column.name else column_name

    return msgspec.structs.replace(
        table,
        columns=[msgspec.structs.replace(column, name=name(column.name)) for column in table.columns],
        bits={name(column_name): bit for column_name, bit in table.bits.items()},
        unfilled=tuple(map(name, table.unfilled)),
    )


def _replaced(table: ModelTable, new_column: Column) -> list[Column]:
    return [new_column if column.name == new_column.name else column for column in table.columns]


def _versions_text(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
