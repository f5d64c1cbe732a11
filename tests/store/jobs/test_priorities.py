"""Priorities: builds run before any number of waiting deltas, and the jobs of one organisation do not delay others."""

import asyncio

import pytest

from countersign.kernel import clock
from countersign.store.auth.queries import organisation_with_slug
from countersign.store.jobs import leases, queries, worker_process
from countersign.store.jobs.job_types import BACKGROUND, BUILD, REQUESTED, AnyJobType, JobContext, JobType, Outcome
from countersign.store.releases.processing.build_job import TYPES as PROCESSING
from tests.store.jobs.conftest import with_changes
from tests.store.jobs.kinds import ErrandInput, ErrandResult
from tests.store.world import World

pytestmark = pytest.mark.usefixtures("owner")
NAMES = {BUILD: "build", REQUESTED: "request", BACKGROUND: "delta"}


async def put(world: World, priority: int, count: int = 1, org: str = "north") -> None:
    """Create jobs of an organisation."""
    organisation = await organisation_with_slug(world.store.database, org)
    assert organisation is not None
    async with world.store.database.transaction() as transaction:
        for _ in range(count):
            body, name = ErrandInput(org), NAMES[priority]
            await queries.enqueue(
                transaction, world.store, name, body, org_id=organisation.id, created_by="x", priority=priority
            )


async def claim_types(world: World, count: int, max_running: int = 4, lane: leases.Lane = "requested") -> list[str]:
    """Claim this number of jobs one after the other, and return their types. Without a job to claim, the type is ""."""
    claimed_types: list[str] = []
    for _ in range(count):
        claimed_job = await leases.claim_next(world.store.database, max_running=max_running, lease_s=60, lane=lane)
        claimed_types.append("" if claimed_job is None else claimed_job.type)
    return claimed_types


async def test_a_build_is_claimed_before_a_thousand_deltas(world: World) -> None:
    now = clock.now()
    with clock.fixed(clock.later(now, seconds=-60)):
        await put(world, BACKGROUND, 1_000)
    await put(world, REQUESTED)
    await put(world, BUILD)

    assert await claim_types(world, 3) == ["build", "request", ""]
    assert await claim_types(world, 1, lane="background") == ["delta"]


async def test_deltas_that_run_take_no_place_of_a_build(world: World) -> None:
    await put(world, BACKGROUND, 5)
    assert await claim_types(world, 3, max_running=2, lane="background") == ["delta", "delta", ""]

    await put(world, BUILD, 3)

    assert await claim_types(world, 4, max_running=2) == ["build", "build", "", ""]


async def test_builds_of_one_organisation_do_not_delay_another_organisation(world: World) -> None:
    await world.person("owner@south.example", south="owner")
    await put(world, BUILD, 3)
    await put(world, REQUESTED, org="south")

    assert await claim_types(world, 4) == ["build", "request", "build", "build"]


async def test_a_delta_of_a_dead_worker_waits_for_builds_too(world: World) -> None:
    await put(world, BACKGROUND)
    assert await leases.claim_next(world.store.database, max_running=4, lease_s=-1, lane="background") is not None
    await put(world, BUILD)

    assert await claim_types(world, 2) == ["build", ""]
    assert await claim_types(world, 1, lane="background") == ["delta"]


async def test_waiting_deltas_do_not_use_the_queue_space_of_pushes(world: World) -> None:
    store = with_changes(world.store, jobs_queued=3)
    organisation = await organisation_with_slug(store.database, "north")
    assert organisation is not None
    await put(world, BACKGROUND, 10)

    async with store.database.transaction() as transaction:
        await queries.require_queue_space(transaction, store, organisation.id)


async def test_a_worker_runs_a_build_and_a_delta_at_the_same_time(world: World) -> None:
    """One worker makes a delta that does not end while another delta waits. Builds must end nevertheless."""
    begun_types: list[str] = []
    may_end, stop_event = asyncio.Event(), asyncio.Event()

    async def delta(_: object, work: JobContext[ErrandInput]) -> Outcome:
        begun_types.append("delta")
        await may_end.wait()
        return Outcome(ErrandResult(work.attempt, []))

    async def build(_: object, work: JobContext[ErrandInput]) -> Outcome:
        begun_types.append("build")
        return Outcome(ErrandResult(work.attempt, []))

    types: tuple[AnyJobType, ...] = (
        JobType("delta", ErrandInput, delta, priority=BACKGROUND),
        JobType("build", ErrandInput, build, priority=BUILD),
    )
    await put(world, BACKGROUND, 2)
    worker_task = asyncio.create_task(worker_process.run_jobs(world.store, types, stop_event))
    async with asyncio.timeout(60):
        while begun_types != ["delta"]:
            await asyncio.sleep(0.01)
        await put(world, BUILD, 3)
        while await count_succeeded(world) < 3:
            await asyncio.sleep(0.01)
        assert begun_types == ["delta", "build", "build", "build"]

        may_end.set()
        while await count_succeeded(world) < 5:
            await asyncio.sleep(0.01)
        stop_event.set()
        assert await worker_task, "the worker abandoned a job"


async def test_a_delta_is_made_while_builds_come_without_end(world: World) -> None:
    """Each build requests the next one. A worker that always has a build must also make the delta."""
    is_made, stop_event = asyncio.Event(), asyncio.Event()

    async def delta(_: object, work: JobContext[ErrandInput]) -> Outcome:
        is_made.set()
        return Outcome(ErrandResult(work.attempt, []))

    async def build(_: object, work: JobContext[ErrandInput]) -> Outcome:
        if not is_made.is_set():
            await put(world, BUILD)
        return Outcome(ErrandResult(work.attempt, []))

    types: tuple[AnyJobType, ...] = (
        JobType("delta", ErrandInput, delta, priority=BACKGROUND),
        JobType("build", ErrandInput, build, priority=BUILD),
    )
    await put(world, BUILD)
    await put(world, BACKGROUND)
    worker_task = asyncio.create_task(worker_process.run_jobs(world.store, types, stop_event))
    async with asyncio.timeout(60):
        await is_made.wait()
        stop_event.set()
        assert await worker_task


async def count_succeeded(world: World) -> int:
    """Return the number of jobs that have succeeded."""
    rows = await world.store.database.fetch("SELECT count(*) FROM job WHERE status = 'completed'")
    return int(rows[0][0])


async def test_builds_deltas_and_other_jobs_have_their_priorities() -> None:
    assert {kind.name: kind.priority for kind in PROCESSING} == {
        "build.process": BUILD,
        "archive.extract": REQUESTED,
        "artifact.verify": REQUESTED,
        "delta.make": BACKGROUND,
    }
