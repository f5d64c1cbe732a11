"""The rows of a table as one digest, the same on every engine: to tell whether a copy is one."""

import hashlib
import struct
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import NamedTuple, Protocol

from countersign.kernel.database.port import Dialect, Row, Value

# Each gives the name of a table and the statement that reads its rows: columns by name, rows by the primary key (by
# all columns where there is none), which both engines order by code point.
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
    """A table's name, how many rows it has, and the SHA-256 of them in hexadecimal."""

    table: str
    rows: int
    sha256: str


class SnapshotReader(Protocol):
    """What tables are read from: a `Database`, or one moment of it."""

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
    """The digest of a table whose rows come in the order of `table_reads`."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._rows = 0
        self._hash = hashlib.sha256()

    def add(self, rows: Iterable[Row]) -> None:
        """The next rows."""
        pieces = [encode_row(row) for row in rows]
        self._rows += len(pieces)
        self._hash.update(b"".join(pieces))

    def digest(self) -> TableChecksum:
        """Of all rows so far."""
        return TableChecksum(self._table, self._rows, self._hash.hexdigest())


async def table_reads(readable: SnapshotReader) -> list[tuple[str, str]]:
    """Every table of the service, by name, with the statement that reads its rows for a digest: columns by name, rows
    by the primary key."""
    return [(table, statement) for table, statement in await readable.fetch(_READS[readable.dialect])]


async def table_checksums(readable: SnapshotReader) -> AsyncGenerator[TableChecksum]:
    """Every table of the service, by name. Each is read from one snapshot, but of a `Database` they do not share one.

    Raises:
        Unavailable: the database cannot be read.
    """
    for table, statement in await table_reads(readable):
        digesting = TableHasher(table)
        async with aclosing(readable.stream(statement)) as batches:
            async for rows in batches:
                digesting.add(rows)
        yield digesting.digest()


def encode_row(row: Row) -> bytes:
    """The row as bytes that no other row has: each value with its kind and its length."""
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
