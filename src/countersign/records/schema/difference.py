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
    FOLDED,
    VALUE,
    Column,
    Index,
    ModelTable,
    RowTask,
    Snapshot,
    Step,
    Unique,
    table,
)


def with_unfilled(snapshot: Snapshot, table: str, column: str, *, itself: bool = False) -> Snapshot:
    """Return the snapshot in which all columns derived from this column are marked as unfilled. With `itself`, this
    column is marked too."""
    places = [*_made_from(snapshot, table, column), *([(table, column)] if itself else [])]
    tables = dict(snapshot.tables)
    for name, each in places:
        known = tables[name]
        if each not in known.unfilled:
            tables[name] = msgspec.structs.replace(known, unfilled=(*known.unfilled, each))
    return Snapshot(tables, snapshot.versions)


def _made_from(snapshot: Snapshot, table: str, column: str) -> Iterator[tuple[str, str]]:
    place = f"{table}.{column}"
    for name, each in snapshot.tables.items():
        for other in each.columns:
            is_copy = name == table and other.name in (column + FOLDED, column + VALUE)
            if is_copy or place in other.indirect_sources:
                yield name, other.name


def next_to_fill(now: Snapshot, after: Snapshot) -> tuple[str, Column, str, RowTask] | None:
    """Return the next column to fill, or None if all columns are filled.

    All sources of the returned column are already filled. The result is the table name, the declared column, the
    sentence for the operator, and the task.
    """
    waiting = {
        (name, column.name): column
        for name, each in after.tables.items()
        for column in each.columns
        if _is_unfilled(now, name, column)
    }
    for (name, _), column in waiting.items():
        if not any((name_of, source) in waiting for name_of, source in _sources(name, column)):
            return (name, column, *_filling(name, column))
    return None


def _is_unfilled(now: Snapshot, table: str, declared: Column) -> bool:
    installed = now.tables[table]
    present = installed.column(declared.name)
    if present is None:
        return False
    if declared.name in installed.unfilled:
        return True
    if declared.indirect_sources:
        return declared.indirect_sources != present.indirect_sources
    return declared.is_required and not present.is_required


def _sources(table: str, column: Column) -> Iterator[tuple[str, str]]:
    for ending in (FOLDED, VALUE):
        if column.name.endswith(ending):
            yield table, column.name.removesuffix(ending)
    for place in column.indirect_sources:
        model, _, field = place.partition(".")
        yield model, field


def _filling(table: str, column: Column) -> tuple[str, RowTask]:
    if column.name.endswith(FOLDED):
        field = column.name.removesuffix(FOLDED)
        return f"fold {table}.{field} for searching", RowTask("folded", table, field)
    if column.name.endswith(VALUE):
        field = column.name.removesuffix(VALUE)
        return f"give the values of {table}.{field} ids in the vault", RowTask("value", table, field)
    if column.indirect_sources:
        return f"compute {table}.{column.name}", RowTask("made", table, column.name)
    return f"fill {table}.{column.name} where it is empty", RowTask("default", table, column.name)


_NAME = attrgetter("name")
Kinds: TypeAlias = Iterable[type[Field]]


def desired_snapshot(registry: Registry, before: Snapshot, dialect: Dialect) -> Snapshot:
    """Return the schema that the declarations require. Models with a table of an existing database have no table here.

    Raises:
        DeclarationError: see `snapshot.table`.
    """
    totals = [total for each in registry.totals.values() for total in each]
    tables = {
        name: table(
            model,
            registry.module_of[name].name,
            [total for total in totals if total.parent is model],
            before.tables.get(name),
            dialect,
        )
        for name, model in registry.models.items()
        if model.table is None
    }
    return Snapshot(tables, {module.name: module.version for module in registry.modules})


