"""asyncpg as this package uses it, with types."""

from collections.abc import Awaitable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, cast

import asyncpg

from countersign.kernel.database.port import Row, Value


class Connection(Protocol):
    """One connection, as far as it is used."""

    async def fetch(self, query: str, *args: Value) -> list[Row]: ...
    async def fetchrow(self, query: str, *args: Value) -> Row | None: ...
    async def execute(self, query: str, *args: Value) -> str: ...
    async def executemany(self, command: str, args: Iterable[tuple[Value, ...]]) -> None: ...
    async def cursor(self, query: str, *args: Value) -> "Cursor": ...
    def transaction(self, *, isolation: str, readonly: bool) -> AbstractAsyncContextManager[object]: ...
    def terminate(self) -> None: ...
    async def close(self) -> None: ...


class Cursor(Protocol):
    """A cursor on the server."""

    async def fetch(self, n: int) -> list[Row]: ...


Lease = AbstractAsyncContextManager[Connection]


class Pool(Protocol):
    """The pool of connections."""

    def acquire(self) -> Lease: ...
    async def close(self) -> None: ...


class Driver(Protocol):
    """The module."""

    def connect(self, dsn: str, *, timeout: float) -> Awaitable[Connection]: ...
    def create_pool(self, dsn: str, **options: object) -> Awaitable[Pool]: ...


driver = cast(Driver, asyncpg)
