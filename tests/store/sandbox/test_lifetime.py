"""The lifetime of data sets: reset when idle, limited in number and size, and never removed while a caller uses one."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from countersign.kernel import clock
from countersign.store import app as distribution
from countersign.store import lifespan
from countersign.store.sandbox import folders
from countersign.store.sandbox.router import SandboxRouter
from tests.faults.lives import RestartableService
from tests.servers.countersign import served
from tests.store.conftest import ROOT_URL
from tests.store.sandbox.conftest import link_template
from tests.store.sandbox.data import PRODUCT, SandboxCaller
from tests.store.world import World

HOUR_S = 3_600
TEMPLATE = folders.template_of(lifespan.MIGRATIONS)


def data_of(world: World) -> Path:
    """Return the data directory."""
    return Path(world.store.settings.data)


@pytest.fixture
async def other_worker(world: World, front: SandboxRouter) -> AsyncIterator[SandboxRouter]:
    """Return the application of a second worker process, as far as one process can simulate two."""
    application = distribution.create(world.store)
    yield application
    await application.close()


async def send_through(
    front: SandboxRouter, caller: SandboxCaller, method: str, path: str, **options: object
) -> httpx.Response:
    """Send a request with the key through another worker."""
    transport = httpx.ASGITransport(front, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
        headers = {"X-API-Key": caller.key}
        return await client.request(method, f"/sandbox/api/v1{path}", headers=headers, **options)


async def upload_through(front: SandboxRouter, path: str, content: bytes) -> httpx.Response:
    """Upload a file to its address through another worker."""
    transport = httpx.ASGITransport(front, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
        return await client.put(path, content=content)


async def test_workers_of_a_server_share_a_data_set(sandbox: SandboxCaller, other_worker: SandboxRouter) -> None:
    await sandbox.call("POST", "/products", json=PRODUCT)

    assert (await send_through(other_worker, sandbox, "GET", "/products/made")).status_code == 200
    await send_through(other_worker, sandbox, "POST", "/products", json={**PRODUCT, "slug": "second"})
    assert (await sandbox.call("GET", "/products/second")).status_code == 200


async def test_a_data_set_is_reset_after_an_idle_hour(sandbox: SandboxCaller, world: World) -> None:
    await sandbox.call("POST", "/products", json=PRODUCT)
    await sandbox.front.data_sets.close_unused(0)
    with clock.fixed(clock.later(clock.now(), seconds=HOUR_S - 60)):
        assert folders.sweep(data_of(world), HOUR_S) == 0
        assert (await sandbox.call("GET", "/products/made")).status_code == 200
        await sandbox.front.data_sets.close_unused(0)
        with clock.fixed(clock.later(clock.now(), seconds=HOUR_S + 1)):
            answer_after = await sandbox.call("GET", "/products/made")
            seeded_response = await sandbox.call("GET", "/products/aurora-freight")

    assert [answer_after.status_code, seeded_response.status_code] == [404, 200]


async def test_maintenance_removes_idle_sandboxes(sandbox: SandboxCaller, world: World) -> None:
    await sandbox.call("POST", "/products", json=PRODUCT)
    await sandbox.front.data_sets.close_unused(0)

    with clock.fixed(clock.later(clock.now(), seconds=HOUR_S + 1)):
        await distribution.run_maintenance(world.store)

    assert not sandbox.folder.exists()
    assert not [path for path in sandbox.folder.parent.iterdir() if path.name.startswith("gone-")]


async def test_a_data_set_that_is_open_anywhere_is_never_removed(
    sandbox: SandboxCaller, other_worker: SandboxRouter, world: World
) -> None:
    await sandbox.call("POST", "/products", json=PRODUCT)
    await send_through(other_worker, sandbox, "GET", "/products")
    await sandbox.front.data_sets.close_unused(0)

    with clock.fixed(clock.later(clock.now(), seconds=2 * HOUR_S)):
        assert folders.sweep(data_of(world), HOUR_S) == 0
    await other_worker.data_sets.close_unused(0)
    with clock.fixed(clock.later(clock.now(), seconds=2 * HOUR_S)):
        assert folders.sweep(data_of(world), HOUR_S) == 1


async def test_a_request_that_waited_for_a_removed_folder_starts_again(sandbox: SandboxCaller, world: World) -> None:
    await sandbox.call("GET", "/products")
    await sandbox.front.data_sets.close_unused(0)
    held_lock = folders.lock_existing(data_of(world), sandbox.name, HOUR_S)
    assert held_lock is not None
    os.rename(sandbox.folder, sandbox.folder.with_name("gone-x"))

    assert folders.lock_existing(data_of(world), sandbox.name, HOUR_S) is None
    held_lock.close()
    assert (await sandbox.call("GET", "/products")).status_code == 200


async def test_no_call_ever_works_on_removed_files_while_a_sweeper_does_its_worst(
    sandbox: SandboxCaller, other_worker: SandboxRouter, world: World
) -> None:
    stop_event = threading.Event()

    def sweep() -> int:
        removed_count = 0
        while not stop_event.is_set():
            removed_count += folders.sweep(data_of(world), 0)
        return removed_count

    sweeping_task = asyncio.create_task(asyncio.to_thread(sweep))
    try:
        for number in range(30):
            for front in (sandbox.front, other_worker):
                created_response = await send_through(
                    front, sandbox, "POST", "/products", json={**PRODUCT, "slug": f"s{number}"}
                )
                assert created_response.status_code in (201, 409), created_response.text
                read_answer = await send_through(front, sandbox, "GET", f"/products/s{number}")
                assert read_answer.status_code == 200
            await sandbox.front.data_sets.close_unused(0)
            await other_worker.data_sets.close_unused(0)
    finally:
        stop_event.set()

    assert await sweeping_task > 0


async def test_at_the_limit_a_new_key_waits_until_a_sandbox_is_idle(
    world: World, front: SandboxRouter, template_folder: Path
) -> None:
    few = distribution.create(replace(world.store, settings=replace(world.store.settings, sandboxes=2)))
    first_caller, second_caller, third_caller = [await SandboxCaller.create(world, few) for _ in range(3)]
    await send_through(few, first_caller, "POST", "/products", json=PRODUCT)
    await send_through(few, second_caller, "GET", "/products")

    refused_answer = await send_through(few, third_caller, "GET", "/products")
    known_answer = await send_through(few, first_caller, "GET", "/products/made")
    await few.data_sets.close_unused(0)
    with clock.fixed(clock.later(clock.now(), seconds=folders.MIN_IDLE_S + 1)):
        await send_through(few, second_caller, "GET", "/products")
        admitted_response = await send_through(few, third_caller, "GET", "/products")
        await few.close()

    assert (refused_answer.status_code, refused_answer.json()["code"]) == (503, "sandboxes_full")
    assert int(refused_answer.headers["retry-after"]) > 0
    assert known_answer.status_code == 200
    assert admitted_response.status_code == 200
    assert not first_caller.folder.exists()
    assert second_caller.folder.exists()


async def test_a_disabled_sandbox_answers_503(world: World, front: SandboxRouter) -> None:
    off = distribution.create(replace(world.store, settings=replace(world.store.settings, sandboxes=0)))
    caller = await SandboxCaller.create(world, off)

    assert (await send_through(off, caller, "GET", "/products")).status_code == 503
    assert (await send_through(off, caller, "GET", "/health")).status_code == 503
    await off.close()


async def test_a_start_removes_the_sandboxes_of_a_killed_server(sandbox: SandboxCaller, world: World) -> None:
    await sandbox.call("POST", "/products", json=PRODUCT)
    await sandbox.front.data_sets.close_unused(0)
    parent = sandbox.folder.parent
    (parent / "new-half").mkdir()
    (parent / "gone-half" / "blobs").mkdir(parents=True)

    async with distribution.periodic_maintenance(world.store):
        left_names = sorted(path.name for path in parent.iterdir())

    assert left_names == ["lock", f"template-{TEMPLATE.name}"]
    assert (await sandbox.call("GET", "/products/aurora-freight")).status_code == 200


async def test_a_data_set_is_limited_in_size(world: World, front: SandboxRouter) -> None:
    small = replace(world.store.settings, sandbox_mib=20)
    bounded = distribution.create(replace(world.store, settings=small))
    caller = await SandboxCaller.create(world, bounded)
    await send_through(bounded, caller, "POST", "/products", json=PRODUCT)
    await send_through(bounded, caller, "POST", "/products/made/releases", json={"version": "1.0.0", "channel": "beta"})
    answers = []
    for number in range(12):
        content = number.to_bytes(1) * (1 << 20)
        body = {"filename": f"{number}.bin", "size": len(content)}
        response = await send_through(bounded, caller, "POST", "/products/made/releases/1.0.0/artifacts", json=body)
        path = response.json()["upload_url"].removeprefix(ROOT_URL)
        answers.append(await upload_through(bounded, path, content))
    rows = [
        await send_through(
            bounded, caller, "POST", "/products", json={**PRODUCT, "slug": f"s{n}", "description": "x" * 20_000}
        )
        for n in range(200)
    ]
    size = sum(path.stat().st_size for path in caller.folder.rglob("*") if path.is_file() and "wal" not in path.name)
    read_answer = await send_through(bounded, caller, "GET", "/products/made")
    await bounded.close()

    assert {answer.status_code for answer in answers} == {201, 507}
    assert {answer.status_code for answer in rows} == {201, 507}
    assert size < 22 << 20
    assert read_answer.status_code == 200


def test_the_successor_of_a_killed_server_starts_clean(tmp_path: Path, template_folder: Path) -> None:
    lives = RestartableService(tmp_path / "data")
    link_template(lives.data, template_folder)
    lives.start()
    try:
        headers = {"X-API-Key": httpx.get(f"{lives.root_url}/api/keys?tier=sandbox").json()["api_key"]}
        before_response = httpx.post(f"{lives.root_url}/sandbox/api/v1/products", headers=headers, json=PRODUCT)
        lives.kill()
        lives.start()
        gone_response = httpx.get(f"{lives.root_url}/sandbox/api/v1/products/made", headers=headers)
        repeated_response = httpx.post(f"{lives.root_url}/sandbox/api/v1/products", headers=headers, json=PRODUCT)
    finally:
        lives.kill()

    assert [before_response.status_code, gone_response.status_code, repeated_response.status_code] == [201, 404, 201]


async def test_the_processes_of_a_server_share_one_data_set_for_each_key(tmp_path: Path, template_folder: Path) -> None:
    data = tmp_path / "data"
    link_template(data, template_folder)
    with served(data, "--workers", "2") as running:
        headers = {"X-API-Key": httpx.get(f"{running.url}/api/keys?tier=sandbox").json()["api_key"]}
        address = f"{running.url}/sandbox/api/v1/products"

        async def create_product(number: int) -> int:
            # Open a new connection for each request, so that both processes get some.
            async with httpx.AsyncClient(headers=headers, timeout=30) as client:
                return (await client.post(address, json={**PRODUCT, "slug": f"s{number}"})).status_code

        statuses = await asyncio.gather(*(create_product(number) for number in range(24)))
        seen_statuses = {httpx.get(f"{address}/s{number}", headers=headers).status_code for number in range(24)}
        active = httpx.get(f"{running.url}/sandbox/api/v1/telemetry").json()["active_agents"]

    assert set(statuses) == {201}
    assert seen_statuses == {200}
    assert active == 1
