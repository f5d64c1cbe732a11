"""Measures jobs that do nothing: the jobs per second of two worker processes, and the wait of a job while the workers
are idle.

The queue is filled in one transaction while the workers are idle. The measured time is from the commit to the end of
the last job. The peer is Procrastinate's own worker with a task that does nothing. It also has two processes, and each
runs one job at a time.
"""

import asyncio
import os
import statistics
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import harness
import msgspec
import seed
from harness import Bench
from processes import ROOT

from countersign.settings import Settings
from countersign.store import app
from countersign.store.auth import organisations
from countersign.store.context import Store
from countersign.store.jobs import queries, worker_process
from countersign.store.jobs.job_types import JobContext, JobType, Outcome

COMMAND = (sys.executable, str(Path(__file__).resolve()), "--work")
PEER = (sys.executable, str(ROOT / "bench/contenders/procrastinate_alone.py"))
WORKERS, ORGANISATIONS = 2, 4
JOBS, JOBS_QUICK = 3_000, 600
IDLE, IDLE_QUICK, PAUSE_S = 300, 50, 0.05
TARGET_JOBS_S, MAX_WAIT_MS = 300, 100


class Nothing(msgspec.Struct):
    """The empty input and the empty result of a job."""


async def nothing(store: Store, work: JobContext[Nothing]) -> Outcome:
    """Do nothing."""
    return Outcome(Nothing())


def main() -> None:
    """Run a worker process until it gets a signal."""
    worker_process.run_worker_process(
        lambda settings, root_url, is_loopback: app.open_store(settings, root_url, is_loopback=is_loopback),
        (JobType("nothing", Nothing, nothing),),
    )


def settings(bench: Bench, database: str, engine: str, number: int) -> Settings:
    """Return the settings of a new, empty store."""
    url = ""
    if database == "postgres" and bench.cluster is not None:
        name = f"jobs_{engine}_{number}"
        bench.cluster.sql(f"CREATE DATABASE {name} TEMPLATE template0")
        url = bench.cluster.url(name)
    data = str(bench.folder / f"{database}-{engine}-{number}")
    return Settings(data=data, database_url=url, master_key=seed.MASTER_KEY, job_engine=engine, database_pool=4)


async def wait_for_workers(store: Store, count: int) -> None:
    """Wait until this number of workers has registered."""
    async with asyncio.timeout(60):
        while True:
            row = await store.database.fetch_one("SELECT count(*) FROM job_worker")
            if row is not None and row[0] == count:
                return
            await asyncio.sleep(0.05)


async def enqueue(store: Store, orgs: Sequence[str], count: int) -> None:
    """Add this number of jobs to the queue in one transaction."""
    async with store.database.transaction() as transaction:
        for number in range(count):
            org_id = orgs[number % len(orgs)]
            await queries.enqueue(transaction, store, "nothing", Nothing(), org_id=org_id, created_by="bench")


async def wait_for_jobs(store: Store, count: int) -> None:
    """Wait until this number of jobs has ended."""
    async with asyncio.timeout(120):
        while True:
            row = await store.database.fetch_one("SELECT count(*) FROM job WHERE finished_at IS NOT NULL")
            if row is not None and row[0] >= count:
                return
            await asyncio.sleep(0.02)


