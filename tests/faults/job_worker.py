"""A worker process whose jobs record their beginning, and whose effect is a row."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from countersign.kernel.database.migrate import in_dialect
from countersign.kernel.database.port import Database, Transaction
from countersign.settings import Settings
from countersign.store import app
from countersign.store.context import Store
from countersign.store.jobs import worker_process
from countersign.store.jobs.job_types import JobContext, JobType, Outcome

ROOT = Path(__file__).parents[2]
COMMAND = ("env", f"PYTHONPATH={ROOT / 'src'}:{ROOT}", sys.executable, "-m", "tests.faults.job_worker")
TABLES = """
CREATE TABLE effect (job_id TEXT NOT NULL);
CREATE TABLE begun (job_id TEXT NOT NULL, pid BIGINT NOT NULL, at REAL NOT NULL);
CREATE TABLE awake (pid BIGINT NOT NULL);
"""
BEGUN = "INSERT INTO begun (job_id, pid, at) VALUES ($1, $2, $3)"
EFFECT = "INSERT INTO effect (job_id) VALUES ($1)"
AWAKE = "INSERT INTO awake (pid) VALUES ($1)"


class ChoreInput(msgspec.Struct):
    """How long the job takes."""

    seconds: float


class ChoreResult(msgspec.Struct):
    """The empty result of a job."""


async def run(store: Store, work: JobContext[ChoreInput]) -> Outcome:
    """Record the beginning, wait, and write a row as the job ends."""
    async with store.database.transaction() as transaction:
        await transaction.run(BEGUN, work.job_id, os.getpid(), time.time())
    await asyncio.sleep(work.payload.seconds)
    await work.progress(0.5)

    async def commit(transaction: Transaction) -> None:
        await transaction.run(EFFECT, work.job_id)

    return Outcome(ChoreResult(), commit)


async def make_tables(database: Database) -> None:
    """Create the tables in which the jobs record their work."""
    async with database.transaction() as transaction:
        await transaction.run(in_dialect(TABLES, database.dialect))


@asynccontextmanager
async def open_reported(settings: Settings, root_url: str, is_loopback: bool) -> AsyncIterator[Store]:
    """Open the store, after this process has reported that it is ready."""
    async with app.open_store(settings, root_url, is_loopback=is_loopback) as store:
        async with store.database.transaction() as transaction:
            await transaction.run(AWAKE, os.getpid())
        yield store


def main() -> None:
    """Work on jobs until killed."""
    worker_process.run_worker_process(open_reported, (JobType("chore", ChoreInput, run),))


if __name__ == "__main__":
    main()
