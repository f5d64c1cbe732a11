"""SQLite behind the database port. One writer uses group commit. Reads run on the event loop or, when slow, in
threads."""

import asyncio
import queue
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeVar

import apsw

from countersign.kernel import clock
from countersign.kernel.concurrency import uncancellable
from countersign.kernel.database import instrumentation, migration_marker, port, sqlite_connection
from countersign.kernel.database import sqlite_connection as sqlite
from countersign.kernel.database.port import Dialect, Row, Value
from countersign.kernel.database.sqlite_outside_tables import ConnectedFile
from countersign.kernel.database.sqlite_writer import SqliteTransaction, SqliteWriter
from countersign.kernel.errors import Unavailable

T = TypeVar("T")

THREAD_STEPS_BETWEEN_CHECKS = 5_000


class ReadDeadline:
    """Ends a read at its deadline, or when its caller was cancelled."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self.is_over = False

    def __call__(self) -> bool:
        """Return whether to stop now. SQLite calls this every few thousand steps."""
        return self.is_over or clock.monotonic_s() >= self._deadline_s


class SqliteReaders:
    """Up to `count` reader threads, each with a connection that is opened on first use."""

    def __init__(
        self, path: Path, count: int, deadline_s: float, connect: Callable[[], sqlite.Connection] | None = None
    ) -> None:
        """`connect` opens a connection to the file; by default, a read-only connection to a file of this service."""
        self._connect = connect or (lambda: sqlite.connect(path, use="read"))
        self._deadline_s = deadline_s
        self._threads = ThreadPoolExecutor(count, "sqlite-reader")
        self._idle: queue.SimpleQueue[sqlite.Connection] = queue.SimpleQueue()
        # Open the first connection now, so that an unreadable file is refused immediately.
        self._idle.put(self._connect())
        self._is_closed = False

    async def scan(self, statement: str, values: tuple[Value, ...]) -> list[Row]:
        """Return all rows. The deadline counts from the call, and includes the wait for a thread.

        Raises:
            Unavailable: the deadline passed.
        """
        patience = ReadDeadline(clock.monotonic_s() + self._deadline_s)

        def scan() -> list[Row]:
            if patience():
                raise self._deadline_passed()
            connection = self._connection()
            connection.set_progress_handler(patience, THREAD_STEPS_BETWEEN_CHECKS)
            try:
                return sqlite.fetch(connection, statement, values)
            except apsw.InterruptError as error:
                raise self._deadline_passed() from error
            finally:
                connection.set_progress_handler(None)
                self._idle.put(connection)

        return await self._in_thread(scan, patience)

    async def read_into(self, add: Callable[[list[Row]], None], statement: str, values: tuple[Value, ...]) -> None:
        """Read all rows in a thread, and call `add` there with each batch. The deadline counts as in `scan`.

        Raises:
            Unavailable: the deadline passed.
        """
        patience = ReadDeadline(clock.monotonic_s() + self._deadline_s)

        def read() -> None:
            connection = self._connection()
            connection.set_progress_handler(patience, THREAD_STEPS_BETWEEN_CHECKS)
            cursor: sqlite.Cursor | None = None
            try:
                cursor = connection.execute(sqlite.numbered(statement), values)
                rows = iter(cursor)
                while batch := port.next_batch(rows):
                    if patience():
                        raise self._deadline_passed()
                    add(batch)
            except apsw.InterruptError as error:
                raise self._deadline_passed() from error
            finally:
                if cursor is not None:
                    cursor.close(True)
                connection.set_progress_handler(None)
                self._idle.put(connection)

        await self._in_thread(lambda: _read(read), patience)

    async def stream(self, statement: str, values: tuple[Value, ...]) -> AsyncGenerator[list[Row]]:
        """Yield the rows in batches, all from the snapshot of the first batch.

        The stream has a separate connection, so that a slow consumer does not block scans, and it has no deadline.
        While the stream is open, the write-ahead log cannot be reset, and therefore grows.
        """
        patience = ReadDeadline(float("inf"))

        def begin() -> tuple[sqlite.Connection, sqlite.Cursor]:
            connection = self._connect()
            connection.set_progress_handler(patience, THREAD_STEPS_BETWEEN_CHECKS)
            connections.append(connection)
            return connection, connection.execute(sqlite.numbered(statement), values)

        connections: list[sqlite.Connection] = []
        try:
            connection, cursor = await self._in_thread(lambda: _read(begin), patience)
            rows = iter(cursor)
            while batch := await self._in_thread(lambda: _read(lambda: port.next_batch(rows), connection), patience):
                yield batch
        finally:
            for connection in connections:
                connection.close(True)

    def _connection(self) -> sqlite.Connection:
        """Return an idle connection. There are never more connections than threads."""
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._connect()

    async def _in_thread(self, work: Callable[[], T], patience: ReadDeadline) -> T:
        if self._is_closed:
            raise Unavailable("The service is stopping.")
        running = asyncio.get_running_loop().run_in_executor(self._threads, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            patience.is_over = True
            await asyncio.wait([asyncio.ensure_future(uncancellable(running))])
            raise

    def _deadline_passed(self) -> Unavailable:
        return Unavailable(
            f"The search took longer than {self._deadline_s:g} seconds.",
            resolution="Narrow the search, or try again after the time in Retry-After.",
        )

    async def close(self) -> None:
        """Wait for running scans, then close. An open stream raises Unavailable at its next batch."""
        self._is_closed = True
        await uncancellable(asyncio.ensure_future(asyncio.to_thread(self._threads.shutdown)))
        while not self._idle.empty():
            self._idle.get().close()


def _read(work: Callable[[], T], connection: sqlite.Connection | None = None) -> T:
    try:
        return work()
    except apsw.Error as error:
        sqlite.refuse(error, connection)


RESERVE_BYTES = 64 * 1024 * 1024
STEPS_BETWEEN_CHECKS = 1_000
BUDGET_CHECKS = 20
THREAD_CALLS = 50
"""How often a slow statement is run in a thread before it is tried on the event loop again."""

MAX_LONG = 1_000


class EventLoopBudget:
    """The budget of a read on the event loop, in thousands of SQLite's steps (20 to 50 µs each)."""

    left = 0

    def __call__(self) -> bool:
        """Return whether to stop now. SQLite calls this every thousand steps."""
        self.left -= 1
        return self.left < 0


