"""A transaction changes our own SQLite file and one of others: both or neither, also after a crash between them."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import pytest

from countersign.kernel.database import sqlite_outside_tables, sqlite_redo_log
from countersign.kernel.database.port import ConnectedSession
from countersign.kernel.database.read_only import ConnectedRefusal
from countersign.kernel.database.sqlite import SqliteDatabase, open_sqlite
from countersign.kernel.database.sqlite_outside_tables import ConnectedFile, OutsideTables
from countersign.kernel.database.sqlite_writer import SqliteTransaction
from countersign.kernel.errors import InvalidRequest, Refused, Unavailable

SESSION = ConnectedSession()
INSERT = "INSERT INTO theirs VALUES ($1)"


def run(path: Path, statements: str) -> list[tuple[object, ...]]:
    """Run statements as another application does."""
    connection = apsw.Connection(str(path))
    try:
        return list(connection.execute(statements).fetchall())
    finally:
        connection.close()


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A file of others."""
    run(tmp_path / "theirs.sqlite", "CREATE TABLE theirs (n INTEGER)")
    return tmp_path / "theirs.sqlite"


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[SqliteDatabase]:
    """Open our own file with the file of others."""
    connected = ConnectedFile(folder / "theirs.sqlite", {})
    database = await open_sqlite(folder / "own.sqlite", reserve_bytes=0, connected=connected)
    try:
        async with database.transaction() as transaction:
            await transaction.run("CREATE TABLE IF NOT EXISTS own (n INTEGER, blob BLOB)")
        yield database
    finally:
        await database.close()


def rows(path: Path, table: str) -> list[object]:
    """Return the numbers in a table."""
    return [row[0] for row in run(path, f"SELECT n FROM {table} ORDER BY n")]


async def write(database: SqliteDatabase, number: int) -> None:
    """Insert the number into both files, in one transaction."""
    async with database.transaction() as transaction:
        await transaction.run_many("INSERT INTO own VALUES ($1, $2)", [(number, b"\0\xff"), (number + 1, None)])
        await transaction.fetch_connected(SESSION, INSERT, number)
        await transaction.fetch("UPDATE own SET n = n + 10 WHERE n > $1 RETURNING n", number)


async def test_both_files_change(theirs: Path, tmp_path: Path) -> None:
    async with opened(tmp_path) as database:
        await write(database, 1)

    assert (rows(theirs, "theirs"), rows(tmp_path / "own.sqlite", "own")) == ([1], [1, 12])
    assert run(tmp_path / "own.sqlite-connected", "SELECT count(*) FROM pending_commit") == [(0,)]


@pytest.mark.parametrize("error", [RuntimeError, ConnectedRefusal])
async def test_neither_file_changes_after_an_error(
    theirs: Path, tmp_path: Path, error: Callable[[str], Exception]
) -> None:
    async def fail(database: SqliteDatabase) -> None:
        async with database.transaction() as transaction:
            await transaction.run("INSERT INTO own VALUES (1, NULL)")
            await transaction.fetch_connected(SESSION, INSERT, 1)
            raise error("no")

    async with opened(tmp_path) as database:
        with pytest.raises((RuntimeError, ConnectedRefusal)):
            await fail(database)
        await write(database, 5)

    assert (rows(theirs, "theirs"), rows(tmp_path / "own.sqlite", "own")) == ([5], [5, 16])


async def test_a_savepoint_takes_back_its_writes_of_both_files(theirs: Path, tmp_path: Path) -> None:
    async def in_savepoint(transaction: SqliteTransaction, number: int) -> None:
        async with transaction.savepoint():
            await transaction.run("INSERT INTO own VALUES ($1, NULL)", number)
            await transaction.fetch_connected(SESSION, INSERT, number)
            if number == 2:
                raise ValueError

    async with opened(tmp_path) as database, database.transaction() as transaction:
        await in_savepoint(transaction, 1)
        with pytest.raises(ValueError):
            await in_savepoint(transaction, 2)
        await in_savepoint(transaction, 3)

    assert (rows(theirs, "theirs"), rows(tmp_path / "own.sqlite", "own")) == ([1, 3], [1, 3])