def steps_between(before: Snapshot, after: Snapshot, kinds: Kinds = BUILTIN_KINDS) -> list[Step]:
    """Return the steps from the installed schema to the declared schema. `kinds` are the kinds of the declared fields.

    Each step records a snapshot. After an interrupted upgrade, the steps continue from the last snapshot.
    """
    return [] if _in_order(before) == _in_order(after) else _planned(before, after, kinds)


def _planned(before: Snapshot, after: Snapshot, kinds: Kinds) -> list[Step]:
    planning = _Planner(before, after, kinds)
    for name in after.tables:
        if name not in before.tables:
            planning.create(name)
    for name in after.tables:
        planning.rename(name)
    for name in after.tables:
        planning.take_away(name)
    for name in after.tables:
        planning.add(name)
    planning.fill()
    for name in after.tables:
        planning.finish(name)
    planning.drop([name for name in before.tables if name not in after.tables])
    if planning.now.versions != after.versions:
        planning.note_versions()
    return planning.steps


def _in_order(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with columns and indexes sorted by name, since the order of their creation is irrelevant."""
    tables = {
        name: msgspec.structs.replace(
            each, columns=sorted(each.columns, key=_NAME), indexes=sorted(each.indexes, key=_NAME)
        )
        for name, each in snapshot.tables.items()
    }
    return Snapshot(tables, snapshot.versions)


class _Planner:
    """Collects the steps of an upgrade. Each step begins with the snapshot of the previous step."""

    def __init__(self, before: Snapshot, after: Snapshot, kinds: Kinds) -> None:
        self.now = before
        self._kinds = kinds
        self.steps: list[Step] = []
        self._before: Snapshot = before
        self._after: Snapshot = after
        self._added: set[tuple[str, str]] = set()

    def _step(self, sentence: str, statement: str, after: ModelTable | Snapshot, work: RowTask | None = None) -> None:
        """Add a step that does not delete data."""
        self._append(Step(sentence, (statement,) if statement else (), self._whole(after), work=work))

    def _destroy(
        self, sentence: str, statements: Iterable[str], after: ModelTable | Snapshot, work: RowTask | None
    ) -> None:
        self._append(Step(sentence, tuple(statements), self._whole(after), is_destructive=True, work=work))

    def _append(self, step: Step) -> None:
        self.now = step.after
        self.steps.append(step)

    def _whole(self, after: ModelTable | Snapshot) -> Snapshot:
        return after if isinstance(after, Snapshot) else _with(self.now, after)

    def create(self, name: str) -> None:
        """Add a step that creates a table. Its refs are added later, when all tables exist."""
        each = self._after.tables[name]
        own = [column for column in each.columns if column.references is None]
        columns = "".join(f', "{column.name}" {column.type}' for column in own)
        text = (
            f'CREATE TABLE "{name}" (id TEXT PRIMARY KEY NOT NULL, revision BIGINT NOT NULL, '
            f"changed BIGINT NOT NULL{columns})"
        )
        self._step(f"create the table {name}", text, msgspec.structs.replace(each, columns=own, indexes=[]))

    def rename(self, name: str) -> None:
        """Add steps that rename the columns of renamed fields. Their indexes are dropped and created again."""
        for column in self._after.tables[name].columns:
            present = self.now.tables[name].column(column.former_name)
            if present is not None and self.now.tables[name].column(column.name) is None:
                self._rename_column(name, present, column.name)

    def _rename_column(self, name: str, column: Column, new: str) -> None:
        for index in [each for each in self.now.tables[name].indexes if _is_over(each, [column])]:
            self._drop_index(name, index)
        self._added.add((name, new))
        text = f'ALTER TABLE "{name}" RENAME COLUMN "{column.name}" TO "{new}"'
        after = _renamed(self.now.tables[name], column, new)
        self._step(f"rename {name}.{column.name} to {name}.{new}", text, after)

    def take_away(self, name: str) -> None:
        """Add steps that drop the indexes, columns and options of a table that are no longer declared in the same
        form."""
        each = self._after.tables[name]
        present = self.now.tables[name].columns
        gone = [column for column in present if not _stays(column, each.column(column.name), self._kinds)]
        for index in list(self.now.tables[name].indexes):
            if index not in each.indexes or _is_over(index, gone):
                self._drop_index(name, index)
        for column in gone:
            self._drop_column(name, column, each.column(column.name))
        for column in list(self.now.tables[name].columns):
            self._take_options(name, column, each.column(column.name))

    def _drop_index(self, name: str, index: Index) -> None:
        now = self.now.tables[name]
        left = [each for each in now.indexes if each.name != index.name]
        after = msgspec.structs.replace(now, indexes=left)
        self._step(f"drop the index of {name} by {index.terms}", f'DROP INDEX "{index.name}"', after)

    def _drop_column(self, name: str, column: Column, declared: Column | None) -> None:
        now = self.now.tables[name]
        after = msgspec.structs.replace(
            now,
            columns=[each for each in now.columns if each.name != column.name],
            unfilled=tuple(each for each in now.unfilled if each != column.name),
        )
        text = f'ALTER TABLE "{name}" DROP COLUMN "{column.name}"'
        field = column.name.removesuffix(VALUE)
        if column.name.endswith(FOLDED):
            self._step(f"drop the folded copies of {name}.{column.name.removesuffix(FOLDED)}", text, after)
        elif column.label is not None:
            sentence = f"forget the {column.label} values of {name}.{field} in the vault and their copies in the audit"
            self._destroy(sentence, [text], after, RowTask("release", name, field))
        else:
            becomes = "" if declared is None else f", since {_words(column)} cannot become {_words(declared)}"
            self._destroy(f"drop {name}.{column.name} with its values{becomes}", [text], after, None)

    def _take_options(self, name: str, column: Column, declared: Column | None) -> None:
        if declared is None or declared.kind != "select":
            return
        gone = tuple(option for option in column.options if option not in declared.options)
        if not gone:
            return
        now = self.now.tables[name]
        left = msgspec.structs.replace(column, options=declared.options)
        after = msgspec.structs.replace(now, columns=_replaced(now, left))
        work = RowTask("options", name, column.name, gone)
        sentence = f"take {', '.join(gone)} out of {name}.{column.name}"
        self._destroy(sentence, [], with_unfilled(_with(self.now, after), name, column.name), work)

    def add(self, name: str) -> None:
        """Add steps that add the missing columns of a table."""
        for column in self._after.tables[name].columns:
            if self.now.tables[name].column(column.name) is not None:
                continue
            references = f' REFERENCES "{column.references}" (id)' if column.references else ""
            text = f'ALTER TABLE "{name}" ADD COLUMN "{column.name}" {column.type}{references}'
            now = self.now.tables[name]
            after = _with(self.now, msgspec.structs.replace(now, columns=[*now.columns, column]))
            # A table that this upgrade creates has no rows to fill.
            if name in self._before.tables:
                after = with_unfilled(after, name, column.name, itself=_is_filled(column))
            self._added.add((name, column.name))
            self._step(f"add {name}.{column.name}", text, after)

    def fill(self) -> None:
        """Add steps that fill columns of existing rows, each column after its sources."""
        while True:
            found = next_to_fill(self.now, self._after)
            if found is None:
                return
            name, declared, sentence, work = found
            now = self.now.tables[name]
            after = msgspec.structs.replace(
                now,
                columns=_replaced(now, declared),
                unfilled=tuple(each for each in now.unfilled if each != declared.name),
            )
            work = replace(work, is_there=self._is_there(name, declared.name))
            self._step(sentence, "", with_unfilled(_with(self.now, after), name, declared.name), work)

    def _is_there(self, name: str, column: str) -> bool:
        """Return whether the column exists before the first step, so that checks can query it."""
        return name in self._before.tables and (name, column) not in self._added

    def finish(self, name: str) -> None:
        """Add steps that create the missing indexes of a filled table and record its remaining changes."""
        each = self._after.tables[name]
        for index in each.indexes:
            now = self.now.tables[name]
            if index not in now.indexes:
                unique = "UNIQUE " if index.is_unique else ""
                text = f'CREATE {unique}INDEX "{index.name}" ON "{name}" {index.statement}'
                after = self._whole(msgspec.structs.replace(now, indexes=[*now.indexes, index]))
                column = index.terms.strip('"')
                is_checked = index.is_unique and each.column(column) is not None
                sentence = f"index {name} by {index.terms}{', which must be unique' if index.is_unique else ''}"
                sought = Unique(name, column, self._is_there(name, column)) if is_checked else None
                self._append(Step(sentence, (text,), after, unique=sought))
        if self.now.tables[name] != each:
            self._step(f"note the fields of {name}", "", each)

    def drop(self, names: list[str]) -> None:
        """Add steps that drop the tables of removed models.

        First, the references between these tables are removed, and their values are released in the vault.
        """
        for name in names:
            self._untie(name, names)
        for name in names:
            tables = {each: known for each, known in self.now.tables.items() if each != name}
            # The change log is not needed after its records are deleted.
            texts = [f'DROP TABLE "{name}"', f"DELETE FROM record_change WHERE model = '{name}'"]
            after = Snapshot(tables, self.now.versions)
            self._destroy(f"drop the table {name} with its records", texts, after, None)

    def _untie(self, name: str, names: list[str]) -> None:
        tied = [each for each in self.now.tables[name].columns if each.label or each.references in names]
        for index in [each for each in self.now.tables[name].indexes if _is_over(each, tied)]:
            self._drop_index(name, index)
        for column in tied:
            self._drop_column(name, column, None)

    def note_versions(self) -> None:
        """Add the last step, which records the installed versions of the modules."""
        after = Snapshot(self.now.tables, dict(self._after.versions))
        self._step(f"note the versions: {_listed(after.versions)}", "", after)


def _is_over(index: Index, columns: Iterable[Column]) -> bool:
    return any(f'"{column.name}"' in index.terms for column in columns)


def _stays(column: Column, declared: Column | None, kinds: Kinds) -> bool:
    """Return whether the column and its values can be kept for the declared column."""
    if declared is None or (column.type, column.references) != (declared.type, declared.references):
        return False
    if (column.label, column.is_linked) != (declared.label, declared.is_linked):
        return False
    if column.kind != declared.kind and not _is_wider(column.kind, declared.kind, kinds):
        return False
    # A computation must not overwrite values that people entered.
    return bool(column.indirect_sources) or not declared.indirect_sources


def _is_wider(kind: str, other: str, kinds: Kinds) -> bool:
    """Return whether every stored value of the kind is valid for the other kind."""
    return any(kind in each.widens for each in kinds if each.kind == other)


def _is_filled(column: Column) -> bool:
    return column.is_required or bool(column.indirect_sources) or column.name.endswith((FOLDED, VALUE))


def _words(column: Column) -> str:
    if column.references is not None:
        return f"a ref to {column.references}"
    return f"a computed {column.kind}" if column.indirect_sources else f"a {column.kind}"


def _with(snapshot: Snapshot, each: ModelTable) -> Snapshot:
    return Snapshot({**snapshot.tables, each.name: each}, snapshot.versions)


def _renamed(table: ModelTable, column: Column, new: str) -> ModelTable:
    def name(each: str) -> str:
        return new if each == column.name else each

    return msgspec.structs.replace(
        table,
        columns=[msgspec.structs.replace(each, name=name(each.name)) for each in table.columns],
        bits={name(each): bit for each, bit in table.bits.items()},
        unfilled=tuple(map(name, table.unfilled)),
    )


def _replaced(now: ModelTable, declared: Column) -> list[Column]:
    return [declared if column.name == declared.name else column for column in now.columns]


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
