"""The columns of existing tables as SQL: their values in the form that records are stored in, and their types.

A statement on an existing table is built from the expressions here. All names are quoted, and tables are qualified.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from countersign.declare import Bool, Date, Decimal, Declared, Field, Moment, Money, Number, Select
from countersign.declare.fields.kinds import LARGEST
from countersign.declare.fields.text import MAX_LONGTEXT_LENGTH
from countersign.declare.table import quoted, relation_names
from countersign.kernel.database.port import Dialect
from countersign.kernel.database.read_only import ExistingDatabase
from countersign.kernel.database.table_fingerprints import TableId
from countersign.records.masking.record_ids import KeyKind

_POSTGRES_COLUMNS = """
SELECT n.nspname, c.relname, a.attname, tn.nspname, t.typname,
    has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, a.attnum, 'SELECT')
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_catalog.pg_type AS d ON d.oid = a.atttypid
JOIN pg_catalog.pg_type AS t ON t.oid = CASE WHEN d.typtype = 'd' THEN d.typbasetype ELSE d.oid END
JOIN pg_catalog.pg_namespace AS tn ON tn.oid = t.typnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND (n.nspname, c.relname) IN (
        SELECT named.s, named.t FROM jsonb_to_recordset($1::text::jsonb) AS named (s text, t text)
    )
"""
_HAS_ICU = "SELECT count(*) FROM pg_catalog.pg_collation WHERE collname = 'und-x-icu' AND collprovider = 'i'"
_CURRENT_SCHEMA = "public"

_INTEGERS: Final[Mapping[str, KeyKind]] = {"int2": "int2", "int4": "int4", "int8": "int8"}
_SMALL_INTEGERS = frozenset({"int2", "int4", "oid"})
_EXACT_TEXTS = frozenset({"text", "varchar"})
_PLAIN = "pg_catalog"
MAX_LENGTH = MAX_LONGTEXT_LENGTH + 1
"""The number of characters of a text that are read. The database cuts longer texts."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a column: its schema and name in PostgreSQL, or the declared type in SQLite."""

    schema: str
    name: str

    @property
    def key_kind(self) -> KeyKind:
        """Return how the value is packed in the id of a record."""
        if self.schema == _PLAIN:
            return "uuid" if self.name == "uuid" else _INTEGERS.get(self.name, "other")
        return "int8" if not self.schema and "INT" in self.name.upper() else "other"

    @property
    def sql(self) -> str:
        """Return the type of PostgreSQL as SQL."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"


ColumnTypes = Mapping[str, ColumnType]


async def types_of(database: ExistingDatabase, relations: frozenset[str]) -> dict[str, dict[str, ColumnType]]:
    """Map each existing relation to the types of the columns that may be read."""
    if database.dialect == "sqlite":
        return {each: await _sqlite_types(database, list(relation_names(each))[-1]) for each in relations}
    return await _postgres_types(database, relations)


async def _sqlite_types(database: ExistingDatabase, table: str) -> dict[str, ColumnType]:
    rows = await database.scan("SELECT name, type FROM pragma_table_xinfo($1)", table)
    return {name: ColumnType("", declared) for name, declared in rows}


async def _postgres_types(database: ExistingDatabase, relations: frozenset[str]) -> dict[str, dict[str, ColumnType]]:
    names = {schema_and_table(each): each for each in relations}
    listed = msgspec.json.encode([{"s": each[0], "t": each[1]} for each in names]).decode()
    rows = await database.scan(_POSTGRES_COLUMNS, listed)
    types: dict[str, dict[str, ColumnType]] = {each: {} for each in relations}
    for schema, table, column, type_schema, type_name, is_readable in rows:
        if is_readable:
            types[names[schema, table]][column] = ColumnType(type_schema, type_name)
    return types


async def folds_unicode(database: ExistingDatabase) -> bool:
    """Return whether the database has a collation that converts all letters to lower case."""
    return database.dialect == "sqlite" or bool((await database.scan(_HAS_ICU))[0][0])


def schema_and_table(relation: str) -> tuple[str, str]:
    """Return the schema and the table of a relation in PostgreSQL."""
    names = list(relation_names(relation))
    return (names[0], names[1]) if len(names) > 1 else (_CURRENT_SCHEMA, names[0])


def table_id(dialect: Dialect, model: Declared) -> TableId:
    """Return the schema and the name of the table of a model."""
    relation = model.table.relation if model.table is not None else ""
    return schema_and_table(relation) if dialect == "postgres" else ("", list(relation_names(relation))[-1])


def key_value(dialect: Dialect, column: str, type_: ColumnType) -> str:
    """Return the expression for a column of a key, as ids contain it."""
    if dialect == "sqlite" or type_.key_kind in _INTEGERS:
        return column
    return f"{column}::text"


def key_operand(dialect: Dialect, type_: ColumnType, placeholder: str) -> str:
    """Return the expression for a value in an id, which is compared with a column of this type."""
    if dialect == "sqlite":
        return placeholder
    if type_.key_kind in _INTEGERS:
        return f"{placeholder}::bigint"
    return f"{placeholder}::text::{type_.sql}"


def stored_value(dialect: Dialect, column: str, type_: ColumnType, field: Field) -> str:
    """Return the expression for the value of a field as records store it. A value that does not fit the kind of the
    field is NULL."""
    if isinstance(field, Select):
        return _select(dialect, column, field)
    build = _postgres_value if dialect == "postgres" else _sqlite_value
    return build(column, type_, field)


def shown_text(dialect: Dialect, expression: str, field: Field) -> str:
    """Return the expression to select for a text. Texts longer than any field allows are cut."""
    if field.column != "TEXT":
        return expression
    function = "left" if dialect == "postgres" else "substr"
    arguments = f"{MAX_LENGTH}" if dialect == "postgres" else f"1, {MAX_LENGTH}"
    return f"{function}({expression}, {arguments})"


def text_of(dialect: Dialect, column: str) -> str:
    """Return the expression for a value as text, which is compared by code point."""
    return f'({column}::text COLLATE "C")' if dialect == "postgres" else f"(CAST({column} AS TEXT) COLLATE BINARY)"


def literal(text: str) -> str:
    """Return the text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def is_exact_text(dialect: Dialect, type_: ColumnType) -> bool:
    """Return whether an index of the column finds equal texts."""
    return dialect == "sqlite" or (type_.schema == _PLAIN and type_.name in _EXACT_TEXTS)


