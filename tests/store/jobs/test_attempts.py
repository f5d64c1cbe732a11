"""How attempts end: refused, failed, failed for the last time, timed out, returned to the queue."""

import asyncio
from pathlib import Path

import pytest

from countersign.store.context import Store
from countersign.store.jobs import leases, runner
from tests.store.jobs.conftest import Working, working_on
from tests.store.jobs.kinds import ask, effects, wait_for_job
from tests.store.world import World


def choose(store: Store, **changes: object) -> None:
    """Change settings of the store."""
    for name, value in changes.items():
        object.__setattr__(store.settings, name, value)


async def test_a_refused_job_fails_with_that_problem_and_is_not_tried_again(
    world: World, owner: str, working: Working
) -> None:
    async with working():
        body = await wait_for_job(world, owner, await ask(world, owner, end="refused"))

    error = body["error"]
    assert (body["status"], body["attempts"], body["result"]) == ("failed", 1, None)
    assert (error["code"], error["status"], error["detail"]) == ("too_heavy", 422, "nobody can carry that")
    assert (error["resolution"], error["title"]) == ("Take less.", "Too heavy")
    assert error["instance"] == f"http://127.0.0.1:8480/api/v1/jobs/{body['job_id']}"
    assert await effects(world.store.database) == []


@pytest.mark.parametrize("end", ["broken", "unkept"])
async def test_a_job_that_breaks_again_and_again_fails_and_reveals_no_secret(
    world: World, owner: str, working: Working, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(world.store, job_attempts=2)
    monkeypatch.setattr(runner, "BACK_OFF_S", 0.1)

    async with working():
        body = await wait_for_job(world, owner, await ask(world, owner, end=end))

    assert (body["status"], body["attempts"], body["error"]["code"]) == ("failed", 2, "job_failed")
    assert "secret" not in str(body)
    assert "Zero" not in str(body)
    assert await effects(world.store.database) == []


async def test_a_job_that_breaks_once_is_done_the_second_time_in_an_empty_folder(
    world: World, owner: str, working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "BACK_OFF_S", 0.1)
    async with working():
        body = await wait_for_job(world, owner, await ask(world, owner, end="once_broken"))

    assert (body["status"], body["attempts"], body["error"]) == ("completed", 2, None)
    assert body["result"] == {"attempt": 2, "left": []}
    assert await effects(world.store.database) == [body["job_id"]]
    assert not [*(Path(world.store.settings.data) / "work").iterdir()]


def test_the_pause_before_another_attempt_doubles_and_differs() -> None:
    pauses = [[runner.back_off_s(attempt) for _ in range(20)] for attempt in (1, 2, 3, 30)]

    for least, pauses_of_attempt in zip((1, 2, 4, 300), pauses, strict=True):
        assert least <= min(pauses_of_attempt) <= max(pauses_of_attempt) <= least * 1.5
        assert len(set(pauses_of_attempt)) > 1


async def test_an_attempt_that_takes_too_long_is_ended(world: World, owner: str, working: Working) -> None:
    choose(world.store, job_seconds=1, job_attempts=1)

    async with working():
        body = await wait_for_job(world, owner, await ask(world, owner, seconds=60, heeds=False))

    assert (body["status"], body["error"]["code"]) == ("failed", "job_failed")
    assert "took too long" in body["error"]["detail"]


async def test_a_worker_that_stops_waits_for_its_job_or_returns_it_to_the_queue(world: World, owner: str) -> None:
    async with working_on(world.store):
        short, long = await ask(world, owner, seconds=0.3), await ask(world, owner, seconds=60)
        await running(world.store, short)
    async with working_on(world.store):
        await running(world.store, long)
    job_after = (await world.call("GET", f"/jobs/{long}", owner)).json()

    assert (await wait_for_job(world, owner, short))["status"] == "completed"
    assert (job_after["status"], job_after["attempts"]) == ("queued", 0)
    assert await effects(world.store.database) == [short]


async def test_a_job_that_repeatedly_kills_its_workers_fails(world: World, owner: str, working: Working) -> None:
    choose(world.store, job_attempts=1)
    job_id = await ask(world, owner)
    for _ in range(3):
        assert await leases.claim_next(world.store.database, max_running=4, lease_s=-1, lane="requested")

    async with working():
        body = await wait_for_job(world, owner, job_id)

    assert (body["status"], body["error"]["code"]) == ("failed", "job_failed")
    assert "3 workers" in body["error"]["detail"]


async def test_lost_workers_do_not_count_as_attempts(world: World, owner: str, working: Working) -> None:
    choose(world.store, job_attempts=1)
    job_id = await ask(world, owner)
    for _ in range(2):
        assert await leases.claim_next(world.store.database, max_running=4, lease_s=-1, lane="requested")

    async with working():
        body = await wait_for_job(world, owner, job_id)

    assert (body["status"], body["attempts"]) == ("completed", 3)


async def test_files_of_dead_attempts_are_removed_and_files_of_running_attempts_are_kept(
    world: World, owner: str
) -> None:
    job_id = await ask(world, owner)
    claimed_job = await leases.claim_next(world.store.database, max_running=4, lease_s=60, lane="requested")
    data = Path(world.store.settings.data)
    for name in (f"{job_id}-1", f"{job_id}-0", f"{job_id[:-4]}0000-1"):
        (data / "work" / name / "inner").mkdir(parents=True)

    removed_count = await runner.sweep(data, world.store.database)

    assert claimed_job
    assert removed_count == 2
    assert [folder.name for folder in (data / "work").iterdir()] == [f"{job_id}-1"]


async def running(store: Store, job_id: str) -> None:
    """Wait until the job has started."""
    async with asyncio.timeout(120):
        while await store.database.fetch_one("SELECT 1 FROM job WHERE id = $1 AND attempts > 0", job_id) is None:
            await asyncio.sleep(0.01)
