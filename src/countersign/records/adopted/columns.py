"""The columns of existing tables as SQL: their values in the form that records are stored in, and their types.

A statement on an existing table is built from the expressions here. All names are quoted, and tables are qualified.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import msgspec

from countersign.declare import Bool, Date, Decimal, Declared, Field, Moment, Money, Number, Select
from countersign.declare.fields.field import Stored
from countersign.declare.fields.kinds import LARGEST
from countersign.declare.fields.text import MAX_LONGTEXT_LENGTH, MAX_TEXT_LENGTH
from countersign.declare.table import DEFAULT_SCHEMA, quoted, relation_names
from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Dialect
from countersign.kernel.database.read_only import ExistingDatabase
from countersign.kernel.database.table_fingerprints import TableId
from countersign.records.adopted import sqlite_values
from countersign.records.masking.record_ids import Key, KeyKind

_POSTGRES_COLUMNS = """
SELECT n.nspname, c.relname, a.attname, tn.nspname, t.typname, t.typtype = 'e',
    CASE WHEN t.typname = 'numeric' AND t.modifier >= 4 THEN (((t.modifier - 4) & 2047) # 1024) - 1024 END,
    has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, a.attnum, 'SELECT'),
    a.attnotnull AND NOT a.atthasdef
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
CROSS JOIN LATERAL (
    WITH RECURSIVE unrolled AS (
        SELECT d.typname, d.typnamespace, d.typtype, d.typbasetype, d.typtypmod, a.atttypmod AS modifier
        FROM pg_catalog.pg_type AS d
        WHERE d.oid = a.atttypid
        UNION ALL
        SELECT d.typname, d.typnamespace, d.typtype, d.typbasetype, d.typtypmod, greatest(u.modifier, u.typtypmod)
        FROM unrolled AS u
        JOIN pg_catalog.pg_type AS d ON d.oid = u.typbasetype
        WHERE u.typtype = 'd'
    )
    SELECT u.typname, u.typnamespace, u.typtype, u.modifier FROM unrolled AS u WHERE u.typtype <> 'd'
) AS t
JOIN pg_catalog.pg_namespace AS tn ON tn.oid = t.typnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND (n.nspname, c.relname) IN (
        SELECT named.s, named.t FROM jsonb_to_recordset($1::text::jsonb) AS named (s text, t text)
    )
"""
_SQLITE_COLUMNS = """
SELECT name, type, pk = 1 AND upper(type) = 'INTEGER'
    AND (SELECT count(*) FROM pragma_table_xinfo($1) WHERE pk > 0) = 1
    AND NOT EXISTS (SELECT 1 FROM pragma_table_list($1) WHERE wr)
    AND NOT EXISTS (SELECT 1 FROM pragma_index_list($1) WHERE origin = 'pk'),
    "notnull" AND dflt_value IS NULL AND hidden = 0
FROM pragma_table_xinfo($1)
"""
# Rows of foreign tables do not commit with ours, and a trigger of a view may return a row that it has not written.
_POSTGRES_UNWRITABLE = """
SELECT n.nspname, c.relname
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE (n.nspname, c.relname) IN (
        SELECT named.s, named.t FROM jsonb_to_recordset($1::text::jsonb) AS named (s text, t text)
    )
    AND (c.relkind NOT IN ('r', 'p') OR EXISTS (
        WITH RECURSIVE parts (part) AS (
            SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = c.oid
            UNION
            SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i JOIN parts ON i.inhparent = parts.part
        )
        SELECT FROM parts JOIN pg_catalog.pg_class AS f ON f.oid = parts.part AND f.relkind = 'f'
    ))
"""
# The conflict clause of a constraint may delete other rows, of which nothing is noticed.
_SQLITE_UNWRITABLE = """
SELECT s.name
FROM sqlite_schema AS s
WHERE s.type IN ('table', 'view') AND lower(s.name) IN (SELECT lower(value) FROM json_each($1))
    AND (s.type = 'view' OR s.sql LIKE 'CREATE VIRTUAL%' OR s.sql LIKE '%CONFLICT%REPLACE%')
