"""A PostgreSQL database's schemas as statements and rows of one moment, and made again from them in one transaction.

No program of PostgreSQL's is needed, of whatever version: rows travel in the text format of COPY.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Protocol, cast

import asyncpg

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database import address
from countersign.kernel.database.port import Dialect, Row, Value
from countersign.kernel.database.postgres import LOCK_WAIT_MS, PostgresTransaction, refusal
from countersign.kernel.database.snapshot import NotEmpty, Table, Take
from countersign.kernel.errors import Unavailable

CONNECT_S = 10.0
CLOSE_S = 5.0
LOCKED_S, AGAIN_S = 60.0, 0.05
"""How long writes are tried to be held, and the pause between two tries, in which the others go on."""
MOST_UPGRADES = 5
ROWS_AT_ONCE = 500
APPLICATION = "countersign backup"

# Tables of a job engine's own begin so: it makes them itself, and what waits there is found again without them.
_NAMES = """
SELECT c.relname
FROM pg_class AS c
WHERE c.relnamespace = to_regnamespace(quote_ident($1)) AND c.relkind = 'r' AND c.relname NOT LIKE 'procrastinate%'
ORDER BY c.relname COLLATE "C"
"""
_TABLES = """
SELECT c.relname,
    format('CREATE TABLE %I (%s)', c.relname, (
        SELECT string_agg(
            format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod))
            || CASE WHEN o.collname IS NULL OR a.attcollation = t.typcollation THEN ''
                ELSE format(' COLLATE %I', o.collname) END
            || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '')
            || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END, ', ' ORDER BY a.attnum)
        FROM pg_attribute AS a
        JOIN pg_type AS t ON t.oid = a.atttypid
        LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        LEFT JOIN pg_collation AS o ON o.oid = a.attcollation
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    )),
    (
        SELECT json_agg(a.attname ORDER BY a.attnum)
        FROM pg_attribute AS a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    )::text,
    (
        SELECT coalesce(json_agg(made.statement ORDER BY made.kind, made.statement), '[]')
        FROM (
            SELECT 1 AS kind, format('ALTER TABLE %I ADD CONSTRAINT %I %s', c.relname, k.conname,
                pg_get_constraintdef(k.oid)) AS statement
            FROM pg_constraint AS k
            WHERE k.conrelid = c.oid AND k.contype IN ('p', 'u', 'c')
            UNION ALL
            SELECT 2, pg_get_indexdef(i.indexrelid)
            FROM pg_index AS i
            WHERE i.indrelid = c.oid AND NOT EXISTS (
                SELECT 1 FROM pg_constraint AS k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x')
            )
        ) AS made
    )::text,
    (
        SELECT coalesce(json_agg(format('ALTER TABLE %I ADD CONSTRAINT %I %s', c.relname, k.conname,
            pg_get_constraintdef(k.oid)) ORDER BY k.conname), '[]')
        FROM pg_constraint AS k
        WHERE k.conrelid = c.oid AND k.contype = 'f'
    )::text
FROM pg_class AS c
WHERE c.relnamespace = to_regnamespace(quote_ident($1)) AND c.relname = ANY ($2::text[]) AND c.relkind = 'r'
ORDER BY c.relname COLLATE "C"
"""
_SEARCH = "SELECT set_config('search_path', quote_ident($1), true)"
_SOON = "SET LOCAL lock_timeout = '300ms'"
_LOCK = "SELECT format('LOCK TABLE %I.%I IN %s MODE', $1::text, $2::text, $3::text)"
_ROWS = "SELECT format('SELECT %s FROM %I.%I', $3::text, $1::text, $2::text)"
_MAKE_SCHEMA = "SELECT format('CREATE SCHEMA IF NOT EXISTS %I', $1::text)"
_ANYTHING = "SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace(quote_ident($1)) LIMIT 1"
_QUOTED = "SELECT quote_ident($1)"
_COLUMNS = """
SELECT a.attname
FROM pg_attribute AS a
WHERE a.attrelid = to_regclass(quote_ident($1)) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attname COLLATE "C"
"""
_DELETIONS = """
SELECT format('DELETE FROM %I', c.relname)
FROM pg_class AS c
WHERE c.relnamespace = to_regnamespace(quote_ident($1)) AND c.relkind = 'r'
"""
_LOOSENED = """
SELECT format('ALTER TABLE %I DROP CONSTRAINT %I', c.relname, k.conname),
    format('ALTER TABLE %I ADD CONSTRAINT %I %s', c.relname, k.conname, pg_get_constraintdef(k.oid))
