"""Which columns of old records have to be given values, and in which order: what others are made from comes first."""

from collections.abc import Iterator

import msgspec

from countersign.records.schema.snapshot import FOLDED, VALUE, Column, Snapshot
from countersign.records.schema.steps import Work


def with_unfilled(snapshot: Snapshot, table: str, column: str, *, itself: bool = False) -> Snapshot:
    """The snapshot with everything unfilled that is made from the column; with the column too, where `itself`."""
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
            if is_copy or place in other.made_from:
                yield name, other.name


def next_to_fill(now: Snapshot, after: Snapshot) -> tuple[str, Column, str, Work] | None:
    """The next column to fill, none of whose sources is still to be filled: its table, the column as it is wanted,
    the sentence and the work; None when all are filled."""
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


def _is_unfilled(now: Snapshot, table: str, asked: Column) -> bool:
    installed = now.tables[table]
    present = installed.column(asked.name)
    if present is None:
        return False
    if asked.name in installed.unfilled:
        return True
    if asked.made_from:
        return asked.made_from != present.made_from
    return asked.is_required and not present.is_required


def _sources(table: str, column: Column) -> Iterator[tuple[str, str]]:
    for ending in (FOLDED, VALUE):
        if column.name.endswith(ending):
            yield table, column.name.removesuffix(ending)
    for place in column.made_from:
        model, _, field = place.partition(".")
        yield model, field


def _filling(table: str, column: Column) -> tuple[str, Work]:
    if column.name.endswith(FOLDED):
        field = column.name.removesuffix(FOLDED)
        return f"fold {table}.{field} for searching", Work("folded", table, field)
    if column.name.endswith(VALUE):
        field = column.name.removesuffix(VALUE)
        return f"give the values of {table}.{field} ids in the vault", Work("value", table, field)
    if column.made_from:
        return f"compute {table}.{column.name}", Work("made", table, column.name)
    return f"fill {table}.{column.name} where it is empty", Work("default", table, column.name)
