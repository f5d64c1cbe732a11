"""An SQLite file with a maximum size."""

from pathlib import Path

import pytest

from countersign.kernel.database.sqlite import open_sqlite
from countersign.kernel.errors import StorageFull

MIB = 1 << 20
MADE = "CREATE TABLE page (number BIGINT PRIMARY KEY, filler TEXT NOT NULL)"
WRITTEN = "INSERT INTO page (number, filler) VALUES ($1, $2)"


async def test_a_write_that_exceeds_the_file_limit_is_refused_and_other_writes_continue(tmp_path: Path) -> None:
    path = tmp_path / "test.db"
    database = await open_sqlite(path, reserve_bytes=0, max_bytes=MIB)
    async with database.transaction() as transaction:
        await transaction.run(MADE)

    async def filled() -> None:
        for number in range(1_000):
            async with database.transaction() as transaction:
                await transaction.run(WRITTEN, number, "x" * 20_000)

    with pytest.raises(StorageFull):
        await filled()

    ((row_count,),) = await database.fetch("SELECT count(*) FROM page")
    async with database.transaction() as transaction:
        await transaction.run("DELETE FROM page WHERE number < 10")
    async with database.transaction() as transaction:
        await transaction.run(WRITTEN, row_count, "x" * 20_000)
    await database.close()

    assert 30 < row_count < 60
    assert path.stat().st_size <= MIB