def is_integer(type_: ColumnType) -> bool:
    """Return whether the column has an integer type of PostgreSQL."""
    return type_.schema == _PLAIN and type_.name in _INTEGERS


def _select(dialect: Dialect, column: str, field: Select) -> str:
    text = text_of(dialect, column)
    values = {str(each): option for each, option in field.values.items()} or {
        each: each for each in field.options if each != field.unknown
    }
    options = " ".join(f"WHEN {literal(each)} THEN {literal(option)}" for each, option in values.items())
    other = literal(field.unknown) if field.unknown else "NULL"
    chosen = f"CASE WHEN {column} IS NULL THEN NULL ELSE CASE {text} {options} ELSE {other} END END"
    return f'({chosen} COLLATE "C")' if dialect == "postgres" else f"({chosen})"


def _postgres_value(column: str, type_: ColumnType, field: Field) -> str:
    if isinstance(field, Bool):
        return f"{column}::int::bigint" if type_.name == "bool" else f"({column}::text <> '0')::int::bigint"
    if isinstance(field, Date):
        return _in_calendar(f"{column}::date", f"to_char({column}::date, 'YYYY-MM-DD') COLLATE \"C\"")
    if isinstance(field, Moment):
        instant = f"({column} AT TIME ZONE {literal(field.zone)})" if type_.name == "timestamp" else column
        return _in_calendar(instant, f"(extract(epoch FROM {instant}) * 1000000)::bigint")
    if isinstance(field, Money):
        return _in_range(f"round({column}::numeric * {10**field.scale})", "::bigint")
    if isinstance(field, Number):
        return _in_range(column, "::bigint") if type_.name not in _SMALL_INTEGERS else f"{column}::bigint"
    return text_of("postgres", column)


def _in_range(number: str, cast: str = "") -> str:
    """Return the expression for a number within ±(2^53 - 1), and NULL for others."""
    return f"(CASE WHEN {number} BETWEEN -{LARGEST} AND {LARGEST} THEN {number}{cast} END)"


def _in_calendar(column: str, expression: str) -> str:
    """Return the expression for a day or instant of the years 1 to 9999, and NULL for others."""
    is_valid = f"isfinite({column}) AND {column} >= '0001-01-01' AND {column} < '10000-01-01'"
    return f"(CASE WHEN {is_valid} THEN {expression} END)"


def _sqlite_value(column: str, _: ColumnType, field: Field) -> str:
    if isinstance(field, Bool):
        words = f"lower({column}) IN ('t', 'true', 'y', 'yes', '1')"
        return f"(CASE typeof({column}) WHEN 'integer' THEN {column} <> 0 WHEN 'text' THEN {words} END)"
    if isinstance(field, Date):
        return f"(CASE typeof({column}) WHEN 'text' THEN date({column}) END COLLATE BINARY)"
    if isinstance(field, Moment):
        milliseconds = f"CAST(round((julianday({column}) - 2440587.5) * 86400000) AS INTEGER)"
        return f"(CASE typeof({column}) WHEN 'text' THEN {milliseconds} * 1000 END)"
    is_number = f"typeof({column}) IN ('integer', 'real')"
    if isinstance(field, Money):
        amount = _in_range(f"CAST(round({column} * {10**field.scale}) AS INTEGER)")
        return f"(CASE WHEN {is_number} THEN {amount} END)"
    if isinstance(field, Number):
        return f"(CASE typeof({column}) WHEN 'integer' THEN {_in_range(column)} END)"
    if isinstance(field, Decimal):
        # A column of SQLite accepts a text in place of a number.
        return f"(CASE WHEN {is_number} THEN {text_of('sqlite', column)} END)"
    return text_of("sqlite", column)


def decimal_terms(dialect: Dialect, column: str, placeholder: str) -> tuple[str, str]:
    """Return the expressions that compare a decimal number with a value."""
    if dialect == "postgres":
        return f"{column}::numeric", f"{placeholder}::text::numeric"
    return f"CAST({column} AS REAL)", f"CAST({placeholder} AS REAL)"
