"""Read-only access to an existing database that other applications write.

An error of that database may quote its rows. Its text therefore reaches neither a caller nor the log, which has the
SQLSTATE alone.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol, TypeVar, cast

import apsw
import asyncpg

from countersign.kernel import connection_urls, telemetry
from countersign.kernel.concurrency import uncancellable
from countersign.kernel.database import port, postgres, sqlite_connection
from countersign.kernel.database.port import Dialect, Row, Value
from countersign.kernel.database.postgres_connection import CONNECT_S, Connection, Pool, connect, driver
from countersign.kernel.database.sqlite import SqliteReaders
from countersign.kernel.errors import InvalidRequest, Refused, Unavailable

SQLITE = "sqlite:///"
BUSY_MS = 2_000
LOCK_WAIT_MS = 2_000
IDLE_MS = 15_000
BATCH = 500

_Function = Callable[[str | None], str | None]

AWAY = "The connected database cannot be reached now; try again."
CHANGED = "A table of the connected database has changed, or can no longer be read."
SLOW = "The connected database did not answer in time; narrow the search, or try again."
REFUSED = "the connected database refused this"

_CHANGED: Final = frozenset({"42703", "42P01", "42883", "42804", "0A000", "42501", "3F000"})
"""The SQLSTATEs of statements that no longer fit the tables or the privileges."""
_AWAY: Final = ("08", "53", "55", "57", "58", "28", "3D", "40", "25")
"""The classes of SQLSTATEs of a database that cannot answer now."""
_CANCELLED = "57014"

T = TypeVar("T")


class ExistingDatabase(Protocol):
    """An existing database, from which statements read. Statements use `$1`, `$2`, … for values."""

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect of the engine."""
        ...

    async def scan(self, statement: str, *values: Value) -> list[Row]:
        """Return all rows.

        Raises:
            Unavailable: the database cannot answer now, the deadline passed, or a table has changed.
            InvalidRequest: the database refused the statement with these values.
        """
        ...

    def stream(self, statement: str, *values: Value) -> AsyncGenerator[list[Row]]:
        """Yield the rows of one snapshot in batches, in constant memory. Use `contextlib.aclosing`.

        Raises:
            as `scan`.
        """
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


async def open_existing(
    url: str,
    *,
    pool: int,
    read_deadline_s: float,
    search_path: Sequence[str] = (),
    functions: Mapping[str, _Function] | None = None,
) -> ExistingDatabase:
    """Open the database at the URL for reading: `sqlite:////absolute/file.db` or `postgresql://…`.

    `search_path` are the schemas in which its views and functions find their names. `functions` are additional
    functions of statements on SQLite, which take and return a text.

    Raises:
        Unavailable: the file cannot be opened, or the server cannot be reached.
        ValueError: the URL has another scheme, or cannot be parsed.
    """
    if url.startswith(SQLITE):
        path = Path(url.removeprefix(SQLITE))
        return await asyncio.to_thread(ExistingSqlite, path, pool, read_deadline_s, functions or {})
    if not url.startswith(connection_urls.POSTGRES_SCHEMES):
        raise ValueError("a database URL begins with sqlite:/// or postgresql://")
    connection_urls.require_postgres(url)
    options = {
        "min_size": 1,
        "max_size": pool,
        "timeout": CONNECT_S,
        "reset": postgres.skip_reset,
        "statement_cache_size": postgres.CACHED_STATEMENTS,
        "max_inactive_connection_lifetime": 60.0,
        "server_settings": {"application_name": postgres.APPLICATION},
    }
    made = await connect(driver.create_pool(url, **options), url)
    return ExistingPostgres(made, read_deadline_s, search_path)


