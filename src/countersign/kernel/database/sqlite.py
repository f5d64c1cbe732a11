"""SQLite behind the database port: one writer with group commit, reads on the event loop or in threads."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from countersign.kernel import clock
from countersign.kernel.database import instrumentation, migration_marker, sqlite_connection
from countersign.kernel.database.port import Dialect, Row, Value
from countersign.kernel.database.sqlite_readers import SqliteReaders
from countersign.kernel.database.sqlite_writer import SqliteTransaction, SqliteWriter

RESERVE_BYTES = 64 * 1024 * 1024
STEPS_BETWEEN_CHECKS = 1_000
MOMENT_CHECKS = 20
THREAD_CALLS = 50
"""How often a statement that took too long is read in a thread at once, before the event loop is tried again."""

MAX_LONG = 1_000


class Moment:
    """What a read may take of the event loop's time, in thousands of SQLite's steps (20 to 50 µs each)."""

    left = 0

    def __call__(self) -> bool:
        """Whether to stop now; SQLite asks every thousand steps."""
        self.left -= 1
        return self.left < 0


class SqliteDatabase:
    """One file, for the event loop that opened it. Several processes of one machine may open the same file."""

    def __init__(self, path: Path, writer: SqliteWriter, readers: SqliteReaders, name: str) -> None:
        self._reads = instrumentation.READS.of(name)
        self._writer = writer
        self._readers = readers
        self._reader = sqlite_connection.connect(path, use="read")
        self._moment = Moment()
        self._long: dict[int, int] = {}

    @property
    def dialect(self) -> Dialect:
        """SQLite's."""
        return "sqlite"

    @property
    def broken(self) -> asyncio.Event:
        """Set once a commit has failed on the disk."""
        return self._writer.broken

    async def fetch(self, statement: str, *values: Value) -> list[Row]:
        """All rows, read on the event loop: fast, and only for statements bounded by an index and a limit.

        Raises:
            Unavailable: the file cannot be read.
            WrittenOutsideTransaction: the statement writes.
        """
        started_s = clock.monotonic_s()
        rows = sqlite_connection.fetch(self._reader, statement, values)
        self._reads.add(clock.monotonic_s() - started_s)
        return rows

    async def fetch_one(self, statement: str, *values: Value) -> Row | None:
        """The first row, or None; otherwise as `fetch`."""
        started_s = clock.monotonic_s()
        row = sqlite_connection.fetch_one(self._reader, statement, values)
        self._reads.add(clock.monotonic_s() - started_s)
        return row

    async def scan(self, statement: str, *values: Value) -> list[Row]:
        """All rows: read on the event loop when that takes less than a moment, else in a thread until the deadline.

        A thread costs a third of a quick read's throughput, and which reads are quick shows only when they run: a
        statement that was not is remembered for a while, so that it is seldom begun twice.

        Raises:
            Unavailable: the deadline passed.
        """
        started_s = clock.monotonic_s()
        try:
            return await self._scanned(statement, values)
        finally:
            self._reads.add(clock.monotonic_s() - started_s)

    async def _scanned(self, statement: str, values: tuple[Value, ...]) -> list[Row]:
        # By its hash, since texts may be long; two of one hash would share nothing worse than the way to be read.
        key = hash(statement)
        left = self._long.get(key, 0)
        if left:
            self._long[key] = left - 1
            return await self._readers.scan(statement, values)
        self._moment.left = MOMENT_CHECKS
        rows = sqlite_connection.fetch_within(self._reader, statement, values, self._moment, STEPS_BETWEEN_CHECKS)
        if rows is not None:
            self._long.pop(key, None)
            return rows
        if len(self._long) >= MAX_LONG:
            self._long.clear()
        self._long[key] = THREAD_CALLS
        return await self._readers.scan(statement, values)

    def stream(self, statement: str, *values: Value) -> AsyncGenerator[list[Row]]:
        """The rows in batches of at most 500, read in a thread, from one snapshot."""
        return self._readers.stream(statement, values)

    def transaction(self) -> AbstractAsyncContextManager[SqliteTransaction]:
        """A writing transaction, durable when its block has been left; see `SqliteWriter.transaction`."""
        return self._writer.transaction()

    async def close(self) -> None:
        """Wait for what is under way, then close every connection."""
        await self._readers.close()
        self._reader.close()
        await self._writer.close()


async def open_sqlite(
    path: Path,
    *,
    readers: int = 4,
    read_deadline_s: float = 5.0,
    busy_timeout_ms: int = 10_000,
    reserve_bytes: int = RESERVE_BYTES,
    most_bytes: int = 0,
    name: str = "sqlite",
) -> SqliteDatabase:
    """Open the file, or create it. `readers` threads serve scans and streams; `name` is what the numbers call it.

    A transaction waits `busy_timeout_ms` for another process that writes, and is refused when less than
    `reserve_bytes` are free on the volume, so that reading, deleting and backing up still work on a full one. What
    would make the file longer than `most_bytes` is refused as well; 0: no such bound.

    Raises:
        Unavailable: the file cannot be opened or is no database.
        Moved: it was moved to PostgreSQL.
    """

    def opened() -> SqliteDatabase:
        migration_marker.require_here(path.parent)
        busy_timeout_s = busy_timeout_ms / 1000
        writer = SqliteWriter(path, busy_timeout_s=busy_timeout_s, reserve_bytes=reserve_bytes, most_bytes=most_bytes)
        return SqliteDatabase(path, writer, SqliteReaders(path, readers, read_deadline_s), name)

    # The first to open a file after a crash reads its whole log.
    return await asyncio.to_thread(opened)
