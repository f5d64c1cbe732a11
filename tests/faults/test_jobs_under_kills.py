"""Jobs whose workers are killed at random times: every job ends, each effect happens once, and no job waits for
long."""

import asyncio
import random
import statistics
import time
from asyncio.subprocess import PIPE
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from countersign.kernel.database.port import Transaction
from countersign.settings import Settings
from countersign.store import app
from countersign.store.auth import organisations
from countersign.store.context import Store
from countersign.store.jobs import queries, worker_process
from tests.faults import job_worker
from tests.faults.job_worker import ChoreInput
from tests.figures import Figures
from tests.servers.countersign import MASTER_KEY

JOBS, JOBS_FULL = 100, 1_000
WORKERS, ORGANISATIONS = 3, 6
LIVES_S = (0.05, 5.0)
"""How long a worker lives after it is ready. A short life is too short for any job."""
KILLED_UNTIL = 0.9
"""The share of the jobs that must have ended before the kills stop."""
MAX_WAIT_S = 30
NOTED_WITHIN_S = 2.0
"""The maximum time between the start of a job and its record of that, on a busy machine."""


class KilledWorker(NamedTuple):
    """A worker that was killed, and when."""

    pid: int
    killed_at: float


class LeaseWait(NamedTuple):
    """How long a job waited after its worker was killed, and how many other jobs began in that time although its lease
    had ended. A long wait without any other job means that no worker was running."""

    seconds: float
    begun_before_it: int