class ExistingPostgres:
    """A PostgreSQL database or a replica of one. Each read is a read-only transaction with time limits."""

    def __init__(self, pool: Pool, read_deadline_s: float, search_path: Sequence[str]) -> None:
        self._pool = pool
        self._read_deadline_s = read_deadline_s
        path = ", ".join('"' + each.replace('"', '""') + '"' for each in search_path) or "pg_catalog"
        # SET LOCAL also works behind a pooler that gives each transaction another connection.
        self._begin = (
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
            f"SET LOCAL statement_timeout = {int(read_deadline_s * 1000)}; SET LOCAL lock_timeout = {LOCK_WAIT_MS}; "
            f"SET LOCAL idle_in_transaction_session_timeout = {IDLE_MS}; SET LOCAL DateStyle = 'ISO, YMD'; "
            f"SET LOCAL TimeZone = 'UTC'; SET LOCAL extra_float_digits = 1; SET LOCAL search_path = {path}"
        )

    @property
    def dialect(self) -> Dialect:
        """Return the dialect of PostgreSQL."""
        return "postgres"

    async def scan(self, statement: str, *values: Value) -> list[Row]:
        """Return all rows."""
        try:
            # The server ends a slow statement. The additional time is for a server that does not answer at all.
            async with asyncio.timeout(2 * self._read_deadline_s), self._reading() as connection:
                return await connection.fetch(statement, *values)
        except postgres.ERRORS as error:
            refuse(error)

    async def stream(self, statement: str, *values: Value) -> AsyncGenerator[list[Row]]:
        """Yield the rows in batches, with a cursor of the server."""
        try:
            async with self._reading() as connection:
                cursor = await connection.cursor(statement, *values)
                while rows := await cursor.fetch(BATCH):
                    for batch in port.split(rows):
                        yield batch
                        await asyncio.sleep(0)
        except postgres.ERRORS as error:
            refuse(error)

    @asynccontextmanager
    async def _reading(self) -> AsyncGenerator[Connection]:
        async with self._pool.acquire() as connection:
            try:
                await connection.execute(self._begin)
                yield connection
            finally:
                await uncancellable(asyncio.ensure_future(_end(connection)))

    async def close(self) -> None:
        """Wait for running reads, then close every connection."""
        await self._pool.close()


async def _end(connection: Connection) -> None:
    """End the transaction; if that fails, close the connection, which has the same effect."""
    try:
        async with asyncio.timeout(CONNECT_S):
            await connection.execute("ROLLBACK")
    except postgres.ERRORS:
        with suppress(asyncpg.InterfaceError):
            connection.terminate()


class ExistingSqlite:
    """A SQLite file, opened read-only."""

    def __init__(self, path: Path, count: int, read_deadline_s: float, functions: Mapping[str, _Function]) -> None:
        def connected() -> sqlite_connection.Connection:
            return _open_file(path, functions)

        try:
            self._readers = SqliteReaders(path, count, read_deadline_s, connected)
        except (apsw.Error, Refused) as error:
            refuse(error)

    @property
    def dialect(self) -> Dialect:
        """Return the dialect of SQLite."""
        return "sqlite"

    async def scan(self, statement: str, *values: Value) -> list[Row]:
        """Return all rows, read in a thread."""
        try:
            return await self._readers.scan(statement, values)
        except (apsw.Error, port.ConstraintViolation, port.WrittenOutsideTransaction, Refused) as error:
            refuse(error)

    async def stream(self, statement: str, *values: Value) -> AsyncGenerator[list[Row]]:
        """Yield the rows in batches, read in a thread."""
        try:
            async for rows in self._readers.stream(statement, values):
                yield rows
        except (apsw.Error, port.ConstraintViolation, port.WrittenOutsideTransaction, Refused) as error:
            refuse(error)

    async def close(self) -> None:
        """Wait for running reads, then close every connection."""
        await self._readers.close()


def _open_file(path: Path, functions: Mapping[str, _Function]) -> sqlite_connection.Connection:
    opened = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    for name, function in functions.items():
        cast("Any", opened).create_scalar_function(name, function, 1, deterministic=True)
    connection = cast(sqlite_connection.Connection, opened)
    connection.set_busy_timeout(BUSY_MS)
    connection.pragma("query_only", "ON")
    # Opening a file reads nothing of it.
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    return connection


def refuse(error: BaseException) -> NoReturn:
    """Raise the refusal for an error of an existing database. It contains no text of the database.

    Raises:
        Unavailable: the database cannot answer now, the deadline passed, or a table has changed.
        InvalidRequest: the database refused the statement with these values.
    """
    state = str(getattr(error, "sqlstate", None) or "")
    found = _refusal(error, state)
    telemetry.logger("existing-database").warning(
        "the connected database refused a read", sqlstate=state, error=type(error).__name__
    )
    # Leave out the cause, whose text may be logged with this error.
    raise found from None


def _refusal(error: BaseException, state: str) -> Refused:
    if isinstance(error, Refused):
        is_slow = isinstance(error, Unavailable) and "took longer" in error.detail
        return Unavailable(SLOW if is_slow else AWAY)
    if isinstance(error, TimeoutError) or state == _CANCELLED:
        return Unavailable(SLOW)
    if state in _CHANGED or type(error) is apsw.SQLError:
        return Unavailable(CHANGED)
    if isinstance(error, OSError | asyncpg.InterfaceError | asyncpg.InternalClientError | apsw.Error):
        return Unavailable(AWAY)
    return Unavailable(AWAY) if state.startswith(_AWAY) else InvalidRequest(REFUSED)