"""
_HAS_ICU = "SELECT count(*) FROM pg_catalog.pg_collation WHERE collname = 'und-x-icu' AND collprovider = 'i'"
_ENCODING = "SELECT current_setting('server_encoding')"

INTEGERS: Final[Mapping[str, KeyKind]] = {"int2": "int2", "int4": "int4", "int8": "int8"}
"""The types of PostgreSQL whose values are numbers in ids."""
_SMALL_INTEGERS = frozenset({"int2", "int4", "oid"})
_BOOLEANS = frozenset({"bool", "int2", "int4", "int8", "numeric"})
_DELETION_MARKS: Final[Mapping[str, str]] = {
    "bool": "true",
    "timestamptz": "pg_catalog.now()",
    "timestamp": "(pg_catalog.now() AT TIME ZONE 'UTC')",
    "date": "(pg_catalog.now() AT TIME ZONE 'UTC')::date",
}
_FRACTIONAL = frozenset({"float4", "float8", "money"})
_EXACT_TEXTS = frozenset({"text", "varchar"})
_PLAIN = "pg_catalog"
_SPELLED_ALIKE = frozenset({"uuid", "text", "varchar", "date", "bool", "timestamp", "timestamptz", "bytea", "oid"})
_TEXT, _BYTES = "t", "b"
"""The prefixes of a text and of bytes in a key, which SQLite returns in hexadecimal."""

def text_length(field: Field) -> int:
    """Return the number of characters that are read of a field. The database cuts longer texts."""
    if field.column != "TEXT":
        return 0
    return 1 + (MAX_LONGTEXT_LENGTH if field.is_long else MAX_TEXT_LENGTH)


_POSTGRES_INDEXED = """
SELECT DISTINCT a.attname::text
FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS c ON c.oid = i.indrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE n.nspname = $1 AND c.relname = $2 AND i.indisvalid AND i.indpred IS NULL
"""
_SQLITE_INDEXED = """
SELECT i.name FROM pragma_index_list($1) AS l JOIN pragma_index_info(l.name) AS i
WHERE i.seqno = 0 AND l.partial = 0 AND i.name IS NOT NULL
UNION SELECT t.name FROM pragma_table_info($1) AS t WHERE t.pk = 1
"""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a column: its schema and name in PostgreSQL, or the declared type in SQLite. `is_row_number` is true
    for the INTEGER PRIMARY KEY of SQLite, which alone contains nothing but integers. It is false for INTEGER PRIMARY
    KEY DESC, which has an index. `scale` is the number of decimals of a `numeric` of PostgreSQL, if it is limited.
    `is_required` says that each new row needs a value in the column, because it has no default."""

    schema: str
    name: str
    is_row_number: bool = False
    is_enum: bool = False
    scale: int | None = None
    is_required: bool = dataclasses.field(default=False, compare=False)

    @property
    def key_kind(self) -> KeyKind:
        """Return how the value is packed in the id of a record."""
        if self.schema == _PLAIN:
            return "uuid" if self.name == "uuid" else INTEGERS.get(self.name, "other")
        return "int8" if self.is_row_number else "other"

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
    rows = await database.scan(_SQLITE_COLUMNS, table)
    return {
        name: ColumnType("", declared, bool(is_row_number), is_required=bool(is_required))
        for name, declared, is_row_number, is_required in rows
    }


async def _postgres_types(database: ExistingDatabase, relations: frozenset[str]) -> dict[str, dict[str, ColumnType]]:
    names = {schema_and_table(each): each for each in relations}
    listed = msgspec.json.encode([{"s": each[0], "t": each[1]} for each in names]).decode()
    rows = await database.scan(_POSTGRES_COLUMNS, listed)
    types: dict[str, dict[str, ColumnType]] = {each: {} for each in relations}
    for schema, table, column, type_schema, type_name, is_enum, scale, is_readable, is_required in rows:
        if is_readable:
            types[names[schema, table]][column] = ColumnType(
                type_schema, type_name, is_enum=is_enum, scale=scale, is_required=is_required
            )
    return types


