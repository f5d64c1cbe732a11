"""Reads the schema of a SQLite file by its pragmas, and samples of its text columns."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from countersign.connect.schema import (
    UNDECODABLE,
    BaseType,
    Database,
    ForeignKey,
    Relation,
    RelationId,
    RelationKind,
    Samples,
    TableColumn,
    UniqueKey,
)
from countersign.declare.fields.kinds import OnDelete
from countersign.declare.table import quoted
from countersign.kernel.database import table_fingerprints
from countersign.kernel.database.open import open_existing
from countersign.kernel.database.read_only import ExistingDatabase
from countersign.kernel.errors import Unavailable
from countersign.kernel.security.encryption import MemoryCipher

SQLITE = "sqlite:///"
CATALOG_TIMEOUT_S = 10.0
SAMPLE_TIMEOUT_S = 0.3
MAX_SAMPLE_LENGTH = 200

_TABLES = """
SELECT CAST(l.name AS BLOB), l.type, l.wr
FROM pragma_table_list AS l
WHERE l.schema = 'main' AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
ORDER BY l.name
"""
_COLUMNS = """
SELECT x.cid, x.name, x.type, x."notnull", x.dflt_value IS NOT NULL, x.pk, x.hidden
FROM pragma_table_xinfo($1) AS x
WHERE x.hidden <> 1
ORDER BY x.cid
"""
_UNIQUE_INDEXES = """
SELECT l.name, i.name
FROM pragma_index_list($1) AS l
JOIN pragma_index_info(l.name) AS i
WHERE l."unique" AND NOT l.partial
ORDER BY l.name, i.seqno
"""
_PRIMARY_INDEX = "SELECT 1 FROM pragma_index_list($1) WHERE origin = 'pk'"
_FOREIGN_KEYS = """
SELECT f.id, f."table", f."from", f."to", f.on_delete
FROM pragma_foreign_key_list($1) AS f
ORDER BY f.id, f.seq
"""
_TRIGGERS = "SELECT s.name FROM sqlite_schema AS s WHERE s.type = 'trigger' AND s.tbl_name = $1 ORDER BY s.name"
_VERSION = "SELECT sqlite_version()"
# The first row with an empty value in the key.
_EMPTY_KEY = "SELECT 1 FROM {table} WHERE {column} IS NULL LIMIT 1"
_FIRST_ROWS = "SELECT {columns} FROM {table} LIMIT 2000"
# Read texts as blobs, because a text may be invalid in its encoding.
_SAMPLE = f"substr(CAST({{column}} AS BLOB), 1, {4 * MAX_SAMPLE_LENGTH})"
_ENCODING = "SELECT encoding FROM pragma_encoding"
_UTF_8 = "UTF-8"
_JOURNAL_MODE = "PRAGMA journal_mode"

_KINDS: Mapping[str, RelationKind] = {
    "table": "table", "view": "view", "virtual": "extension", "shadow": "extension"
}  # fmt: skip
# A column of SQLite accepts values of any type. Columns of all other declared types are read as text.
_BASES: Mapping[str, BaseType] = {
    **dict.fromkeys(("INTEGER", "INT", "SMALLINT", "MEDIUMINT", "TINYINT", "INT2", "INT4"), "integer"),
    **dict.fromkeys(("BIGINT", "INT8", "UNSIGNED BIG INT"), "bigint"),
    **dict.fromkeys(("BOOL", "BOOLEAN"), "bool"),
    **dict.fromkeys(("DATETIME", "TIMESTAMP"), "local_moment"),
    **dict.fromkeys(("NUMERIC", "DECIMAL"), "numeric"),
    **dict.fromkeys(("REAL", "DOUBLE", "DOUBLE PRECISION", "FLOAT"), "float"),
    **{"DATE": "date", "TIME": "time", "BLOB": "bytes", "JSON": "json", "JSONB": "json"},
}
_TYPE = re.compile(r"\s*([^(]*?)\s*(?:\(\s*([0-9]{1,9})\s*(?:,\s*([0-9]{1,3})\s*)?\))?\s*")
_GENERATED = (2, 3)
_ON_DELETE: Mapping[str, OnDelete] = {"CASCADE": "cascade", "SET NULL": "clear", "SET DEFAULT": "clear"}


class _ColumnRow(NamedTuple):
    """A row of `table_xinfo`. `key_place` is the position in the primary key, from 1, or 0."""

    number: int
    name: str
    type_name: str
    is_required: int
    has_default: int
    key_place: int
    hidden: int


async def read(url: str) -> Database:
    """Return the schema of the file.

    Raises:
        Unavailable: the file cannot be opened, or is not a SQLite database.
    """
    database = await open_existing(url, pool=1, read_deadline_s=CATALOG_TIMEOUT_S, new_cipher=MemoryCipher)
    try:
        version = (await database.scan(_VERSION))[0][0]
        tables = await database.scan(_TABLES)
        encoding = await _encoding(database)
        is_wal = await database.scan(_JOURNAL_MODE) == [("wal",)]
        relations = [
            await _decodable_relation(database, name.decode(encoding, "replace"), str(kind), bool(strict))
            for name, kind, strict in tables
        ]
        ids = [each.id for each in relations if each.is_decodable]
        definitions = await table_fingerprints.read("sqlite", database.scan, ids)
    finally:
        await database.close()
    primary = {each.name.lower(): _primary(each) for each in relations}
    names = {each.name.lower(): each.name for each in relations}
    found = Database(
        product=f"SQLite {version}",
        name=Path(url.removeprefix(SQLITE)).name,
        role="",
        relations=tuple(_resolved(each, names, primary) for each in relations),
        is_utf_16=encoding != _UTF_8,
        is_wal=is_wal,
    )
    return found.with_definitions(definitions)


async def samples(url: str, relations: Sequence[Relation], limit: int) -> Samples:
    """Return up to `limit` distinct values of each text column, from the first rows. A table whose rows cannot be read
    in time has no samples.

    Raises:
        Unavailable: the file cannot be opened.
    """
    found: dict[tuple[RelationId, str], tuple[str, ...]] = {}
    database = await open_existing(url, pool=1, read_deadline_s=SAMPLE_TIMEOUT_S, new_cipher=MemoryCipher)
    try:
        encoding = await _encoding(database)
        for relation in relations:
            columns = [each.name for each in relation.columns if each.base == "text"]
            if columns and relation.kind == "table":
                found.update(await _first_values(database, relation, columns, limit, encoding))
    finally:
        await database.close()
    return found


async def _first_values(
    database: ExistingDatabase, relation: Relation, columns: Sequence[str], limit: int, encoding: str
) -> Samples:
    selected = ", ".join(_SAMPLE.format(column=quoted(each)) for each in columns)
    statement = _FIRST_ROWS.format(columns=selected, table=quoted(relation.name))
    try:
        rows = await database.scan(statement)
    except Unavailable:
        return {}
    return {
        (relation.id, column): tuple(dict.fromkeys(_decoded(row[at], encoding) for row in rows if row[at]))[:limit]
        for at, column in enumerate(columns)
    }


def _decoded(value: bytes, encoding: str) -> str:
    return value.decode(encoding, "replace")[:MAX_SAMPLE_LENGTH]


async def _encoding(database: ExistingDatabase) -> str:
    """Return the encoding of the texts in the file."""
    return str((await database.scan(_ENCODING))[0][0])


async def _decodable_relation(database: ExistingDatabase, name: str, kind: str, has_no_rowid: bool) -> Relation:
    """Return the relation; without columns if a name in it is not valid text."""
    if UNDECODABLE in name:
        return Relation("", name, "undecodable", ())
    try:
        return await _relation(database, name, kind, has_no_rowid)
    except UnicodeDecodeError:
        return Relation("", name, "undecodable_part", ())


async def _relation(database: ExistingDatabase, name: str, kind: str, has_no_rowid: bool) -> Relation:
    rows = [_ColumnRow(*row) for row in await database.scan(_COLUMNS, name)]
    primary = [each for each in sorted(rows, key=lambda row: row.key_place) if each.key_place]
    is_filled = has_no_rowid or await _is_rowid(database, name, primary)
    columns = [_column(each, is_key=bool(each.key_place) and is_filled) for each in rows]
    return Relation(
        schema="",
        name=name,
        kind=_KINDS.get(kind, "unknown"),
        columns=tuple(columns),
        keys=await _keys(database, name, tuple(each.name for each in primary), columns),
        foreign_keys=await _foreign_keys(database, name),
        triggers=tuple(str(row[0]) for row in await database.scan(_TRIGGERS, name)),
    )


async def _is_rowid(database: ExistingDatabase, table: str, primary: Sequence[_ColumnRow]) -> bool:
    """Return whether the primary key is the rowid, which is never empty. INTEGER PRIMARY KEY DESC is an ordinary column
    with an index."""
    is_integer = len(primary) == 1 and primary[0].type_name.upper() == "INTEGER"
    return is_integer and not await database.scan(_PRIMARY_INDEX, table)


async def _keys(
    database: ExistingDatabase, table: str, primary: tuple[str, ...], columns: Sequence[TableColumn]
) -> tuple[UniqueKey, ...]:
    required = {each.name for each in columns if each.is_required}
    found: list[UniqueKey] = []
    if primary and await _is_filled(database, table, primary, required):
        found.append(UniqueKey(primary, is_primary=True))
    indexes: dict[str, list[str | None]] = {}
    for index, column in await database.scan(_UNIQUE_INDEXES, table):
        indexes.setdefault(index, []).append(column)
    # An indexed expression has no column name, so it never counts as required.
    given = (tuple(map(str, each)) for each in indexes.values() if required.issuperset(each))
    return (*found, *(UniqueKey(each) for each in given if each != primary))


async def _is_filled(database: ExistingDatabase, table: str, key: Sequence[str], required: set[str]) -> bool:
    """Return whether no row has an empty value in the primary key. SQLite allows empty values in most primary keys."""
    for column in key:
        statement = _EMPTY_KEY.format(table=quoted(table), column=quoted(column))
        if column not in required and await database.scan(statement):
            return False
    return True


async def _foreign_keys(database: ExistingDatabase, table: str) -> tuple[ForeignKey, ...]:
    """Return the foreign keys as declared: the name of the target may differ in case, and its columns may be
    omitted."""
    found: dict[int, ForeignKey] = {}
    for number, target, column, target_column, on_delete in await database.scan(_FOREIGN_KEYS, table):
        known = found.get(number, ForeignKey((), ("", target), (), "refuse"))
        targets = (*known.target_columns, *(() if target_column is None else (target_column,)))
        found[number] = ForeignKey(
            (*known.columns, column), ("", target), targets, _ON_DELETE.get(on_delete, "refuse")
        )
    return tuple(found.values())


def _primary(relation: Relation) -> tuple[str, ...]:
    return next((each.columns for each in relation.keys if each.is_primary), ())


def _resolved(
    relation: Relation, names: Mapping[str, str], primary: Mapping[str, tuple[str, ...]]
) -> Relation:
    """Replace the targets of the relation's foreign keys by the actual names of the tables and columns."""
    own = {each.name.lower(): each.name for each in relation.columns}
    found: list[ForeignKey] = []
    for each in relation.foreign_keys:
        target = each.target[1].lower()
        columns = tuple(own.get(column.lower(), column) for column in each.columns)
        targets = each.target_columns or primary.get(target, ())
        if len(targets) == len(columns):
            found.append(ForeignKey(columns, ("", names.get(target, target)), targets, each.on_delete))
    return replace(relation, foreign_keys=tuple(found))


def _column(row: _ColumnRow, *, is_key: bool) -> TableColumn:
    found = _TYPE.fullmatch(row.type_name)
    word, length, scale = ("", None, None) if found is None else found.groups()
    base = _BASES.get(word.upper(), "text")
    return TableColumn(
        name=row.name,
        number=row.number,
        base=base,
        type_name=row.type_name,
        is_required=bool(row.is_required) or is_key,
        has_default=bool(row.has_default),
        is_generated=row.hidden in _GENERATED,
        max_length=int(length) if base == "text" and length else 0,
        scale=int(scale or 0) if base == "numeric" and length else None,
    )
