"""Reading an existing database: nothing is written, and no text of the database is in an error or in the log."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import psycopg
import pytest
from structlog.testing import capture_logs

from countersign.kernel.database.open import open_existing
from countersign.kernel.database.read_only import ExistingDatabase
from countersign.kernel.errors import InvalidRequest, Refused, Unavailable
from countersign.kernel.security.encryption import MemoryCipher
from tests.servers.postgres import Cluster

TABLE = "CREATE TABLE plant (id INTEGER PRIMARY KEY, title TEXT)"
ROWS = "INSERT INTO plant VALUES (1, 'xMARKx rose'), (2, 'xMARKx lily')"


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database with a table of plants."""
    if request.param == "sqlite":
        path = tmp_path / "theirs.sqlite"
        with sqlite3.connect(path) as connection:
            connection.executescript(f"{TABLE}; {ROWS}")
        connection.close()
        yield f"sqlite:///{path}"
        return
    url: str = request.getfixturevalue("postgres_url")
    with psycopg.connect(url, autocommit=True) as opened_connection:
        opened_connection.execute(TABLE)
        opened_connection.execute(ROWS)
    yield url


@pytest.fixture
async def existing(address: str) -> AsyncIterator[ExistingDatabase]:
    """The database, opened for reading."""
    opened_database = await open_existing(
        address, pool=2, read_deadline_s=1.0, new_cipher=MemoryCipher, search_path=("public",)
    )
    yield opened_database
    await opened_database.close()


def qualified_name(existing: ExistingDatabase) -> str:
    """Return the name of the table in a statement."""
    return "public.plant" if existing.dialect == "postgres" else "plant"


async def test_rows_are_read_at_once_and_in_batches(existing: ExistingDatabase) -> None:
    statement = f"SELECT id FROM {qualified_name(existing)} WHERE id >= $1 ORDER BY id"

    rows = await existing.scan(statement, 1)
    async with aclosing(existing.stream(statement, 1)) as batches:
        streamed_rows = [row async for batch in batches for row in batch]

    assert [tuple(row) for row in rows] == [(1,), (2,)] == [tuple(row) for row in streamed_rows]


@pytest.mark.parametrize("statement", ["DELETE FROM {}", "INSERT INTO {} (id) VALUES (9)", "UPDATE {} SET title = ''"])
async def test_nothing_is_written(existing: ExistingDatabase, statement: str) -> None:
    with pytest.raises(Refused):
        await existing.scan(statement.format(qualified_name(existing)))

    rows = await existing.scan(f"SELECT title FROM {qualified_name(existing)} ORDER BY id")
    assert [row[0] for row in rows] == ["xMARKx rose", "xMARKx lily"]


@pytest.mark.parametrize(
    "statement", ["SELECT CAST(title AS integer) FROM {}", "SELECT xMARKx FROM {}", "SELECT * FROM xMARKx"]
)
async def test_no_text_of_the_database_is_in_an_error_or_in_the_log(existing: ExistingDatabase, statement: str) -> None:
    if existing.dialect == "sqlite" and "CAST" in statement:
        statement = "SELECT json(title) FROM {}"
    with capture_logs() as logs, pytest.raises((Unavailable, InvalidRequest)) as refusal:
        await existing.scan(statement.format(qualified_name(existing)))

    assert "xmarkx" not in f"{refusal.value} {refusal.value.remedy} {logs}".lower()
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__
    assert len(logs) == 1


async def test_a_slow_statement_ends_at_the_deadline(existing: ExistingDatabase) -> None:
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    statement = "SELECT pg_catalog.pg_sleep(60)" if existing.dialect == "postgres" else endless

    with pytest.raises(Unavailable, match="did not answer in time"):
        await existing.scan(statement)


async def test_a_cancelled_read_leaves_no_transaction_open(existing: ExistingDatabase) -> None:
    statement = f"SELECT id FROM {qualified_name(existing)}"
    for passes in range(40):
        read = asyncio.ensure_future(existing.scan(statement))
        for _ in range(passes):
            await asyncio.sleep(0.0002)
        read.cancel()
        await asyncio.wait([read])

    # A connection in an aborted or open transaction would refuse BEGIN or return rows of an old snapshot.
    assert [len(await existing.scan(statement)) for _ in range(4)] == [2, 2, 2, 2]


async def test_a_database_that_is_away_is_unavailable_and_is_used_again_later(
    postgres_cluster: Cluster, postgres_url: str
) -> None:
    existing = await open_existing(postgres_url, pool=1, read_deadline_s=5.0, new_cipher=MemoryCipher)
    name = postgres_url.rpartition("/")[2]
    try:
        postgres_cluster.sql(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        postgres_cluster.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        with pytest.raises(Unavailable, match="cannot be reached"):
            await existing.scan("SELECT 1")
        postgres_cluster.sql(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert [tuple(row) for row in await existing.scan("SELECT 1")] == [(1,)]
    finally:
        await existing.close()


async def test_a_missing_file_is_unavailable_and_is_not_created(tmp_path: Path) -> None:
    path = tmp_path / "missing.sqlite"

    with pytest.raises(Unavailable):
        await open_existing(f"sqlite:///{path}", pool=1, read_deadline_s=1.0, new_cipher=MemoryCipher)

    assert not path.exists()


async def test_a_sqlite_file_that_is_missing_or_no_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "shop.sql").write_text("CREATE TABLE note (k INTEGER PRIMARY KEY);\n" * 50)

    for name, reason in (("none.db", "does not exist, or may not be read"), ("shop.sql", "is not a SQLite database")):
        with pytest.raises(Unavailable, match=reason) as caught:
            await open_existing(f"sqlite:///{tmp_path / name}", pool=1, read_deadline_s=1.0, new_cipher=MemoryCipher)
        assert "COUNTERSIGN_EXISTING_URL" in caught.value.remedy
