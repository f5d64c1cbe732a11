"""PostgreSQL behind the database port: a pool of asyncpg connections without session state.

The pool's reset query is switched off, which saves a round trip each time a connection is used. Therefore no code may
leave session state behind: no SET without LOCAL, no LISTEN, no temporary table, no advisory lock beyond its
transaction.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import NoReturn

import asyncpg

from countersign.kernel import clock
from countersign.kernel.concurrency import uncancellable
from countersign.kernel.database import instrumentation, port, postgres_outside_tables, read_only
from countersign.kernel.database.port import (
    ConnectedSession,
    ConstraintViolation,
    Dialect,
    Row,
    Value,
    WrittenOutsideTransaction,
)
from countersign.kernel.database.postgres_connection import (
    CONNECT_S,
    Connection,
    Pool,
    PooledConnection,
    connect,
    driver,
)
from countersign.kernel.database.postgres_limits import with_literal_limit
from countersign.kernel.database.postgres_privileges import privileges
from countersign.kernel.errors import InvalidRequest, Refused, Unavailable, disk_full, is_disk_full

_FIRST_ROWS = 32
"""The number of rows in the first batch of a stream, when the size of its rows is not known yet."""
CACHED_STATEMENTS = 500
LOCK_WAIT_MS = 10_000

# The driver raises InternalClientError on an idle connection until it has noticed that the server closed it.
ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""The errors of the driver."""
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InternalClientError,
    ConnectionError,
)

_MAKE_SCHEMA = "SELECT format('CREATE SCHEMA IF NOT EXISTS %I', $1::text)"

# Maps an SQLSTATE, or the class of an SQLSTATE, to the remedy (PostgreSQL documentation, appendix A).
_REMEDIES = {
    "08": "The connection to PostgreSQL was lost; check that it runs and can be reached, or try again.",
    "25P03": "PostgreSQL ended the transaction, which was idle for too long; try again.",
    "28": "PostgreSQL refuses the user or password of the database address; correct the setting.",
    "3D": "The database does not exist in PostgreSQL; create it, or correct the setting.",
    "42501": "The database's role lacks a privilege; `countersign doctor` names the missing GRANT.",
    "40": "The transaction conflicts with a concurrent one; try again.",
    "53": "PostgreSQL has no connection or memory left; raise its limits, or lower the pool's size.",
    "55P03": "Another transaction held a lock for too long; try again.",
    "57": "PostgreSQL cancelled the statement: it was stopped, shut down, or took too long; try again.",
    "58": "PostgreSQL's disk failed to read or write; check its log.",
}


class PostgresTransaction:
    """The port's Transaction on PostgreSQL, READ COMMITTED."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.actions: list[Callable[[], None]] = []
        self.uses_connected_tables = False
        self._unchecked: ConnectedSession | None = None

    async def fetch(self, statement: str, *values: Value) -> list[Row]:
        """Return all rows, including changes of this transaction."""
        text, remaining_values = with_literal_limit(statement, values)
        try:
            return await self._connection.fetch(text, *remaining_values)
        except ERRORS as error:
            self._refuse(error)

    async def fetch_one(self, statement: str, *values: Value) -> Row | None:
        """Return the first row, or None, including changes of this transaction."""
        try:
            return await self._connection.fetchrow(statement, *values)
        except ERRORS as error:
            self._refuse(error)

    async def run(self, statement: str, *values: Value) -> int:
        """Run one statement, or several without values; returns the number of rows that the last one changed.

        Raises:
            StorageFull: there is no space.
            ConstraintViolation: a constraint was violated; the transaction is aborted.
        """
        try:
            tag = await self._connection.execute(statement, *values)
        except ERRORS as error:
            self._refuse(error)
        verb, _, count = tag.rpartition(" ")
        return int(count) if verb.startswith(("INSERT", "UPDATE", "DELETE", "MERGE")) else 0

    async def run_many(self, statement: str, rows: Iterable[tuple[Value, ...]]) -> None:
        """Run the statement for every row, in few round trips.

        Raises:
            as `run`.
        """
        try:
            await self._connection.executemany(statement, rows)
        except ERRORS as error:
            self._refuse(error)

    @asynccontextmanager
    async def savepoint(self) -> AsyncGenerator[None]:
        """Open a block. If it ends with an exception, its writes are rolled back, but not the rest of the
        transaction."""
        await self.run("SAVEPOINT inner_block")
        action_count = len(self.actions)
        try:
            yield
        except BaseException:
            del self.actions[action_count:]
            # Without a connection there is nothing to roll back. Keep the first exception, which names the cause.
            with suppress(Unavailable):
                await uncancellable(asyncio.ensure_future(self.run("ROLLBACK TO inner_block; RELEASE inner_block")))
            raise
        await self.run("RELEASE inner_block")

    def after_commit(self, action: Callable[[], None]) -> None:
        """Call the action after the commit, even if the caller was cancelled by then."""
        self.actions.append(action)

    async def fetch_connected(self, session: ConnectedSession, statement: str, *values: Value) -> list[Row]:
        """Run one statement on tables of other applications (see `postgres_outside_tables.fetch`)."""
        self.uses_connected_tables = True
        rows = await postgres_outside_tables.fetch(self._connection, session, statement, values)
        if postgres_outside_tables.is_writing(statement):
            self._unchecked = session
        return rows

    async def check_connected(self) -> None:
        """Check the deferred constraints of tables of other applications (see
        `postgres_outside_tables.check_constraints`)."""
        if self._unchecked is not None:
            session, self._unchecked = self._unchecked, None
            await postgres_outside_tables.check_constraints(self._connection, session)

    def _refuse(self, error: BaseException) -> NoReturn:
        if self.uses_connected_tables and isinstance(error, asyncpg.ReadOnlySQLTransactionError):
            # A trigger of these tables has made the transaction read-only, and a transaction cannot be made writable
            # again.
            raise InvalidRequest(read_only.REFUSED) from None
        refuse(error)


APPLICATION = "countersign"
"""The name of a service's connections in pg_stat_activity."""


