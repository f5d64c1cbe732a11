"""The port that every query uses: what a database guarantees on any engine, its errors, and batches of rows."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

Value: TypeAlias = None | int | float | str | bytes
"""A parameter. Pass points in time as `Instant` (microseconds), and lists and objects as JSON text."""

Row: TypeAlias = tuple[Any, ...]
"""A result row, in the order of the selected columns. The function that runs the query converts the row to a typed
value."""

Dialect: TypeAlias = Literal["sqlite", "postgres"]


class Reader(Protocol):
    """Runs statements that only read. Statements use `$1`, `$2`, … for values."""

    async def fetch(self, statement: str, *values: Value) -> list[Row]:
        """Return all rows. Use this only for statements that an index and a limit bound: on SQLite they run on the
        event loop."""
        ...

    async def fetch_one(self, statement: str, *values: Value) -> Row | None:
        """Return the first row, or None."""
        ...


@dataclass(frozen=True, slots=True)
class ConnectedSession:
    """How PostgreSQL runs a statement on tables of other applications. Triggers and functions of the tables find their
    names in the schemas of `search_path`, and row-level security policies read `settings`."""

    search_path: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict[str, str])


class Transaction(Reader, Protocol):
    """An open transaction. Leaving its block commits, an exception rolls back."""

    async def run(self, statement: str, *values: Value) -> int:
        """Run one writing statement, or several statements without values. Return the number of rows that the last
        statement changed."""
        ...

    async def run_many(self, statement: str, rows: Iterable[tuple[Value, ...]]) -> None:
        """Run one statement for every row, off the event loop; `rows` may be iterated in another thread."""
        ...

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """Open a block. If it ends with an exception, its writes are rolled back, but not the rest of the
        transaction."""
        ...

    def after_commit(self, action: Callable[[], None]) -> None:
        """Call the action after the commit. After a rollback, it is not called."""
        ...

    async def fetch_connected(self, session: ConnectedSession, statement: str, *values: Value) -> list[Row]:
        """Run one statement on tables of other applications in the same database, and return its rows.

        Raises:
            LookupError: the engine has no tables of other applications.
            ConnectedRefusal: the database refused the statement with these values.
            Unavailable: the database cannot answer now, or a table has changed.
        """
        ...

    async def check_connected(self) -> None:
        """Check the deferred constraints of the tables of other applications that the transaction has written. Call
        this after the last statement on these tables, because constraints are no longer deferred afterwards. Without
        this call, the constraints are checked at the end of the transaction.

        Raises:
            ConnectedRefusal: a constraint is violated.
            Unavailable: the database cannot answer now.
        """
        ...


class Database(Reader, Protocol):
    """A pool of connections to one service's schema."""

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect of the engine, for the few statements that must differ."""
        ...

    @property
    def broken(self) -> asyncio.Event:
        """An event that is set after the disk failed during a commit. This process then refuses to write. It must be
        restarted, so that the new process reads the state on the disk."""
        ...

    def change_mark(self) -> bytes | None:
        """Return bytes that differ after every commit of any process, or None if the engine has no such bytes. While
        they are equal, a repeated read returns the same rows."""
        ...

    async def scan(self, statement: str, *values: Value) -> list[Row]:
        """Return all rows of a statement whose cost is not bounded by an index. The statement runs off the event loop,
        and ends at the read deadline.

        Raises:
            Unavailable: the deadline passed.
        """
        ...

    def stream(self, statement: str, *values: Value) -> AsyncGenerator[list[Row]]:
        """Yield the rows of one snapshot in batches of at most MAX_ROWS and about MAX_BYTES, in constant memory.

        The stream uses a connection until it ends: leave it early only inside `contextlib.aclosing`.
        """
        ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Open a writing transaction, which is durable (fsync) when the block has been left normally.

        Raises:
            StorageFull: there is no space; the transaction was rolled back.
            Unavailable: the engine cannot be reached or refused to write; the transaction was rolled back.
        """
        ...

    async def close(self) -> None:
        """Wait for running operations, then close every connection."""
        ...


class ConstraintViolation(Exception):
    """A statement violated a UNIQUE, FOREIGN KEY, NOT NULL or CHECK constraint; it had no effect.

    Prefer ON CONFLICT in the statement to catching this: in a PostgreSQL transaction a failed statement aborts the
    whole transaction, unless it ran in a `savepoint()`.
    """


class WrittenOutsideTransaction(Exception):
    """A statement that writes was run on a reader; use a `transaction()`."""


MAX_ROWS = 500
MAX_BYTES = 1 << 18
"""The approximate maximum size of a batch; a single row may be larger."""


def row_bytes(row: Row) -> int:
    """Return the approximate size of the row in bytes."""
    size = 0
    for value in row:
        if type(value) is str or type(value) is bytes:
            size += len(value)
    return size


def next_batch(rows: Iterator[Row]) -> list[Row]:
    """Return the next batch of rows, which is empty when no rows are left."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += row_bytes(row)
        if len(batch) == MAX_ROWS or size >= MAX_BYTES:
            break
    return batch


def batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield all rows in batches."""
    remaining_rows = iter(rows)
    while batch := next_batch(remaining_rows):
        yield batch
