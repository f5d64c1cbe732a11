"""PostgreSQL connections outside of the pool: long sessions for copies, removal of schemas, and advisory locks."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import NamedTuple, Protocol, TypeAlias, cast

import asyncpg

from countersign.kernel import clock, connection_urls
from countersign.kernel.database.port import Row, Value
from countersign.kernel.database.postgres import APPLICATION, LOCK_WAIT_MS, refusal
from countersign.kernel.database.postgres_connection import CONNECT_S, connect
from countersign.kernel.database.postgres_privileges import Privileges, privileges
from countersign.kernel.errors import Refused

CLOSE_S = 5.0
ADMIN_APPLICATION = "countersign backup"
SET_SEARCH_PATH = "SELECT set_config('search_path', quote_ident($1), true)"
_CONNECTION_ERRORS = (
    *(asyncpg.PostgresConnectionError, asyncpg.AdminShutdownError, asyncpg.CrashShutdownError),
    *(asyncpg.CannotConnectNowError, asyncpg.DatabaseDroppedError, asyncpg.IdleSessionTimeoutError),
)
"""The errors after which the connection cannot be used any more."""
FIXED_SEARCH_PATH = "SET LOCAL search_path = pg_catalog, pg_temp"
"""Prevents a function that someone has created in another schema from replacing a function that a statement calls,
since it would run with the rights of the caller."""
_SET_TIMEOUT = "SELECT pg_catalog.set_config('statement_timeout', $1, true)"
_SET_LOCK_TIMEOUT = "SELECT pg_catalog.set_config('lock_timeout', $1, true)"


ByteSink: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Receives the next bytes."""


class AdminConnection(Protocol):
    """The part of the driver's connection that copies use."""

    async def fetch(self, query: str, *args: Value | Sequence[str]) -> list[Row]:
        """Return all rows."""
        ...

    async def fetchval(self, query: str, *args: Value) -> str:
        """Return the first row's first value."""
        ...

    async def fetchrow(self, query: str, *args: Value) -> Row | None:
        """Return the first row, or None."""
        ...

    async def execute(self, query: str, *args: Value) -> str:
        """Run the query; returns PostgreSQL's command tag."""
        ...

    async def executemany(self, command: str, args: Iterable[tuple[Value, ...]]) -> None:
        """Run the command for every row."""
        ...

    async def copy_from_query(self, query: str, *, output: ByteSink, format: str) -> str:
        """Write the rows in COPY format to the output; returns the command tag."""
        ...

    async def copy_to_table(
        self, table_name: str, *, schema_name: str, columns: Sequence[str], source: AsyncIterator[bytes], format: str
    ) -> str:
        """Insert rows from lines in COPY format; returns the command tag."""
        ...

    async def copy_records_to_table(
        self, table_name: str, *, schema_name: str, columns: Sequence[str], records: AsyncIterator[Row]
    ) -> str:
        """Insert the rows; returns the command tag."""
        ...

    def transaction(self, *, isolation: str, readonly: bool) -> AbstractAsyncContextManager[object]:
        """Return a context manager that runs its block in a transaction."""
        ...

    async def cursor(self, query: str, *args: Value) -> "AdminCursor":
        """Return a cursor, inside a transaction."""
        ...

    def terminate(self) -> None:
        """Close immediately, without notifying the server."""
        ...

    async def close(self) -> None:
        """Close the connection when it is idle."""
        ...


class AdminCursor(Protocol):
    """A cursor on the server."""

    async def fetch(self, n: int) -> list[Row]:
        """Return the next rows, at most `n`."""
        ...


class _Connect(Protocol):
    def __call__(self, dsn: str, *, timeout: float, server_settings: dict[str, str]) -> Awaitable[AdminConnection]: ...


_connect = cast(_Connect, asyncpg.connect)