async def indexed(database: ExistingDatabase, model: Declared) -> frozenset[str]:
    """Return the columns of the model's table that are the first column of an index over all rows."""
    schema, table = table_id(database.dialect, model)
    if database.dialect == "sqlite":
        rows = await database.scan(_SQLITE_INDEXED, table)
    else:
        rows = await database.scan(_POSTGRES_INDEXED, schema, table)
    return frozenset(name for (name,) in rows)


async def unwritable(database: ExistingDatabase, relations: frozenset[str]) -> frozenset[str]:
    """Return the relations that cannot be written in one transaction with the audit entry."""
    if database.dialect == "sqlite":
        return await _sqlite_unwritable(database, relations)
    names = {schema_and_table(each): each for each in relations}
    listed = msgspec.json.encode([{"s": each[0], "t": each[1]} for each in names]).decode()
    return frozenset(names[schema, table] for schema, table in await database.scan(_POSTGRES_UNWRITABLE, listed))


async def _sqlite_unwritable(database: ExistingDatabase, relations: frozenset[str]) -> frozenset[str]:
    tables = {each: list(relation_names(each))[-1] for each in relations}
    rows = await database.scan(_SQLITE_UNWRITABLE, msgspec.json.encode(list(tables.values())).decode())
    found = {str(name).lower() for (name,) in rows}
    return frozenset(each for each, table in tables.items() if table.lower() in found)


async def folds_unicode(database: ExistingDatabase) -> bool:
    """Return whether the database has a collation that converts all letters to lower case."""
    return database.dialect == "sqlite" or bool((await database.scan(_HAS_ICU))[0][0])


async def is_utf8(database: ExistingDatabase) -> bool:
    """Return whether the encoding of the database is UTF-8."""
    return database.dialect == "sqlite" or (await database.scan(_ENCODING))[0][0] == "UTF8"


def schema_and_table(relation: str) -> tuple[str, str]:
    """Return the schema and the table of a relation in PostgreSQL."""
    names = list(relation_names(relation))
    return (names[0], names[1]) if len(names) > 1 else (DEFAULT_SCHEMA, names[0])


def table_id(dialect: Dialect, model: Declared) -> TableId:
    """Return the schema and the name of the table of a model."""
    relation = model.table.relation if model.table is not None else ""
    return schema_and_table(relation) if dialect == "postgres" else ("", list(relation_names(relation))[-1])


def table_name(dialect: Dialect, model: Declared) -> str:
    """Return the table of a model as SQL. In PostgreSQL it has its schema, so the search path does not matter."""
    return ".".join(map(quoted, filter(None, table_id(dialect, model))))


def key_value(dialect: Dialect, column: str, type_: ColumnType) -> str:
    """Return the expression for a column of a key, as ids contain it."""
    if dialect == "sqlite":
        # A text may contain bytes that are not UTF-8, and a column may contain values of several types. `count_by`
        # packs keys into JSON, which contains no bytes.
        in_hex = f"WHEN 'text' THEN '{_TEXT}' || hex({column}) WHEN 'blob' THEN '{_BYTES}' || hex({column})"
        return f"(CASE typeof({column}) {in_hex} ELSE {column} END)"
    return column if type_.key_kind in INTEGERS else f"{column}::text"


def key_of(dialect: Dialect, values: Sequence[Any]) -> Key | None:
    """Return the key of the values that `key_value` selects. Return None if a value is empty, or if a
    text is not UTF-8."""
    if None in values:
        return None
    if dialect == "postgres" or str not in map(type, values):
        return tuple(values)
    try:
        return tuple(_from_hex(each) if isinstance(each, str) else each for each in values)
    except UnicodeDecodeError:
        return None


def keys_of(dialect: Dialect, columns: Sequence[Sequence[Any]]) -> Sequence[Key | None]:
    """Return the keys of the rows whose values are in these columns, as `key_of` does."""
    rows: list[Key] = list(zip(*columns, strict=True))
    if all(set(map(type, each)) == {int} for each in columns):
        return rows
    return [key_of(dialect, each) for each in rows]