FROM pg_constraint AS k
JOIN pg_class AS c ON c.oid = k.conrelid
WHERE c.relnamespace = to_regnamespace(quote_ident($1)) AND k.contype = 'f'
ORDER BY c.relname COLLATE "C", k.conname COLLATE "C"
"""
_STAMP = "SELECT format('COMMENT ON SCHEMA %I IS %L', $1::text, $2::text)"
_STAMPED = "SELECT obj_description(to_regnamespace(quote_ident($1)), 'pg_namespace')"
_ONE_FILLING = "SELECT pg_advisory_xact_lock(hashtext('countersign.filling'))"


class _Connection(Protocol):
    async def fetch(self, query: str, *args: Value | Sequence[str]) -> list[Row]: ...
    async def fetchval(self, query: str, *args: Value) -> str: ...
    async def fetchrow(self, query: str, *args: Value) -> Row | None: ...
    async def execute(self, query: str, *args: Value) -> str: ...
    async def executemany(self, command: str, args: Iterable[tuple[Value, ...]]) -> None: ...
    async def copy_from_query(self, query: str, *, output: Take, format: str) -> str: ...
    async def copy_to_table(
        self, table_name: str, *, schema_name: str, columns: Sequence[str], source: AsyncIterator[bytes], format: str
    ) -> str: ...
    async def copy_records_to_table(
        self, table_name: str, *, schema_name: str, columns: Sequence[str], records: AsyncIterator[Row]
    ) -> str: ...
    def transaction(self, *, isolation: str, readonly: bool) -> AbstractAsyncContextManager[object]: ...
    async def cursor(self, query: str, *args: Value) -> "_Cursor": ...
    def terminate(self) -> None: ...
    async def close(self) -> None: ...


class _Cursor(Protocol):
    async def fetch(self, n: int) -> list[Row]: ...


class _Connect(Protocol):
    def __call__(self, dsn: str, *, timeout: float, server_settings: dict[str, str]) -> Awaitable[_Connection]: ...


_connect = cast(_Connect, asyncpg.connect)


class PostgresSnapshot:
    """One moment of several schemas of one database."""

    def __init__(self, moment: Instant, connection: _Connection, names: dict[str, list[str]]) -> None:
        self._moment = moment
        self._connection = connection
        self._names = names

    @property
    def moment(self) -> Instant:
        """See Snapshot."""
        return self._moment

    @property
    def schemas(self) -> tuple[str, ...]:
        """Those of the schemas that have tables."""
        return tuple(schema for schema, names in self._names.items() if names)

    async def fetch(self, schema: str, statement: str, *values: Value) -> list[Row]:
        """See Snapshot."""
        await self._connection.fetch(_SEARCH, schema)
        return await self._connection.fetch(statement, *values)

    async def tables(self, schema: str) -> list[Table]:
        """The schema's tables, by name."""
        await self._connection.fetch(_SEARCH, schema)
        rows = await self._connection.fetch(_TABLES, schema, self._names[schema])
        return [
            Table(name, create, tuple(json.loads(columns)), tuple(json.loads(finish)), tuple(json.loads(references)))
            for name, create, columns, finish, references in rows
        ]

    async def rows(self, schema: str, table: Table, take: Take) -> int:
        """Hand on the rows of the table as lines of COPY's text format; how many there were."""
        quoted = [await self._connection.fetchval(_QUOTED, name) for name in table.columns]
        select = await self._connection.fetchval(_ROWS, schema, table.name, ", ".join(quoted))
        return _count(await self._connection.copy_from_query(select, output=take, format="text"))


