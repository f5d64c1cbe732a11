"""Behaviour of SQLite's checkpoints: which thread copies the log to the file, when the log begins again, and what a
failed checkpoint changes."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from countersign.kernel.database import sqlite_checkpoints as checkpoints
from countersign.kernel.database import sqlite_connection as sqlite
from countersign.kernel.database.sqlite import SqliteDatabase, open_sqlite

PAGE = "x" * sqlite.PAGE_BYTES
WAIT_S = 10


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the file."""
    return tmp_path / "test.db"


@pytest.fixture
async def database(path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteDatabase]:
    """The file with the empty table `page`. A checkpoint is due after 100 pages, and the log begins again after
    400."""
    monkeypatch.setattr(checkpoints, "CHECKPOINT_PAGES", 100)
    monkeypatch.setattr(checkpoints, "MAX_LOG_PAGES", 400)
    database = await open_sqlite(path, reserve_bytes=0)
    async with database.transaction() as transaction:
        await transaction.run("CREATE TABLE page (text TEXT)")
    yield database
    await database.close()


async def _write(database: SqliteDatabase, pages: int) -> None:
    async with database.transaction() as transaction:
        await transaction.run_many("INSERT INTO page (text) VALUES ($1)", [(PAGE,)] * pages)


def _size(path: Path) -> int:
    return path.stat().st_size // sqlite.PAGE_BYTES


async def _grown(path: Path, pages: int) -> None:
    """Wait until the file has this number of pages."""
    async with asyncio.timeout(WAIT_S):
        while _size(path) < pages:
            await asyncio.sleep(0.01)


async def test_a_thread_copies_the_log_to_the_file_once_the_log_has_pages_enough(
    database: SqliteDatabase, path: Path
) -> None:
    await _write(database, 50)
    await asyncio.sleep(0.05)
    assert _size(path) < 50

    await _write(database, 60)

    await _grown(path, 110)


async def test_the_log_begins_again_at_its_limit_although_commits_never_pause(
    database: SqliteDatabase, path: Path
) -> None:
    log = path.with_name(path.name + "-wal")

    for _ in range(60):
        await _write(database, 50)

    assert checkpoints.MAX_LOG_PAGES * sqlite.PAGE_BYTES <= log.stat().st_size < 600 * sqlite.PAGE_BYTES
    assert await database.fetch_one("SELECT count(1) FROM page") == (3_000,)


async def test_commits_do_not_wait_for_the_thread(
    database: SqliteDatabase, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_connect = threading.Event()
    connect = sqlite.connect

    def slow(path: Path, **options: object) -> sqlite.Connection:
        may_connect.wait(WAIT_S)
        return connect(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(sqlite, "connect", slow)
    await _write(database, 120)
    await _write(database, 1)
    assert _size(path) < 120

    may_connect.set()

    await _grown(path, 120)


async def test_a_checkpoint_that_fails_fails_no_commit_and_is_tried_again(
    database: SqliteDatabase, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = [sqlite.Refused("no connection")]
    connect = sqlite.connect

    def connect_later(path: Path, **options: object) -> sqlite.Connection:
        if failing:
            raise failing.pop()
        return connect(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(sqlite, "connect", connect_later)
    await _write(database, 120)
    while failing:
        await asyncio.sleep(0.01)
    assert _size(path) < 120

    async with asyncio.timeout(WAIT_S):
        while _size(path) < 120:
            await _write(database, 1)


async def test_a_reader_of_an_old_state_delays_the_copy_and_no_commit(database: SqliteDatabase, path: Path) -> None:
    await _write(database, 10)
    reader = sqlite.begin_snapshot(path, "BEGIN")

    for _ in range(20):
        await _write(database, 50)
    seen = sqlite.fetch(reader, "SELECT count(1) FROM page", ())
    reader.close(True)
    await _write(database, 1)

    assert seen == [(10,)]
    await _grown(path, 1_000)


async def test_a_database_that_closes_leaves_no_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "CHECKPOINT_PAGES", 100)
    database = await open_sqlite(path, reserve_bytes=0)
    async with database.transaction() as transaction:
        await transaction.run("CREATE TABLE page (text TEXT)")
    await _write(database, 200)

    await database.close()

    assert not path.with_name(path.name + "-wal").exists()
    assert "sqlite-checkpoint" not in {thread.name.rpartition("_")[0] for thread in threading.enumerate()}
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT count(1) FROM page").fetchall() == [(200,)]
    connection.close()