class PostgresDatabase:
    """One service's schema in a PostgreSQL database. Reads are read-only; lost connections are replaced."""

    def __init__(self, pool: Pool, size: int, read_deadline_s: float, name: str) -> None:
        self._pool = pool
        self._reads = instrumentation.READS.labels(name)
        self._reading = instrumentation.RUNNING.labels(name, "read")
        # Every connection of the pool may be dead, and each attempt removes one of them, so allow as many attempts.
        self._last_attempt = size
        self._read_deadline_s = read_deadline_s
        # This event is never set, since PostgreSQL recovers by itself.
        self.broken = asyncio.Event()

    @property
    def dialect(self) -> Dialect:
        """Return the dialect of PostgreSQL."""
        return "postgres"

    def change_mark(self) -> bytes | None:
        """Return None: PostgreSQL has no such mark."""
        return None

    async def fetch(self, statement: str, *values: Value) -> list[Row]:
        """Return all rows.

        Raises:
            Unavailable: the server cannot be reached, or did not answer before the read deadline.
            WrittenOutsideTransaction: the statement writes.
        """
        started_s = clock.monotonic_s()
        text, remaining_values = with_literal_limit(statement, values)
        for attempt in range(self._last_attempt + 1):
            try:
                async with asyncio.timeout(self._read_deadline_s), self._lease_connection() as connection:
                    return await connection.fetch(text, *remaining_values)
            except ERRORS as error:
                self._refuse_unless_retryable(error, attempt)
            finally:
                self._reads.add(clock.monotonic_s() - started_s)
        raise AssertionError("the last attempt returns or raises")

    async def fetch_one(self, statement: str, *values: Value) -> Row | None:
        """Like `fetch`, but return only the first row, or None."""
        started_s = clock.monotonic_s()
        for attempt in range(self._last_attempt + 1):
            try:
                async with asyncio.timeout(self._read_deadline_s), self._lease_connection() as connection:
                    return await connection.fetchrow(statement, *values)
            except ERRORS as error:
                self._refuse_unless_retryable(error, attempt)
            finally:
                self._reads.add(clock.monotonic_s() - started_s)
        raise AssertionError("the last attempt answers or raises")

    async def scan(self, statement: str, *values: Value) -> list[Row]:
        """Return all rows. At the read deadline, the server cancels the statement.

        Raises:
            Unavailable: the deadline passed.
        """
        return await self.fetch(statement, *values)

    async def stream(self, statement: str, *values: Value) -> AsyncGenerator[list[Row]]:
        """Yield the rows in batches, with a server-side cursor in a REPEATABLE READ transaction."""
        try:
            async with (
                self._lease_connection() as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                cursor = await connection.cursor(statement, *values)
                batch_size = _FIRST_ROWS
                while rows := await cursor.fetch(batch_size):
                    for batch in port.batches(rows):
                        yield batch
                        await asyncio.sleep(0)
                    size = sum(map(port.row_bytes, rows))
                    batch_size = min(4 * batch_size, max(1, batch_size * port.MAX_BYTES // max(size, 1)), port.MAX_ROWS)
        except ERRORS as error:
            refuse(error)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[PostgresTransaction]:
        """Open a writing transaction, which is durable when its block has been left normally.

        Raises:
            StorageFull: there is no space; the transaction was rolled back.
            Unavailable: the server cannot be reached, or the transaction conflicts with another. When the connection
                is lost during COMMIT, only the server knows whether it was committed.
        """
        lease, connection = await self._begin_transaction()
        try:
            transaction = PostgresTransaction(connection)
            try:
                yield transaction
                await _check_connected(transaction)
            except BaseException:
                await uncancellable(asyncio.ensure_future(_roll_back(connection)))
                raise
            await uncancellable(asyncio.ensure_future(_commit(connection, transaction)))
        finally:
            await _return_lease(lease)

    async def _begin_transaction(self) -> tuple[PooledConnection, Connection]:
        """Return a connection with an open transaction. Dead connections are replaced."""
        for attempt in range(self._last_attempt + 1):
            lease = self._pool.acquire()
            try:
                connection = await lease.__aenter__()
            except ERRORS as error:
                self._refuse_unless_retryable(error, attempt)
                continue
            try:
                await connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
            except ERRORS as error:
                _close(connection)
                await _return_lease(lease)
                self._refuse_unless_retryable(error, attempt)
                continue
            except BaseException:
                _close(connection)
                await _return_lease(lease)
                raise
            return lease, connection
        raise AssertionError("the last attempt answers or raises")

    def _refuse_unless_retryable(self, error: BaseException, attempt: int) -> None:
        """Raise the refusal for the error, unless the connection was lost and attempts are left."""
        is_lost = isinstance(error, _LOST) or _is_closed(error)
        if attempt == self._last_attempt or not is_lost or isinstance(error, ConnectionRefusedError):
            refuse(error)

    @asynccontextmanager
    async def _lease_connection(self) -> AsyncGenerator[Connection]:
        async with self._pool.acquire() as connection:
            self._reading.value += 1
            try:
                yield connection
            except (*_LOST, asyncio.CancelledError):
                # A statement cancelled between its preparation and its execution leaves a transaction open on the
                # server, and no further transaction could begin on this connection.
                _close(connection)
                raise
            finally:
                self._reading.value -= 1

    async def close(self) -> None:
        """Wait for running operations, then close every connection."""
        await self._pool.close()


async def open_postgres(
    url: str, *, schema: str, pool: int = 10, read_deadline_s: float = 5.0, name: str = ""
) -> PostgresDatabase:
    """Open a pool of up to `pool` connections to the database; `schema` is created if missing. `name` is the label of
    the database in metrics (default: the schema).

    Raises:
        Unavailable: the server cannot be reached, or refuses the user; the text names the cause.
        PrivilegeMissing: the role may not create the schema, or may not use it.
    """
    settings = {
        "application_name": APPLICATION,
        # pg_temp is last: otherwise a temporary table, which a trigger of another application may create, would hide a
        # table of this schema.
        "search_path": '"' + schema.replace('"', '""') + '", pg_temp',
        "default_transaction_read_only": "on",
        "lock_timeout": str(LOCK_WAIT_MS),
        "idle_in_transaction_session_timeout": "60000",
        # Statements are short, so parallel workers and compilation would cost more than they save.
        "jit": "off",
        "max_parallel_workers_per_gather": "0",
        # The default of 4 is for rotating disks: PostgreSQL would scan whole tables where an index-only scan is faster.
        "random_page_cost": "1.1",
    }
    options = {
        "min_size": 1,
        "max_size": pool,
        "timeout": CONNECT_S,
        "reset": skip_reset,
        "statement_cache_size": CACHED_STATEMENTS,
        "max_cached_statement_lifetime": 0,
        "max_inactive_connection_lifetime": 0,
        "server_settings": settings,
    }
    connection_pool = await connect(driver.create_pool(url, **options), url)
    database = PostgresDatabase(connection_pool, pool, read_deadline_s, name or schema)
    try:
        await _prepare_schema(database, schema)
    except BaseException:
        connection_pool.terminate()
        raise
    return database


async def skip_reset(_connection: object) -> None:
    """Do nothing. This function replaces the pool's reset query."""


async def _prepare_schema(database: PostgresDatabase, schema: str) -> None:
    """Create the schema if it is missing."""
    held_privileges = await privileges(database, schema)
    held_privileges.require_use()
    # Check first whether the schema exists, so that a role without the CREATE privilege can use an existing schema.
    if not held_privileges.has_schema:
        # Even with IF NOT EXISTS, concurrent statements conflict in the catalog. Then another process has created the
        # schema.
        with suppress(ConstraintViolation, asyncpg.DuplicateSchemaError):
            async with database.transaction() as transaction:
                ((create,),) = await transaction.fetch(_MAKE_SCHEMA, schema)
                await transaction.run(create)


async def _return_lease(lease: PooledConnection) -> None:
    """Return the connection to the pool, even if the caller is cancelled."""
    await uncancellable(asyncio.ensure_future(lease.__aexit__(None, None, None)))


async def _check_connected(transaction: PostgresTransaction) -> None:
    """Check the deferred constraints that no command has checked yet. COMMIT would check them under our own search
    path."""
    try:
        await transaction.check_connected()
    except read_only.ConnectedRefusal:
        raise InvalidRequest(read_only.REFUSED) from None


async def _commit(connection: Connection, transaction: PostgresTransaction) -> None:
    try:
        tag = await connection.execute("COMMIT")
    except ERRORS as error:
        if transaction.uses_connected_tables:
            postgres_outside_tables.refuse_commit(error)
        refuse(error)
    if tag != "COMMIT":
        # A statement failed, and the block ignored the exception, so nothing can be committed.
        raise ConstraintViolation("a statement failed and the transaction was rolled back: use a savepoint")
    for action in transaction.actions:
        asyncio.get_running_loop().call_soon(action)


async def _roll_back(connection: Connection) -> None:
    """Roll back; if that fails, close the connection, which has the same effect."""
    try:
        await connection.execute("ROLLBACK")
    except ERRORS:
        _close(connection)


def _close(connection: Connection) -> None:
    """Close the connection immediately. The driver raises an exception if it has noticed that the server is gone."""
    with suppress(asyncpg.InterfaceError):
        connection.terminate()


def refuse(error: BaseException) -> NoReturn:
    """Convert the error to a refusal and raise it; errors of the statement itself are raised unchanged.

    Raises:
        StorageFull: the server's volume has no space.
        InvalidRequest: a value is too long for an index.
        Unavailable: the server cannot be reached, is out of a resource, or timed out.
        ConstraintViolation: a constraint was violated.
        WrittenOutsideTransaction: the statement writes outside of a transaction.
    """
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        raise ConstraintViolation(str(error)) from error
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        raise WrittenOutsideTransaction(str(error)) from error
    meaning = refusal(error)
    if meaning is None:
        raise error
    raise meaning from error


def refusal(error: BaseException) -> Refused | None:
    """Return the refusal for the error, or None for an error of the statement itself."""
    if is_disk_full(error):
        return disk_full("the database of the PostgreSQL server")
    if type(error) is asyncpg.ProgramLimitExceededError:
        # PostgreSQL limits an index entry to 2,704 bytes after compression; SQLite has no limit.
        return InvalidRequest("a text is too long to be indexed (about 650 of the longest characters): shorten it")
    if isinstance(error, TimeoutError):
        return Unavailable("The database did not answer in time; narrow the search, or try again.")
    if isinstance(error, OSError | asyncpg.InternalClientError) or _is_closed(error):
        return Unavailable(_REMEDIES["08"])
    state = str(getattr(error, "sqlstate", None) or "")
    if isinstance(error, asyncpg.InvalidCachedStatementError):
        state = "40"
    remedy = _REMEDIES.get(state) or _REMEDIES.get(state[:2])
    return Unavailable(remedy) if remedy else None


def _is_closed(error: BaseException) -> bool:
    """Return whether the error is about a closed connection or pool, and not about the code that uses it."""
    return type(error) is asyncpg.InterfaceError and ("clos" in str(error) or "released" in str(error))