def _from_hex(value: str) -> str | bytes:
    found = bytes.fromhex(value[1:])
    return found.decode() if value.startswith(_TEXT) else found


def is_valid_key(dialect: Dialect, column: str, function: str) -> str:
    """Return the condition that ids can contain a value of a key. `function` is the function of SQLite that says
    whether a text in hexadecimal is UTF-8."""
    if dialect == "postgres":
        return f"{column} IS NOT NULL"
    return f"{column} IS NOT NULL AND (typeof({column}) <> 'text' OR {function}(hex({column})))"


def key_length(dialect: Dialect, column: str) -> str:
    """Return the expression for the number of bytes of a value of a key. It is NULL for an empty value."""
    return f"pg_catalog.octet_length({column}::text)" if dialect == "postgres" else f"length(CAST({column} AS BLOB))"


def are_spelled_alike(dialect: Dialect, key: ColumnType, ref: ColumnType) -> bool:
    """Return whether equal values of a key and of a ref to it always have the same spelling in ids."""
    if dialect == "sqlite":
        return key.is_row_number and "INT" in ref.name.upper()
    if key.key_kind in INTEGERS:
        return ref.key_kind in INTEGERS
    return key == ref and key.schema == _PLAIN and key.name in _SPELLED_ALIKE


def key_operand(dialect: Dialect, type_: ColumnType, placeholder: str) -> str:
    """Return the expression for a value in an id, which is compared with a column of this type."""
    if dialect == "sqlite":
        return placeholder
    if type_.key_kind in INTEGERS:
        return f"{placeholder}::bigint"
    if type_.is_enum:
        # A label that has been renamed is no longer one, and a cast would fail.
        labels = f"pg_catalog.unnest(pg_catalog.enum_range(NULL::{type_.sql})) AS each"
        return f"(SELECT each FROM {labels} WHERE each::text = {placeholder}::text)"
    return f"{placeholder}::text::{type_.sql}"


def stored_value(dialect: Dialect, column: str, type_: ColumnType, field: Field) -> str:
    """Return the expression for the value of a field as records store it. A value that does not fit the kind of the
    field is NULL."""
    if isinstance(field, Select):
        return _select(dialect, column, field)
    build = _postgres_value if dialect == "postgres" else _sqlite_value
    return build(column, type_, field)


def misfit(dialect: Dialect, type_: ColumnType, field: Field) -> str | None:
    """Return why the field cannot hold the values of a column exactly, with the remedy, or None."""
    if dialect == "sqlite" or not isinstance(field, Number) or type_.schema != _PLAIN:
        return None
    decimals = field.scale if isinstance(field, Money) else 0
    if type_.name == "numeric" and (type_.scale or 0) > decimals:
        return f"its column has {type_.scale} decimals, so values would be rounded: declare Decimal"
    if type_.name in _FRACTIONAL and not isinstance(field, Money):
        return "its column has decimals, so values would be rounded: declare Decimal"
    return None


def shown_text(dialect: Dialect, expression: str, field: Field) -> str:
    """Return the expression to select for a text. Texts longer than the field allows are cut. SQLite returns the bytes
    of the text, which may not be UTF-8."""
    length = text_length(field)
    return _cut(dialect, expression, length) if length else expression


def whole_text(dialect: Dialect, expression: str) -> str:
    """Return the expression to select for a text of up to MAX_LONGTEXT_LENGTH characters and one more."""
    return _cut(dialect, expression, MAX_LONGTEXT_LENGTH + 1)


def _cut(dialect: Dialect, expression: str, length: int) -> str:
    if dialect == "postgres":
        return f"pg_catalog.left({expression}, {length})"
    return f"CAST(substr({expression}, 1, {length}) AS BLOB)"


