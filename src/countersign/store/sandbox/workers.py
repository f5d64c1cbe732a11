"""Worker processes for the jobs of data sets. A node has a limited number of workers. Each works for one data set at a
time."""

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from countersign.kernel import clock
from countersign.kernel.blobs.disk import Descriptor
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.jobs.engine import Engine, TakeJob
from countersign.store.context import Store
from countersign.store.jobs import worker_process
from countersign.store.sandbox.folders import FOLDER

HAS_JOBS = "SELECT 1 FROM job WHERE status IN ('queued', 'running') LIMIT 1"


async def has_jobs(reader: Reader) -> bool:
    """Whether any job is queued or running."""
    return await reader.fetch_one(HAS_JOBS) is not None


MAX_WORKERS = 2
IDLE_S = 10.0
TURN_S = 60.0
"""After this time, a worker stops working for a data set with more jobs if another data set waits for a worker."""
POLL_EVERY_S = 0.25


class NotifyingEngine:
    """An engine that calls `wake` after a job was committed, to start worker processes."""

    def __init__(self, engine: Engine, wake: Callable[[], None]) -> None:
        self._engine = engine
        self._wake = wake

    async def defer(self, transaction: Transaction, run_after: Instant | None = None) -> None:
        """See Engine."""
        await self._engine.defer(transaction, run_after)
        transaction.after_commit(self._wake)

    async def serve(self, take: TakeJob, stop_event: asyncio.Event) -> None:
        """See Engine."""
        await self._engine.serve(take, stop_event)


class Workers:
    """Starts a worker process for a data set with jobs, and stops it after it was idle for a while."""

    def __init__(self, command: Sequence[str], data: Path) -> None:
        self._command = command
        self._locks = [data / FOLDER / f"{WORKER_LOCK}{number}" for number in range(MAX_WORKERS)]
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._running_workers = 0

    def wake(self, name: str, store: Store, touch: Callable[[], Awaitable[None]]) -> None:
        """Run a worker for the data set; `touch` is awaited periodically, so that the data set stays open."""
        if not self._command or name in self._tasks:
            return
        task = asyncio.create_task(self._work(store, touch))
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))

    def is_working(self, name: str) -> bool:
        """Whether a worker runs, or waits to run, for the data set."""
        return name in self._tasks

    async def close(self) -> None:
        """Stop all worker processes; their running jobs return to the queue."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, store: Store, touch: Callable[[], Awaitable[None]]) -> None:
        while await has_jobs(store.database):
            async with self._slot(), worker_process.supervise_workers(store, self._command, 1):
                await self._supervise(store, touch)

    async def _supervise(self, store: Store, touch: Callable[[], Awaitable[None]]) -> None:
        began_s = last_busy_s = clock.monotonic_s()
        self._running_workers += 1
        try:
            while True:
                await asyncio.sleep(POLL_EVERY_S)
                await touch()
                now_s = clock.monotonic_s()
                if await has_jobs(store.database):
                    last_busy_s = now_s
                has_waiting = len(self._tasks) > self._running_workers
                if now_s - last_busy_s > IDLE_S or (has_waiting and now_s - min(began_s, last_busy_s) > TURN_S):
                    return
                if has_waiting and now_s - last_busy_s > 2 * POLL_EVERY_S:
                    return
        finally:
            self._running_workers -= 1

    @asynccontextmanager
    async def _slot(self) -> AsyncGenerator[None]:
        """Occupy one of the node's worker slots, which its server processes share, during the block."""
        while True:
            slot = self._free_slot()
            if slot is not None:
                break
            # Wait and try again: other processes occupy slots too, and no event reports that a slot is free.
            await asyncio.sleep(POLL_EVERY_S)
        try:
            yield
        finally:
            slot.close()

    def _free_slot(self) -> Descriptor | None:
        for path in self._locks:
            lock = Descriptor(path, os.O_RDWR | os.O_CREAT)
            with suppress(BlockingIOError):
                fcntl.flock(lock.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
        return None


WORKER_LOCK = "lock-worker-"