async def measure_ours(store_settings: Settings, *, is_quick: bool) -> tuple[float, list[float]]:
    """Return the jobs per second from a full queue, and the waits in milliseconds of jobs that are added one by one."""
    count, idle = (JOBS_QUICK, IDLE_QUICK) if is_quick else (JOBS, IDLE)
    async with app.open_store(store_settings, "http://127.0.0.1:1", is_loopback=True) as store:
        async with store.database.transaction() as transaction:
            orgs = [
                (await organisations.create_organisation(transaction, f"o{number}", "O")).id
                for number in range(ORGANISATIONS)
            ]
        async with worker_process.supervise_workers(store, COMMAND, WORKERS):
            await wait_for_workers(store, WORKERS)
            # The first job of each process imports modules that later jobs use.
            await enqueue(store, orgs, 2 * WORKERS)
            await wait_for_jobs(store, 2 * WORKERS)
            await asyncio.sleep(1.5)
            await enqueue(store, orgs, count)
            began_s = time.monotonic()
            await wait_for_jobs(store, 2 * WORKERS + count)
            rate = count / (time.monotonic() - began_s)
            await asyncio.sleep(2)
            for number in range(idle):
                await enqueue(store, [orgs[number % len(orgs)]], 1)
                await asyncio.sleep(PAUSE_S)
            await wait_for_jobs(store, 2 * WORKERS + count + idle)
        rows = await store.database.fetch(
            "SELECT started_at - created_at FROM job ORDER BY created_at DESC, id DESC LIMIT $1", idle
        )
    return rate, [row[0] / 1000 for row in rows]


@asynccontextmanager
async def peers(url: str) -> AsyncIterator[None]:
    """Run Procrastinate's workers until the block ends."""
    environment = {**os.environ, "BENCH_DATABASE_URL": url}
    peer_processes = [
        await asyncio.create_subprocess_exec(*PEER, "work", env=environment, stdin=PIPE) for _ in range(WORKERS)
    ]
    try:
        yield
    finally:
        for process in peer_processes:
            process.terminate()
        await asyncio.gather(*(process.wait() for process in peer_processes))


async def peer(bench: Bench, number: int, *, is_quick: bool) -> float:
    """Return the jobs per second of Procrastinate without our product."""
    from contenders import procrastinate_alone

    if bench.cluster is None:
        raise RuntimeError("Procrastinate needs PostgreSQL")
    name = f"jobs_peer_{number}"
    bench.cluster.sql(f"CREATE DATABASE {name} TEMPLATE template0")
    url = bench.cluster.url(name)
    count = JOBS_QUICK if is_quick else JOBS
    await procrastinate_alone.prepare(url)
    async with peers(url):
        await asyncio.sleep(4)
        await procrastinate_alone.defer(url, count)
        began_s = time.monotonic()
        await procrastinate_alone.wait_for_jobs(url)
        return count / (time.monotonic() - began_s)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share of the values is."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def measure(bench: Bench) -> None:
    """Measure every engine in turn, in rounds."""
    contenders = [("sqlite", "embedded")] * ("sqlite" in bench.options.databases)
    if bench.cluster is not None:
        contenders += [("postgres", "embedded"), ("postgres", "procrastinate")]
    rates: dict[str, list[float]] = {}
    waits: dict[str, list[float]] = {}
    quick = bench.options.is_quick
    for number in range(bench.options.rounds):
        for database, engine in contenders:
            name = f"{database}, {engine}"
            rate, waited = asyncio.run(measure_ours(settings(bench, database, engine, number), is_quick=quick))
            rates.setdefault(name, []).append(rate)
            waits.setdefault(name, []).extend(waited)
        if bench.cluster is not None:
            rates.setdefault("Procrastinate alone", []).append(asyncio.run(peer(bench, number, is_quick=quick)))
    for name, job_rates in rates.items():
        figures: dict[str, float] = {"jobs_s": round(statistics.median(job_rates), 1)}
        if name in waits:
            figures |= {f"wait_p{percent}_ms": round(percentile(waits[name], percent / 100), 2) for percent in (50, 99)}
        bench.other[name] = {**figures, "rounds_jobs_s": [round(rate, 1) for rate in job_rates]}
        print(f"  {name:24}" + "".join(f"  {key} {value:,.1f}" for key, value in figures.items()))
    for name, waited in waits.items():
        bench.aim(f"{name}, jobs a second", statistics.median(rates[name]), TARGET_JOBS_S)
        bench.aim(f"{name}, {MAX_WAIT_MS} ms to p99 of the wait", MAX_WAIT_MS / percentile(waited, 0.99), 1)


if __name__ == "__main__":
    if "--work" in sys.argv:
        main()
    else:
        with harness.bench("jobs", "Jobs that do nothing, two workers", needs_load=False) as running:
            measure(running)
