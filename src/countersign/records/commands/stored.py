"""One record as the database has it, and the statements that write one."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from countersign.declare import Declared
from countersign.declare.fields.field import Stored
from countersign.kernel.database.port import Row, Value
from countersign.records.access.people import folded


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record with every field as stored, and the value ids of its personal fields."""

    id: str
    revision: int
    changed: int
    values: Mapping[str, Stored]
    value_ids: Mapping[str, int | None]


def record_of(model: Declared, row: Row) -> StoredRecord:
    """The record in a row of `select.existing`."""
    names = tuple(model.fields)
    personal = personal_fields(model)
    values = dict(zip(names, row[3 : 3 + len(names)], strict=True))
    return StoredRecord(
        row[0], row[1], row[2], values, dict(zip(personal, row[3 + len(names) :], strict=True))
    )


@lru_cache(maxsize=512)
def personal_fields(model: Declared) -> tuple[str, ...]:
    """The names of the personal fields, in declared order."""
    return tuple(name for name, field in model.fields.items() if field.personal)


@lru_cache(maxsize=512)
def insertion(model: Declared) -> str:
    """INSERT of every column: id, fields, folded copies, value ids; revision 1, nothing changed yet."""
    columns = ["id", *model.fields, *(f"{name}__folded" for name in _folded_fields(model))]
    columns += [f"{name}__value" for name in personal_fields(model)]
    names = ", ".join(f'"{name}"' for name in columns)
    places = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    return f'INSERT INTO "{model.name}" ({names}, revision, changed) VALUES ({places}, 1, 0)'


def insertion_values(
    model: Declared, record_id: str, values: Mapping[str, Stored], value_ids: Mapping[str, int]
) -> list[Value]:
    """The values of `insertion`."""
    return [
        record_id,
        *(values.get(name) for name in model.fields),
        *(_folded(values.get(name)) for name in _folded_fields(model)),
        *(value_ids.get(name) for name in personal_fields(model)),
    ]


def updating(
    model: Declared, record_id: str, values: Mapping[str, Stored], value_ids: Mapping[str, int | None], mask: int
) -> tuple[str, list[Value]]:
    """UPDATE of some fields with their folded copies and value ids; counts the revision, notes what changed."""
    columns: dict[str, Value] = dict(values)
    columns |= {f"{name}__folded": _folded(values[name]) for name in _folded_fields(model) if name in values}
    columns |= {f"{name}__value": value_id for name, value_id in value_ids.items()}
    settings = ", ".join(f'"{name}" = ${number}' for number, name in enumerate(columns, 3))
    text = (
        f'UPDATE "{model.name}" SET {settings}, revision = revision + 1, changed = changed | $2 WHERE id = $1'
    )
    return text, [record_id, mask, *columns.values()]


@lru_cache(maxsize=512)
def _folded_fields(model: Declared) -> tuple[str, ...]:
    return tuple(name for name, field in model.fields.items() if field.is_folded)


def _folded(value: Stored) -> Stored:
    return folded(value) if isinstance(value, str) else None
