"""GET /health reports jobs that wait while no worker takes them."""

import pytest

from countersign.kernel import clock
from tests.store.jobs.conftest import Working
from tests.store.jobs.kinds import ask, wait_for_job
from tests.store.world import World


async def test_health_is_503_if_jobs_wait_and_no_worker_is_seen(world: World, owner: str, working: Working) -> None:
    job_id = await ask(world, owner)
    early_response = await world.call("GET", "/health")
    await delay(world, 70)
    late_response = await world.call("GET", "/health")
    async with working():
        await wait_for_job(world, owner, job_id)
        response_with_worker = await world.call("GET", "/health")

    assert (early_response.status_code, late_response.status_code, response_with_worker.status_code) == (200, 503, 200)
    assert "no worker has been seen" in late_response.json()["detail"]
    assert "countersign worker" in late_response.json()["resolution"]


@pytest.mark.parametrize("seconds", [50, 70])
async def test_health_is_200_if_a_worker_was_seen_in_the_last_minute(world: World, owner: str, seconds: int) -> None:
    await ask(world, owner)
    await delay(world, 3600)
    async with world.store.database.transaction() as transaction:
        seen_at = clock.later(clock.now(), seconds=-seconds)
        await transaction.run("INSERT INTO job_worker (id, seen_at) VALUES ('w', $1)", seen_at)

    assert (await world.call("GET", "/health")).status_code == (200 if seconds == 50 else 503)


async def delay(world: World, seconds: int) -> None:
    """Set the start of all jobs back, so that they have waited for this time."""
    async with world.store.database.transaction() as transaction:
        await transaction.run("UPDATE job SET run_after = $1", clock.later(clock.now(), seconds=-seconds))