@pytest.fixture(params=["sqlite-embedded", "postgres-embedded", "postgres-procrastinate"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """The settings of a store, with the default lease time."""
    database, engine = request.param.split("-")
    return Settings(
        data=str(tmp_path / "data"),
        database_url="" if database == "sqlite" else request.getfixturevalue("postgres_url"),
        database_pool=4,
        master_key=MASTER_KEY,
        reserve_mib=0,
        job_engine=engine,
        # This test runs beside others; a worker without processor time to start cannot be killed at work.
        job_nice=0,
    )


class WorkerKiller:
    """Keeps workers running and kills each of them again and again."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.rng = random.Random(seed)
        self.is_over = False
        self.killed: list[KilledWorker] = []

    async def torment(self) -> None:
        """Run the lives of one worker. Each life is killed a random time after the worker is ready, except the last."""
        while True:
            worker = await asyncio.create_subprocess_exec(*job_worker.COMMAND, stdin=PIPE)
            try:
                assert worker.stdin is not None
                worker.stdin.write(worker_process.worker_config(self.store) + b"\n")
                await self._seen(worker.pid)
                await asyncio.sleep(self.rng.uniform(*LIVES_S))
                if self.is_over:
                    await worker.wait()
                    raise AssertionError("a worker ended by itself")
            finally:
                if worker.returncode is None:
                    worker.kill()
                await worker.wait()
            self.killed.append(KilledWorker(worker.pid, time.time()))

    async def _seen(self, pid: int) -> None:
        """Wait until the worker is ready."""
        async with asyncio.timeout(60):
            while await self.store.database.fetch_one("SELECT 1 FROM awake WHERE pid = $1", pid) is None:
                await asyncio.sleep(0.03)


@asynccontextmanager
async def kill_workers(nemesis: WorkerKiller) -> AsyncIterator[None]:
    """Run workers, and kill them at random times until the block ends."""
    tasks = [asyncio.create_task(nemesis.torment()) for _ in range(WORKERS)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results), results


async def seed_jobs(store: Store, count: int, rng: random.Random) -> list[str]:
    """Add `count` jobs of several organisations."""
    async with store.database.transaction() as transaction:
        orgs = [
            (await organisations.create_organisation(transaction, f"org-{number}", f"Org {number}")).id
            for number in range(ORGANISATIONS)
        ]
    async with store.database.transaction() as transaction:
        return [await add_job(transaction, store, orgs[number % len(orgs)], rng) for number in range(count)]


async def add_job(transaction: Transaction, store: Store, org_id: str, rng: random.Random) -> str:
    """Add one job of the organisation."""
    chore = ChoreInput(rng.uniform(0, 0.2))
    return await queries.enqueue(transaction, store, "chore", chore, org_id=org_id, created_by="x")


async def unfinished_count(store: Store) -> int:
    """Return the count of jobs that have not ended."""
    row = await store.database.fetch_one("SELECT count(*) FROM job WHERE finished_at IS NULL")
    assert row is not None
    return int(row[0])


async def waits(store: Store, killed: list[KilledWorker]) -> list[LeaseWait]:
    """Return the time that each job of a killed worker waited until another worker began it again. Jobs whose worker
    was killed between taking the job and recording it are left out, because they waited once more than the records
    show.

    Jobs whose worker was killed between taking the job and recording it are left out, because they waited once more
    than the records show.
    """
    notes = await store.database.fetch("SELECT job_id, pid, at FROM begun ORDER BY at")
    begun_attempts: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for job_id, pid, at in notes:
        begun_attempts[job_id].append((at, pid))
    attempts_by_job = {row[0]: row[1] for row in await store.database.fetch("SELECT id, attempts FROM job")}
    moments = [at for _, _, at in notes]
    kills = dict(killed)
    lease_waits: list[LeaseWait] = []
    for job_id, attempts in begun_attempts.items():
        for (_, pid), (again_at, _) in pairwise(attempts):
            assert pid in kills, "a job was begun again though its worker lived"
            free_at = kills[pid] + store.settings.job_lease_s + NOTED_WITHIN_S
            before_it = max(0, bisect_left(moments, again_at) - bisect_left(moments, free_at))
            if attempts_by_job[job_id] == len(attempts):
                lease_waits.append(LeaseWait(again_at - kills[pid], before_it))
    return lease_waits


def passed_over_waits(waited: list[LeaseWait]) -> list[LeaseWait]:
    """Return the waits in which workers were running and began other jobs."""
    long_waits = [wait for wait in waited if wait.begun_before_it > WORKERS]
    return long_waits + [wait for wait in waited if wait.seconds > MAX_WAIT_S and wait.begun_before_it]


async def count_values(store: Store, statement: str) -> Counter[str]:
    """Return the count of each value."""
    return Counter(row[0] for row in await store.database.fetch(statement))


async def test_every_job_ends_and_each_effect_happens_once_when_workers_are_killed(
    settings: Settings, is_full: bool, figures: Figures
) -> None:
    count = JOBS_FULL if is_full else JOBS
    rng = random.Random(7)
    async with app.open_store(settings, "http://127.0.0.1:1", is_loopback=True) as store:
        await job_worker.make_tables(store.database)
        nemesis = WorkerKiller(store, seed=7)
        jobs = await seed_jobs(store, count, rng)
        began_s = time.monotonic()

        async with asyncio.timeout(1_200), kill_workers(nemesis):
            while await unfinished_count(store) > count * (1 - KILLED_UNTIL):
                await asyncio.sleep(0.2)
            nemesis.is_over = True
            while await unfinished_count(store):
                await asyncio.sleep(0.2)

        took_s = time.monotonic() - began_s
        ends = await count_values(store, "SELECT status FROM job")
        effect_counts = await count_values(store, "SELECT job_id FROM effect")
        waited = await waits(store, nemesis.killed)

    assert ends == {"completed": count}
    assert effect_counts == dict.fromkeys(jobs, 1)
    assert nemesis.killed
    assert waited, "no worker was killed over a job"
    assert not passed_over_waits(waited)
    figures |= {
        "jobs": count,
        "kills": len(nemesis.killed),
        "jobs_hit": len(waited),
        "ended": sum(ends.values()),
        "effects": sum(effect_counts.values()),
        "doubled": 0,
        "begun_again_p50_s": round(statistics.median(wait.seconds for wait in waited), 3),
        "begun_again_max_s": round(max(wait.seconds for wait in waited), 3),
        "took_s": round(took_s, 1),
    }
