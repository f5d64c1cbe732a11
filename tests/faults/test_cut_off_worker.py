"""A worker that loses the database in the middle of a job: another worker finishes the job, and its effect happens
once."""

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from countersign.kernel.jobs import processes
from countersign.settings import Settings
from countersign.store import app
from countersign.store.auth import organisations
from countersign.store.context import Store
from countersign.store.jobs import queries, worker_process
from tests.faults import job_worker
from tests.faults.job_worker import ChoreInput
from tests.figures import Figures
from tests.servers.countersign import MASTER_KEY
from tests.servers.machines import Machine, machines
from tests.servers.postgres import Cluster

CUTS, CUTS_FULL = 1, 10
LEASE_S = 3
AT_WORK_S = 1.0
PATIENCE_S = 120
"""The timeout of every wait, long enough for a busy machine."""


@asynccontextmanager
async def run_worker(machine: Machine, store: Store, data: Path, url: str) -> AsyncIterator[Process]:
    """Run a worker on the machine until the block ends. It is ready to work when the block begins."""
    worker_settings = replace(store.settings, data=str(data), database_url=url.replace("127.0.0.1", machine.far))
    worker_command = machine.command(*job_worker.COMMAND)
    worker = await asyncio.create_subprocess_exec(*map(str, worker_command), stdin=PIPE)
    try:
        assert worker.stdin is not None
        worker.stdin.write(worker_process.worker_config(replace(store, settings=worker_settings)) + b"\n")
        awake_before = await number(store, "SELECT count(*) FROM awake")
        await wait_for_count(store, "SELECT count(*) FROM awake", awake_before + 1)
        yield worker
    finally:
        if worker.returncode is None:
            worker.kill()
        await worker.wait()


async def number(store: Store, statement: str, *values: str) -> int:
    """Return the count that a statement returns."""
    row = await store.database.fetch_one(statement, *values)
    assert row is not None
    return int(row[0])


async def wait_for_count(store: Store, statement: str, expected_count: int, *values: str) -> None:
    """Wait until a statement returns this count."""
    async with asyncio.timeout(PATIENCE_S):
        while await number(store, statement, *values) < expected_count:
            await asyncio.sleep(0.05)


async def add_job(store: Store, org_id: str) -> str:
    """Add one job."""
    async with store.database.transaction() as transaction:
        return await queries.enqueue(transaction, store, "chore", ChoreInput(AT_WORK_S), org_id=org_id, created_by="x")


BEGUN = "SELECT count(*) FROM begun WHERE job_id = $1"
EFFECTS = "SELECT count(*) FROM effect WHERE job_id = $1"
ENDED = "SELECT count(*) FROM job WHERE id = $1 AND status = 'completed'"


@pytest.mark.parametrize(
    ("engine", "manner"),
    [
        ("embedded", "cut"),
        ("procrastinate", "swallow"),
        pytest.param("embedded", "swallow", marks=pytest.mark.full),
        pytest.param("procrastinate", "cut", marks=pytest.mark.full),
    ],
)
async def test_a_job_whose_worker_is_cut_off_is_ended_by_another_and_has_its_effect_once(
    tmp_path: Path,
    postgres_cluster: Cluster,
    postgres_url: str,
    engine: str,
    manner: str,
    *,
    is_full: bool,
    figures: Figures,
) -> None:
    settings = Settings(
        data=str(tmp_path / "here"),
        database_url=postgres_url,
        database_pool=4,
        master_key=MASTER_KEY,
        reserve_mib=0,
        job_engine=engine,
        job_lease_s=LEASE_S,
        job_nice=0,
    )
    cuts = CUTS_FULL if is_full else CUTS
    with machines(2, [postgres_cluster.port]) as (first_machine, second_machine):
        async with app.open_store(settings, "http://127.0.0.1:1", is_loopback=True) as store:
            await job_worker.make_tables(store.database)
            async with store.database.transaction() as transaction:
                org_id = (await organisations.create_organisation(transaction, "north", "North")).id
            for _ in range(cuts):
                await cut_off_at_work(store, (first_machine, second_machine), manner, org_id, (tmp_path, postgres_url))
            retried_jobs = await number(store, "SELECT count(*) FROM job WHERE attempts > 1")

    assert retried_jobs == cuts
    figures |= {"engine": engine, "manner": manner, "cuts": cuts, "begun_again": retried_jobs, "effects_doubled": 0}


async def cut_off_at_work(
    store: Store, pair: tuple[Machine, Machine], manner: str, org_id: str, folder_and_url: tuple[Path, str]
) -> None:
    """Disconnect the first machine while it works on a job; the other finishes the job, and the first works again
    later."""
    first_machine, second_machine = pair
    folder, url = folder_and_url
    async with run_worker(first_machine, store, folder / "first", url) as worker:
        job = await add_job(store, org_id)
        await wait_for_count(store, BEGUN, 1, job)
        getattr(first_machine, manner)()
        async with run_worker(second_machine, store, folder / "second", url):
            await wait_for_count(store, ENDED, 1, job)
        first_machine.heal()
        later_job = await add_job(store, org_id)
        task = asyncio.create_task(wait_for_count(store, ENDED, 1, later_job))
        ended_task = asyncio.create_task(worker.wait())
        await asyncio.wait({task, ended_task}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            # It could not cancel its job and ended, so its supervisor starts another.
            assert worker.returncode == processes.RESTART_CODE
            async with run_worker(first_machine, store, folder / "first", url):
                await task

    assert await number(store, BEGUN, job) == 2
    assert await number(store, EFFECTS, job) == 1
    assert await number(store, EFFECTS, later_job) == 1
