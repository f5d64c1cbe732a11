"""Computes checksums of tables, to verify copies. Equal tables have equal checksums on SQLite and PostgreSQL."""

import hashlib
import struct
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import NamedTuple, Protocol

from countersign.kernel.database.port import Dialect, Row, Value

# Each query returns the names of the tables, and for each table the statement that reads its rows. Columns are sorted
# by name. Rows are sorted by the primary key, or by all columns if there is none. Both engines sort by code point.
_READS: dict[Dialect, str] = {
    "sqlite": """
SELECT t.name, printf('SELECT %s FROM "%w" ORDER BY %s', (
        SELECT group_concat(printf('"%w"', c.name), ', ') FROM (
            SELECT name FROM pragma_table_info(t.name) ORDER BY name
        ) AS c
    ), t.name, (
        SELECT coalesce(group_concat(printf('"%w"', c.name), ', ') FILTER (WHERE c.pk > 0),
            group_concat(printf('"%w"', c.name), ', '))
        FROM (SELECT name, pk FROM pragma_table_info(t.name) ORDER BY pk, name) AS c
    ))
FROM sqlite_schema AS t
WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'
ORDER BY t.name
""",
    "postgres": """
SELECT t.relname, format('SELECT %s FROM %I ORDER BY %s', (
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attname COLLATE "C")
        FROM pg_attribute AS a
        WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
    ), t.relname, coalesce((
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY array_position(i.indkey::int2[], a.attnum))
        FROM pg_index AS i
        JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = ANY (i.indkey::int2[])
        WHERE i.indrelid = t.oid AND i.indisprimary
    ), (
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attname COLLATE "C")
        FROM pg_attribute AS a
        WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
    )))
FROM pg_class AS t
WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind = 'r' AND t.relname NOT LIKE 'procrastinate%'
ORDER BY t.relname COLLATE "C"
""",
}


class TableChecksum(NamedTuple):
    """The name of a table, its number of rows, and the SHA-256 of the rows in hexadecimal."""

    table: str
    rows: int
    sha256: str


class SnapshotReader(Protocol):
    """The source of the rows: a `Database`, or a snapshot of it."""

    @property
    def dialect(self) -> Dialect:
        """See Database."""
        ...

    async def fetch(self, statement: str, *values: Value) -> list[Row]:
        """See Database."""
        ...

    def stream(self, statement: str, *values: Value) -> AsyncGenerator[list[Row]]:
        """See Database."""
        ...


class TableHasher:
    """Computes the checksum of a table. Its rows must be added in the order of the statement from `table_reads`."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._rows = 0
        self._hash = hashlib.sha256()

    def add(self, rows: Iterable[Row]) -> None:
        """Add the next rows."""
        pieces = [encode_row(row) for row in rows]
        self._rows += len(pieces)
        self._hash.update(b"".join(pieces))

    def digest(self) -> TableChecksum:
        """The checksum of all rows so far."""
        return TableChecksum(self._table, self._rows, self._hash.hexdigest())


async def table_reads(readable: SnapshotReader) -> list[tuple[str, str]]:
    """The name of every table of the service, sorted, with the statement that reads the rows of the table.

    The statement sorts the columns by name, and the rows by the primary key."""
    return [(table, statement) for table, statement in await readable.fetch(_READS[readable.dialect])]


async def table_checksums(readable: SnapshotReader) -> AsyncGenerator[TableChecksum]:
    """Yield the checksum of every table of the service, sorted by name.

    Each table is read in one snapshot. If `readable` is a `Database`, the snapshots of two tables may differ.

    Raises:
        Unavailable: the database cannot be read.
    """
    for table, statement in await table_reads(readable):
        hasher = TableHasher(table)
        async with aclosing(readable.stream(statement)) as batches:
            async for rows in batches:
                hasher.add(rows)
        yield hasher.digest()


def encode_row(row: Row) -> bytes:
    """The unambiguous encoding of the row: each value with its type and length."""
    return struct.pack(">I", len(row)) + b"".join(map(_value, row))


def _value(value: object) -> bytes:
    if value is None:
        return b"n"
    if isinstance(value, str):
        content = value.encode()
        return b"s" + struct.pack(">Q", len(content)) + content
    if isinstance(value, bytes):
        return b"b" + struct.pack(">Q", len(value)) + value
    if isinstance(value, float):
        return b"f" + struct.pack(">d", value)
    if isinstance(value, int):
        content = b"%d" % value
        return b"i" + struct.pack(">Q", len(content)) + content
    raise TypeError(f"a column holds a {type(value).__name__}")
