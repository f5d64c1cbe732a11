"""A worker process whose jobs note when they are begun, and whose effect is a row."""

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


class Chore(msgspec.Struct):
    """How long to be at it."""

    seconds: float


class Done(msgspec.Struct):
    """Nothing more to say."""


async def run(store: Store, work: JobContext[Chore]) -> Outcome:
    """Note the beginning, be at it, and have a row written with the end."""
    async with store.database.transaction() as transaction:
        await transaction.run(BEGUN, work.job_id, os.getpid(), time.time())
    await asyncio.sleep(work.payload.seconds)
    await work.progress(0.5)

    async def commit(transaction: Transaction) -> None:
        await transaction.run(EFFECT, work.job_id)

    return Outcome(Done(), commit)


async def make_tables(database: Database) -> None:
    """Make the tables in which the jobs leave their traces."""
    async with database.transaction() as transaction:
        await transaction.run(in_dialect(TABLES, database.dialect))


@asynccontextmanager
async def opened(settings: Settings, root_url: str, is_loopback: bool) -> AsyncIterator[Store]:
    """The store, once this process has said that it is there."""
    async with app.open_store(settings, root_url, is_loopback=is_loopback) as store:
        async with store.database.transaction() as transaction:
            await transaction.run(AWAKE, os.getpid())
        yield store


def main() -> None:
    """Work on chores until killed."""
    worker_process.run_worker_process(opened, (JobType("chore", Chore, run),))


if __name__ == "__main__":
    main()
