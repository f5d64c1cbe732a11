"""Reading a PostgreSQL database that other applications write, or a replica of one."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, suppress
from typing import NoReturn

import asyncpg

from countersign.kernel import connection_urls
from countersign.kernel.concurrency import uncancellable
from countersign.kernel.database import port, postgres, read_only
from countersign.kernel.database.port import Dialect, Row, Value
from countersign.kernel.database.postgres_connection import CONNECT_S, Connection, Pool, connect, driver
from countersign.kernel.database.row_spool import NewCipher, RowSpool
from countersign.kernel.errors import Unavailable

LOCK_WAIT_MS = 2_000
IDLE_MS = 15_000
IDLE_CONNECTION_S = 60.0
BATCH = 500
FIRST_BATCH = 16


async def open_postgres(
    url: str, *, pool: int, read_deadline_s: float, new_cipher: NewCipher, search_path: Sequence[str] = ()
) -> "ExistingPostgres":
    """Open up to `pool` connections to the database. `search_path` are the schemas in which its views and functions
    find their names.

    Raises:
        Unavailable: the server cannot be reached, or refuses the user.
        ValueError: the URL cannot be parsed.
    """
    connection_urls.require_postgres(url)
    options = {
        "min_size": 1,
        "max_size": pool,
        "timeout": CONNECT_S,
        "reset": postgres.skip_reset,
        "statement_cache_size": postgres.CACHED_STATEMENTS,
        "max_inactive_connection_lifetime": IDLE_CONNECTION_S,
        "server_settings": {"application_name": postgres.APPLICATION},
    }
    connection_pool = await connect(driver.create_pool(url, **options), url)
    return ExistingPostgres(connection_pool, pool, read_deadline_s, search_path, new_cipher)


class ExistingPostgres:
    """A PostgreSQL database or a replica of one. Each read is a read-only transaction with time limits."""

    def __init__(
        self, pool: Pool, slots: int, read_deadline_s: float, search_path: Sequence[str], new_cipher: NewCipher
    ) -> None:
        self._pool = pool
        self._new_cipher = new_cipher
        self._slots = read_only.Slots(slots)
        self._read_deadline_s = read_deadline_s
        # Operators and functions of PostgreSQL itself are found first.
        schemas = dict.fromkeys(("pg_catalog", *search_path))
        path = ", ".join('"' + schema.replace('"', '""') + '"' for schema in schemas)
        # SET LOCAL also works behind a pooler that gives each transaction another connection.
        self._begin = (
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
            f"SET LOCAL statement_timeout = {int(read_deadline_s * 1000)}; SET LOCAL lock_timeout = {LOCK_WAIT_MS}; "
            f"SET LOCAL idle_in_transaction_session_timeout = {IDLE_MS}; SET LOCAL DateStyle = 'ISO, YMD'; "
            f"SET LOCAL TimeZone = 'UTC'; SET LOCAL extra_float_digits = 1; "
            f"SET LOCAL standard_conforming_strings = on; SET LOCAL search_path = {path}"
        )

    @property
    def dialect(self) -> Dialect:
        """Return the dialect of PostgreSQL."""
        return "postgres"

    async def scan(
        self, statement: str, *values: Value, settings: Mapping[str, str] = read_only.NO_SETTINGS
    ) -> list[Row]:
        """Return all rows."""
        read_only.require_few_values(len(values))
        try:
            # The server cancels a slow statement. The additional time covers a server that does not answer at all.
            async with (
                self._slots.use(), asyncio.timeout(2 * self._read_deadline_s), self._transaction(settings) as connection
            ):
                return await connection.fetch(statement, *values)
        except postgres.ERRORS as error:
            _refuse(error)

    async def stream(
        self, statement: str, *values: Value, settings: Mapping[str, str] = read_only.NO_SETTINGS
    ) -> AsyncGenerator[list[Row]]:
        """Yield the rows in batches. They are read with a cursor of the server."""
        read_only.require_few_values(len(values))
        with closing(RowSpool(self._new_cipher())) as spool:
            try:
                async with (
                    self._slots.use(is_stream=True),
                    asyncio.timeout(self._read_deadline_s),
                    self._transaction(settings) as connection,
                ):
                    await _fill(spool, connection, statement, values)
            except postgres.ERRORS as error:
                _refuse(error)
            for batch in spool.batches():
                yield batch
                await asyncio.sleep(0)

    @asynccontextmanager
    async def _transaction(self, settings: Mapping[str, str]) -> AsyncGenerator[Connection]:
        async with self._pool.acquire() as connection:
            try:
                await connection.execute(self._begin)
                if settings:
                    await connection.execute(read_only.SET_SETTINGS, read_only.settings_text(settings))
                yield connection
            except BaseException:
                await uncancellable(asyncio.ensure_future(_end_transaction(connection)))
                raise
            await _end_transaction(connection)

    async def close(self) -> None:
        """Wait for running reads, then close every connection."""
        await self._pool.close()


async def _fill(spool: RowSpool, connection: Connection, statement: str, values: Sequence[Value]) -> None:
    """Read all rows of the statement. A batch of long rows is followed by smaller batches."""
    cursor, count = await connection.cursor(statement, *values), FIRST_BATCH
    while rows := await cursor.fetch(count):
        size = 0
        for batch in port.batches(rows):
            spool.add(batch)
            size += sum(map(port.row_bytes, batch))
        count = max(1, min(BATCH, 2 * count, port.MAX_BYTES * len(rows) // max(1, size)))
        await asyncio.sleep(0)


async def _end_transaction(connection: Connection) -> None:
    """End the transaction; if that fails, close the connection, which has the same effect."""
    try:
        async with asyncio.timeout(CONNECT_S):
            await connection.execute("ROLLBACK")
    except asyncio.CancelledError:
        connection.terminate()
        raise
    except postgres.ERRORS:
        with suppress(asyncpg.InterfaceError):
            connection.terminate()


def _refuse(error: BaseException) -> NoReturn:
    state = str(getattr(error, "sqlstate", None) or "")
    if isinstance(error, TimeoutError):
        read_only.refuse(error, read_only.TooSlow())
    if isinstance(error, OSError | asyncpg.InterfaceError | asyncpg.InternalClientError):
        read_only.refuse(error, Unavailable(read_only.AWAY), state)
    read_only.refuse(error, read_only.refusal_for_state(state), state)