async def test_the_first_savepoint_of_the_other_file_is_that_of_the_block(theirs: Path, tmp_path: Path) -> None:
    async def fail(transaction: SqliteTransaction) -> None:
        async with transaction.savepoint(), transaction.savepoint():
            await transaction.fetch_connected(SESSION, INSERT, 1)
            raise ValueError

    async with opened(tmp_path) as database, database.transaction() as transaction:
        with pytest.raises(ValueError):
            await fail(transaction)
        await transaction.fetch_connected(SESSION, INSERT, 2)

    assert rows(theirs, "theirs") == [2]


async def crash_before_our_commit(folder: Path, monkeypatch: pytest.MonkeyPatch, first: int = 1) -> None:
    """Write to both files, and lose the commit of our own file."""

    def fail(writer: object, connection: apsw.Connection) -> Refused:
        connection.execute("ROLLBACK")
        return Unavailable("killed")

    async with opened(folder) as database:
        await write(database, first)
        with monkeypatch.context() as patched:
            patched.setattr("countersign.kernel.database.sqlite_writer.SqliteWriter._committed", fail)
            with pytest.raises(Unavailable, match="Do not repeat it"):
                await write(database, 100)


async def test_the_next_start_runs_what_our_own_file_lacks(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await crash_before_our_commit(tmp_path, monkeypatch)
    assert (rows(theirs, "theirs"), rows(tmp_path / "own.sqlite", "own")) == ([1, 100], [1, 12])

    # Also a command that does not know the file of others.
    database = await open_sqlite(tmp_path / "own.sqlite", reserve_bytes=0)
    found = await database.fetch("SELECT n, blob FROM own ORDER BY n")
    await database.close()

    assert found == [(1, b"\0\xff"), (12, None), (100, b"\0\xff"), (111, None)]
    assert run(tmp_path / "own.sqlite-connected", "SELECT count(*) FROM pending_commit") == [(0,)]


async def test_an_entry_runs_once(theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_redo_log.RedoLog, "remove", lambda *_: None)
    await crash_before_our_commit(tmp_path, monkeypatch)
    for _ in range(3):
        async with opened(tmp_path) as database:
            await database.fetch("SELECT 1")

    assert (rows(theirs, "theirs"), rows(tmp_path / "own.sqlite", "own")) == ([1, 100], [1, 12, 100, 111])


async def test_an_entry_for_another_state_of_the_file_is_refused(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await crash_before_our_commit(tmp_path, monkeypatch)
    run(tmp_path / "own.sqlite", "PRAGMA user_version = 0")

    with pytest.raises(Unavailable, match="older than its redo log"):
        await open_sqlite(tmp_path / "own.sqlite", reserve_bytes=0)


async def test_an_older_copy_of_our_file_is_refused_also_if_only_our_own_commits_are_missing(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as database:
        await write(database, 1)
    shutil.copy(tmp_path / "own.sqlite", tmp_path / "copy")
    async with opened(tmp_path) as database, database.transaction() as transaction:
        await transaction.run("UPDATE own SET n = 50 WHERE n = 1")
    await crash_before_our_commit(tmp_path, monkeypatch, first=5)
    (tmp_path / "own.sqlite-wal").unlink(missing_ok=True)
    shutil.copy(tmp_path / "copy", tmp_path / "own.sqlite")

    with pytest.raises(Unavailable, match="older than its redo log"):
        await open_sqlite(tmp_path / "own.sqlite", reserve_bytes=0)


async def test_the_count_of_commits_begins_again_at_its_end(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path):
        run(tmp_path / "own.sqlite", f"PRAGMA user_version = {(1 << 31) - 2}")
    await crash_before_our_commit(tmp_path, monkeypatch)
    async with opened(tmp_path) as database:
        await write(database, 200)

    assert run(tmp_path / "own.sqlite", "PRAGMA user_version") == [(1,)]
    assert rows(theirs, "theirs") == [1, 100, 200]
    assert rows(tmp_path / "own.sqlite", "own") == [1, 12, 100, 111, 200, 211]


async def test_no_statement_is_kept_after_its_transaction(theirs: Path, tmp_path: Path) -> None:
    async def fail(database: SqliteDatabase) -> None:
        async with database.transaction() as transaction:
            await transaction.run("INSERT INTO own VALUES (1, NULL)")
            raise ValueError

    async with opened(tmp_path) as database:
        noted = database._writer._statements  # pyright: ignore[reportPrivateUsage]
        async with database.transaction() as transaction:
            await transaction.run("INSERT INTO own VALUES (1, $1)", b"a personal value")
            assert noted
        assert not noted
        await write(database, 2)
        assert not noted
        with pytest.raises(ValueError):
            await fail(database)
        assert not noted


async def test_another_process_that_has_locked_the_log_does_not_stop_the_event_loop(
    theirs: Path, tmp_path: Path
) -> None:
    async with opened(tmp_path) as database:
        other = apsw.Connection(str(tmp_path / "own.sqlite-connected"))
        other.execute("BEGIN EXCLUSIVE")
        writing = asyncio.create_task(write(database, 1))
        async with asyncio.timeout(1):
            await asyncio.sleep(0.1)
        assert not writing.done()
        other.execute("COMMIT")
        other.close()
        await writing

    assert rows(theirs, "theirs") == [1]


async def test_a_cancelled_begin_leaves_no_transaction(theirs: Path, tmp_path: Path) -> None:
    async with opened(tmp_path) as database:
        other = apsw.Connection(str(tmp_path / "own.sqlite-connected"))
        other.execute("BEGIN EXCLUSIVE")
        writing = asyncio.create_task(write(database, 1))
        await asyncio.sleep(0.05)
        writing.cancel()
        other.execute("COMMIT")
        other.close()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await write(database, 2)

    assert (rows(theirs, "theirs"), rows(tmp_path / "own.sqlite", "own")) == ([2], [2, 13])


async def test_a_file_that_is_away_after_a_crash_is_waited_for(theirs: Path, tmp_path: Path) -> None:
    async with opened(tmp_path):
        pass
    (tmp_path / "own.sqlite-connected-journal").touch()
    theirs.rename(tmp_path / "away")

    with pytest.raises(Unavailable, match="crash has interrupted") as caught:
        async with opened(tmp_path):
            pass
    assert caught.value.__notes__ == [f"It is expected at {theirs}."]


async def test_a_transaction_that_the_other_file_ends_is_not_committed(theirs: Path, tmp_path: Path) -> None:
    run(theirs, "CREATE TRIGGER ends AFTER INSERT ON theirs WHEN new.n = 2 BEGIN SELECT RAISE(ROLLBACK, 'x'); END")

    async def go_on(database: SqliteDatabase) -> None:
        async with database.transaction() as transaction:
            await transaction.run("INSERT INTO own VALUES (1, NULL)")
            await transaction.fetch_connected(SESSION, INSERT, 1)
            for number in (2, 3):
                with pytest.raises(ConnectedRefusal):
                    await transaction.fetch_connected(SESSION, INSERT, number)

    async with opened(tmp_path) as database:
        with pytest.raises(InvalidRequest):
            await go_on(database)

    assert (rows(theirs, "theirs"), rows(tmp_path / "own.sqlite", "own")) == ([], [])


async def test_a_file_that_cannot_be_written_is_named_as_such(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened_for_reading(tables: OutsideTables) -> apsw.Connection:
        return apsw.Connection(str(theirs), flags=apsw.SQLITE_OPEN_READONLY)

    async with opened(tmp_path) as database:
        with monkeypatch.context() as patched:
            patched.setattr(OutsideTables, "_open", opened_for_reading)
            with pytest.raises(Unavailable) as caught:
                await write(database, 1)
        await write(database, 2)

    assert caught.value.detail == sqlite_outside_tables.NOT_WRITABLE
    assert (rows(theirs, "theirs"), rows(tmp_path / "own.sqlite", "own")) == ([2], [2, 13])


async def test_opening_the_header_takes_back_no_lock(theirs: Path, tmp_path: Path) -> None:
    async with opened(tmp_path) as database, database.transaction() as transaction:
        await transaction.fetch_connected(SESSION, INSERT, 1)
        assert not sqlite_outside_tables.is_wal(theirs)
        other = apsw.Connection(str(theirs))
        with pytest.raises(apsw.BusyError):
            other.execute("BEGIN IMMEDIATE")
        other.close()


KILLED_IN_THE_COMMIT = """
import asyncio, os, sys
from pathlib import Path
import apsw
from countersign.kernel.database.port import ConnectedSession
from countersign.kernel.database.sqlite import open_sqlite
from countersign.kernel.database.sqlite_outside_tables import ConnectedFile

class Killing(apsw.VFS):
    def xDelete(self, name, syncs):
        if "-mj" in name:
            os._exit(9)
        return super().xDelete(name, syncs)

async def main(own, theirs):
    vfs = Killing("killing", "", makedefault=True)
    database = await open_sqlite(own, reserve_bytes=0, connected=ConnectedFile(theirs, {}))
    async with database.transaction() as transaction:
        await transaction.run("CREATE TABLE own (n INTEGER)")
    async with database.transaction() as transaction:
        await transaction.run("INSERT INTO own VALUES (1)")
        await transaction.fetch_connected(ConnectedSession(), "INSERT INTO theirs VALUES ($1)", 1)

asyncio.run(main(*map(Path, sys.argv[1:])))
"""


def kill_in_the_commit(folder: Path) -> tuple[Path, Path]:
    """Kill a process before both files are committed, and return the folder of ours and the file of others."""
    (folder / "data").mkdir()
    theirs = folder / "shop" / "theirs.sqlite"
    theirs.parent.mkdir()
    run(theirs, "CREATE TABLE theirs (n INTEGER)")
    command = [sys.executable, "-c", KILLED_IN_THE_COMMIT, folder / "data" / "own.sqlite", theirs]
    assert subprocess.run(command, check=False).returncode == 9
    return folder / "data", theirs


async def test_an_application_without_our_folder_rolls_both_files_back(tmp_path: Path) -> None:
    data, theirs = kill_in_the_commit(tmp_path)
    data.rename(tmp_path / "hidden")
    assert rows(theirs, "theirs") == []
    (tmp_path / "hidden").rename(data)

    for number in (2, 3):
        connected = ConnectedFile(theirs, {})
        database = await open_sqlite(data / "own.sqlite", reserve_bytes=0, connected=connected)
        async with database.transaction() as transaction:
            await transaction.run("INSERT INTO own VALUES ($1)", number)
            await transaction.fetch_connected(SESSION, INSERT, number)
        await database.close()

    assert (rows(theirs, "theirs"), rows(data / "own.sqlite", "own")) == ([2, 3], [2, 3])
    assert sorted(each.name for each in theirs.parent.iterdir()) == ["theirs.sqlite", "theirs.sqlite-countersign"]


async def test_a_command_without_the_file_of_others_waits_for_it_after_a_crash(tmp_path: Path) -> None:
    data, theirs = kill_in_the_commit(tmp_path)
    theirs.parent.rename(tmp_path / "away")
    with pytest.raises(Unavailable, match="crash has interrupted") as caught:
        await open_sqlite(data / "own.sqlite", reserve_bytes=0)
    assert caught.value.__notes__ == [f"It is expected at {theirs}."]
    (tmp_path / "away").rename(theirs.parent)

    await (await open_sqlite(data / "own.sqlite", reserve_bytes=0)).close()

    assert (rows(theirs, "theirs"), rows(data / "own.sqlite", "own")) == ([], [])
