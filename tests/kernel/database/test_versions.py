"""Counters of changes: they are never older than the request for them."""

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest

from countersign.kernel.database import sqlite_connection
from countersign.kernel.database.migrate import in_dialect
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Database, Row, Value
from countersign.kernel.database.versions import Versions, bump
from countersign.kernel.errors import Unavailable

TABLE = """
CREATE TABLE version (name TEXT PRIMARY KEY, number BIGINT NOT NULL);
INSERT INTO version (name, number) VALUES ('a', 1), ('b', 1);
"""


@pytest.fixture
async def counter_database(database: Database) -> Database:
    """The database with the counters a and b."""
    async with database.transaction() as transaction:
        await transaction.run(in_dialect(TABLE, database.dialect))
    return database


async def test_a_bump_raises_its_own_counter(counter_database: Database) -> None:
    versions = Versions(counter_database, ["b", "a"])
    b, a = await versions.current()

    for _ in range(3):
        async with counter_database.transaction() as transaction:
            await bump(transaction, "a")
        unchanged, higher = await versions.current()

        assert unchanged == b
        assert higher > a
        a = higher


async def test_bumps_faster_than_the_clock_still_differ(counter_database: Database) -> None:
    async with counter_database.transaction() as transaction:
        await transaction.run("UPDATE version SET number = $1", 2**61)
        await bump(transaction, "a")
        await bump(transaction, "a")

    assert await Versions(counter_database, ["a"]).current() == (2**61 + 2,)


async def test_an_unknown_counter_is_a_mistake(counter_database: Database) -> None:
    with pytest.raises(LookupError, match="'c'"):
        await Versions(counter_database, ["a", "c"]).current()
    with pytest.raises(LookupError, match="'c'"):
        async with counter_database.transaction() as transaction:
            await bump(transaction, "c")


async def test_a_value_read_after_a_bump_was_acknowledged_is_never_older(
    counter_database: Database, database_url: str
) -> None:
    other_database = await open_database(database_url, schema="shop", pool=2)
    readers = [Versions(counter_database, ["a"]), Versions(other_database, ["a"])]
    acknowledged = 0
    is_over = False
    reads = 0
    rng = random.Random(1)

    async def change(database: Database) -> None:
        nonlocal acknowledged
        changes = 0
        # On a busy machine, only a few reads may have happened after sixty changes.
        while changes < 60 or (reads <= 100 and not any(task.done() for task in reading)):
            changes += 1
            async with database.transaction() as transaction:
                await bump(transaction, "a")
                row = await transaction.fetch_one("SELECT number FROM version WHERE name = 'a'")
                assert row is not None
            acknowledged = max(acknowledged, row[0])

    async def read_counter() -> None:
        nonlocal reads
        while not is_over:
            floor = acknowledged
            assert (await rng.choice(readers).current())[0] >= floor
            reads += 1
            await asyncio.sleep(0)

    reading = [asyncio.create_task(read_counter()) for _ in range(12)]
    await asyncio.gather(change(counter_database), change(other_database))
    is_over = True
    await asyncio.gather(*reading)

    assert reads > 100
    await other_database.close()


SLOW_TABLE = """
CREATE TABLE counter (name TEXT, number BIGINT);
INSERT INTO counter (name, number) VALUES ('a', 1);
CREATE VIEW version AS SELECT name, number FROM counter, pg_sleep(0.3)
"""
READS_UNDER_WAY = """
SELECT count(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()
"""


async def test_a_caller_during_a_read_gets_the_result_of_a_later_read(postgres_url: str) -> None:
    database = await open_database(postgres_url, schema="shop")
    async with database.transaction() as transaction:
        await transaction.run(SLOW_TABLE)
    versions = Versions(database, ["a"])
    early_read = asyncio.create_task(versions.current())
    while await database.fetch_one(READS_UNDER_WAY) != (1,):
        await asyncio.sleep(0)

    async with database.transaction() as transaction:
        await transaction.run("UPDATE counter SET number = 2")
    late_reads = await asyncio.gather(versions.current(), versions.current())

    assert await early_read == (1,)
    assert late_reads == [(2,), (2,)]
    await database.close()


async def test_cancelled_callers_affect_no_other(counter_database: Database) -> None:
    versions = Versions(counter_database, ["a"])
    for _ in range(20):
        callers = [asyncio.create_task(versions.current()) for _ in range(4)]
        await asyncio.sleep(0)
        callers[0].cancel()
        callers[2].cancel()
        outcomes = await asyncio.gather(*callers, return_exceptions=True)

        assert isinstance(outcomes[1], tuple)
        assert isinstance(outcomes[3], tuple)