class PostgresFilling:
    """Schemas being made in one transaction: nobody sees anything of them before it is over."""

    def __init__(self, connection: _Connection, transaction: PostgresTransaction) -> None:
        self._connection = connection
        self._transaction = transaction

    async def begin(self, schema: str, tables: Sequence[Table]) -> None:
        """Make the schema where it is missing, and the tables, without their rules."""
        await self._connection.execute(await self._connection.fetchval(_MAKE_SCHEMA, schema))
        await self.transaction(schema)
        for table in tables:
            await self._connection.execute(table.create)

    async def add(self, schema: str, table: Table, lines: AsyncIterator[bytes]) -> int:
        """Add rows from lines of COPY's text format; how many."""
        return _count(
            await self._connection.copy_to_table(
                table.name, schema_name=schema, columns=table.columns, source=lines, format="text"
            )
        )

    async def finish(self, schema: str, tables: Sequence[Table]) -> None:
        """Give the tables their keys, rules and indexes, then their references to each other."""
        await self.transaction(schema)
        finishing = [each for table in tables for each in table.finish]
        for statement in [*finishing, *(each for table in tables for each in table.references)]:
            await self._connection.execute(statement)

    async def make(self, schema: str) -> PostgresTransaction:
        """Make the schema where it is missing: the transaction under way, to make its tables."""
        await self._connection.execute(await self._connection.fetchval(_MAKE_SCHEMA, schema))
        return await self.transaction(schema)

    async def open(self, schema: str) -> list[str]:
        """Empty the tables that were made, and take their references away, so that rows may come in any order; the
        statements that give the references back."""
        await self.transaction(schema)
        references: list[str] = []
        for drop, give_back in await self._connection.fetch(_LOOSENED, schema):
            await self._connection.execute(drop)
            references.append(give_back)
        for (deletion,) in await self._connection.fetch(_DELETIONS, schema):
            await self._connection.execute(deletion)
        return references

    async def columns(self, schema: str, table: str) -> list[str]:
        """The columns of a table that was made, by name."""
        await self.transaction(schema)
        return [row[0] for row in await self._connection.fetch(_COLUMNS, table)]

    async def add_rows(self, schema: str, table: str, columns: Sequence[str], rows: AsyncIterator[Row]) -> int:
        """Add rows; how many."""
        tag = await self._connection.copy_records_to_table(table, schema_name=schema, columns=columns, records=rows)
        return _count(tag)

    async def close(self, schema: str, references: Sequence[str]) -> None:
        """Give the references back; all rows are compared with them."""
        await self.transaction(schema)
        for statement in references:
            await self._connection.execute(statement)

    async def of(self, schema: str) -> "PostgresMoment":
        """What one schema's tables hold within the transaction; until another schema is asked for."""
        await self.transaction(schema)
        return PostgresMoment(self._connection)

    async def stamp(self, schema: str, text: str) -> None:
        """Give the schema a text, which others see with everything else."""
        await self._connection.execute(await self._connection.fetchval(_STAMP, schema, text))

    async def transaction(self, schema: str) -> PostgresTransaction:
        """The transaction under way as one that works on this schema."""
        await self._connection.fetch(_SEARCH, schema)
        return self._transaction


class PostgresMoment:
    """What a transaction sees of one schema: see canonical.Readable."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    @property
    def dialect(self) -> Dialect:
        """PostgreSQL's."""
        return "postgres"

    async def fetch(self, statement: str, *values: Value) -> list[Row]:
        """All rows."""
        return await self._connection.fetch(statement, *values)

    async def stream(self, statement: str, *values: Value) -> AsyncGenerator[list[Row]]:
        """The rows in batches."""
        cursor = await self._connection.cursor(statement, *values)
        while batch := await cursor.fetch(ROWS_AT_ONCE):
            yield batch


async def stamp(url: str, schema: str) -> str | None:
    """The text that a filling gave the schema; a filling under way is waited for.

    Raises:
        Unavailable: PostgreSQL cannot be reached, or one is under way for longer than that.
    """
    async with _connected(url) as connection, connection.transaction(isolation="read_committed", readonly=False):
        await connection.fetch(_ONE_FILLING)
        row = await connection.fetchrow(_STAMPED, schema)
    return None if row is None else row[0]


