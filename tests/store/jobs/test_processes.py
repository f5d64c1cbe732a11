"""Worker processes: low priority, limited memory, replaced when they die, and ended with their parent."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from countersign.store.jobs import worker_process as jobs_worker_process
from tests.servers.countersign import COMMAND, environment, served
from tests.store.jobs import worker_process
from tests.store.jobs.kinds import ask, effects, errand, wait_for_job
from tests.store.world import World


async def doing(world: World, job_id: str, attempts: int = 1) -> int:
    """Return the process that works on the job in the attempt with this number."""
    note = Path(world.store.settings.data) / "work" / f"{job_id}-{attempts}" / "pid"
    async with asyncio.timeout(120):
        while not note.exists() or not note.read_text():
            await asyncio.sleep(0.02)
    return int(note.read_text())


async def test_a_worker_that_is_killed_is_replaced_and_its_job_done_once(world: World, owner: str) -> None:
    async with jobs_worker_process.supervise_workers(world.store, worker_process.COMMAND, 1):
        job_id = await ask(world, owner, seconds=3)
        killed = await doing(world, job_id)
        os.kill(killed, signal.SIGKILL)
        second_worker = await doing(world, job_id, 2)
        body = await wait_for_job(world, owner, job_id)

    assert killed != second_worker
    assert (body["status"], body["attempts"]) == ("completed", 2)
    assert await effects(world.store.database) == [job_id]


async def test_a_worker_steps_back_behind_requests_and_has_bounds(world: World, owner: str) -> None:
    async with jobs_worker_process.supervise_workers(world.store, worker_process.COMMAND, 1):
        job_id = await ask(world, owner, seconds=60)
        pid = await doing(world, job_id)
        limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
        nice = os.getpriority(os.PRIO_PROCESS, pid)
        sooner = Path(f"/proc/{pid}/oom_score_adj").read_text().strip()
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes()

    bounds = {line[:25].strip(): line[25:].split()[0] for line in limits}
    assert bounds["Max address space"] == str(world.store.settings.job_memory_mib << 20)
    assert bounds["Max core file size"] == "0"
    assert (nice, sooner) == (min(os.getpriority(os.PRIO_PROCESS, 0) + 10, 19), "500")
    assert world.store.settings.master_key.encode() not in arguments


async def test_a_stopped_worker_gives_its_job_back_and_leaves_nothing(world: World, owner: str) -> None:
    async with jobs_worker_process.supervise_workers(world.store, worker_process.COMMAND, 2):
        job_id = await ask(world, owner, seconds=60)
        pid = await doing(world, job_id)

    shown_body = (await world.call("GET", f"/jobs/{job_id}", owner)).json()
    assert (shown_body["status"], shown_body["attempts"]) == ("queued", 0)
    assert not Path(f"/proc/{pid}").exists()
    assert not [*(Path(world.store.settings.data) / "work").iterdir()]
    assert await world.store.database.fetch("SELECT id FROM job_worker") == []


async def test_a_worker_dies_with_its_parent_during_any_work(world: World, owner: str) -> None:
    orders = jobs_worker_process.worker_config(world.store)
    parent = subprocess.Popen(
        [sys.executable, "-c", KEEPER, json.dumps(worker_process.COMMAND), orders.decode()], stdin=subprocess.PIPE
    )
    try:
        job_id = await ask(world, owner, seconds=60)
        pid = await doing(world, job_id)
    finally:
        parent.kill()
        parent.communicate()

    async with asyncio.timeout(60):
        while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
            await asyncio.sleep(0.01)


KEEPER = """
import json, subprocess, sys
child = subprocess.Popen(json.loads(sys.argv[1]), stdin=subprocess.PIPE)
child.stdin.write(sys.argv[2].encode() + b"\\n")
child.stdin.flush()
child.wait()
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_serve_starts_the_configured_workers_and_stops_them(tmp_path: Path, workers: int) -> None:
    settings = {"COUNTERSIGN_JOB_WORKERS": "2"}
    with served(tmp_path / "data", "--demo", "--workers", str(workers), settings=settings) as running:
        children = worker_pids(running.data)
        token = running.token("publisher@example.com")
        answer = httpx.post(
            f"{running.url}/api/v1/jobs", json=errand(), headers={"Authorization": f"Bearer {token}"}, trust_env=False
        )

    assert len(children) == 2
    assert answer.json()["code"] == "unknown_job_type"
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


def worker_pids(data: Path) -> list[int]:
    """Return the worker processes of the data directory, which have its database open."""
    pids: list[int] = []
    for _ in range(500):
        pids = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_worker(pid, data)]
        if len(pids) == 2:
            break
        signal.sigtimedwait([], 0.05)
    return pids


def is_worker(pid: int, data: Path) -> bool:
    """Return whether the process works on jobs of the data directory."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
        open_paths = [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return False
    return b"countersign.cli.server.worker" in arguments and any(name.startswith(str(data)) for name in open_paths)


def test_the_command_works_beside_a_server_and_stops_when_asked(tmp_path: Path) -> None:
    with served(tmp_path / "data", "--demo") as running:
        worker = subprocess.Popen(
            [*COMMAND, "worker", "--data", str(running.data), "--processes", "2"],
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        children = worker_pids(running.data)
        worker.terminate()
        output, _ = worker.communicate(timeout=120)

    assert len(children) == 2
    assert output.startswith("2 processes work on the jobs of ")
    assert worker.returncode == 0
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


def test_the_command_needs_a_store(tmp_path: Path) -> None:
    result = subprocess.run(
        [*COMMAND, "worker", "--data", str(tmp_path)], env=environment(), capture_output=True, text=True, check=False
    )

    assert (result.returncode, "has no database" in result.stderr) == (3, True)
