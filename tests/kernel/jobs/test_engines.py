"""Job engines: a deferred job calls a worker when it is durable and due. The tables of Procrastinate are created and
migrated."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from countersign.kernel import clock
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Database
from countersign.kernel.errors import Unavailable
from countersign.kernel.jobs import procrastinate
from countersign.kernel.jobs.engine import EmbeddedEngine, Engine
from countersign.kernel.jobs.open import open_engine
from countersign.kernel.jobs.procrastinate import ProcrastinateEngine
from countersign.settings import BadSetting

SCHEMA = "jobs_test"
VERSION = "SELECT count(*) FROM procrastinate_migration"


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    """Open the database until the block ends."""
    database = await open_database(url, schema=SCHEMA, reserve_bytes=0)
    try:
        yield database
    finally:
        await database.close()


class CallCounter:
    """Counts how often a worker was called, and stops it after a given number."""

    def __init__(self, refusals: int = 0) -> None:
        self.count = 0
        self.stopping = asyncio.Event()
        self.refusals = refusals

    async def take(self) -> bool:
        """Count a call, and report that there is no job."""
        self.count += 1
        if self.count <= self.refusals:
            raise Unavailable("the database is away")
        return False

    async def wait_for(self, count: int) -> None:
        """Wait for this number of calls."""
        async with asyncio.timeout(120):
            while self.count < count:
                await asyncio.sleep(0.01)


@asynccontextmanager
async def run_engine(engine: Engine, calls: CallCounter) -> AsyncIterator[None]:
    """Run the engine until the block ends."""
    task = asyncio.create_task(engine.serve(calls.take, calls.stopping))
    try:
        yield
    finally:
        calls.stopping.set()
        await task


async def test_the_choice_follows_the_database(database_url: str) -> None:
    async with opened(database_url) as database:
        is_postgres = database.dialect == "postgres"
        automatic = await open_engine("auto", database, database_url, SCHEMA, lease_s=15)
        embedded = await open_engine("embedded", database, database_url, SCHEMA, lease_s=15)

        assert isinstance(automatic, ProcrastinateEngine if is_postgres else EmbeddedEngine)
        assert isinstance(embedded, EmbeddedEngine)
        if not is_postgres:
            with pytest.raises(BadSetting, match="needs PostgreSQL"):
                await open_engine("procrastinate", database, database_url, SCHEMA, lease_s=15)


async def test_the_embedded_engine_looks_often_and_outlives_a_database_that_is_away() -> None:
    calls = CallCounter(refusals=1)

    async with run_engine(EmbeddedEngine(), calls):
        await calls.wait_for(10)

    assert calls.count >= 10


async def test_the_tables_are_created_once_by_simultaneous_starts(postgres_url: str) -> None:
    async with opened(postgres_url) as first_store, opened(postgres_url) as second_store:
        engine = ProcrastinateEngine(postgres_url, SCHEMA, lease_s=15)

        await asyncio.gather(
            *(engine.install(version) for version in (first_store, second_store, first_store, second_store))
        )
        await engine.install(first_store)

        row = await first_store.fetch_one(VERSION)
        assert row is not None
        assert row[0] > 30


async def test_an_older_schema_is_brought_up_to_date(postgres_url: str) -> None:
    async with opened(postgres_url) as database:
        engine = ProcrastinateEngine(postgres_url, SCHEMA, lease_s=15)
        await engine.install(database)
        async with database.transaction() as transaction:
            await transaction.run(
                "DROP FUNCTION procrastinate_retry_job_v2; DROP INDEX procrastinate_jobs_priority_idx_v1"
            )
            last_migration = "03.04.00_50_post_add_retry_failed_job_procedure.sql"
            await transaction.run("DELETE FROM procrastinate_migration WHERE name >= $1", last_migration)

        await engine.install(database)

        names = [row[0] for row in await database.fetch("SELECT name FROM procrastinate_migration")]
        assert last_migration in names


async def test_a_deferred_job_runs_after_its_commit(postgres_url: str) -> None:
    async with opened(postgres_url) as database:
        engine = ProcrastinateEngine(postgres_url, SCHEMA, lease_s=15)
        await engine.install(database)
        calls = CallCounter()
        async with run_engine(engine, calls):
            await calls.wait_for(1)
            await asyncio.sleep(1.5)
            at_rest = calls.count
            with pytest.raises(ZeroDivisionError):
                await undone(engine, database)
            async with database.transaction() as transaction:
                await engine.defer(transaction)
                await asyncio.sleep(0.2)
                assert calls.count == at_rest
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            await calls.wait_for(at_rest + 1)
            woken_s = loop.time() - began_s

        remaining_jobs = await database.fetch("SELECT id FROM procrastinate_jobs")
        assert woken_s < procrastinate.FETCH_EVERY_S, "it was called by NOTIFY"
        assert remaining_jobs == []


async def undone(engine: Engine, database: Database) -> None:
    """Defer a job in a transaction that is rolled back."""
    async with database.transaction() as transaction:
        await engine.defer(transaction)
        raise ZeroDivisionError


async def test_a_job_deferred_to_a_later_time_runs_at_that_time(postgres_url: str) -> None:
    async with opened(postgres_url) as database:
        engine = ProcrastinateEngine(postgres_url, SCHEMA, lease_s=15)
        await engine.install(database)
        due = clock.later(clock.now(), seconds=60)
        async with database.transaction() as transaction:
            await engine.defer(transaction, due)

        row = await database.fetch_one("SELECT extract(epoch FROM scheduled_at) * 1000000 FROM procrastinate_jobs")

        assert row is not None
        assert abs(int(row[0]) - due) <= 1