async def test_every_caller_of_a_failed_read_gets_the_error_and_the_next_works(
    postgres_url: str,
) -> None:
    database = await open_database(postgres_url, schema="shop")
    versions = Versions(database, ["a"])

    outcomes = await asyncio.gather(*(versions.current() for _ in range(5)), return_exceptions=True)
    assert all("version" in str(outcome) for outcome in outcomes)

    async with database.transaction() as transaction:
        await transaction.run(in_dialect(TABLE, "postgres"))
    assert await versions.current() == (1,)
    await database.close()
    with pytest.raises(Unavailable):
        await versions.current()


async def test_on_postgres_many_callers_share_a_read(postgres_url: str) -> None:
    database = await open_database(postgres_url, schema="shop")
    async with database.transaction() as transaction:
        await transaction.run(in_dialect(TABLE, "postgres"))
    versions = Versions(database, ["a"])
    counting = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"

    async def callers() -> None:
        for _ in range(100):
            await versions.current()

    await asyncio.gather(*(callers() for _ in range(50)))
    await database.close()

    # Statistics are complete when the connections that created them have ended.
    watching_database = await open_database(postgres_url, schema="shop", pool=1)
    row = await watching_database.fetch_one(counting)
    await watching_database.close()
    assert row is not None
    assert 0 < row[0] < 1000


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a database in a folder whose name contains spaces."""
    folder = tmp_path / "a folder with spaces"
    folder.mkdir()
    return f"sqlite:///{folder}/counters.sqlite"


def count_fetches(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list to which each statement of `database.fetch` is added."""
    statements: list[str] = []
    inner_fetch = database.fetch

    async def fetch(statement: str, *values: Value) -> list[Row]:
        statements.append(statement)
        return await inner_fetch(statement, *values)

    monkeypatch.setattr(database, "fetch", fetch)
    return statements


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the mapped files of a process")
async def test_on_sqlite_counters_are_read_once_per_commit(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = await open_database(sqlite_url, schema="shop")
    async with database.transaction() as transaction:
        await transaction.run(in_dialect(TABLE, "sqlite"))
    statements = count_fetches(database, monkeypatch)
    versions = Versions(database, ["a"])
    for read in range(1, 4):
        numbers = [await versions.current() for _ in range(5)]

        assert len(set(numbers)) == 1
        assert len(statements) == read
        async with database.transaction() as transaction:
            await bump(transaction, "a")
    await database.close()
    with pytest.raises(Unavailable):
        await versions.current()


async def test_without_a_list_of_mapped_files_counters_are_read_each_time(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sqlite_connection, "_MAPPINGS", tmp_path / "missing")
    database = await open_database(sqlite_url, schema="shop")
    async with database.transaction() as transaction:
        await transaction.run(in_dialect(TABLE, "sqlite"))
    statements = count_fetches(database, monkeypatch)
    versions = Versions(database, ["a"])

    assert await versions.current() == await versions.current()
    assert len(statements) == 2
    await database.close()


OTHER_PROCESS = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
for line in sys.stdin:
    for statement in line.split(";"):
        connection.execute(statement)
    print("done", flush=True)
"""


async def test_a_commit_of_another_process_is_seen_at_once(sqlite_url: str) -> None:
    database = await open_database(sqlite_url, schema="shop")
    async with database.transaction() as transaction:
        await transaction.run(in_dialect(TABLE, "sqlite"))
    versions = Versions(database, ["a"])
    command = [sys.executable, "-c", OTHER_PROCESS, sqlite_url.removeprefix("sqlite:///")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        for number in range(2, 60):
            # An emptied log begins again at its first page.
            emptied = "; PRAGMA wal_checkpoint(TRUNCATE)" if number % 7 == 0 else ""
            before = await versions.current()
            other.stdin.write(f"UPDATE version SET number = {number} WHERE name = 'a'{emptied}\n")
            other.stdin.flush()

            assert before == (number - 1,)
            assert other.stdout.readline() == "done\n"
            assert await versions.current() == (number,)
    await database.close()


async def test_a_change_that_is_not_committed_is_not_seen(sqlite_url: str) -> None:
    database = await open_database(sqlite_url, schema="shop")
    async with database.transaction() as transaction:
        await transaction.run(in_dialect(TABLE, "sqlite"))
    versions = Versions(database, ["a"])
    before = await versions.current()

    async def bump_and_fail() -> None:
        async with database.transaction() as transaction:
            await bump(transaction, "a")
            assert await versions.current() == before
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await bump_and_fail()
    assert await versions.current() == before
    await database.close()
