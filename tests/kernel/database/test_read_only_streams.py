"""A caller that takes the rows of an existing database slowly, or never, locks nothing there."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import psycopg
import pytest

from countersign.kernel.database import read_only, row_spool
from countersign.kernel.database.open import open_existing
from countersign.kernel.database.read_only import Busy, ExistingDatabase
from countersign.kernel.database.row_spool import RowSpool, TooManyRows
from countersign.kernel.errors import Unavailable
from countersign.kernel.security.encryption import MemoryCipher

COUNT = 20_000
WRITE_SQLITE = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=0.25) as theirs:
    theirs.execute("UPDATE big SET n = -1 WHERE id = 1")
    theirs.execute("ALTER TABLE big ADD COLUMN more INTEGER")
"""


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database with a table of numbers."""
    if request.param == "sqlite":
        path = tmp_path / "theirs.sqlite"
        with sqlite3.connect(path) as file_connection:
            file_connection.execute("CREATE TABLE big (id INTEGER PRIMARY KEY, n INTEGER)")
            file_connection.executemany("INSERT INTO big VALUES (?, ?)", ((number, number) for number in range(COUNT)))
        file_connection.close()
        yield f"sqlite:///{path}"
        return
    url: str = request.getfixturevalue("postgres_url")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE big (id integer PRIMARY KEY, n integer)")
        connection.execute(f"INSERT INTO big SELECT g, g FROM generate_series(0, {COUNT - 1}) AS g".encode())
    yield url


@pytest.fixture
async def existing(address: str) -> AsyncIterator[ExistingDatabase]:
    """The database, opened for reading with the usual number of connections."""
    opened_database = await open_existing(
        address, pool=4, read_deadline_s=5.0, new_cipher=MemoryCipher, search_path=("public",)
    )
    yield opened_database
    await opened_database.close()


def change_theirs(address: str) -> None:
    """Write a row and alter the table, as the owning application does. Wait a quarter of a second for locks."""
    if address.startswith("sqlite"):
        # Locks on files exclude other processes, not this one.
        subprocess.run([sys.executable, "-c", WRITE_SQLITE, address.removeprefix("sqlite:///")], check=True)
        return
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET lock_timeout = '250ms'")
        connection.execute("UPDATE big SET n = -1 WHERE id = 1")
        connection.execute("ALTER TABLE big ADD COLUMN more integer")


async def test_an_abandoned_stream_locks_nothing(existing: ExistingDatabase, address: str) -> None:
    async with aclosing(existing.stream("SELECT id, n FROM big ORDER BY id")) as batches:
        rows_read = list(await anext(batches))
        await asyncio.to_thread(change_theirs, address)
        async for batch in batches:
            rows_read += batch

    assert rows_read == [(number, number) for number in range(COUNT)]


async def test_abandoned_streams_keep_no_other_read_waiting(existing: ExistingDatabase) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(6):
            batches = await stack.enter_async_context(aclosing(existing.stream("SELECT id FROM big")))
            assert await anext(batches)

        assert [tuple(row) for row in await existing.scan("SELECT count(*) FROM big")] == [(COUNT,)]


async def test_a_slow_stream_ends_at_the_deadline(address: str) -> None:
    existing = await open_existing(address, pool=2, read_deadline_s=0.5, new_cipher=MemoryCipher)
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    try:
        with pytest.raises(Unavailable, match="did not answer in time"):
            async with aclosing(existing.stream(endless)) as batches:
                await anext(batches)
        assert [tuple(row) for row in await existing.scan("SELECT 1")] == [(1,)]
    finally:
        await existing.close()


async def test_a_read_that_finds_no_free_slot_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_only, "SLOT_WAIT_S", 0.01)
    slots = read_only.Slots(4)
    async with slots.use(is_stream=True), slots.use(is_stream=True):
        with pytest.raises(Busy) as stream_refusal:
            async with slots.use(is_stream=True):
                pass
        async with slots.use(), slots.use():
            with pytest.raises(Busy):
                async with slots.use():
                    pass
    async with slots.use(is_stream=True), slots.use(is_stream=True):
        pass

    assert (stream_refusal.value.status, stream_refusal.value.headers) == (429, {"Retry-After": "2"})


def test_a_spool_returns_its_rows_and_keeps_none_of_them_in_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_spool, "MEMORY_BYTES", 1_000)
    rows = [[(1, "xMARKx", None, b"\xff", 1.5)], [(number, "xMARKx" * 100) for number in range(50)]]
    spool = RowSpool(MemoryCipher())
    for row in rows:
        spool.add(row)

    assert list(spool.batches()) == rows
    file = spool.file
    file.seek(0)
    assert b"xMARKx" not in file.read()
    spool.close()


def test_a_spool_has_a_maximum_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_spool, "MAX_BYTES", 1_000)
    spool = RowSpool(MemoryCipher())
    spool.add([("a" * 500,)])

    with pytest.raises(TooManyRows):
        spool.add([("a" * 500,)])
    spool.close()
