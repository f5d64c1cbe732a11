"""The port that every query uses: what a database guarantees on any engine, its errors, and batches of rows."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeAlias

Value: TypeAlias = None | int | float | str | bytes
"""What goes in as a parameter. Moments are `Instant` (microseconds), lists and objects JSON text."""

Row: TypeAlias = tuple[Any, ...]
"""What comes out, in the order of the selected columns; the query's function gives it a type at once."""

Dialect: TypeAlias = Literal["sqlite", "postgres"]


class Reader(Protocol):
    """Where a statement that only reads may be run. Statements use `$1`, `$2`, … for values."""

    async def fetch(self, statement: str, *values: Value) -> list[Row]:
        """All rows. For statements bounded by an index and a limit: on SQLite they run on the event loop."""
        ...

    async def fetch_one(self, statement: str, *values: Value) -> Row | None:
        """The first row, or None."""
        ...


class Transaction(Reader, Protocol):
    """One transaction under way. Code inside never commits: leaving the block does, an exception rolls back."""

    async def run(self, statement: str, *values: Value) -> int:
        """Run a statement that writes, or several without values; the number of rows the (last) one changed."""
        ...

    async def run_many(self, statement: str, rows: Iterable[tuple[Value, ...]]) -> None:
        """Run one statement for every row, off the event loop; `rows` may be read in another thread."""
        ...

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """A block whose writes alone are undone when it is left by an exception."""
        ...

    def after_commit(self, action: Callable[[], None]) -> None:
        """Call the action once the transaction is durable; never when it is rolled back."""
        ...


class Database(Reader, Protocol):
    """A pool of connections to one service's schema."""

    @property
    def dialect(self) -> Dialect:
        """Which SQL dialect stands behind the port, for the few statements that must differ."""
        ...

    @property
    def broken(self) -> asyncio.Event:
        """Set once the disk has failed under a commit: this process will not write again, and is to be ended, so that
        another one begins with what is on the disk."""
        ...

    async def scan(self, statement: str, *values: Value) -> list[Row]:
        """All rows of a read that no index bounds: off the event loop, ended by the read deadline.

        Raises:
            Unavailable: the deadline passed.
        """
        ...

    def stream(self, statement: str, *values: Value) -> AsyncGenerator[list[Row]]:
        """The rows in batches of `batches` in size, in constant memory, from one snapshot.

        It holds a connection until it ends: leave it early only inside `contextlib.aclosing`.
        """
        ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """A writing transaction. When the block is left normally it is durable (fsync) before control returns.

        Raises:
            StorageFull: no room; nothing of the transaction was kept.
            Unavailable: the engine could not be reached or refused to write; nothing was kept.
        """
        ...

    async def close(self) -> None:
        """Wait for what is under way, then close every connection."""
        ...


class ConstraintViolation(Exception):
    """A statement broke a UNIQUE, FOREIGN KEY, NOT NULL or CHECK rule; the statement did nothing.

    Expect it with ON CONFLICT in the statement instead of catching this: inside a PostgreSQL transaction a failed
    statement spoils the whole transaction, unless it stood in a `savepoint()`.
    """


class WrittenOutsideTransaction(Exception):
    """A statement that writes was given to a reader; open a `transaction()` for it."""


MAX_ROWS = 500
MAX_BYTES = 1 << 18
"""A single row may be longer."""


def length(row: Row) -> int:
    """About how many bytes the row's texts take."""
    return sum(len(value) for value in row if isinstance(value, str | bytes))


def first(rows: Iterator[Row]) -> list[Row]:
    """The next batch; empty at the end."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += length(row)
        if len(batch) == MAX_ROWS or size >= MAX_BYTES:
            break
    return batch


def split(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """All of the rows in batches."""
    left = iter(rows)
    while batch := first(left):
        yield batch
