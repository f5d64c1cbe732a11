"""A lock that one process of all that use a PostgreSQL database holds, for as long as it lives."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager, suppress
from typing import Protocol, cast

import asyncpg

from countersign.kernel import clock, connection_urls
from countersign.kernel.database.postgres_connection import CONNECT_S, connect

TRY = "SELECT pg_try_advisory_lock($1)"
POLL_S = 0.2


class _Connection(Protocol):
    def fetchval(self, query: str, *args: int) -> Awaitable[bool]: ...
    def close(self, *, timeout: float) -> Awaitable[None]: ...


class _Connect(Protocol):
    def __call__(self, dsn: str, *, timeout: float) -> Awaitable[_Connection]: ...


_connect = cast("_Connect", asyncpg.connect)


@asynccontextmanager
async def held(url: str, name: str, *, patience_s: float) -> AsyncGenerator[bool]:
    """Hold the lock of that name while the block lasts; whether it could be had within `patience_s`.

    It belongs to a connection of its own, so that a process that dies, or a node that is cut off, gives it up.

    Raises:
        Unavailable: PostgreSQL cannot be reached.
        ValueError: the address cannot be read.
    """
    connection_urls.require_postgres(url)
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
    connection = await connect(_connect(url, timeout=CONNECT_S), url)
    try:
        deadline_s = clock.monotonic_s() + patience_s
        has_it = await connection.fetchval(TRY, number)
        while not has_it and clock.monotonic_s() < deadline_s:
            await asyncio.sleep(POLL_S)
            has_it = await connection.fetchval(TRY, number)
        yield bool(has_it)
    finally:
        with suppress(asyncpg.PostgresError, OSError, TimeoutError):
            await connection.close(timeout=1)
