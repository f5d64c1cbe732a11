"""A database whose reads and transactions are timed, whichever engine stands behind it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from countersign.kernel import clock, metrics
from countersign.kernel.database.port import Database, Dialect, Row, Transaction, Value

READS = metrics.histogram(
    "countersign_database_read_seconds",
    "Reads outside of transactions, the wait for a connection included.",
    "database",
)
TRANSACTIONS = metrics.histogram(
    "countersign_database_transaction_seconds",
    "Transactions from their first statement to the wish to commit or roll back.",
    "database",
)
COMMITS = metrics.histogram(
    "countersign_database_commit_seconds", "From the wish to commit until the change is durable.", "database"
)
RUNNING = metrics.gauge(
    "countersign_database_running",
    "Reads and transactions under way; on PostgreSQL each takes a connection of the pool, or waits for one.",
    *("database", "kind"),
)
WAITING = metrics.gauge(
    "countersign_database_waiting",
    "Transactions that wait to begin: on SQLite for their turn to write, on PostgreSQL for a connection.",
    "database",
)
WAL = metrics.gauge("countersign_database_wal_bytes", "Length of SQLite's write-ahead log.", "database")


def wal_bytes(path: Path) -> int:
    """How long the write-ahead log of a SQLite file is; 0 without one."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size
    except FileNotFoundError:
        return 0


class MeasuredDatabase:
    """The given database, under a name in the numbers."""

    def __init__(self, inner: Database, name: str) -> None:
        self._inner = inner
        self._reads = READS.of(name)
        self._transactions = TRANSACTIONS.of(name)
        self._commits = COMMITS.of(name)
        self._reading = RUNNING.of(name, "read")
        self._writing = RUNNING.of(name, "transaction")
        self._waiting = WAITING.of(name)

    @property
    def dialect(self) -> Dialect:
        """The inner one's."""
        return self._inner.dialect

    async def fetch(self, statement: str, *values: Value) -> list[Row]:
        """See Database."""
        started_s = clock.monotonic_s()
        self._reading.value += 1
        try:
            return await self._inner.fetch(statement, *values)
        finally:
            self._reading.value -= 1
            self._reads.add(clock.monotonic_s() - started_s)

    async def fetch_one(self, statement: str, *values: Value) -> Row | None:
        """See Database."""
        started_s = clock.monotonic_s()
        self._reading.value += 1
        try:
            return await self._inner.fetch_one(statement, *values)
        finally:
            self._reading.value -= 1
            self._reads.add(clock.monotonic_s() - started_s)

    async def scan(self, statement: str, *values: Value) -> list[Row]:
        """See Database."""
        started_s = clock.monotonic_s()
        self._reading.value += 1
        try:
            return await self._inner.scan(statement, *values)
        finally:
            self._reading.value -= 1
            self._reads.add(clock.monotonic_s() - started_s)

    def stream(self, statement: str, *values: Value) -> AsyncGenerator[list[Row]]:
        """See Database; not timed, for whoever takes the rows sets the pace."""
        return self._inner.stream(statement, *values)

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
