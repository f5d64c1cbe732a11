"""GET /jobs, GET /jobs/{job_id}, its events, and DELETE: who sees which jobs, and how they end."""

import asyncio

import pytest

from countersign.kernel import clock
from countersign.store import app
from countersign.store.jobs import queries, routes, runner
from countersign.store.jobs.routes import status_events
from tests.store.jobs.conftest import Working
from tests.store.jobs.kinds import ask, effects, wait_for_job
from tests.store.world import World


async def test_a_job_of_another_organisation_cannot_be_distinguished_from_a_missing_job(
    world: World, owner: str
) -> None:
    south = await world.person("owner@south.example", south="owner")
    reader = await world.person_token("owner@north.example", "read:library")
    job_id = await ask(world, owner)

    never = await world.call("GET", f"/jobs/{job_id[:-4]}0000", owner)
    for token in (south, reader):
        hidden_response = await world.call("GET", f"/jobs/{job_id}", token)
        assert hidden_response.status_code == 404
        events_answer = await world.call("GET", f"/jobs/{job_id}/events", token)
        assert hidden_response.status_code == events_answer.status_code == never.status_code == 404
        assert hidden_response.content.replace(job_id.encode(), b"") == never.content.replace(
            f"{job_id[:-4]}0000".encode(), b""
        )
    assert (await world.call("DELETE", f"/jobs/{job_id}", south)).status_code == 404
    assert (await world.call("GET", "/jobs/not-a-job", owner)).status_code == 404
    assert (await world.call("GET", f"/jobs/{job_id}")).status_code == 401
    assert (await world.call("GET", f"/jobs/{job_id.upper()}", owner)).status_code == 200


async def test_a_reader_of_a_job_may_only_read_it(world: World, owner: str) -> None:
    viewer = await world.person("viewer@north.example", north="viewer")
    job_id = await ask(world, owner)

    assert (await world.call("GET", f"/jobs/{job_id}", viewer)).status_code == 200
    assert [job["job_id"] for job in (await world.call("GET", "/jobs", viewer)).json()["items"]] == [job_id]
    assert (await world.call("DELETE", f"/jobs/{job_id}", viewer)).status_code == 403
    assert (await world.call("GET", f"/jobs/{job_id}", viewer)).json()["status"] == "queued"


async def test_a_publisher_of_another_organisation_may_only_read_the_job(world: World, owner: str) -> None:
    guest = await world.person("guest@example.com", north="viewer", south="owner")
    job_id = await ask(world, owner)

    refused_response = await world.call("DELETE", f"/jobs/{job_id}", guest)

    assert (refused_response.status_code, refused_response.json()["code"]) == (403, "insufficient_scope")
    assert (await world.call("GET", f"/jobs/{job_id}", guest)).json()["status"] == "queued"


