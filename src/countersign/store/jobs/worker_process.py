"""A worker process: its configuration on standard input, and the loop that runs jobs until it is stopped."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import msgspec
import uvloop

from countersign.kernel import ids, telemetry
from countersign.kernel.concurrency import background
from countersign.kernel.errors import Refused
from countersign.kernel.jobs import processes
from countersign.kernel.telemetry import ThrottledErrorLog
from countersign.settings import Settings
from countersign.store.context import Store
from countersign.store.jobs import leases, queries, runner
from countersign.store.jobs.job_types import AnyJobType
from countersign.store.jobs.leases import LeasedJob

HEARTBEAT_EVERY_S = 10
SWEEP_EVERY = 6
"""Number of heartbeats after which the worker removes the folders of attempts that ended."""


async def run_jobs(store: Store, types: Sequence[AnyJobType], stop_event: asyncio.Event) -> bool:
    """Run jobs of these types until `stop_event` is set. Return False if a job was abandoned. In this case the process
    must end, because threads of the job may still run.

    Raises:
        Unavailable: the engine cannot be reached.
    """
    lanes = LaneWorker(store, types, stop_event)
    async with background(_heartbeat(store)):
        try:
            await store.jobs.serve(lanes.run_next, stop_event)
        finally:
            await lanes.close()
    return lanes.is_reusable


class LaneWorker:
    """Runs at most one requested job and one background job at the same time, so that no build (requested) waits for a
    delta (background)."""

    def __init__(self, store: Store, types: Sequence[AnyJobType], stop_event: asyncio.Event) -> None:
        self._store = store
        self._types = {kind.name: kind for kind in types}
        self._stopping = stop_event
        self._background: asyncio.Task[None] | None = None
        self.is_reusable = True

    async def run_next(self) -> bool:
        """Run the next job of each lane. When this method returns, the requested job has ended. The background job
        continues, and further background jobs follow. Return whether there was a requested job.

        Raises:
            Unavailable: the database could not be reached; the lease expires, and the job is started again.
        """
        if self._background is not None and self._background.done():
            ended_task, self._background = self._background, None
            ended_task.result()
        # Claim a background job first. Otherwise background jobs would never start while requested jobs are waiting.
        if self._background is None and (job := await self._claim("background")) is not None:
            self._background = asyncio.create_task(self._work_in_background(job))
        requested_job = await self._claim("requested")
        if requested_job is None:
            return False
        await self._run_attempt(requested_job)
        return not self._stopping.is_set()

    async def close(self) -> None:
        """Wait for the background job. It ends within the grace period, or is returned to the queue."""
        self._stopping.set()
        if self._background is not None:
            with suppress(Refused):
                await self._background

    async def _work_in_background(self, job: LeasedJob | None) -> None:
        """Run the job, and then the next background jobs, because an engine may wake the worker for requested jobs
        only."""
        while job is not None:
            await self._run_attempt(job)
            job = None if self._stopping.is_set() else await self._claim("background")

    async def _claim(self, lane: leases.Lane) -> LeasedJob | None:
        settings = self._store.settings
        return await leases.claim_next(
            self._store.database, max_running=settings.jobs_running, lease_s=settings.job_lease_s, lane=lane
        )

    async def _run_attempt(self, job: LeasedJob) -> None:
        if not await runner.run_attempt(self._store, self._types, job, self._stopping):
            self.is_reusable = False
            self._stopping.set()


async def _heartbeat(store: Store) -> None:
    """Send heartbeats, repair times after clock changes, and clean up periodically."""
    worker_id = ids.new_uuid()
    error_log = ThrottledErrorLog("jobs", "heartbeat of the worker not stored")
    beats = 0
    try:
        while True:
            try:
                async with store.database.transaction() as transaction:
                    await queries.record_heartbeat(transaction, worker_id)
                    await leases.repair_times(
                        transaction, lease_s=store.settings.job_lease_s, wait_s=runner.MAX_PAUSE_S
                    )
                if beats % SWEEP_EVERY == 0:
                    await runner.sweep(Path(store.settings.data), store.database)
            except Refused as refused:
                error_log.failed(refused)
            else:
                error_log.over()
            beats += 1
            await asyncio.sleep(HEARTBEAT_EVERY_S)
    finally:
        with suppress(Refused):
            async with store.database.transaction() as transaction:
                await queries.forget_worker(transaction, worker_id)


OpenStore: TypeAlias = Callable[[Settings, str, bool], AbstractAsyncContextManager[Store]]
"""Opens a store, given its settings, its root address, and whether it is reached from this machine alone."""


class WorkerConfig(msgspec.Struct):
    """The configuration of a worker process: the store whose jobs it runs."""

    settings: Settings
    root_url: str
    is_loopback: bool
    problems_url: str = ""


@asynccontextmanager
async def supervise_workers(store: Store, command: Sequence[str], count: int) -> AsyncGenerator[None]:
    """Run `count` processes of the command for the store's jobs during the block; see `run_worker_process`."""
    async with processes.supervise(command, worker_config(store), count, grace_s=store.settings.grace_s):
        yield


def worker_config(store: Store) -> bytes:
    """The configuration of a worker process, on one line. Settings contain secrets: they are sent through a pipe,
    which is not visible in the process list."""
    return msgspec.json.encode(WorkerConfig(store.settings, store.root_url, store.is_loopback, store.problems_url))


def run_worker_process(open_store: OpenStore, types: Sequence[AnyJobType]) -> None:
    """Run a worker process: read its configuration from standard input, and run jobs until it is stopped.

    Raises:
        Refused, BadSetting: the store cannot be opened, or its engine cannot be reached; the parent starts another.
    """
    config = msgspec.json.decode(sys.stdin.buffer.readline(), type=WorkerConfig)
    settings = config.settings
    telemetry.configure(settings.log_level)
    processes.limit_process(nice=settings.job_nice, memory_mib=settings.job_memory_mib)
    processes.die_with_parent(sys.stdin.fileno())
    uvloop.run(_work(open_store(settings, config.root_url, config.is_loopback), config.problems_url, types))


async def _work(
    store_context: AbstractAsyncContextManager[Store], problems_url: str, types: Sequence[AnyJobType]
) -> None:
    stop_event = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop_event.set)
    async with store_context as store, _stop_when_broken(store, stop_event):
        if not await run_jobs(replace(store, problems_url=problems_url), types, stop_event):
            # Threads of an abandoned job would block a normal exit.
            os._exit(processes.RESTART_CODE)


@asynccontextmanager
async def _stop_when_broken(store: Store, stop_event: asyncio.Event) -> AsyncGenerator[None]:
    """During the block, stop this process if the database can no longer write; the parent starts another one."""

    async def watch() -> None:
        await store.database.broken.wait()
        stop_event.set()

    async with background(watch()):
        yield
