"""A process that reads artifacts is started before it is needed. Small jobs end while their caller waits."""

import asyncio
import os
import signal
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from countersign.cli.server import worker
from countersign.store.jobs import worker_process
from countersign.store.releases.processing import sandboxed_process
from countersign.store.releases.processing.sandboxed_process import PROGRAM, ArtifactReader
from countersign.updates.worker_protocol import EndOfArtifact
from tests.store.files import Shop
from tests.store.releases.processing.works import JobRunner, tar

SMALL = {"run.sh": b"#!/bin/sh\n", "data.bin": b"x" * 1000}
TYPES = ("build.process", "archive.extract", "artifact.verify")


def readers() -> set[int]:
    """Return the child processes that read artifacts or wait for one."""
    reader_pids: set[int] = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and PROGRAM.encode() in (path / "cmdline").read_bytes():
                reader_pids.add(int(path.name))
        except OSError:
            continue
    return reader_pids


def has_ended(process: int) -> bool:
    """Return whether the process has closed all its files, because it does not exist or is a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def reading(works: JobRunner, path: Path) -> AbstractAsyncContextManager[ArtifactReader]:
    """Read a file as jobs do."""
    settings = works.store.settings
    return sandboxed_process.read_artifact(settings, path, path.name, chunks=False, accepts_plain_files=True)


async def finish(under_way: ArtifactReader) -> None:
    """Read it completely."""
    while not isinstance(await under_way.next(), EndOfArtifact):
        continue


async def readers_of(works: JobRunner, path: Path, waiting_pid: int) -> set[int]:
    """Return the processes that exist when a file is read while the process with this id waits for work."""
    # Otherwise, a busy machine would look for them after the work is done and the process is gone.
    os.kill(waiting_pid, signal.SIGSTOP)
    async with reading(works, path) as under_way:
        reader_pids = readers()
        os.kill(waiting_pid, signal.SIGCONT)
        await finish(under_way)
        return reader_pids


async def wait_for_spare_process() -> int:
    """Return the process that waits for work, as soon as it exists."""
    async with asyncio.timeout(60):
        while not (reader_pids := readers()):
            await asyncio.sleep(0.01)
    (only,) = reader_pids
    return only


@pytest.mark.usefixtures("no_forking")
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_a_reader_that_was_started_ahead_is_used_once_and_replaced(works: JobRunner, tmp_path: Path) -> None:
    path = tmp_path / "game.tar"
    path.write_bytes(tar(SMALL))

    async with sandboxed_process.spare_process(PROGRAM):
        first_pid = await wait_for_spare_process()
        assert await readers_of(works, path, first_pid) == {first_pid}
        second_pid = await wait_for_spare_process()
        assert second_pid != first_pid
        assert await readers_of(works, path, second_pid) == {second_pid}

    assert readers() == set()


@pytest.mark.usefixtures("no_forking")
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_a_spare_reader_that_died_is_replaced_at_its_next_use(works: JobRunner, tmp_path: Path) -> None:
    path = tmp_path / "game.tar"
    path.write_bytes(tar(SMALL))

    async with sandboxed_process.spare_process(PROGRAM):
        first_pid = await wait_for_spare_process()
        os.kill(first_pid, signal.SIGKILL)
        while not has_ended(first_pid):
            await asyncio.sleep(0.01)
        async with reading(works, path) as under_way:
            await finish(under_way)


async def test_small_jobs_of_every_type_end_within_a_wait_and_are_answered_200(shop: Shop) -> None:
    artifact = await shop.upload(tar(SMALL), "game.tar")

    async with worker_process.supervise_workers(shop.store, worker.COMMAND, 1):
        for kind in TYPES:
            body = {"type": kind, "payload": {"artifact_id": artifact["id"]}}
            answer = await shop.world.call("POST", "/jobs", shop.token, json=body, headers={"Prefer": "wait=30"})
            assert (answer.status_code, answer.json()["status"]) == (200, "completed"), answer.text
            assert answer.json()["result"]
