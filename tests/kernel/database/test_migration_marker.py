"""The marker of a moved database: a process that has the file open can no longer write to it."""

from pathlib import Path

import pytest

from countersign.kernel.database import migration_marker
from countersign.kernel.database.migration_marker import DatabaseMoved, MigrationMarker
from countersign.kernel.database.sqlite import open_sqlite

MARK = MigrationMarker("one", "db.example.com:5432/countersign", "2026-11-22T10:00:00Z", is_complete=True)
INSERT = "INSERT INTO t (a) VALUES ($1)"


async def test_nothing_is_written_or_opened_after_a_move(tmp_path: Path) -> None:
    database = await open_sqlite(tmp_path / "a.sqlite")
    async with database.transaction() as transaction:
        await transaction.run("CREATE TABLE t (a INTEGER)")
        await transaction.run(INSERT, 1)

    migration_marker.write_marker(tmp_path, MARK)
    with pytest.raises(DatabaseMoved, match=r"in db\.example\.com"):
        async with database.transaction() as transaction:
            await transaction.run(INSERT, 2)
    with pytest.raises(DatabaseMoved):
        await open_sqlite(tmp_path / "a.sqlite")
    rows = await database.fetch("SELECT a FROM t")
    migration_marker.remove_marker(tmp_path)
    async with database.transaction() as transaction:
        await transaction.run(INSERT, 3)
    rows_after = await database.fetch("SELECT a FROM t ORDER BY a")
    await database.close()

    assert rows == [(1,)]
    assert rows_after == [(1,), (3,)]


def test_a_mark_that_cannot_be_read_keeps_the_files_closed(tmp_path: Path) -> None:
    (tmp_path / migration_marker.FILE_NAME).write_text("{")

    with pytest.raises(DatabaseMoved):
        migration_marker.require_not_moved(tmp_path)
