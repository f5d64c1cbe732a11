"""A database with one table, of each engine, for tests of the port."""

from collections.abc import AsyncIterator

import pytest

from countersign.kernel.database.migrate import in_dialect
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Database

TABLE = "CREATE TABLE thing (id BIGINT PRIMARY KEY, word TEXT NOT NULL UNIQUE)"


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An open database with the empty table `thing (id, word)`."""
    database = await open_database(database_url, schema="shop", read_deadline_s=60, reserve_bytes=0)
    async with database.transaction() as transaction:
        await transaction.run(in_dialect(TABLE, database.dialect))
    yield database
    await database.close()
