"""Attacks on jobs: on other organisations' work, on the memory of the server, and on the worker processes."""

import asyncio
import hashlib
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from countersign.kernel import ids
from countersign.store.jobs import queries
from countersign.store.releases.processing import deltas, sandboxed_process
from countersign.store.releases.processing.build_job import TYPES
from countersign.updates.chunks import chunk_id
from countersign.updates.manifest import File
from countersign.updates.worker_protocol import ChunkQuery, DeltaOrder, FileRequest, decode_delta_record
from tests.store.files import Shop, open_shop
from tests.store.releases.processing.works import JobRunner, noise, tar
from tests.store.world import World

ASKED_FOR = [kind.name for kind in TYPES if kind.admit is not None]


@pytest.fixture
async def shop(world: World) -> Shop:
    """A shop that sells its product."""
    return await open_shop(world, access="entitled")


@pytest.fixture
def works(shop: Shop, tmp_path: Path) -> JobRunner:
    """The shop, with a worker for its jobs."""
    return JobRunner(shop, tmp_path / "scratch")


@pytest.mark.parametrize("kind", ASKED_FOR)
async def test_work_on_an_artifact_is_for_its_own_publishers(works: JobRunner, kind: str) -> None:
    """All other callers get 404; a caller who may only read the artifact gets 403."""
    world, artifact_id = works.shop.world, await works.upload(tar({"a": b"a"}))

    async def work_answer(token: str, payload_id: str) -> tuple[int, dict[str, Any]]:
        answer = await world.call("POST", "/jobs", token, json={"type": kind, "payload": {"artifact_id": payload_id}})
        return answer.status_code, answer.json()

    stranger = await world.person("owner@south.example", south="owner")
    assert await work_answer(stranger, artifact_id) == await work_answer(stranger, ids.new_uuid())
    assert (await work_answer(stranger, artifact_id))[0] == 404
    viewer = await world.person("viewer@example.com", north="viewer", south="owner")
    assert (await work_answer(viewer, artifact_id))[0] == 403
    assert await works.store.database.fetch("SELECT id FROM job") == []


async def test_updates_are_prepared_only_by_the_store(works: JobRunner) -> None:
    """Callers cannot have deltas made between builds of their choice."""
    payload = {"from_artifact": ids.new_uuid(), "to_artifact": ids.new_uuid()}

    answer = await works.shop.world.call(
        "POST", "/jobs", works.shop.token, json={"type": "delta.make", "payload": payload}
    )

    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_job_type")


async def test_a_page_of_jobs_with_large_results_is_small(works: JobRunner) -> None:
    """A hundred results of a mebibyte each are not in memory at once."""
    world, store = works.shop.world, works.store
    answer = await world.call("POST", "/jobs", works.shop.token, json=await _errand(works))
    job_id = answer.json()["job_id"]
    result = msgspec.json.encode({"entries": ["x" * 1000] * 1000}).decode()
    async with store.database.transaction() as transaction:
        await transaction.run("UPDATE job SET status = 'completed', result = $1, finished_at = created_at", result)

    listed_response = await world.call("GET", "/jobs", works.shop.token)
    shown_response = await world.call("GET", f"/jobs/{job_id}", works.shop.token)

    assert len(listed_response.content) < 10_000
    assert (listed_response.json()["items"][0]["status"], listed_response.json()["items"][0]["result"]) == (
        "completed",
        None,
    )
    assert len(shown_response.json()["result"]["entries"]) == 1000


async def _errand(works: JobRunner) -> dict[str, Any]:
    return {"type": "archive.extract", "payload": {"artifact_id": await works.upload(tar({"a": b"a"}))}}


async def test_the_jobs_that_a_caller_follows_at_a_time_are_limited(works: JobRunner) -> None:
    """Every event stream queries the database four times a second, for minutes, so the count of streams is limited."""
    world, store = works.shop.world, works.store
    job_id = (await world.call("POST", "/jobs", works.shop.token, json=await _errand(works))).json()["job_id"]
    following = [asyncio.create_task(world.call("GET", f"/jobs/{job_id}/events", works.shop.token)) for _ in range(60)]
    finished_tasks, _ = await asyncio.wait(following, timeout=120, return_when=asyncio.FIRST_COMPLETED)
    tasks = [task for task in finished_tasks if task.result().status_code == 429]
    async with store.database.transaction() as transaction:
        await queries.cancel(transaction, job_id, "{}")

    statuses = [answer.status_code for answer in await asyncio.gather(*following)]

    assert tasks
    assert set(statuses) == {200, 429}
    assert (await world.call("GET", f"/jobs/{job_id}/events", works.shop.token)).status_code == 200


def children(program: str) -> list[dict[str, str]]:
    """Return the /proc status of this process's children that run the program."""
    child_statuses: list[dict[str, str]] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            lines = (folder / "status").read_text().splitlines()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        status_fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        if status_fields["PPid"] == str(os.getpid()) and program.encode() in command:
            child_statuses.append(status_fields)
    return child_statuses


def is_confined(status_fields: dict[str, str]) -> bool:
    """Return whether a process has given up root, new privileges and sockets."""
    return (
        "0" not in status_fields["Uid"].split()
        and status_fields["NoNewPrivs"].strip() == "1"
        and status_fields["Seccomp"].strip() == "2"
    )


async def test_strangers_bytes_are_read_by_a_process_without_rights(works: JobRunner, tmp_path: Path) -> None:
    """The process gives up its rights before it reads the first byte of an artifact."""
    path = tmp_path / "game.tar"
    path.write_bytes(tar({"a": noise(9 << 20)}))

    async with sandboxed_process.read_artifact(
        works.store.settings, path, "game.tar", chunks=True, accepts_plain_files=True
    ) as reading:
        while not isinstance(await reading.next(), ChunkQuery):
            continue
        assert [is_confined(child) for child in children(sandboxed_process.PROGRAM)] == [True]


async def test_deltas_of_strangers_bytes_are_made_by_a_process_without_rights() -> None:
    """The process gives up its rights before it reads the first byte of a build."""
    side = [File("a", 0o644, 1, hashlib.sha256(b"a").hexdigest(), chunk_id(b"a"), [])]
    other_files = [File("a", 0o644, 1, hashlib.sha256(b"b").hexdigest(), chunk_id(b"b"), [])]

    async with sandboxed_process.run_process(deltas.PROGRAM) as process:
        await process.send(msgspec.msgpack.encode(DeltaOrder(side, other_files, 1 << 20, 1 << 30, 60)))
        assert isinstance(decode_delta_record(await process.receive()), FileRequest)
        assert [is_confined(child) for child in children(deltas.PROGRAM)] == [True]


async def test_a_process_that_reads_strangers_bytes_knows_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not inherit secrets from the environment."""
    monkeypatch.setenv("COUNTERSIGN_MASTER_KEY", "the-secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-secret")

    async with sandboxed_process.run_process("tests.attacks.telling"):
        while not (pids := [int(child["Pid"]) for child in children("tests.attacks.telling")]):
            await asyncio.sleep(0.01)
        assert b"the-secret" not in Path(f"/proc/{pids[0]}/environ").read_bytes()