def shown(value: object) -> object:
    """Return the value of a text that `shown_text` selects. Bytes that are not UTF-8 become U+FFFD."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def all_shown(values: Sequence[object]) -> list[object]:
    """Return the values of a column as `shown` does."""
    return [value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values]


def text_of(dialect: Dialect, column: str) -> str:
    """Return the expression for a value as text, which is compared by code point."""
    return f'({column}::text COLLATE "C")' if dialect == "postgres" else f"(CAST({column} AS TEXT) COLLATE BINARY)"


def literal(text: str) -> str:
    """Return the text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def is_exact_text(dialect: Dialect, type_: ColumnType) -> bool:
    """Return whether an index of the column finds equal texts."""
    return dialect == "sqlite" or (type_.schema == _PLAIN and type_.name in _EXACT_TEXTS)


def is_counter(dialect: Dialect, type_: ColumnType) -> bool:
    """Return whether the column has whole numbers."""
    return is_integer(type_) if dialect == "postgres" else sqlite_values.affinity_of(type_.name) == "integer"


def is_integer(type_: ColumnType) -> bool:
    """Return whether the column has an integer type of PostgreSQL."""
    return type_.schema == _PLAIN and type_.name in INTEGERS


def is_live(dialect: Dialect, column: str, type_: ColumnType) -> str:
    """Return the condition that a column that marks deleted rows does not mark the row."""
    if dialect == "sqlite":
        return f"({column} IS NULL OR {column} = 0)"
    return f"{column} IS NOT TRUE" if type_.name == "bool" else f"{column} IS NULL"


def marks_deletions(dialect: Dialect, type_: ColumnType) -> bool:
    """Return whether a column of this type can mark deleted rows."""
    return dialect == "sqlite" or (type_.schema == _PLAIN and type_.name in _DELETION_MARKS)


def is_always_deleted(dialect: Dialect, type_: ColumnType) -> bool:
    """Return whether a column that marks deleted rows would mark all of them: it has times or days, which are empty in
    other rows, and must not be empty."""
    return dialect == "postgres" and type_.name != "bool" and type_.is_required


def deletion_mark(dialect: Dialect, type_: ColumnType, other: str) -> str:
    """Return the expression for the value that marks a row as deleted now. Times without a zone are in UTC. `other` is
    the expression for the value of another row, whose format SQLite keeps."""
    if dialect == "sqlite":
        return sqlite_values.deletion_mark(type_.name, other)
    return _DELETION_MARKS[type_.name]


def live_mark(dialect: Dialect, type_: ColumnType) -> str | None:
    """Return the expression for the value with which a new row is not marked as deleted. Return None if the column may
    be empty or has a default."""
    if not type_.is_required:
        return None
    return "0" if dialect == "sqlite" else "false"


def is_date(type_: ColumnType) -> bool:
    """Return whether the column has the type `date` of PostgreSQL."""
    return type_.schema == _PLAIN and type_.name == "date"


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
        return f"{column}::int::bigint" if type_.name == "bool" else _bool_of_text(f"{column}::text")
    if isinstance(field, Date):
        day = f"pg_catalog.to_char({column}::date::timestamp, 'YYYY-MM-DD'::text)"
        return _in_calendar(f"{column}::date", f'{day} COLLATE "C"')
    if isinstance(field, Moment):
        instant = f"({column} AT TIME ZONE {literal(field.zone)})" if type_.name == "timestamp" else column
        return _in_calendar(instant, f"(extract(epoch FROM {instant}) * 1000000::numeric)::bigint")
    if isinstance(field, Money):
        return _whole(f"({column}::numeric * {10**field.scale}::numeric)")
    if isinstance(field, Number):
        return _whole(f"{column}::numeric") if type_.name not in _SMALL_INTEGERS else f"{column}::bigint"
    return text_of("postgres", column)


def _bool_of_text(text: str) -> str:
    """Return the expression for a text or number that means true or false, and NULL for others."""
    values = "WHEN {0} IN ('t', 'true', 'y', 'yes', 'on', '1') THEN 1 WHEN {0} IN " \
        "('f', 'false', 'n', 'no', 'off', '0') THEN 0"
    return f"(CASE {values.format(f'pg_catalog.lower({text})')} END)::bigint"


