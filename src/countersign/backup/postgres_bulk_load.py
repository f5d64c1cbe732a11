"""Creates and fills PostgreSQL schemas in one transaction, so that others see the schemas only after its commit."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from countersign.backup.snapshot import Table
from countersign.kernel.database.port import Dialect, Row, Value
from countersign.kernel.database.postgres import PostgresTransaction
from countersign.kernel.database.postgres_admin import SET_SEARCH_PATH, AdminConnection, admin_session, row_count
from countersign.kernel.errors import NotEmpty

BATCH_ROWS = 500

_MAKE_SCHEMA = "SELECT format('CREATE SCHEMA IF NOT EXISTS %I', $1::text)"
_ANY_OBJECT = "SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace(quote_ident($1)) LIMIT 1"
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
_FOREIGN_KEYS = """
SELECT format('ALTER TABLE %I DROP CONSTRAINT %I', c.relname, k.conname),
    format('ALTER TABLE %I ADD CONSTRAINT %I %s', c.relname, k.conname, pg_get_constraintdef(k.oid))
FROM pg_constraint AS k
JOIN pg_class AS c ON c.oid = k.conrelid
WHERE c.relnamespace = to_regnamespace(quote_ident($1)) AND k.contype = 'f'
ORDER BY c.relname COLLATE "C", k.conname COLLATE "C"
"""
_STAMP = "SELECT format('COMMENT ON SCHEMA %I IS %L', $1::text, $2::text)"
_STAMPED = "SELECT obj_description(to_regnamespace(quote_ident($1)), 'pg_namespace')"
_ONE_BULK_LOAD = "SELECT pg_advisory_xact_lock(hashtext('countersign.filling'))"


class PostgresBulkLoad:
    """Creates schemas in one transaction, so that others see them only after its commit."""

    def __init__(self, connection: AdminConnection, transaction: PostgresTransaction) -> None:
        self._connection = connection
        self._transaction = transaction

    async def begin(self, schema: str, tables: Sequence[Table]) -> None:
        """Create the schema if it does not exist, and create the tables without their constraints."""
        await self._connection.execute(await self._connection.fetchval(_MAKE_SCHEMA, schema))
        await self.transaction(schema)
        for table in tables:
            await self._connection.execute(table.create)

    async def add(self, schema: str, table: Table, lines: AsyncIterator[bytes]) -> int:
        """Insert rows from lines in the text format of COPY, and return the number of rows."""
        return row_count(
            await self._connection.copy_to_table(
                table.name, schema_name=schema, columns=table.columns, source=lines, format="text"
            )
        )

    async def finish(self, schema: str, tables: Sequence[Table]) -> None:
        """Create the keys, constraints and indexes of the tables, then their foreign keys."""
        await self.transaction(schema)
        finish_statements = [statement for table in tables for statement in table.finish]
        for statement in [*finish_statements, *(reference for table in tables for reference in table.references)]:
            await self._connection.execute(statement)

    async def make(self, schema: str) -> PostgresTransaction:
        """Create the schema if it does not exist, and return the transaction in which to create its tables."""
        await self._connection.execute(await self._connection.fetchval(_MAKE_SCHEMA, schema))
        return await self.transaction(schema)

    async def open(self, schema: str) -> list[str]:
        """Empty the created tables and drop their foreign keys, so that rows may come in any order.

        Return the statements that restore the foreign keys."""
        await self.transaction(schema)
        references: list[str] = []
        for drop, give_back in await self._connection.fetch(_FOREIGN_KEYS, schema):
            await self._connection.execute(drop)
            references.append(give_back)
        for (deletion,) in await self._connection.fetch(_DELETIONS, schema):
            await self._connection.execute(deletion)
        return references

    async def columns(self, schema: str, table: str) -> list[str]:
        """The names of the columns of a created table."""
        await self.transaction(schema)
        return [row[0] for row in await self._connection.fetch(_COLUMNS, table)]

    async def add_rows(self, schema: str, table: str, columns: Sequence[str], rows: AsyncIterator[Row]) -> int:
        """Insert rows, and return their number."""
        tag = await self._connection.copy_records_to_table(table, schema_name=schema, columns=columns, records=rows)
        return row_count(tag)

    async def close(self, schema: str, references: Sequence[str]) -> None:
        """Restore the foreign keys. PostgreSQL checks all rows against them."""
        await self.transaction(schema)
        for statement in references:
            await self._connection.execute(statement)

    async def of(self, schema: str) -> "PostgresSnapshotReader":
        """Return a reader of the schema's tables in this transaction. It is valid until another schema is selected."""
        await self.transaction(schema)
        return PostgresSnapshotReader(self._connection)

    async def stamp(self, schema: str, text: str) -> None:
        """Set the comment of the schema. Others see it after the commit."""
        await self._connection.execute(await self._connection.fetchval(_STAMP, schema, text))

    async def transaction(self, schema: str) -> PostgresTransaction:
        """Select the schema, and return the transaction."""
        await self._connection.fetch(SET_SEARCH_PATH, schema)
        return self._transaction


class PostgresSnapshotReader:
    """Reads a schema in a transaction. See table_checksum.SnapshotReader."""

    def __init__(self, connection: AdminConnection) -> None:
        self._connection = connection

    @property
    def dialect(self) -> Dialect:
        """The dialect of PostgreSQL."""
        return "postgres"

    async def fetch(self, statement: str, *values: Value) -> list[Row]:
        """Return all rows of the statement."""
        return await self._connection.fetch(statement, *values)

    async def stream(self, statement: str, *values: Value) -> AsyncGenerator[list[Row]]:
        """Yield the rows of the statement in batches."""
        cursor = await self._connection.cursor(statement, *values)
        while batch := await cursor.fetch(BATCH_ROWS):
            yield batch


async def stamp(url: str, schema: str) -> str | None:
    """Return the comment that a bulk load set on the schema. If a bulk load is running, wait until it has ended.

    Raises:
        Unavailable: PostgreSQL cannot be reached, or the wait timed out.
    """
    async with admin_session(url) as connection, connection.transaction(isolation="read_committed", readonly=False):
        await connection.fetch(_ONE_BULK_LOAD)
        row = await connection.fetchrow(_STAMPED, schema)
    return None if row is None else row[0]


class _DryRun(Exception):
    """Rolls back a dry run."""


@asynccontextmanager
async def bulk_load(url: str, schemas: Sequence[str], *, keeps: bool = True) -> AsyncGenerator[PostgresBulkLoad]:
    """Yield a transaction that creates the schemas.

    The transaction is committed at the end of the block, or rolled back if the block raises an exception. Without
    `keeps` it is a dry run, and is always rolled back.

    Raises:
        NotEmpty: a schema already has objects.
        StorageFull, Unavailable: the server has no space, cannot be reached, or failed.
    """
    with suppress(_DryRun):
        async with admin_session(url) as connection, connection.transaction(isolation="read_committed", readonly=False):
            await connection.fetch(_ONE_BULK_LOAD)
            for schema in schemas:
                if await connection.fetch(_ANY_OBJECT, schema):
                    raise NotEmpty(f"the schema {schema} of the database is not empty")
            yield PostgresBulkLoad(connection, PostgresTransaction(connection))
            if not keeps:
                raise _DryRun
