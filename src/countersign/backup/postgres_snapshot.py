"""Reads a snapshot of PostgreSQL schemas as statements and rows.

The rows are read in the text format of COPY, so no PostgreSQL client programs are needed.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from countersign.backup.snapshot import Table
from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Row, Value
from countersign.kernel.database.postgres_admin import (
    SET_SEARCH_PATH,
    AdminConnection,
    ByteSink,
    admin_session,
    row_count,
    try_lock,
)
from countersign.kernel.errors import Unavailable

LOCK_TIMEOUT_S, LOCK_RETRY_S = 60.0, 0.05
"""The time after which the attempts to block writes end, and the pause between two attempts. Other transactions can
write in the pause."""
MAX_UPGRADES = 5

ENGINE_TABLES = "procrastinate"
"""The prefix of the job engine's tables. They are not copied: the job engine creates them itself, and our own tables
contain the pending jobs."""

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
_SOON = "SET LOCAL lock_timeout = '300ms'"
_LOCK = "SELECT format('LOCK TABLE %I.%I IN %s MODE', $1::text, $2::text, $3::text)"
_ROWS = "SELECT format('SELECT %s FROM %I.%I', $3::text, $1::text, $2::text)"
_QUOTED = "SELECT quote_ident($1)"


class PostgresSnapshot:
    """A snapshot of several schemas of one database."""

    def __init__(self, moment: Instant, connection: AdminConnection, names: dict[str, list[str]]) -> None:
        self._moment = moment
        self._connection = connection
        self._names = names

    @property
    def moment(self) -> Instant:
        """See Snapshot."""
        return self._moment

    @property
    def schemas(self) -> tuple[str, ...]:
        """The schemas that have tables."""
        return tuple(schema for schema, names in self._names.items() if names)

    async def fetch(self, schema: str, statement: str, *values: Value) -> list[Row]:
        """See Snapshot."""
        await self._connection.fetch(SET_SEARCH_PATH, schema)
        return await self._connection.fetch(statement, *values)

    async def tables(self, schema: str) -> list[Table]:
        """The tables of the schema, sorted by name."""
        await self._connection.fetch(SET_SEARCH_PATH, schema)
        rows = await self._connection.fetch(_TABLES, schema, self._names[schema])
        return [
            Table(name, create, tuple(json.loads(columns)), tuple(json.loads(finish)), tuple(json.loads(references)))
            for name, create, columns, finish, references in rows
        ]

    async def rows(self, schema: str, table: Table, take: ByteSink) -> int:
        """Write the rows of the table as lines in the text format of COPY, and return the number of rows."""
        quoted_columns = [await self._connection.fetchval(_QUOTED, name) for name in table.columns]
        select = await self._connection.fetchval(_ROWS, schema, table.name, ", ".join(quoted_columns))
        return row_count(await self._connection.copy_from_query(select, output=take, format="text"))


@asynccontextmanager
async def open_snapshot(
    url: str, schemas: Sequence[str], *, block_writes: bool = False
) -> AsyncGenerator[PostgresSnapshot]:
    """Yield a snapshot of the schemas. Their tables cannot be altered while the block runs.

    With `block_writes` the tables cannot be written either. Writers wait for the end of the block, or until their own
    timeout.

    Raises:
        Unavailable: PostgreSQL cannot be reached, ended the transaction, or has too many concurrent writes.
    """
    mode = "EXCLUSIVE" if block_writes else "ACCESS SHARE"
    async with admin_session(url) as connection:
        for _ in range(MAX_UPGRADES):
            # Read the names outside of the transaction: a query in the transaction would take its snapshot before the
            # locks are held.
            names = await _names(connection, schemas)
            tables = [(schema, name) for schema in schemas for name in names[schema]]
            locks = [await connection.fetchval(_LOCK, *table, mode) for table in tables]
            async with _locked(connection, locks, block_writes=block_writes):
                moment = clock.now()
                # An upgrade that held the locks may have created further tables, which are not locked. If it has, start
                # again.
                if await _names(connection, schemas) == names:
                    yield PostgresSnapshot(moment, connection, names)
                    return
        raise Unavailable("tables are being created: wait until the upgrade is done")


async def _names(connection: AdminConnection, schemas: Sequence[str]) -> dict[str, list[str]]:
    return {schema: [row[0] for row in await connection.fetch(_NAMES, schema)] for schema in schemas}


@asynccontextmanager
async def _locked(connection: AdminConnection, locks: Sequence[str], *, block_writes: bool) -> AsyncGenerator[None]:
    """Run the block in a transaction that holds all of the locks.

    Writers lock the tables in another order, so this transaction and a writer may deadlock. PostgreSQL would abort
    one of them after `deadlock_timeout` (1 s), and a backup must not make a writer fail. So this transaction stops
    waiting earlier, and starts again.

    Raises:
        Unavailable: the locks cannot be acquired within LOCK_TIMEOUT_S.
    """
    deadline_s = clock.monotonic_s() + LOCK_TIMEOUT_S
    while True:
        async with connection.transaction(isolation="repeatable_read", readonly=not block_writes):
            if block_writes:
                await connection.execute(_SOON)
            held_up = await _first_blocked(connection, locks)
            if held_up is None:
                yield
                return
        # Lock this table first in the next attempt, because writers lock it early.
        locks = [held_up, *(lock for lock in locks if lock != held_up)]
        if clock.monotonic_s() > deadline_s:
            raise Unavailable("writes could not be blocked, because the load is too high; try again later")
        await asyncio.sleep(LOCK_RETRY_S)


async def _first_blocked(connection: AdminConnection, locks: Sequence[str]) -> str | None:
    """Acquire the locks. Return the first one that timed out, which ends the transaction, or None if all are held."""
    for lock in locks:
        if not await try_lock(connection, lock):
            return lock
    return None
