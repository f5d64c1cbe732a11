"""Measures small jobs that are requested one by one: the share of responses with status 200 (the job ended within the
default wait), and the time until the response.

For each round, an archive of some kilobytes is uploaded to a store with one worker process. The jobs `build.process`,
`archive.extract` and `artifact.verify` are then requested, without the header Prefer.
"""

import asyncio
import io
import os
import statistics
import tarfile
import time

import harness
import httpx
import seed
from harness import Bench

from countersign.cli.server import worker
from countersign.settings import Settings
from countersign.store import app
from countersign.store.jobs import worker_process

ROOT_URL = "http://127.0.0.1:8480"
ROUNDS, ROUNDS_QUICK, PAUSE_S = 20, 3, 0.5
WAIT_MS = 250


def archive(number: int) -> bytes:
    """Return a small build that differs for each number."""
    packed_stream = io.BytesIO()
    with tarfile.open(fileobj=packed_stream, mode="w:gz") as tar:
        for name, content in (("run.sh", b"#!/bin/sh\n"), ("data.bin", os.urandom(8 << 10)), ("n", b"%d" % number)):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    return packed_stream.getvalue()


async def request_jobs(settings: Settings, rounds: int) -> dict[str, list[tuple[int, float]]]:
    """Map each type of job to the status and the milliseconds of its responses."""
    from tests.store.files import open_shop
    from tests.store.world import World

    answers_by_kind: dict[str, list[tuple[int, float]]] = {}
    async with app.open_store(settings, ROOT_URL, is_loopback=True) as store:
        transport = httpx.ASGITransport(app.create(store))
        async with (
            httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client,
            worker_process.supervise_workers(store, worker.COMMAND, 1),
        ):
            world = World(store, client)
            await world.org("north")
            shop = await open_shop(world)
            # The first round only warms up: the worker starts, and its first jobs import modules.
            for number in range(rounds + 1):
                artifact = await shop.upload(archive(number), f"{number}.tar.gz")
                for kind in ("build.process", "archive.extract", "artifact.verify"):
                    wait = {"Prefer": "wait=30"} if not number else {}
                    body = {"type": kind, "payload": {"artifact_id": artifact["id"]}}
                    began_s = time.monotonic()
                    answer = await world.call("POST", "/jobs", shop.token, json=body, headers=wait)
                    took_ms = 1000 * (time.monotonic() - began_s)
                    if number:
                        answers_by_kind.setdefault(kind, []).append((answer.status_code, took_ms))
                    await asyncio.sleep(PAUSE_S)
    return answers_by_kind


def measure(bench: Bench) -> None:
    """Measure each database with the embedded job engine."""
    for database in bench.options.databases:
        url = ""
        if bench.cluster is not None and database == "postgres":
            bench.cluster.sql("CREATE DATABASE small_jobs TEMPLATE template0")
            url = bench.cluster.url("small_jobs")
        data = str(bench.folder / f"{database}-small")
        settings = Settings(data=data, database_url=url, master_key=seed.MASTER_KEY, job_engine="embedded")
        answers = asyncio.run(request_jobs(settings, ROUNDS_QUICK if bench.options.is_quick else ROUNDS))
        for kind, kind_answers in answers.items():
            durations = [ms for _, ms in kind_answers]
            share_within = sum(status == 200 for status, _ in kind_answers) / len(kind_answers)
            figures = {
                "within": share_within,
                "p50_ms": round(statistics.median(durations), 1),
                "max_ms": round(max(durations), 1),
            }
            bench.other[f"{database}, {kind}"] = figures
            print(f"  {database}, {kind:18}" + "".join(f"  {key} {value:,.2f}" for key, value in figures.items()))
            bench.aim(f"{database}, {kind} answered within {WAIT_MS} ms", share_within, 1)


if __name__ == "__main__":
    with harness.bench("small_jobs", "Small jobs, asked for one by one", needs_load=False) as running:
        measure(running)
