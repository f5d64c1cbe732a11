"""Leases: which worker has a job, for how long, and that a worker without the lease cannot change the job."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from countersign.kernel import clock
from countersign.kernel.database.port import Transaction
from countersign.store.context import Store
from countersign.store.jobs import leases, runner
from countersign.store.jobs.leases import LeasedJob, LeaseLost
from tests.store.jobs.conftest import Working
from tests.store.jobs.kinds import TYPES, ask, effects, wait_for_job
from tests.store.world import World

KNOWN = {kind.name: kind for kind in TYPES}


async def claim(store: Store, lease_s: float = 60, running: int = 4) -> LeasedJob:
    """Claim the next job."""
    claimed_job = await leases.claim_next(store.database, max_running=running, lease_s=lease_s, lane="requested")
    assert claimed_job is not None
    return claimed_job


async def test_a_job_is_leased_by_only_one_worker(world: World, owner: str) -> None:
    job_ids = {await ask(world, owner) for _ in range(4)}

    claims = await asyncio.gather(
        *(leases.claim_next(world.store.database, max_running=10, lease_s=60, lane="requested") for _ in range(12))
    )

    jobs = [job for job in claims if job is not None]
    while len(jobs) < 4:
        jobs.append(await claim(world.store, running=10))
    assert {job.id for job in jobs} == job_ids
    assert len({job.lease for job in jobs}) == 4
    assert await leases.claim_next(world.store.database, max_running=10, lease_s=60, lane="requested") is None


async def test_a_worker_that_lost_its_job_makes_no_further_changes(world: World, owner: str) -> None:
    job_id = await ask(world, owner)
    stale_job = await claim(world.store, lease_s=-1)
    fresh_job = await claim(world.store)

    async def assert_refused(change: Callable[[Transaction], Awaitable[None]]) -> None:
        async with world.store.database.transaction() as transaction:
            with pytest.raises(LeaseLost):
                await change(transaction)

    assert (stale_job.id, fresh_job.id, fresh_job.attempts, fresh_job.losses) == (job_id, job_id, 2, 1)
    await assert_refused(lambda transaction: leases.complete(transaction, stale_job, "{}"))
    await assert_refused(lambda transaction: leases.fail(transaction, stale_job, "{}"))
    await assert_refused(lambda transaction: leases.requeue(transaction, stale_job, clock.now()))
    await assert_refused(lambda transaction: leases.return_to_queue(transaction, stale_job))
    with pytest.raises(LeaseLost):
        await leases.extend_lease(world.store.database, stale_job, 0.9, 60)
    shown_body = (await world.call("GET", f"/jobs/{job_id}", owner)).json()
    assert (shown_body["status"], shown_body["progress"], shown_body["error"]) == ("running", 0, None)


async def test_the_effect_of_a_stale_attempt_is_not_kept(world: World, owner: str) -> None:
    job_id = await ask(world, owner)
    stale_job = await claim(world.store, lease_s=-1)
    fresh_job = await claim(world.store)

    for claimed_job in (stale_job, fresh_job, stale_job):
        await runner.run_attempt(world.store, KNOWN, claimed_job, asyncio.Event())

    assert await effects(world.store.database) == [job_id]
    rows = await world.store.database.fetch("SELECT attempt FROM effect")
    assert [tuple(row) for row in rows] == [(2,)]


async def test_a_job_that_was_cancelled_is_not_completed(world: World, owner: str) -> None:
    job_id = await ask(world, owner)
    claimed_job = await claim(world.store)
    await world.call("DELETE", f"/jobs/{job_id}", owner)

    await runner.run_attempt(world.store, KNOWN, claimed_job, asyncio.Event())

    body = await wait_for_job(world, owner, job_id)
    assert body["error"]["code"] == "job_cancelled"
    assert await effects(world.store.database) == []


async def test_a_lease_that_is_kept_does_not_end(world: World, owner: str, working: Working) -> None:
    async with working(), working():
        job_id = await ask(world, owner, seconds=5, heeds=False)
        body = await wait_for_job(world, owner, job_id)

    assert body["attempts"] == 1, "the lease is of 2 seconds, the job of 5"
    assert await effects(world.store.database) == [job_id]


async def test_the_job_of_a_worker_without_heartbeat_is_done_by_another_worker(
    world: World, owner: str, working: Working
) -> None:
    job_id = await ask(world, owner)
    silent = await claim(world.store, lease_s=1)

    async with working():
        body = await wait_for_job(world, owner, job_id)

    assert silent.attempts == 1
    assert (body["status"], body["attempts"]) == ("completed", 2)


async def keep_to_time(store: Store, lease_s: float = 60) -> None:
    """Do what every worker does every few seconds: expire leases and repair schedules."""
    async with store.database.transaction() as transaction:
        await leases.repair_times(transaction, lease_s=lease_s, wait_s=runner.MAX_PAUSE_S)


@pytest.mark.parametrize("back_s", [7200, 3 * 86_400])
async def test_no_job_is_delayed_by_a_clock_that_was_set_back(world: World, owner: str, back_s: int) -> None:
    running, waiting_job = await ask(world, owner), await ask(world, owner)
    lost_job = await claim(world.store)
    now = clock.later(clock.now(), seconds=-back_s)

    with clock.fixed(now):
        assert await leases.claim_next(world.store.database, max_running=4, lease_s=60, lane="requested") is None
        await keep_to_time(world.store)
        assert (await claim(world.store, lease_s=600)).id == waiting_job
    with clock.fixed(clock.later(now, seconds=61)):
        reclaimed = await claim(world.store)
    assert (reclaimed.id, reclaimed.losses, lost_job.id) == (running, 1, running)


async def test_a_live_worker_keeps_its_job_when_the_clock_is_set_back(world: World, owner: str) -> None:
    await ask(world, owner)
    kept_job = await claim(world.store)
    now = clock.later(clock.now(), seconds=-7200)

    with clock.fixed(now):
        await keep_to_time(world.store)
        assert await leases.claim_next(world.store.database, max_running=4, lease_s=60, lane="requested") is None
    with clock.fixed(clock.later(now, seconds=50)):
        assert await leases.extend_lease(world.store.database, kept_job, 0.5, 60) is False
    with clock.fixed(clock.later(now, seconds=70)):
        assert await leases.claim_next(world.store.database, max_running=4, lease_s=60, lane="requested") is None


async def test_a_job_at_its_latest_start_is_not_postponed(world: World, owner: str) -> None:
    await ask(world, owner)
    claimed_job = await claim(world.store)
    async with world.store.database.transaction() as transaction:
        await leases.requeue(transaction, claimed_job, clock.later(clock.now(), seconds=runner.MAX_PAUSE_S))

    await keep_to_time(world.store)
    assert await leases.claim_next(world.store.database, max_running=4, lease_s=60, lane="requested") is None


async def test_the_running_jobs_of_an_organisation_are_limited(world: World, owner: str) -> None:
    south = await world.person("owner@south.example", south="owner")
    for _ in range(6):
        await ask(world, owner)
    of_south = await ask(world, south, org="south")

    claims = await asyncio.gather(
        *(leases.claim_next(world.store.database, max_running=2, lease_s=60, lane="requested") for _ in range(20))
    )
    while (
        another := await leases.claim_next(world.store.database, max_running=2, lease_s=60, lane="requested")
    ) is not None:
        claims.append(another)

    running = Counter(job.org_id for job in claims if job is not None)
    assert sorted(running.values()) == [1, 2]
    assert of_south in {job.id for job in claims if job is not None}


async def test_jobs_are_claimed_one_at_a_time(world: World, owner: str) -> None:
    """Otherwise, two claims that differ slightly in their time could both take the last slot of an organisation."""
    job_id = await ask(world, owner)
    database = world.store.database

    async with database.transaction() as transaction:
        if database.dialect == "postgres":
            await transaction.fetch(leases.LOCK_CLAIMS)
        second_claim = asyncio.create_task(claim(world.store))
        finished_tasks, _ = await asyncio.wait({second_claim}, timeout=0.3)

    assert not finished_tasks
    assert (await second_claim).id == job_id


async def test_a_worker_in_the_middle_of_its_commit_blocks_no_other(world: World, owner: str) -> None:
    if world.store.database.dialect == "sqlite":
        pytest.skip("SQLite has one writer, so commits are short")
    slow_job = await ask(world, owner)
    late_job = await claim(world.store, lease_s=-1)
    other_job = await ask(world, owner)

    async with world.store.database.transaction() as transaction:
        await leases.complete(transaction, late_job, "{}")
        async with asyncio.timeout(60):
            claimed_job = await claim(world.store)

    assert (late_job.id, claimed_job.id) == (slow_job, other_job)
    assert (await world.call("GET", f"/jobs/{slow_job}", owner)).json()["status"] == "completed"


async def test_many_jobs_of_one_organisation_do_not_delay_another_organisation(world: World, owner: str) -> None:
    south = await world.person("owner@south.example", south="owner")
    now = clock.now()
    with clock.fixed(clock.later(now, seconds=-10)):
        of_north = [await ask(world, owner) for _ in range(3)]
    of_south = await ask(world, south, org="south")

    claimed_ids = [(await claim(world.store)).id for _ in range(4)]

    assert claimed_ids == [of_north[0], of_south, of_north[1], of_north[2]]


async def test_a_job_that_is_to_wait_waits(world: World, owner: str) -> None:
    await ask(world, owner)
    claimed_job = await claim(world.store)

    async def requeue(transaction: Transaction) -> None:
        await leases.requeue(transaction, claimed_job, clock.later(clock.now(), seconds=5))

    async with world.store.database.transaction() as transaction:
        await requeue(transaction)

    assert await leases.claim_next(world.store.database, max_running=4, lease_s=60, lane="requested") is None
    with clock.fixed(clock.later(clock.now(), seconds=6)):
        assert (await claim(world.store)).attempts == 2


async def test_progress_never_falls_within_an_attempt(world: World, owner: str) -> None:
    job_id = await ask(world, owner)
    claimed_job = await claim(world.store)

    async def stored_progress() -> float:
        progress = (await world.call("GET", f"/jobs/{job_id}", owner)).json()["progress"]
        assert isinstance(progress, float | int)
        return progress

    await leases.extend_lease(world.store.database, claimed_job, 0.5, 60)
    await leases.extend_lease(world.store.database, claimed_job, 0.3, -1)
    assert await stored_progress() == 0.5
    await claim(world.store)
    assert await stored_progress() == 0
