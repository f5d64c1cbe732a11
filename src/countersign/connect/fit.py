"""Compares the models of a module text with the database: whether the tables, keys and columns exist and may be read,
and whether the kinds of the fields fit the types of the columns."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from countersign.connect.schema import BaseType, Database, Relation, TableColumn
from countersign.declare import Declared, Field, Money, Number, Ref
from countersign.declare.table import Table

_TEXTS = frozenset({"text", "longtext"})
_CHOICES = _TEXTS | {"select"}
_KINDS: Mapping[BaseType, frozenset[str]] = {
    **dict.fromkeys(("text", "citext"), _CHOICES | {"bool"}),
    **dict.fromkeys(("uuid", "address", "enum"), _CHOICES),
    **dict.fromkeys(("integer", "bigint"), _CHOICES | {"number", "decimal", "money", "bool"}),
    "numeric": _TEXTS | {"decimal", "money", "number"},
    "float": _TEXTS | {"decimal"},
    **dict.fromkeys(("moment", "local_moment"), _TEXTS | {"moment", "date"}),
    **dict.fromkeys(("time", "interval", "json", "array", "money", "other"), _TEXTS),
    **{"bool": _CHOICES | {"bool"}, "date": _TEXTS | {"date"}, "bytes": frozenset[str]()},
}
"""Maps a column type to the kinds of fields that can show its values."""
_KNOWN_KINDS = frozenset[str]().union(*_KINDS.values())
_WORDS: Mapping[BaseType, str] = {
    **dict.fromkeys(("integer", "bigint"), "Number"),
    **dict.fromkeys(("numeric", "float"), "Decimal"),
    **dict.fromkeys(("moment", "local_moment"), "Moment"),
    **{"bool": "Bool", "date": "Date", "enum": "Select"},
}
"""Maps a column type to the declaration word that a remedy suggests. For other types, this is Text."""

_IN_WAL = "the SQLite file is in WAL mode, in which SQLite does not commit two files together, so it is only read"
_LEAVE_WAL = "switch it with PRAGMA journal_mode=DELETE if its application allows that, or take writable out"


@dataclass(frozen=True, slots=True)
class Misfit:
    """A part of a model that does not fit the database: the model or field, the error, and the remedy."""

    place: str
    text: str
    remedy: str

    @property
    def model(self) -> str:
        """Return the name of the model."""
        return self.place.partition(".")[0]


def misfits(models: Mapping[str, Declared], database: Database) -> list[Misfit]:
    """Return the parts of these models, which all have a table, that do not fit the database. Keys without a unique
    index are not checked for duplicates: see `unproven_keys`."""
    return [each for model in models.values() for each in _of_model(model, models, database)]


def unproven_keys(models: Mapping[str, Declared], database: Database) -> dict[str, tuple[Relation, tuple[str, ...]]]:
    """Map each model whose key exists, but has no unique index, to its relation and its key."""
    found: dict[str, tuple[Relation, tuple[str, ...]]] = {}
    for model in models.values():
        relation = None if model.table is None else database.relation(model.table)
        if model.table is None or relation is None:
            continue
        key = model.table.key_columns
        is_there = set(key) <= {each.name for each in relation.columns}
        if is_there and not any(set(each.columns) <= set(key) for each in relation.keys):
            found[model.name] = relation, key
    return found


def readable(models: Mapping[str, Declared], database: Database) -> dict[str, tuple[Relation, tuple[str, ...]]]:
    """Map each model whose columns the role may all read to its relation and these columns."""
    found: dict[str, tuple[Relation, tuple[str, ...]]] = {}
    for model in models.values():
        relation = None if model.table is None else database.relation(model.table)
        if model.table is None or relation is None:
            continue
        fields = (name for each in model.fields.values() for name in each.table_columns)
        columns = {*model.table.columns_without_field, *fields}
        if columns <= {each.name for each in relation.columns}:
            found[model.name] = relation, tuple(sorted(columns))
    return found


def column_fits(field: Field, column: TableColumn, *, is_sqlite: bool) -> bool:
    """Return whether a field of this kind can show the values of the column. SQLite accepts any value in a text column,
    and a text in a column of binary data."""
    if field.kind not in _KNOWN_KINDS or (is_sqlite and column.base == "text"):
        return True
    if column.base in ("numeric", "float") and (is_sqlite or column.base == "numeric"):
        return field.kind in _KINDS["numeric"] and _keeps_digits(field, column, is_sqlite=is_sqlite)
    return field.kind in (_CHOICES if is_sqlite and column.base == "bytes" else _KINDS[column.base])


def _keeps_digits(field: Field, column: TableColumn, *, is_sqlite: bool) -> bool:
    """Return whether the field shows all digits after the decimal point. In a SQLite file, a `Number` shows a number
    with a fraction as empty."""
    if isinstance(field, Money):
        return is_sqlite if column.scale is None else column.scale <= field.scale
    return not isinstance(field, Number) or is_sqlite or (column.scale is not None and column.scale <= 0)


def _of_model(model: Declared, models: Mapping[str, Declared], database: Database) -> Iterator[Misfit]:
    table = model.table
    if table is None:
        return
    relation = database.relation(table)
    if relation is None:
        remedy = "correct the name, or grant USAGE on its schema and SELECT"
        yield Misfit(model.name, f"the role sees no table {table.relation}", remedy)
        return
    if database.is_wal and table.writable:
        yield Misfit(f"{model.name}.table", _IN_WAL, _LEAVE_WAL)
    yield from _of_key(model, table, relation, database)
    for field in model.fields.values():
        missing = list(_of_missing(f"{model.name}.{field.name}", field.table_columns, relation))
        yield from missing
        if not missing and isinstance(field, Ref):
            yield from _of_ref(model, field, relation, models, database)
        elif not missing:
            yield from _of_kind(model, field, relation, database)
    yield from _of_fingerprint(model, table, relation)


def _of_fingerprint(model: Declared, table: Table, relation: Relation) -> Iterator[Misfit]:
    """Yield a misfit if the table does not have the fingerprint, or if a field reads a column that was added later."""
    definition, key = relation.definition, table.key_columns
    used = {name for field in model.fields.values() for name in field.table_columns} | {*table.deleted_columns}
    if definition is None and table.fingerprint:
        text = f"{relation.place} cannot be compared with its fingerprint now, because a table is locked"
        yield Misfit(model.name, text, "try again later")
    if definition is None or not table.fingerprint or definition.matches(table.fingerprint, key, used):
        return
    text = f"the table {relation.place} has changed since the file was written, so the model is hidden"
    if definition.matches(table.fingerprint, key):
        text = f"a field reads a column of {relation.place} that is newer than the fingerprint, so the model is hidden"
    yield Misfit(model.name, text, "look at connect diff, then run connect accept")


def marks_deletions(column: TableColumn) -> bool:
    """Return whether a column of this type can mark deleted rows."""
    return column.base in ("moment", "local_moment", "date", "bool")


def _of_key(model: Declared, table: Table, relation: Relation, database: Database) -> Iterator[Misfit]:
    place = f"{model.name}.table"
    yield from _of_missing(place, table.columns_without_field, relation)
    known = {each.name: each for each in relation.columns}
    if table.deleted in known and not marks_deletions(known[table.deleted]) and not database.is_sqlite:
        text = f"the column {table.deleted} is {known[table.deleted].type_name}, which marks no deleted rows"
        yield Misfit(place, text, "name a time, a day or a boolean in deleted, or take it out")
    if relation.kind == "inherited":
        text = f"{relation.place} is a parent of other tables, and its key is not unique over their rows"
        yield Misfit(place, text, "take the model out")


def _of_missing(place: str, columns: tuple[str, ...], relation: Relation) -> Iterator[Misfit]:
    known = {each.name for each in relation.columns}
    for column in columns:
        if column in relation.unreadable:
            yield Misfit(place, f"the role may not read {relation.place}.{column}", "grant SELECT on the column")
        elif column not in known:
            text = f"the table {relation.place} has no column {column}"
            yield Misfit(place, text, "correct the name, or take the column out")


def _of_kind(model: Declared, field: Field, relation: Relation, database: Database) -> Iterator[Misfit]:
    column = relation.column(field.table_columns[0])
    if column_fits(field, column, is_sqlite=database.is_sqlite):
        return
    text = f"the column {column.name} is {column.type_name}, and the file says {type(field).__name__}"
    word = _WORDS.get(column.base)
    remedy = f"write {word}(), if agents may read it" if word else 'write Text(personal="TEXT")'
    remedy = "take the field out" if column.base == "bytes" else remedy
    yield Misfit(f"{model.name}.{field.name}", text, remedy)


def _of_ref(
    model: Declared, ref: Ref, relation: Relation, models: Mapping[str, Declared], database: Database
) -> Iterator[Misfit]:
    """Yield a misfit if the columns of a ref and the key of its target have different types. A target in another module
    is not checked."""
    if ref.target not in models:
        return
    for name, key in zip(ref.table_columns, _key_of(models[ref.target], database), strict=False):
        column = relation.column(name)
        if not database.is_sqlite and _family(column) != _family(key):
            text = f"the column {name} is {column.type_name}, and the key of {ref.target} is {key.type_name}"
            yield Misfit(f"{model.name}.{ref.name}", text, "correct the columns of the ref")


def _key_of(model: Declared, database: Database) -> list[TableColumn]:
    """Return the columns of the key of a model. The result is empty if one of them does not exist."""
    relation = None if model.table is None else database.relation(model.table)
    if model.table is None or relation is None:
        return []
    known = {each.name: each for each in relation.columns}
    found = [known[each] for each in model.table.key_columns if each in known]
    return found if len(found) == len(model.table.key_columns) else []


def _family(column: TableColumn) -> str:
    """Return the name of the family of comparable types that the column's type belongs to."""
    if column.base in ("integer", "bigint", "numeric"):
        return "number"
    return column.type_name if column.base in ("enum", "other") else column.base.removeprefix("ci")