async def test_jobs_are_listed_newest_first_page_by_page(world: World, owner: str) -> None:
    owner_of_both = await world.person("both@example.com", north="owner", south="owner")
    south = await world.person("owner@south.example", south="owner")
    now = clock.now()
    job_ids: list[str] = []
    for number in range(7):
        with clock.fixed(clock.later(now, seconds=number // 2 - 10)):
            job_ids.append(await ask(world, owner_of_both, org="north" if number % 3 else "south"))

    seen_ids: list[str] = []
    cursor = ""
    while True:
        page = (await world.call("GET", f"/jobs?limit=3{cursor}", owner_of_both)).json()
        seen_ids += [job["job_id"] for job in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    foreign_response = await world.call("GET", f"/jobs?limit=3{cursor}", south)
    of_south = (await world.call("GET", "/jobs", south)).json()["items"]

    assert seen_ids == sorted(job_ids, reverse=True)
    assert [job["job_id"] for job in of_south] == [job_ids[6], job_ids[3], job_ids[0]]
    assert (foreign_response.status_code, foreign_response.json()["code"]) == (400, "invalid_cursor")


async def test_jobs_are_filtered_by_state_and_type(world: World, owner: str, working: Working) -> None:
    async with working():
        finished_job = await ask(world, owner)
        await wait_for_job(world, owner, finished_job)
    waits = await ask(world, owner)

    async def listed_ids(query: str) -> list[str]:
        return [job["job_id"] for job in (await world.call("GET", f"/jobs?{query}", owner)).json()["items"]]

    assert await listed_ids("status=completed") == [finished_job]
    assert await listed_ids("status=queued&type=errand") == [waits]
    assert await listed_ids("type=other") == []
    assert (await world.call("GET", "/jobs?status=lost", owner)).status_code == 400
    assert (await world.call("GET", "/jobs?limit=0", owner)).status_code == 400


async def test_a_waiting_job_is_cancelled_at_once(world: World, owner: str, working: Working) -> None:
    job_id = await ask(world, owner)

    answer = await world.call("DELETE", f"/jobs/{job_id}", owner)
    second_response = await world.call("DELETE", f"/jobs/{job_id}", owner)
    async with working():
        other_job = await ask(world, owner)
        await wait_for_job(world, owner, other_job)

    body = answer.json()
    assert (answer.status_code, body["status"], body["error"]["code"]) == (200, "failed", "job_cancelled")
    assert body["error"]["instance"] == f"http://127.0.0.1:8480/api/v1/jobs/{job_id}"
    assert (await world.call("GET", f"/problems/{body['error']['type'].rpartition('/')[2]}")).status_code == 200
    assert (second_response.status_code, second_response.json()["code"]) == (409, "job_ended")
    assert await effects(world.store.database) == [other_job]


async def test_a_running_job_is_cancelled_at_its_next_progress_report(
    world: World, owner: str, working: Working
) -> None:
    async with working():
        job_id = await ask(world, owner, seconds=30)
        await running(world, owner, job_id)
        answer = await world.call("DELETE", f"/jobs/{job_id}", owner)
        body = await wait_for_job(world, owner, job_id)
        # The worker can take other jobs.
        job_after = await wait_for_job(world, owner, await ask(world, owner))

    assert (answer.status_code, answer.json()["status"]) == (202, "running")
    assert (body["status"], body["error"]["code"], body["result"]) == ("failed", "job_cancelled", None)
    assert job_after["status"] == "completed"
    assert await effects(world.store.database) == [job_after["job_id"]]


async def test_a_job_that_does_not_listen_is_left_behind(
    world: World, owner: str, working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "MAX_STOP_S", 1.0)
    async with working():
        job_id = await ask(world, owner, seconds=60, heeds=False)
        await running(world, owner, job_id)
        await world.call("DELETE", f"/jobs/{job_id}", owner)
        body = await wait_for_job(world, owner, job_id)

    assert body["error"]["code"] == "job_cancelled"
    assert await effects(world.store.database) == []


async def test_the_event_stream_ends_with_the_job(world: World, owner: str, working: Working) -> None:
    async with working():
        job_id = await ask(world, owner, seconds=1.5)
        answer = await world.call("GET", f"/jobs/{job_id}/events", owner, headers={"Last-Event-ID": "7"})

    events = [event.split("\n") for event in answer.text.strip().split("\n\n")]
    names = [lines[0] for lines in events]
    parts = [
        float(progress_text) for progress_text in (line.split('"progress":')[1].split(",")[0] for _, line in events)
    ]
    assert answer.headers["content-type"] == "text/event-stream"
    assert names[-1] == "event: done"
    assert set(names[:-1]) == {"event: status"}
    assert '"status":"completed"' in events[-1][1]
    assert parts == sorted(parts)
    assert len(set(parts)) >= 3


async def test_events_and_waits_end_when_the_server_stops(world: World, owner: str) -> None:
    job_id = await ask(world, owner)
    found_job = await queries.job(world.store.database, job_id)
    assert found_job is not None
    stop_event = asyncio.Event()
    received_chunks: list[bytes] = []

    async with asyncio.timeout(25):
        async for event in status_events(world.store.database, found_job, stop_event):
            received_chunks.append(event)
            stop_event.set()
        waited = await routes.wait_until_ended(world.store.database, job_id, 30, stop_event)

    assert [event.split(b"\n")[0] for event in received_chunks] == [b"event: status"]
    assert waited == found_job


async def test_the_events_of_an_ended_job_are_its_end(world: World, owner: str) -> None:
    job_id = await ask(world, owner)
    await world.call("DELETE", f"/jobs/{job_id}", owner)

    answer = await world.call("GET", f"/jobs/{job_id}/events", owner)

    assert [line for line in answer.text.split("\n") if line.startswith("event")] == ["event: status", "event: done"]


async def running(world: World, token: str, job_id: str) -> None:
    """Wait until the job runs."""
    async with asyncio.timeout(120):
        while (await world.call("GET", f"/jobs/{job_id}", token)).json()["status"] != "running":
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("days", [29, 31])
async def test_an_ended_job_is_kept_for_a_month(world: World, owner: str, days: int) -> None:
    job_id = await ask(world, owner)
    await world.call("DELETE", f"/jobs/{job_id}", owner)
    waits = await ask(world, owner)

    with clock.fixed(clock.later(clock.now(), seconds=days * 86_400)):
        await app.run_maintenance(world.store)

    remaining_ids = [job["job_id"] for job in (await world.call("GET", "/jobs", owner)).json()["items"]]
    assert remaining_ids == ([waits, job_id] if days == 29 else [waits])
