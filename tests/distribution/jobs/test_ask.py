"""POST /jobs: what is answered, and when."""

from tests.distribution.jobs.conftest import Working
from tests.distribution.jobs.kinds import effects
from tests.distribution.world import World

ERRAND = {"type": "errand", "payload": {"org": "north"}}


def errand(**payload: object) -> dict[str, object]:
    """An errand of north's."""
    return {"type": "errand", "payload": {"org": "north", **payload}}


async def test_a_short_job_is_answered_with_its_result(world: World, owner: str, working: Working) -> None:
    async with working():
        answer = await world.call("POST", "/jobs", owner, json=ERRAND, headers={"Prefer": "wait=10"})

    body = answer.json()
    assert answer.status_code == 200, answer.text
    assert (body["status"], body["progress"], body["attempts"]) == ("completed", 1, 1)
    assert body["result"] == {"attempt": 1, "left": []}
    assert body["error"] is None
    assert body["created_at"] <= body["started_at"] <= body["finished_at"]
    assert answer.headers["location"].endswith(f"/api/v1/jobs/{body['job_id']}")
    assert answer.headers["preference-applied"] == "wait=10"
    assert "retry-after" not in answer.headers
    assert await effects(world.store.database) == [body["job_id"]]


async def test_without_a_worker_the_job_waits(world: World, owner: str) -> None:
    answer = await world.call("POST", "/jobs", owner, json=ERRAND)

    shown = await world.call("GET", f"/jobs/{answer.json()['job_id']}", owner)
    assert answer.status_code == 202
    assert answer.headers["retry-after"] == "1"
    assert (answer.json()["status"], answer.json()["progress"], answer.json()["started_at"]) == ("queued", 0, None)
    assert shown.json() == answer.json()
