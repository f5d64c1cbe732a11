"""A snapshot of a PostgreSQL database while other transactions write."""

import asyncio

import asyncpg

from countersign.backup import postgres_snapshot
from tests.servers.postgres import PostgresFactory

PATIENCE_S = 30
WAITS = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'kept.first'::regclass"


async def _wait_for_lock(watcher: "asyncpg.Connection[asyncpg.Record]") -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await watcher.fetchval(WAITS):
            await asyncio.sleep(0.01)


async def test_a_snapshot_includes_tables_that_an_upgrade_creates_while_it_waits(
    new_postgres_url: PostgresFactory,
) -> None:
    url = new_postgres_url()
    upgrading, watcher = await asyncpg.connect(url), await asyncpg.connect(url)
    await upgrading.execute("CREATE SCHEMA kept; CREATE TABLE kept.first (id int)")

    async def snapshot_count() -> int:
        async with postgres_snapshot.open_snapshot(url, ["kept"]) as snapshot:
            return len(await snapshot.tables("kept"))

    async with upgrading.transaction():
        await upgrading.execute("ALTER TABLE kept.first ADD COLUMN more int; CREATE TABLE kept.second (id int)")
        snapshot_task = asyncio.create_task(snapshot_count())
        await _wait_for_lock(watcher)
    count = await snapshot_task
    await upgrading.close()
    await watcher.close()

    assert count == 2


async def test_a_writer_in_another_lock_order_waits_and_is_not_refused(new_postgres_url: PostgresFactory) -> None:
    url = new_postgres_url()
    writing, watcher = await asyncpg.connect(url), await asyncpg.connect(url)
    await writing.execute("CREATE SCHEMA kept; CREATE TABLE kept.first (id int); CREATE TABLE kept.second (id int)")

    async def snapshot_rows() -> list[int]:
        async with postgres_snapshot.open_snapshot(url, ["kept"], block_writes=True) as snapshot:
            return [row[0] for row in await snapshot.fetch("kept", "SELECT count(*) FROM first")]

    async with writing.transaction():
        await writing.execute("INSERT INTO kept.second VALUES (1)")
        snapshot_task = asyncio.create_task(snapshot_rows())
        async with asyncio.timeout(PATIENCE_S):
            while not await watcher.fetchval(WAITS.replace("first", "second")):
                await asyncio.sleep(0.01)
        # The snapshot has locked `first` and waits for `second`. A transaction that does not give way now would cause a
        # deadlock.
        await writing.execute("INSERT INTO kept.first VALUES (1)")
    counts = await snapshot_task
    await writing.close()
    await watcher.close()

    assert counts == [1]