@asynccontextmanager
async def admin_session(url: str, *, application: str = ADMIN_APPLICATION) -> AsyncGenerator[AdminConnection]:
    """Open a connection for the block, with a short lock timeout and no statement timeout. `application` is the name
    that the server shows for the connection.

    Raises:
        StorageFull, Unavailable: the server cannot be reached, has no space, or refused a statement; errors inside the
            block are converted as well.
    """
    settings = {
        "application_name": application,
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


async def privileges_at(url: str, schemas: Sequence[str]) -> list[Privileges]:
    """Return the privileges of the role on each of the schemas; does not create missing schemas.

    Raises:
        Unavailable: PostgreSQL cannot be reached.
    """
    async with admin_session(url) as connection:
        return [await privileges(connection, schema) for schema in schemas]


@asynccontextmanager
async def skip_locked(connection: AdminConnection, *, timeout_ms: int) -> AsyncGenerator[None]:
    """Run the block in a savepoint of a `repeatable_read` transaction. If one of its statements waits longer than the
    timeout for a lock, skip the rest of the block."""
    with suppress(asyncpg.LockNotAvailableError):
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            await connection.fetch(_SET_LOCK_TIMEOUT, str(timeout_ms))
            yield


async def fetch_within(
    connection: AdminConnection,
    query: str,
    values: Sequence[Value | Sequence[str]],
    *,
    timeout_ms: int,
    has_fixed_path: bool = False,
) -> list[Row] | None:
    """Return all rows of a query, which runs in a read-only transaction. Return None if the query takes longer than the
    timeout, if the role may not run it, or if a view or function of the database fails. With `has_fixed_path`, the
    query runs under FIXED_SEARCH_PATH."""
    rows = await fetch_or_code(connection, query, values, timeout_ms=timeout_ms, has_fixed_path=has_fixed_path)
    return None if isinstance(rows, str) else rows


async def fetch_or_code(
    connection: AdminConnection,
    query: str,
    values: Sequence[Value | Sequence[str]],
    *,
    timeout_ms: int,
    has_fixed_path: bool = False,
) -> list[Row] | str:
    """Return all rows of a query, which runs in a read-only transaction, or the SQLSTATE if the query fails."""
    try:
        async with connection.transaction(isolation="read_committed", readonly=True):
            await connection.fetch(_SET_TIMEOUT, str(timeout_ms))
            if has_fixed_path:
                await connection.execute(FIXED_SEARCH_PATH)
            return await connection.fetch(query, *values)
    except asyncpg.PostgresError as error:
        if isinstance(error, _CONNECTION_ERRORS):
            raise
        return str(getattr(error, "sqlstate", None) or "")


def row_count(tag: str) -> int:
    """Return the number of rows in a PostgreSQL command tag."""
    return int(tag.rpartition(" ")[2])


async def try_lock(connection: AdminConnection, lock: str) -> bool:
    """Run a LOCK statement and return whether it got the lock before the lock timeout. If it did not, the transaction
    is aborted."""
    try:
        await connection.execute(lock)
    except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
        return False
    return True


_TABLES = """
SELECT n.nspname, count(c.oid)
FROM pg_namespace AS n
LEFT JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p')
WHERE n.nspname = ANY($1)
GROUP BY n.nspname
ORDER BY n.nspname
"""
_SERVED = """
SELECT coalesce(client_addr::text, 'this machine')
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = $1
LIMIT 1
"""
# Finds views and foreign keys of other schemas, which CASCADE would drop as well.
_DEPENDENTS = """
WITH ours AS (SELECT oid FROM pg_namespace WHERE nspname = ANY($1))
SELECT v.oid::regclass::text
FROM pg_depend AS d
JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
JOIN pg_class AS v ON v.oid = r.ev_class
JOIN pg_class AS t ON d.refclassid = 'pg_class'::regclass AND t.oid = d.refobjid
WHERE t.relnamespace IN (SELECT oid FROM ours) AND v.relnamespace NOT IN (SELECT oid FROM ours)
UNION
SELECT k.conrelid::regclass::text
FROM pg_constraint AS k
JOIN pg_class AS c ON c.oid = k.conrelid
JOIN pg_class AS t ON t.oid = k.confrelid
WHERE k.contype = 'f'
    AND t.relnamespace IN (SELECT oid FROM ours) AND c.relnamespace NOT IN (SELECT oid FROM ours)
ORDER BY 1
LIMIT 10
"""
_HAS_ID = "SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = 'installation'"
_ID = "SELECT format('SELECT id, collected_at FROM %I.installation', $1::text)"
_DROP = "SELECT format('DROP SCHEMA IF EXISTS %I CASCADE', $1::text)"


class DatabaseInUse(Refused):
    """A service is connected to the database, or objects of other schemas depend on its tables."""

    status = 409
    code = "database_in_use"
    title = "Database in use"


class Schemas(NamedTuple):
    """The existing schemas with the number of tables in each, and the ids of the installations in these schemas with
    the time of the last garbage collection of each."""

    tables: dict[str, int]
    ids: dict[str, int]


async def examine_schemas(url: str, names: Sequence[str]) -> Schemas:
    """Read which of the schemas exist, and their content.

    Raises:
        Unavailable: the server cannot be reached.
    """
    async with admin_session(url) as connection:
        tables = {str(name): int(str(count)) for name, count in await connection.fetch(_TABLES, list(names))}
        newest_by_schema: dict[str, int] = {}
        for name in tables:
            if await connection.fetch(_HAS_ID, name):
                rows = await connection.fetch(await connection.fetchval(_ID, name))
                for schema_name, at in rows:
                    newest_by_schema[str(schema_name)] = max(int(str(at)), newest_by_schema.get(str(schema_name), 0))
        return Schemas(tables, newest_by_schema)


async def drop_schemas(url: str, names: Sequence[str]) -> None:
    """Drop the schemas with their content, in one transaction.

    Raises:
        DatabaseInUse: a service is connected, or an object of another schema depends on their tables.
        Unavailable: the server cannot be reached, or the role may not drop them.
    """
    async with admin_session(url) as connection, connection.transaction(isolation="read_committed", readonly=False):
        server_sessions = await connection.fetch(_SERVED, APPLICATION)
        if server_sessions:
            remedy = "Stop `countersign serve` and `countersign worker` on every node, then run it again."
            raise DatabaseInUse(
                f"a service is connected to the database from {server_sessions[0][0]}", resolution=remedy
            )
        dependents = [str(name) for (name,) in await connection.fetch(_DEPENDENTS, list(names))]
        if dependents:
            remedy = "Drop them first, then run it again."
            text = f"objects of other schemas depend on the tables: {', '.join(dependents)}"
            raise DatabaseInUse(text, resolution=remedy)
        for name in names:
            await connection.execute(await connection.fetchval(_DROP, name))


TRY_LOCK = "SELECT pg_try_advisory_lock($1)"
POLL_S = 0.2


class _LockConnection(Protocol):
    def fetchval(self, query: str, *args: int) -> Awaitable[bool]: ...
    def close(self, *, timeout: float) -> Awaitable[None]: ...


class _LockConnect(Protocol):
    def __call__(self, dsn: str, *, timeout: float) -> Awaitable[_LockConnection]: ...


_lock_connect = cast("_LockConnect", asyncpg.connect)


@asynccontextmanager
async def advisory_lock(url: str, name: str, *, patience_s: float) -> AsyncGenerator[bool]:
    """Hold the advisory lock `name` during the block; yields whether the lock was acquired within `patience_s`.

    The lock has a separate connection, so that PostgreSQL releases the lock when the process dies or the node is
    disconnected.

    Raises:
        Unavailable: PostgreSQL cannot be reached.
        ValueError: the URL cannot be parsed.
    """
    connection_urls.require_postgres(url)
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
    connection = await connect(_lock_connect(url, timeout=CONNECT_S), url)
    try:
        deadline_s = clock.monotonic_s() + patience_s
        has_it = await connection.fetchval(TRY_LOCK, number)
        while not has_it and clock.monotonic_s() < deadline_s:
            await asyncio.sleep(POLL_S)
            has_it = await connection.fetchval(TRY_LOCK, number)
        yield bool(has_it)
    finally:
        with suppress(asyncpg.PostgresError, OSError, TimeoutError):
            await connection.close(timeout=1)
