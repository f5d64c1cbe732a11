"""A connection to PostgreSQL that stays open for a copy of everything, however long that takes."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Protocol, cast

import asyncpg

from countersign.kernel import connection_urls
from countersign.kernel.database.port import Row, Value
from countersign.kernel.database.postgres import LOCK_WAIT_MS, refusal
from countersign.kernel.database.postgres_connection import CONNECT_S, connect
from countersign.kernel.database.postgres_privileges import Rights, rights
from countersign.kernel.database.snapshot import Take

CLOSE_S = 5.0
APPLICATION = "countersign backup"
SEARCH = "SELECT set_config('search_path', quote_ident($1), true)"


class Session(Protocol):
    """The driver's connection, as far as copies use it."""

    async def fetch(self, query: str, *args: Value | Sequence[str]) -> list[Row]:
        """All rows."""
        ...

    async def fetchval(self, query: str, *args: Value) -> str:
        """The first row's first value."""
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

    async def copy_from_query(self, query: str, *, output: Take, format: str) -> str:
        """Hand on what it reads, as COPY writes it; the command tag."""
        ...

    async def copy_to_table(
        self, table_name: str, *, schema_name: str, columns: Sequence[str], source: AsyncIterator[bytes], format: str
    ) -> str:
        """Add rows from lines as COPY reads them; the command tag."""
        ...

    async def copy_records_to_table(
        self, table_name: str, *, schema_name: str, columns: Sequence[str], records: AsyncIterator[Row]
    ) -> str:
        """Add the rows; the command tag."""
        ...

    def transaction(self, *, isolation: str, readonly: bool) -> AbstractAsyncContextManager[object]:
        """A block that is a transaction."""
        ...

    async def cursor(self, query: str, *args: Value) -> "Cursor":
        """A cursor, inside a transaction."""
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


class _Connect(Protocol):
    def __call__(self, dsn: str, *, timeout: float, server_settings: dict[str, str]) -> Awaitable[Session]: ...


_connect = cast(_Connect, asyncpg.connect)


@asynccontextmanager
async def session(url: str) -> AsyncGenerator[Session]:
    """A connection until the block is left, which waits for no lock for long, and ends no statement for its time.

    Raises:
        StorageFull, Unavailable: the server cannot be reached, has no room, or refused; from the block, too.
    """
    settings = {
        "application_name": APPLICATION,
        "lock_timeout": str(LOCK_WAIT_MS),
        "statement_timeout": "0",
        "idle_in_transaction_session_timeout": "0",
        "client_min_messages": "warning",
        "jit": "off",
    }
    connection_urls.require_postgres(url)
    try:
        connection = await connect(_connect(url, timeout=CONNECT_S, server_settings=settings), url)
        try:
            yield connection
        finally:
            with suppress(asyncpg.PostgresError, OSError, TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await connection.close()
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
        meaning = refusal(error)
        if meaning is None:
            raise
        raise meaning from error


async def rights_at(url: str, schemas: Sequence[str]) -> list[Rights]:
    """What the role of the address may do with each of the schemas; none is made for that.

    Raises:
        Unavailable: PostgreSQL cannot be reached.
    """
    async with session(url) as connection:
        return [await rights(connection, schema) for schema in schemas]


def count(tag: str) -> int:
    """How many rows a command tag of PostgreSQL's tells of."""
    return int(tag.rpartition(" ")[2])
