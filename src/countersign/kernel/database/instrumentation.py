"""Metrics of a database on any engine: the duration of reads and transactions, and how many are in progress."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from countersign.kernel import clock, metrics
from countersign.kernel.database.port import Database, Dialect, Transaction

READS = metrics.histogram(
    "countersign_database_read_seconds",
    "Duration of reads outside of transactions, including the wait for a connection.",
    "database",
)
TRANSACTIONS = metrics.histogram(
    "countersign_database_transaction_seconds",
    "Duration of transactions from their first statement to the commit or rollback.",
    "database",
)
COMMITS = metrics.histogram(
    "countersign_database_commit_seconds", "Duration of commits until the change is durable.", "database"
)
RUNNING = metrics.gauge(
    "countersign_database_running",
    "Open transactions, and reads that hold a connection of the PostgreSQL pool.",
    *("database", "kind"),
)
WAITING = metrics.gauge(
    "countersign_database_waiting",
    "Transactions that wait to begin: on SQLite for the write lock, on PostgreSQL for a connection.",
    "database",
)
WAL = metrics.gauge("countersign_database_wal_bytes", "Size of SQLite's write-ahead log.", "database")


def wal_bytes(path: Path) -> int:
    """Return the size of the write-ahead log of a SQLite file, or 0 if it has no log."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size
    except FileNotFoundError:
        return 0


class InstrumentedDatabase:
    """A database with metrics for its transactions.

    Reads call the methods of the inner database directly, because a wrapper around each read would double its cost.
    Those methods record their own metrics.
    """

    def __init__(self, inner: Database, name: str) -> None:
        self._inner = inner
        self.fetch = inner.fetch
        self.fetch_one = inner.fetch_one
        self.scan = inner.scan
        self.stream = inner.stream
        self.change_mark = inner.change_mark
        self._transactions = TRANSACTIONS.labels(name)
        self._commits = COMMITS.labels(name)
        self._writing = RUNNING.labels(name, "transaction")
        self._waiting = WAITING.labels(name)

    @property
    def dialect(self) -> Dialect:
        """See Database."""
        return self._inner.dialect

    @property
    def broken(self) -> asyncio.Event:
        """See Database."""
        return self._inner.broken

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        """See Database."""
        waiting, writing = self._waiting, self._writing
        waiting.value += 1
        began_s = left_s = None
        try:
            async with self._inner.transaction() as transaction:
                waiting.value -= 1
                writing.value += 1
                began_s = clock.monotonic_s()
                try:
                    yield transaction
                    left_s = clock.monotonic_s()
                finally:
                    self._transactions.add((left_s or clock.monotonic_s()) - began_s)
            self._commits.add(clock.monotonic_s() - (left_s or began_s))
        finally:
            if began_s is None:
                waiting.value -= 1
            else:
                writing.value -= 1

    async def close(self) -> None:
        """See Database."""
        await self._inner.close()
