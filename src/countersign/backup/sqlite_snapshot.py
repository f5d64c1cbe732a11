"""Takes snapshots and copies of SQLite files that are in use, and checks the integrity of files."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from itertools import islice
from pathlib import Path

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database import migration_marker
from countersign.kernel.database import sqlite_connection as sqlite
from countersign.kernel.database.port import Dialect, Row, Value
from countersign.kernel.errors import Unavailable

BATCH_ROWS = 500

_SIZE = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
_INTEGRITY = "PRAGMA integrity_check"
_REFERENCES = """
SELECT "table", parent, count(1)
FROM pragma_foreign_key_check()
GROUP BY "table", parent
ORDER BY "table", parent
"""
# Reads the objects that run code when a row is written or read. The schemas of Countersign have no such objects.
_ACTIVE_OBJECTS = """
SELECT type, name
FROM sqlite_schema
WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%'
ORDER BY name
"""


class SqliteSnapshotReader:
    """Reads a snapshot of one file. See table_checksum.SnapshotReader."""

    def __init__(self, connection: sqlite.Connection) -> None:
        self._connection = connection

    @property
    def dialect(self) -> Dialect:
        """The dialect of SQLite."""
        return "sqlite"

    async def fetch(self, statement: str, *values: Value) -> list[Row]:
        """Return all rows of the statement."""
        return await asyncio.to_thread(sqlite.fetch, self._connection, statement, values)

    async def fetch_one(self, statement: str, *values: Value) -> Row | None:
        """Return the first row of the statement, or None."""
        return await asyncio.to_thread(sqlite.fetch_one, self._connection, statement, values)

    async def stream(self, statement: str, *values: Value) -> AsyncGenerator[list[Row]]:
        """Yield the rows of the statement in batches.

        Raises:
            Unavailable: the file cannot be read.
        """
        rows = sqlite.rows(self._connection, statement, values)
        while batch := await asyncio.to_thread(lambda: list(islice(rows, BATCH_ROWS))):
            yield batch


class SqliteSnapshot:
    """A snapshot of several files, each under the name of its schema. All snapshots are taken before any file is read.

    While the snapshot is open, the write-ahead logs of the files grow, because SQLite cannot reset them.
    """

    def __init__(self, moment: Instant, connections: Mapping[str, sqlite.Connection]) -> None:
        self._moment = moment
        self._connections = connections

    @property
    def moment(self) -> Instant:
        """See Snapshot."""
        return self._moment

    @property
    def schemas(self) -> tuple[str, ...]:
        """The names of the files, in the order of their snapshots."""
        return tuple(self._connections)

    async def fetch(self, schema: str, statement: str, *values: Value) -> list[Row]:
        """See Snapshot."""
        return await asyncio.to_thread(sqlite.fetch, self._connections[schema], statement, values)

    def of(self, schema: str) -> SqliteSnapshotReader:
        """Return a reader of one service's tables in the snapshot."""
        return SqliteSnapshotReader(self._connections[schema])

    async def size(self, schema: str) -> int:
        """The size of a copy of the file in bytes."""
        ((size,),) = await self.fetch(schema, _SIZE)
        return int(size)

    async def copy(self, schema: str, path: Path, progress: Callable[[int], None]) -> None:
        """Copy one file to a new path. The copy is not yet durable.

        `progress` is called in a thread with the number of bytes copied so far.

        Raises:
            StorageFull: the disk has no space for the copy.
            Unavailable: the file cannot be read, or the copy cannot be written.
        """
        await asyncio.to_thread(sqlite.copy_to, self._connections[schema], path, progress)


@asynccontextmanager
async def open_snapshot(paths: Mapping[str, Path], *, block_writes: bool = False) -> AsyncGenerator[SqliteSnapshot]:
    """Yield a snapshot of the files.

    With `block_writes` the files cannot be written while the block runs. Writers wait for the end of the block, or
    until their own timeout.

    Raises:
        Unavailable: a file cannot be opened, or another process wrote to it for too long.
        Moved: the files were moved to PostgreSQL.
    """
    with ExitStack() as stack:
        # Block writers with a separate connection, because SQLite cannot copy from a connection that holds the write
        # lock.
        for path in paths.values() if block_writes else ():
            lock_connection = await asyncio.to_thread(_begin, path, "BEGIN IMMEDIATE")
            stack.callback(lock_connection.close, True)
        moment = clock.now()
        connections: dict[str, sqlite.Connection] = {}
        for schema, path in paths.items():
            connections[schema] = await asyncio.to_thread(_begin, path, "BEGIN")
            stack.callback(connections[schema].close, True)
        # Check this last: if a migration to PostgreSQL ended before the snapshot, the files are no longer in use.
        for folder in {path.parent for path in paths.values()}:
            migration_marker.require_not_moved(folder)
        yield SqliteSnapshot(moment, connections)


def check_integrity(path: Path) -> list[str]:
    """Return the errors in the file's structure, indexes, constraints and references.

    SQLite reports at most a hundred errors in the structure, the indexes and the constraints. Triggers and views are
    errors as well, because Countersign creates no triggers or views. A flipped bit in a value is not detected, because
    values have no checksums.

    Raises:
        Unavailable: the file cannot be read, because it is not a database or its first page is damaged.
    """
    connection = sqlite.connect(path, use="read")
    try:
        faults = [str(row[0]) for row in sqlite.fetch(connection, _INTEGRITY, ())]
        if faults == ["ok"]:
            active_objects = sqlite.fetch(connection, _ACTIVE_OBJECTS, ())
            broken_references = sqlite.fetch(connection, _REFERENCES, ())
            faults = [f"the {kind} {name} was not created by Countersign" for kind, name in active_objects]
            faults += [
                f"{count} rows of {table} refer to missing rows of {parent}"
                for table, parent, count in broken_references
            ]
        return faults
    finally:
        connection.close(True)


def _begin(path: Path, begin: str) -> sqlite.Connection:
    """Open a connection, begin a transaction on it, and read once, so that the snapshot of the transaction is fixed."""
    if not path.exists():
        raise Unavailable(f"There is no database file {path.name}.")
    return sqlite.begin_snapshot(path, begin)
