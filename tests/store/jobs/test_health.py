"""GET /health reports jobs that wait while no worker takes them."""

import pytest

from countersign.kernel import clock
from tests.store.jobs.conftest import Working
from tests.store.jobs.kinds import ask, wait_for_job
from tests.store.world import World


async def test_work_that_no_worker_takes_is_reported(world: World, owner: str, working: Working) -> None:
    job_id = await ask(world, owner)
    fresh_answer = await world.call("GET", "/health")
    await delay(world, 70)
    late_response = await world.call("GET", "/health")
    async with working():
        await wait_for_job(world, owner, job_id)
        attended_response = await world.call("GET", "/health")

    assert (fresh_answer.status_code, late_response.status_code, attended_response.status_code) == (200, 503, 200)
    assert "no worker has been seen" in late_response.json()["detail"]
    assert "countersign worker" in late_response.json()["resolution"]


@pytest.mark.parametrize("seconds", [50, 70])
async def test_work_that_waits_behind_other_work_is_no_fault(world: World, owner: str, seconds: int) -> None:
    await ask(world, owner)
    await delay(world, 3600)
    async with world.store.database.transaction() as transaction:
        seen_at = clock.later(clock.now(), seconds=-seconds)
        await transaction.run("INSERT INTO job_worker (id, seen_at) VALUES ('w', $1)", seen_at)

    assert (await world.call("GET", "/health")).status_code == (200 if seconds == 50 else 503)


async def delay(world: World, seconds: int) -> None:
    """Date all jobs back, as if they had waited for this time."""
    async with world.store.database.transaction() as transaction:
        await transaction.run("UPDATE job SET run_after = $1", clock.later(clock.now(), seconds=-seconds))
