"""A whole working session in the sandbox: upload, process, publish, download, with processes that run its jobs."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from countersign.cli.server import worker
from countersign.store import app as distribution
from countersign.store.context import Store
from countersign.store.demo import archive
from countersign.store.sandbox.router import SandboxRouter
from tests.store.sandbox.conftest import link_template
from tests.store.sandbox.data import PRODUCT, SandboxCaller, all_of
from tests.store.world import World

PATIENCE_S = 60
BUILD = archive("made", "1.0.0")


@pytest.fixture
async def front(store: Store, template_folder: Path) -> AsyncIterator[SandboxRouter]:
    """The application of the store, whose sandbox has workers."""
    await asyncio.to_thread(link_template, Path(store.settings.data), template_folder)
    application = distribution.create(store, workers=worker.COMMAND)
    yield application
    await application.close()


async def upload_artifact(sandbox: SandboxCaller) -> str:
    """Upload an artifact of a draft release, and return its id."""
    await sandbox.call("POST", "/products", json=PRODUCT)
    await sandbox.call("POST", "/products/made/releases", json={"version": "1.0.0", "channel": "stable"})
    announced_file = await sandbox.call(
        "POST",
        "/products/made/releases/1.0.0/artifacts",
        json={"filename": "made.tar.gz", "size": len(BUILD), "platform": "linux"},
    )
    put_response = await sandbox.world.http.put(announced_file.json()["upload_url"], content=BUILD)
    assert put_response.status_code == 201, put_response.text
    artifact_id: str = announced_file.json()["artifact_id"]
    assert put_response.headers["location"] == f"/sandbox/api/v1/artifacts/{artifact_id}"
    return artifact_id


async def wait_for_job(sandbox: SandboxCaller, kind: str, artifact_id: str) -> dict[str, Any]:
    """Return the job of this type after it has ended."""
    payload = {"type": kind, "payload": {"artifact_id": artifact_id}}
    job_response = await sandbox.call("POST", "/jobs", json=payload, headers={"Prefer": "wait=30"})
    assert job_response.status_code in (200, 202), job_response.text
    job: dict[str, Any] = job_response.json()
    async with asyncio.timeout(PATIENCE_S):
        while job["status"] in ("queued", "running"):
            job = (await sandbox.call("GET", f"/jobs/{job['job_id']}")).json()
            await asyncio.sleep(0.1)
    return job


async def test_a_build_is_uploaded_processed_published_and_downloaded(sandbox: SandboxCaller) -> None:
    rows_before = await all_of(sandbox.world)
    artifact_id = await upload_artifact(sandbox)

    processed = await wait_for_job(sandbox, "build.process", artifact_id)
    verify_job = await wait_for_job(sandbox, "artifact.verify", artifact_id)
    publish_answer = await sandbox.call("POST", "/products/made/releases/1.0.0/publish")
    manifest = await sandbox.call("GET", "/products/made/releases/1.0.0/manifest", params={"platform": "linux"})
    downloaded_response = await sandbox.call("GET", f"/artifacts/{artifact_id}")
    seeded_response = await sandbox.call("GET", "/products/aurora-freight")

    assert processed["status"] == "completed", processed
    assert verify_job["result"]["ok"] is True
    assert publish_answer.status_code == 200
    assert manifest.status_code == 200
    assert hashlib.sha256(downloaded_response.content).digest() == hashlib.sha256(BUILD).digest()
    assert seeded_response.status_code == 200
    assert await all_of(sandbox.world) == rows_before


async def test_jobs_of_many_data_sets_take_turns_in_few_processes(world: World, front: SandboxRouter) -> None:
    owners = [await SandboxCaller.create(world, front) for _ in range(3)]
    artifacts = [await upload_artifact(owner) for owner in owners]

    jobs = await asyncio.gather(
        *(wait_for_job(owner, "archive.extract", of) for owner, of in zip(owners, artifacts, strict=True))
    )

    assert [job["status"] for job in jobs] == ["completed"] * 3
    assert len(list((Path(world.store.settings.data) / "sandboxes").glob("lock-worker-*"))) <= 2


async def test_blobs_of_the_demonstration_can_be_read_and_verified(sandbox: SandboxCaller) -> None:
    listed_answer = await sandbox.call("GET", "/products", params={"limit": "100"})
    async with sandbox.front.data_sets.opened(sandbox.name) as data_set:
        row = await data_set.store.database.fetch_one("SELECT sha256, size FROM artifact ORDER BY id LIMIT 1")
        assert row is not None
        pieces = [piece async for piece in data_set.store.blobs.read(row[0], 0, row[1])]
        await data_set.store.blobs.delete(row[0])
        remaining_size = await data_set.store.blobs.size(row[0])
    other_caller = await SandboxCaller.create(sandbox.world, sandbox.front)
    await other_caller.call("GET", "/products")
    async with other_caller.front.data_sets.opened(other_caller.name) as data_set:
        size_seen = await data_set.store.blobs.size(row[0])

    assert len(listed_answer.json()["items"]) == 60
    assert hashlib.sha256(b"".join(pieces)).hexdigest() == row[0]
    assert remaining_size == size_seen == row[1]
