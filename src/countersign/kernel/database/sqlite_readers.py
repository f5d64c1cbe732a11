"""Reads of a SQLite file that may take long: in threads, each on a connection of its own, with a deadline."""

import asyncio
import queue
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import apsw

from countersign.kernel import clock
from countersign.kernel.database import batches
from countersign.kernel.database import sqlite_connection as sqlite
from countersign.kernel.database.port import Row, Value
from countersign.kernel.database.settled import settled
from countersign.kernel.errors import Unavailable

T = TypeVar("T")

STEPS_BETWEEN_CHECKS = 5_000


class Patience:
    """When a read has to end: at its deadline, or as soon as nobody waits for it."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self.is_over = False

    def __call__(self) -> bool:
        """Whether to stop now; SQLite asks every few thousand steps."""
        return self.is_over or clock.monotonic_s() >= self._deadline_s


class SqliteReaders:
    """Up to `count` threads that read, each with a connection, which is opened when it is first needed."""

    def __init__(self, path: Path, count: int, deadline_s: float) -> None:
        self._path = path
        self._deadline_s = deadline_s
        self._threads = ThreadPoolExecutor(count, "sqlite-reader")
        self._idle: queue.SimpleQueue[sqlite.Connection] = queue.SimpleQueue()
        # The first one now, so that a file which cannot be read is refused at once.
        self._idle.put(sqlite.connect(path, use="read"))
        self._is_closed = False

    async def scan(self, statement: str, values: tuple[Value, ...]) -> list[Row]:
        """All rows. The deadline counts from the call, so that waiting for a thread is part of it.

        Raises:
            Unavailable: the deadline passed.
        """
        patience = Patience(clock.monotonic_s() + self._deadline_s)

        def scan() -> list[Row]:
            if patience():
                raise self._too_slow()
            connection = self._connection()
            connection.set_progress_handler(patience, STEPS_BETWEEN_CHECKS)
            try:
                return sqlite.fetch(connection, statement, values)
            except apsw.InterruptError as error:
                raise self._too_slow() from error
            finally:
                connection.set_progress_handler(None)
                self._idle.put(connection)

        return await self._in_thread(scan, patience)

    async def stream(self, statement: str, values: tuple[Value, ...]) -> AsyncGenerator[list[Row]]:
        """The rows in batches, from the snapshot of the first one.

        It has a connection of its own, so that a slow listener takes none from the scans, and no deadline. While it
        is open the write-ahead log cannot start anew, and grows.
        """
        patience = Patience(float("inf"))

        def begin() -> tuple[sqlite.Connection, sqlite.Cursor]:
            connection = sqlite.connect(self._path, use="read")
            connection.set_progress_handler(patience, STEPS_BETWEEN_CHECKS)
            opened.append(connection)
            return connection, connection.execute(sqlite.numbered(statement), values)

        opened: list[sqlite.Connection] = []
        try:
            connection, cursor = await self._in_thread(lambda: _read(begin), patience)
            rows = iter(cursor)
            while batch := await self._in_thread(lambda: _read(lambda: batches.first(rows), connection), patience):
                yield batch
        finally:
            for connection in opened:
                connection.close(True)

    def _connection(self) -> sqlite.Connection:
        """One that nobody reads from; there are never more than threads."""
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return sqlite.connect(self._path, use="read")

    async def _in_thread(self, work: Callable[[], T], patience: Patience) -> T:
        if self._is_closed:
            raise Unavailable("The service is stopping.")
        running = asyncio.get_running_loop().run_in_executor(self._threads, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            patience.is_over = True
            await asyncio.wait([asyncio.ensure_future(settled(running))])
            raise

    def _too_slow(self) -> Unavailable:
        return Unavailable(
            f"The search took longer than {self._deadline_s:g} seconds.",
            resolution="Narrow the search, or try again after the time in Retry-After.",
        )

    async def close(self) -> None:
        """Wait for the scans under way, then close; a stream still open is Unavailable at its next batch."""
        self._is_closed = True
        await settled(asyncio.ensure_future(asyncio.to_thread(self._threads.shutdown)))
        while not self._idle.empty():
            self._idle.get().close()


def _read(work: Callable[[], T], connection: sqlite.Connection | None = None) -> T:
    try:
        return work()
    except apsw.Error as error:
        sqlite.refuse(error, connection)
