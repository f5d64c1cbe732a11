"""asyncpg as this package uses it, with types."""

from collections.abc import Awaitable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, cast

import asyncpg

from countersign.kernel.database.port import Row, Value


class Connection(Protocol):
    """One connection, as far as it is used."""

    async def fetch(self, query: str, *args: Value) -> list[Row]:
        """All rows."""
        ...

    async def fetchrow(self, query: str, *args: Value) -> Row | None:
        """The first row, or None."""
        ...

    async def execute(self, query: str, *args: Value) -> str:
        """Run it; PostgreSQL's command tag."""
        ...

    async def executemany(self, command: str, args: Iterable[tuple[Value, ...]]) -> None:
        """Run it for every row."""
        ...

    async def cursor(self, query: str, *args: Value) -> "Cursor":
        """A cursor, inside a transaction."""
        ...

    def transaction(self, *, isolation: str, readonly: bool) -> AbstractAsyncContextManager[object]:
        """A block that is a transaction."""
        ...

    def terminate(self) -> None:
        """Close at once, without a word to the server."""
        ...

    async def close(self) -> None:
        """Close it, once it is idle."""
        ...


class Cursor(Protocol):
    """A cursor on the server."""

    async def fetch(self, n: int) -> list[Row]:
        """The next rows, `n` at most."""
        ...


Lease = AbstractAsyncContextManager[Connection]


class Pool(Protocol):
    """The pool of connections."""

    def acquire(self) -> Lease:
        """A connection of the pool, for a block."""
        ...

    async def close(self) -> None:
        """Close it, once it is idle."""
        ...

    def terminate(self) -> None:
        """Close its connections at once, without a word to the server."""
        ...


class Driver(Protocol):
    """The module."""

    def connect(self, dsn: str, *, timeout: float) -> Awaitable[Connection]:
        """A connection outside of any pool."""
        ...

    def create_pool(self, dsn: str, **options: object) -> Awaitable[Pool]:
        """A pool of connections."""
        ...


driver = cast(Driver, asyncpg)
