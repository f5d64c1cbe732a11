"""POST /jobs: its responses, and when they are sent."""

import asyncio
import uuid

import pytest

from countersign.store.jobs import routes
from countersign.store.jobs.routes import WaitPreference
from tests.store.jobs.conftest import Working
from tests.store.jobs.kinds import effects, errand, wait_for_job
from tests.store.world import World


async def test_a_job_that_is_waited_for_is_answered_with_its_result(world: World, owner: str, working: Working) -> None:
    async with working():
        answer = await world.call("POST", "/jobs", owner, json=errand(), headers={"Prefer": "wait=10"})

    body = answer.json()
    assert answer.status_code == 200, answer.text
    assert (body["status"], body["progress"], body["attempts"], body["type"]) == ("completed", 1, 1, "errand")
    assert body["result"] == {"attempt": 1, "left": []}
    assert body["error"] is None
    assert body["created_at"] <= body["started_at"] <= body["finished_at"]
    assert answer.headers["location"].endswith(f"/api/v1/jobs/{body['job_id']}")
    assert answer.headers["preference-applied"] == "wait=10"
    assert "retry-after" not in answer.headers
    assert await effects(world.store.database) == [body["job_id"]]


async def test_without_a_worker_the_job_waits(world: World, owner: str) -> None:
    answer = await world.call("POST", "/jobs", owner, json=errand())

    shown_response = await world.call("GET", f"/jobs/{answer.json()['job_id']}", owner)
    assert answer.status_code == 202
    assert answer.headers["retry-after"] == shown_response.headers["retry-after"] == "1"
    assert (answer.json()["status"], answer.json()["progress"], answer.json()["started_at"]) == ("queued", 0, None)
    assert shown_response.json() == answer.json()
    assert shown_response.headers["cache-control"] == "no-store"


async def test_a_caller_who_prefers_no_wait_gets_a_response_at_once(world: World, owner: str, working: Working) -> None:
    async with working():
        answer = await world.call("POST", "/jobs", owner, json=errand(), headers={"Prefer": "respond-async"})

    assert (answer.status_code, answer.json()["status"]) == (202, "queued")
    assert answer.headers["preference-applied"] == "respond-async"


@pytest.mark.parametrize(
    ("prefer", "size", "expected_wait"),
    [
        (None, 1 << 20, WaitPreference(0.25)),
        (None, (1 << 20) + 1, WaitPreference(0)),
        ("return=minimal", 0, WaitPreference(0.25)),
        ("wait=5", 1 << 30, WaitPreference(5, "wait=5")),
        ('WAIT = "7"', 0, WaitPreference(7, "wait=7")),
        ("wait=31", 0, WaitPreference(30, "wait=30")),
        ("wait=999999999", 0, WaitPreference(30, "wait=30")),
        ("wait=0", 0, WaitPreference(0, "wait=0")),
        ("respond-async", 0, WaitPreference(0, "respond-async")),
        ("respond-async, wait=4", 0, WaitPreference(4, "wait=4")),
        ("wait=-1", 0, WaitPreference(0.25)),
        ("wait=²", 0, WaitPreference(0.25)),
        ("wait=1e3, wait", 0, WaitPreference(0.25)),
    ],
)
def test_the_wait_is_the_preferred_time_within_its_limits(
    prefer: str | None, size: int, expected_wait: WaitPreference
) -> None:
    assert routes.wait_preference(prefer, size) == expected_wait


async def test_a_repeated_call_waits_for_the_answer_of_the_first_call(
    world: World, owner: str, working: Working
) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4()), "Prefer": "wait=10"}

    async with working():
        first_response = await world.call("POST", "/jobs", owner, json=errand(), headers=key)
        second_response = await world.call("POST", "/jobs", owner, json=errand(), headers=key)

    assert (first_response.status_code, second_response.status_code) == (200, 200)
    assert second_response.content == first_response.content
    assert second_response.headers["location"] == first_response.headers["location"]
    assert second_response.headers["idempotency-replayed"] == "true"
    assert await effects(world.store.database) == [first_response.json()["job_id"]]


async def test_a_repeated_request_returns_the_first_answer_after_the_job_ended(
    world: World, owner: str, working: Working
) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4()), "Prefer": "respond-async"}
    first_response = await world.call("POST", "/jobs", owner, json=errand(), headers=key)
    async with working():
        await wait_for_job(world, owner, first_response.json()["job_id"])

        second_response = await world.call("POST", "/jobs", owner, json=errand(), headers=key)

    assert (first_response.status_code, second_response.status_code) == (202, 202)
    assert second_response.content == first_response.content
    assert len(await effects(world.store.database)) == 1


async def test_a_waiting_call_reserves_its_idempotency_key(world: World, owner: str) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4()), "Prefer": "wait=1"}

    first_response, second_response = await asyncio.gather(
        *(world.call("POST", "/jobs", owner, json=errand(), headers=key) for _ in range(2))
    )

    assert {first_response.status_code, second_response.status_code} == {202, 409}
    assert len((await world.call("GET", "/jobs", owner)).json()["items"]) == 1


@pytest.mark.parametrize("name", ["unheard_of", "inner"])
async def test_a_type_that_callers_may_not_request_is_unknown(world: World, owner: str, name: str) -> None:
    answer = await world.call("POST", "/jobs", owner, json={"type": name, "payload": {"org": "north"}})

    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_job_type")
    assert answer.json()["resolution"] == "Types: errand."
    assert (await world.call("GET", "/jobs", owner)).json()["items"] == []


@pytest.mark.parametrize(
    ("payload", "pointer"),
    [
        ({}, "/payload/org"),
        ({"org": "north", "more": 1}, "/payload/more"),
        ({"org": "north", "seconds": "1"}, "/payload/seconds"),
        ({"org": "north", "seconds": -1}, "/payload/seconds"),
        ({"org": "north", "end": "otherwise"}, "/payload/end"),
        ([], "/payload"),
    ],
)
async def test_a_wrong_payload_is_refused_with_a_pointer_to_the_error(
    world: World, owner: str, payload: object, pointer: str
) -> None:
    answer = await world.call("POST", "/jobs", owner, json={"type": "errand", "payload": payload})

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


async def test_a_job_requires_the_right_to_publish_in_its_organisation(world: World, owner: str) -> None:
    viewer = await world.person("viewer@north.example", north="viewer")

    assert (await world.call("POST", "/jobs", json=errand())).status_code == 401
    assert (await world.call("POST", "/jobs", viewer, json=errand())).status_code == 403
    assert (await world.call("POST", "/jobs", owner, json=errand(org="south"))).status_code == 404


async def test_no_more_jobs_wait_than_may(world: World, owner: str) -> None:
    south = await world.person("owner@south.example", south="owner")
    object.__setattr__(world.store.settings, "jobs_queued", 3)

    answers = await asyncio.gather(
        *(world.call("POST", "/jobs", owner, json=errand(), headers={"Prefer": "wait=0"}) for _ in range(8))
    )
    other_response = await world.call("POST", "/jobs", south, json=errand(org="south"), headers={"Prefer": "wait=0"})

    refusals = [answer for answer in answers if answer.status_code == 429]
    assert sorted(answer.status_code for answer in answers) == [202] * 3 + [429] * 5
    assert {answer.json()["code"] for answer in refusals} == {"too_many_jobs"}
    assert all(answer.headers["retry-after"] == "10" and answer.json()["resolution"] for answer in refusals)
    assert other_response.status_code == 202