class SqliteDatabase:
    """A database in one file, for use by the event loop that opened it. Several processes of one machine may open the
    same file."""

    def __init__(self, path: Path, writer: SqliteWriter, readers: SqliteReaders, name: str) -> None:
        self._reads = instrumentation.READS.labels(name)
        self._writer = writer
        self._readers = readers
        self._reader = sqlite_connection.connect(path, use="read")
        self._header = sqlite_connection.wal_index_header(self._reader)
        self._moment = EventLoopBudget()
        self._long: dict[int, int] = {}

    @property
    def dialect(self) -> Dialect:
        """Return the dialect of SQLite."""
        return "sqlite"

    @property
    def broken(self) -> asyncio.Event:
        """Set once a commit has failed on the disk."""
        return self._writer.broken

    def change_mark(self) -> bytes | None:
        """See Database. The mark is a copy of the header that readers of SQLite compare."""
        header = self._header
        return None if header is None else header.raw

    async def fetch(self, statement: str, *values: Value) -> list[Row]:
        """Return all rows, read on the event loop. This is fast, and only for statements that an index and a limit
        bound.

        Raises:
            Unavailable: the file cannot be read.
            WrittenOutsideTransaction: the statement writes.
        """
        started_s = clock.monotonic_s()
        rows = sqlite_connection.fetch(self._reader, statement, values)
        self._reads.add(clock.monotonic_s() - started_s)
        return rows

    async def fetch_one(self, statement: str, *values: Value) -> Row | None:
        """Like `fetch`, but return only the first row, or None."""
        started_s = clock.monotonic_s()
        row = sqlite_connection.fetch_one(self._reader, statement, values)
        self._reads.add(clock.monotonic_s() - started_s)
        return row

    async def scan(self, statement: str, *values: Value) -> list[Row]:
        """Return all rows, read on the event loop within a short budget, or else in a thread until the deadline.

        A thread costs a third of the throughput of fast reads, and only running a statement shows whether it is fast.
        Slow statements are therefore remembered for a while, so that they seldom run twice.

        Raises:
            Unavailable: the deadline passed.
        """
        started_s = clock.monotonic_s()
        try:
            return await self._scan_remembering_slow(statement, values)
        finally:
            self._reads.add(clock.monotonic_s() - started_s)

    async def _scan_remembering_slow(self, statement: str, values: tuple[Value, ...]) -> list[Row]:
        # Statements are remembered by their hash, since they may be long; a collision is harmless.
        key = hash(statement)
        left = self._long.get(key, 0)
        if left:
            self._long[key] = left - 1
            return await self._readers.scan(statement, values)
        self._moment.left = BUDGET_CHECKS
        rows = sqlite_connection.fetch_within(self._reader, statement, values, self._moment, STEPS_BETWEEN_CHECKS)
        if rows is not None:
            self._long.pop(key, None)
            return rows
        if len(self._long) >= MAX_LONG:
            self._long.clear()
        self._long[key] = THREAD_CALLS
        return await self._readers.scan(statement, values)

    def stream(self, statement: str, *values: Value) -> AsyncGenerator[list[Row]]:
        """Yield the rows of one snapshot in batches of at most 500, read in a thread."""
        return self._readers.stream(statement, values)

    def transaction(self) -> AbstractAsyncContextManager[SqliteTransaction]:
        """Open a writing transaction, which is durable when its block has been left normally; see
        `SqliteWriter.transaction`."""
        return self._writer.transaction()

    async def close(self) -> None:
        """Wait for running operations, then close every connection."""
        await self._readers.close()
        self._header = None
        self._reader.close()
        await self._writer.close()


async def open_sqlite(
    path: Path,
    *,
    readers: int = 4,
    read_deadline_s: float = 5.0,
    busy_timeout_ms: int = 10_000,
    reserve_bytes: int = RESERVE_BYTES,
    max_bytes: int = 0,
    name: str = "sqlite",
    connected: ConnectedFile | None = None,
) -> SqliteDatabase:
    """Open the file, or create it. `readers` threads serve scans and streams. `name` is the label of the database in
    metrics. Transactions can also change the tables of `connected`, the SQLite file of another application.

    A transaction waits up to `busy_timeout_ms` for another process that writes. It is refused if less than
    `reserve_bytes` are free on the volume, so that reading, deleting and backing up still work on a full volume. A
    write that would make the file larger than `max_bytes` (0: no limit) is refused as well.

    Raises:
        Unavailable: the file cannot be opened or is not a database.
        DatabaseMoved: the database was moved to PostgreSQL.
    """

    def open_file() -> SqliteDatabase:
        migration_marker.require_not_moved(path.parent)
        busy_timeout_s = busy_timeout_ms / 1000
        writer = SqliteWriter(
            path,
            busy_timeout_s=busy_timeout_s,
            reserve_bytes=reserve_bytes,
            max_bytes=max_bytes,
            connected=connected,
        )
        return SqliteDatabase(path, writer, SqliteReaders(path, readers, read_deadline_s), name)

    # Open the file in a thread: the first process that opens it after a crash reads the whole log.
    return await asyncio.to_thread(open_file)