@asynccontextmanager
async def held(url: str, schemas: Sequence[str], *, holds_writes: bool = False) -> AsyncGenerator[PostgresSnapshot]:
    """One moment of the schemas until the block is left; their tables cannot be altered meanwhile. With `holds_writes`
    nobody writes to them either: others wait, and are refused when it takes longer than they are patient.

    Raises:
        Unavailable: PostgreSQL cannot be reached, or ended the transaction; others write without a pause.
    """
    mode = "EXCLUSIVE" if holds_writes else "ACCESS SHARE"
    async with _connected(url) as connection:
        for _ in range(MOST_UPGRADES):
            # Outside of the transaction, whose moment must not be fixed before the locks are held.
            names = await _names(connection, schemas)
            tables = [(schema, name) for schema in schemas for name in names[schema]]
            locks = [await connection.fetchval(_LOCK, *table, mode) for table in tables]
            async with _locked(connection, locks, holds_writes=holds_writes):
                moment = clock.now()
                # An upgrade that was waited for may have made tables, which nobody has locked.
                if await _names(connection, schemas) == names:
                    yield PostgresSnapshot(moment, connection, names)
                    return
        raise Unavailable("tables are made all the time: wait until the upgrade is done")


async def _names(connection: _Connection, schemas: Sequence[str]) -> dict[str, list[str]]:
    return {schema: [row[0] for row in await connection.fetch(_NAMES, schema)] for schema in schemas}


@asynccontextmanager
async def _locked(connection: _Connection, locks: Sequence[str], *, holds_writes: bool) -> AsyncGenerator[None]:
    """A transaction that holds all of the locks.

    Who writes takes tables in another order, so that each may wait for the other. We give way then and begin anew:
    PostgreSQL would end either after `deadlock_timeout` (1 s), and no caller is to be refused for a backup.

    Raises:
        Unavailable: it cannot be had within LOCKED_S.
    """
    deadline_s = clock.monotonic_s() + LOCKED_S
    while True:
        async with connection.transaction(isolation="repeatable_read", readonly=not holds_writes):
            if holds_writes:
                await connection.execute(_SOON)
            held_up = await _held_up(connection, locks)
            if held_up is None:
                yield
                return
        # Who writes takes that table early: ask for it first.
        locks = [held_up, *(each for each in locks if each != held_up)]
        if clock.monotonic_s() > deadline_s:
            raise Unavailable("others write all the time, and writes could not be held; try when there is less to do")
        await asyncio.sleep(AGAIN_S)


async def _held_up(connection: _Connection, locks: Sequence[str]) -> str | None:
    """The first lock that could not be had in time, with which the transaction is over; None when all are held."""
    for lock in locks:
        try:
            await connection.execute(lock)
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            return lock
    return None


@asynccontextmanager
async def filling(url: str, schemas: Sequence[str]) -> AsyncGenerator[PostgresFilling]:
    """A transaction that makes the schemas; durable when the block has been left, undone by an exception.

    Raises:
        NotEmpty: one of them has tables already.
        StorageFull, Unavailable: the server has no room, cannot be reached, or gave up.
    """
    async with _connected(url) as connection, connection.transaction(isolation="read_committed", readonly=False):
        await connection.fetch(_ONE_FILLING)
        for schema in schemas:
            if await connection.fetch(_ANYTHING, schema):
                raise NotEmpty(f"the schema {schema} of the database is not empty")
        yield PostgresFilling(connection, PostgresTransaction(connection))


@asynccontextmanager
async def _connected(url: str) -> AsyncGenerator[_Connection]:
    settings = {
        "application_name": APPLICATION,
        "lock_timeout": str(LOCK_WAIT_MS),
        "statement_timeout": "0",
        "idle_in_transaction_session_timeout": "0",
        "client_min_messages": "warning",
        "jit": "off",
    }
    address.require_postgres(url)
    try:
        connection = await _connect(url, timeout=CONNECT_S, server_settings=settings)
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


def _count(tag: str) -> int:
    return int(tag.rpartition(" ")[2])