def _whole(number: str) -> str:
    """Return the expression for a whole number of PostgreSQL within ±(2^53 - 1), and NULL for others."""
    is_exact = f"{number} BETWEEN '{-LARGEST}'::numeric AND '{LARGEST}'::numeric"
    return f"(CASE WHEN {is_exact} AND {number} = pg_catalog.trunc({number}) THEN {number}::bigint END)"


def _in_range(number: str) -> str:
    """Return the expression for a number of SQLite within ±(2^53 - 1), and NULL for others."""
    return f"(CASE WHEN {number} BETWEEN {-LARGEST} AND {LARGEST} THEN {number} END)"


def _in_calendar(column: str, expression: str) -> str:
    """Return the expression for a day or instant of the years 1 to 9999, and NULL for others."""
    is_valid = f"pg_catalog.isfinite({column}) AND {column} >= '0001-01-01' AND {column} < '10000-01-01'"
    return f"(CASE WHEN {is_valid} THEN {expression} END)"


def _sqlite_value(column: str, _: ColumnType, field: Field) -> str:
    if isinstance(field, Bool):
        words = f"lower({column}) IN ('t', 'true', 'y', 'yes', '1')"
        return f"(CASE typeof({column}) WHEN 'integer' THEN {column} <> 0 WHEN 'text' THEN {words} END)"
    if isinstance(field, Date):
        return f"(CASE WHEN {_is_date_of_sqlite(column)} THEN date({column}) END COLLATE BINARY)"
    if isinstance(field, Moment):
        milliseconds = f"CAST(round((julianday({column}) - 2440587.5) * 86400000) AS INTEGER)"
        return f"(CASE WHEN {_is_date_of_sqlite(column)} THEN {milliseconds} * 1000 END)"
    is_number = f"typeof({column}) IN ('integer', 'real')"
    if isinstance(field, Money):
        amount = _in_range(f"CAST(round({column} * {10**field.scale}) AS INTEGER)")
        return f"(CASE WHEN {is_number} AND round({column}, {field.scale}) = {column} THEN {amount} END)"
    if isinstance(field, Number):
        return f"(CASE typeof({column}) WHEN 'integer' THEN {_in_range(column)} END)"
    if isinstance(field, Decimal):
        # A column of SQLite accepts a text in place of a number.
        return f"(CASE WHEN {is_number} THEN {text_of('sqlite', column)} END)"
    return text_of("sqlite", column)


def _is_date_of_sqlite(column: str) -> str:
    """Return the condition that a text begins with a day of the years 1 to 9999. SQLite also reads other texts, such as
    `now` and numbers of days."""
    is_day = f"{column} GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*'"
    return f"typeof({column}) = 'text' AND {is_day} AND date({column}) BETWEEN '0001-01-01' AND '9999-12-31'"


def equals(dialect: Dialect, *types: ColumnType) -> str:
    """Return the operator that compares values of these types. It is the one of PostgreSQL for its own types and for
    enums, because another schema may have one that fits better."""
    is_own = dialect == "postgres" and all(each.schema == _PLAIN or each.is_enum for each in types)
    return "OPERATOR(pg_catalog.=)" if is_own else "="


def decimal_terms(dialect: Dialect, column: str, placeholder: str) -> tuple[str, str]:
    """Return the expressions that compare a decimal number with a value."""
    if dialect == "postgres":
        return f"{column}::numeric", f"{placeholder}::text::numeric"
    return f"CAST({column} AS REAL)", f"CAST({placeholder} AS REAL)"


def row_hash(dialect: Dialect, types: ColumnTypes, alias: str) -> str:
    """Return the expression for a hash of the row. It also changes with values that a field does not show, such as
    those of a Select that have no option of their own."""
    if dialect == "sqlite":
        return sqlite_values.row_hash(types, alias)
    columns = ", ".join(f"{alias}.{quoted(name)}" for name in types)
    return f'pg_catalog.hashtextextended(ROW({columns})::text COLLATE "C", 0)'


