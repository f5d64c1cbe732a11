"""A worker process: its orders on standard input, and the loop that works on jobs until it is stopped."""

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
"""Every so many times that the worker is seen, it looks for what attempts have left behind."""


async def work(store: Store, types: Sequence[AnyJobType], stopping: asyncio.Event) -> bool:
    """Work on jobs of these types until stopping is set; False when a job had to be left behind before: the process is
    to be ended then, whatever that job's threads still do.

    Raises:
        Unavailable: the engine cannot be reached.
    """
    lanes = LaneWorker(store, types, stopping)
    async with background(_heartbeat(store)):
        try:
            await store.jobs.serve(lanes.take, stopping)
        finally:
            await lanes.close()
    return lanes.is_as_good_as_new


class LaneWorker:
    """The two jobs that a worker has at most: a requested one, and beside it one of the background, so that no build
    waits until a delta is made."""

    def __init__(self, store: Store, types: Sequence[AnyJobType], stopping: asyncio.Event) -> None:
        self._store = store
        self._types = {kind.name: kind for kind in types}
        self._stopping = stopping
        self._background: asyncio.Task[None] | None = None
        self.is_as_good_as_new = True

    async def take(self) -> bool:
        """Take up the jobs whose turn it is, one of each lane; whether there was a requested one. It is done on return,
        the one of the background goes on, and takes up the next by itself.

        Raises:
            Unavailable: the database is or was away; the lease runs out, and the job is begun again.
        """
        if self._background is not None and self._background.done():
            ended, self._background = self._background, None
            ended.result()
        # First, since requested jobs may come without end.
        if self._background is None and (claimed := await self._claim("background")) is not None:
            self._background = asyncio.create_task(self._work_in_background(claimed))
        requested = await self._claim("requested")
        if requested is None:
            return False
        await self._perform(requested)
        return not self._stopping.is_set()

    async def close(self) -> None:
        """Give the background job back, or wait for its end when it is near."""
        self._stopping.set()
        if self._background is not None:
            with suppress(Refused):
                await self._background

    async def _work_in_background(self, claimed: LeasedJob | None) -> None:
        """Do the job and the background jobs after it: an engine may wake the worker for requested ones alone."""
        while claimed is not None:
            await self._perform(claimed)
            claimed = None if self._stopping.is_set() else await self._claim("background")

    async def _claim(self, lane: leases.Lane) -> LeasedJob | None:
        settings = self._store.settings
        return await leases.claim_next(
            self._store.database, running=settings.jobs_running, lease_s=settings.job_lease_s, lane=lane
        )

    async def _perform(self, claimed: LeasedJob) -> None:
        if not await runner.perform(self._store, self._types, claimed, self._stopping):
            self.is_as_good_as_new = False
            self._stopping.set()


async def _heartbeat(store: Store) -> None:
    """Be seen, see to it that no job waits for a time that is not to come, and clean up now and then."""
    worker_id = ids.new_uuid()
    trouble = ThrottledErrorLog("jobs", "the worker could not say that it lives")
    times = 0
    try:
        while True:
            try:
                async with store.database.transaction() as transaction:
                    await queries.note_worker(transaction, worker_id)
                    await leases.repair_times(
                        transaction, lease_s=store.settings.job_lease_s, wait_s=runner.MAX_PAUSE_S
                    )
                if times % SWEEP_EVERY == 0:
                    await runner.sweep(Path(store.settings.data), store.database)
            except Refused as refused:
                trouble.failed(refused)
            else:
                trouble.over()
            times += 1
            await asyncio.sleep(HEARTBEAT_EVERY_S)
    finally:
        with suppress(Refused):
            async with store.database.transaction() as transaction:
                await queries.forget_worker(transaction, worker_id)


OpenStore: TypeAlias = Callable[[Settings, str, bool], AbstractAsyncContextManager[Store]]
"""Opens a store, given its settings, its root address, and whether it is reached from this machine alone."""


class WorkerConfig(msgspec.Struct):
    """What a worker process is told: whose jobs it works on."""

    settings: Settings
    root_url: str
    is_loopback: bool
    problems_url: str = ""


@asynccontextmanager
async def supervise_workers(store: Store, command: Sequence[str], count: int) -> AsyncGenerator[None]:
    """`count` processes of the command work on the store's jobs while the block lasts; see `work_as_told`."""
    async with processes.supervise(command, worker_config(store), count, grace_s=store.settings.grace_s):
        yield


def worker_config(store: Store) -> bytes:
    """What a worker process of the store is told, on one line. Settings hold secrets: they go through a pipe, where no
    list of processes shows them."""
    return msgspec.json.encode(WorkerConfig(store.settings, store.root_url, store.is_loopback, store.problems_url))


def run_worker_process(opened: OpenStore, types: Sequence[AnyJobType]) -> None:
    """The whole life of a worker process, from its orders on standard input to its end.

    Raises:
        Refused, BadSetting: the store cannot be opened, or its engine not be reached; the parent starts another.
    """
    told = msgspec.json.decode(sys.stdin.buffer.readline(), type=WorkerConfig)
    settings = told.settings
    telemetry.configure(settings.log_level)
    processes.limit_process(nice=settings.job_nice, memory_mib=settings.job_memory_mib)
    processes.die_with_parent(sys.stdin.fileno())
    uvloop.run(_work(opened(settings, told.root_url, told.is_loopback), told.problems_url, types))


async def _work(opening: AbstractAsyncContextManager[Store], problems_url: str, types: Sequence[AnyJobType]) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with opening as store, _stop_when_broken(store, stopping):
        if not await work(replace(store, problems_url=problems_url), types, stopping):
            # Threads of a job that was left behind would hold up every other way out.
            os._exit(processes.RESTART_CODE)


@asynccontextmanager
async def _stop_when_broken(store: Store, stopping: asyncio.Event) -> AsyncGenerator[None]:
    """While the block lasts: when the database can write no more, this process ends, and the parent starts another."""

    async def watch() -> None:
        await store.database.broken.wait()
        stopping.set()

    async with background(watch()):
        yield
