"""When a sync fails, every write that waited for it is refused, no further write is accepted, and the next start has
all acknowledged data."""

import asyncio
import random
import shutil
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from countersign.cli.output import Exit
from countersign.settings import Settings
from countersign.store import app
from countersign.store.context import Store
from countersign.store.jobs import worker_process
from tests.faults import frail_worker, job_worker, places
from tests.faults.crowd import ClientPool
from tests.faults.frail import FaultyDiskWorker, frail
from tests.faults.lives import RestartableService
from tests.faults.places import FilledDirectory
from tests.faults.preload import compile_library
from tests.faults.test_jobs_under_kills import count_values, seed_jobs, unfinished_count
from tests.figures import Figures
from tests.servers.countersign import MASTER_KEY, environment

RUNS, RUNS_FULL = 4, 100
"""The number of runs of each service."""
HANDS = (1, 6)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[FaultyDiskWorker]:
    """A process whose disk fails below the test's folder."""
    with frail(compile_library("frail", tmp_path), tmp_path) as faulty_worker:
        yield faulty_worker


def test_after_a_failed_sync_writes_are_refused_and_a_restart_has_all_acknowledged_writes(
    worker: FaultyDiskWorker, place: FilledDirectory, tmp_path: Path, is_full: bool, figures: Figures
) -> None:
    runs = RUNS_FULL if is_full else RUNS
    errand_run = places.copy_for_errands(place, tmp_path / "data", 1)
    syncs = worker.live(errand_run, frail_worker.SYNC_FAILS).syncs
    shutil.rmtree(errand_run.data)
    failed = acknowledged = in_doubt = kept_unheard = 0
    for run in range(runs):
        errand_run = places.copy_for_errands(place, tmp_path / "data", HANDS[run % len(HANDS)])

        life = worker.live(errand_run, frail_worker.SYNC_FAILS, 1 + run * syncs // runs)

        assert life.ended in (frail_worker.DONE, frail_worker.TURNED), life.wrong
        # When only an upload's own bytes could not be synced, only that upload is refused.
        if set(life.turned) - {"upload"}:
            assert len(life.turned) == len(errand_run.ledgers)
            assert not life.still_writes
        failed += life.ended == frail_worker.TURNED
        acknowledged += errand_run.answered_count
        in_doubt += errand_run.in_doubt
        places.require_sound(errand_run)
        restarted = worker.live(errand_run)
        assert restarted.ended == frail_worker.DONE, restarted.wrong
        kept_unheard += restarted.found_unheard
        places.require_once(errand_run)
        shutil.rmtree(errand_run.data)

    assert failed
    figures |= {
        "runs_with_a_failed_sync": failed,
        "acknowledged": acknowledged,
        "refused": in_doubt,
        "refused_and_found_kept": kept_unheard,
        "lost": 0,
        "doubled": 0,
    }


@pytest.mark.parametrize("service", ["distribution", "records"])
def test_a_server_exits_after_a_failed_disk_commit_and_its_successor_continues(
    service: str, tmp_path: Path
) -> None:
    lives = RestartableService(tmp_path / "data", service)
    crowd = ClientPool(lives, places.fill_for(lives), 0)
    sound = dict(lives.settings)
    lives.settings |= {
        "LD_PRELOAD": str(compile_library("frail", tmp_path)),
        "FRAIL_UNDER": str(lives.data / f"{service}.sqlite"),
        "FRAIL_MODE": str(frail_worker.SYNC_FAILS),
        "FRAIL_AT": "8",
    }
    try:
        lives.start()
        refusal = asyncio.run(crowd.try_once())

        assert refusal is not None
        assert refusal.args == (503,)
        assert lives.end() == Exit.FAILED
        log_text = lives.log.read_text()
        assert "the disk failed while a change was made durable" in log_text
        assert "Traceback" not in log_text

        lives.settings = sound
        lives.start()
        asyncio.run(crowd.look_at_all())
        assert lives.stop() == 0
    finally:
        lives.kill()
    places.require_once(crowd.about)


async def run_worker(store: Store, until: Callable[[], Awaitable[bool]], **variables: str) -> int:
    """Let a process work on jobs until this time, or until it ends by itself, and return its exit code."""
    worker = await asyncio.create_subprocess_exec(*job_worker.COMMAND, stdin=PIPE, env=environment(**variables))
    assert worker.stdin is not None
    worker.stdin.write(worker_process.worker_config(store) + b"\n")
    async with asyncio.timeout(60):
        while worker.returncode is None and not await until():
            await asyncio.sleep(0.05)
        if worker.returncode is None:
            worker.terminate()
        return await worker.wait()


async def test_a_worker_exits_after_a_failed_disk_commit_and_its_successor_does_the_jobs(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    settings = Settings(data=str(data), master_key=MASTER_KEY, reserve_mib=0, job_engine="embedded", job_lease_s=2)
    variables = {
        "LD_PRELOAD": str(compile_library("frail", tmp_path)),
        "FRAIL_UNDER": str(data / "distribution.sqlite"),
    }
    variables |= {"FRAIL_MODE": str(frail_worker.SYNC_FAILS), "FRAIL_AT": "12"}
    async with app.open_store(settings, "http://127.0.0.1:1", is_loopback=True) as store:
        await job_worker.make_tables(store.database)
        jobs = await seed_jobs(store, 12, random.Random(7))

        async def is_done() -> bool:
            return not await unfinished_count(store)

        assert await run_worker(store, is_done, **variables) == 0
        assert not await is_done()

        assert await run_worker(store, is_done) == 0
        assert await count_values(store, "SELECT status FROM job") == {"completed": len(jobs)}
        assert await count_values(store, "SELECT job_id FROM effect") == dict.fromkeys(jobs, 1)