def written_key(dialect: Dialect, type_: ColumnType, placeholder: str) -> str:
    """Return the expression for a value of a key to write to a column. PostgreSQL refuses a label that has been
    renamed."""
    if dialect == "postgres" and type_.is_enum:
        return f"{placeholder}::text::{type_.sql}"
    return key_operand(dialect, type_, placeholder)


def write_obstacle(dialect: Dialect, type_: ColumnType, field: Field, value: Stored) -> str | None:
    """Return why a column cannot have the value exactly, with the remedy, or None."""
    if isinstance(field, Bool) and _has_texts(dialect, type_):
        return "cannot be set: its column has texts, so declare Select(values=…) with those for true and false"
    if isinstance(field, Date) and _has_time(dialect, type_):
        return "cannot be set: its column has a time of day, so declare Moment"
    if isinstance(field, Moment) and _has_numbers(dialect, type_):
        return "cannot be set: its column has numbers"
    if isinstance(field, Select) and value == field.unknown:
        return f"cannot be set to {field.unknown}: it stands for all other values of the connected database"
    return _excess_decimals(dialect, type_, field, value) if isinstance(field, Decimal | Money) else None


def _has_texts(dialect: Dialect, type_: ColumnType) -> bool:
    if dialect == "postgres":
        return type_.name not in _BOOLEANS
    return sqlite_values.affinity_of(type_.name) == "text"


def _has_time(dialect: Dialect, type_: ColumnType) -> bool:
    return type_.name != "date" if dialect == "postgres" else sqlite_values.has_time(type_.name)


def _has_numbers(dialect: Dialect, type_: ColumnType) -> bool:
    return dialect == "sqlite" and sqlite_values.affinity_of(type_.name) in ("integer", "real")


def _excess_decimals(dialect: Dialect, type_: ColumnType, field: Field, value: Stored) -> str | None:
    scale, decimals = type_.scale, len(str(value).partition(".")[2])
    if isinstance(field, Money):
        # PostgreSQL itself rounds an amount, which is noticed afterwards.
        is_whole = dialect == "postgres" or cast("int", value) % 10**field.scale == 0
        decimals = 0 if is_whole else field.scale
    if dialect == "sqlite" and sqlite_values.affinity_of(type_.name) == "integer":
        scale = 0
    return f"must have {scale} decimals at most" if scale is not None and decimals > scale else None


def written_operand(dialect: Dialect, field: Field, value: Stored) -> Stored:
    """Return the value that `written_value` converts. The value of a select is the one that the database has for it,
    and an instant is a text, because a number would have to be multiplied by an interval, which rounds."""
    if dialect == "sqlite":
        return sqlite_values.operand(field, value)
    if isinstance(field, Moment):
        return clock.to_datetime(Instant(cast("int", value))).isoformat()
    if not isinstance(field, Select) or not field.values:
        return value
    return next(str(each) for each, option in field.values.items() if option == value)


def written_value(dialect: Dialect, type_: ColumnType, field: Field, placeholder: str, earlier: str) -> str:
    """Return the expression that converts a stored value to the type of the column. It is the inverse of
    `stored_value`. `earlier` is the expression for the value before, whose format SQLite keeps."""
    if dialect == "sqlite":
        return sqlite_values.expression(field, placeholder, earlier)
    return f"{_converted(type_, field, placeholder)}::{type_.sql}"


def _converted(type_: ColumnType, field: Field, placeholder: str) -> str:
    if isinstance(field, Bool):
        return f"({placeholder}::bigint = 1)" if type_.name == "bool" else f"{placeholder}::bigint"
    if isinstance(field, Moment):
        instant = f"{placeholder}::text::timestamptz"
        return f"({instant} AT TIME ZONE {literal(field.zone)})" if type_.name == "timestamp" else instant
    if isinstance(field, Money):
        return f"({placeholder}::bigint::numeric / {10**field.scale}::numeric)"
    if isinstance(field, Number):
        return f"{placeholder}::bigint"
    return f"{placeholder}::text"
