"""A process that works on jobs until it is told to stop: one that was requested, and one of the background."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from countersign.distribution.context import Store
from countersign.distribution.jobs import claims, queries, runner, scratch
from countersign.distribution.jobs.claims import Claimed
from countersign.distribution.jobs.kinds import AnyJobType
from countersign.kernel import ids
from countersign.kernel.concurrency import background
from countersign.kernel.errors import Refused
from countersign.kernel.telemetry import ThrottledErrorLog

SEEN_EVERY_S = 10
SWEEP_EVERY = 6
"""Every so many times that the worker is seen, it looks for what attempts have left behind."""


async def work(store: Store, types: Sequence[AnyJobType], stopping: asyncio.Event) -> bool:
    """Work on jobs of these types until stopping is set; False when a job had to be left behind before: the process is
    to be ended then, whatever that job's threads still do.

    Raises:
        Unavailable: the engine cannot be reached.
    """
    lanes = Lanes(store, types, stopping)
    async with background(_seen(store)):
        try:
            await store.jobs.serve(lanes.take, stopping)
        finally:
            await lanes.close()
    return lanes.is_as_good_as_new


class Lanes:
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

    async def _work_in_background(self, claimed: Claimed | None) -> None:
        """Do the job and the background jobs after it: an engine may wake the worker for requested ones alone."""
        while claimed is not None:
            await self._perform(claimed)
            claimed = None if self._stopping.is_set() else await self._claim("background")

    async def _claim(self, lane: claims.Lanes) -> Claimed | None:
        settings = self._store.settings
        return await claims.claim(
            self._store.database, running=settings.jobs_running, lease_s=settings.job_lease_s, lane=lane
        )

    async def _perform(self, claimed: Claimed) -> None:
        if not await runner.perform(self._store, self._types, claimed, self._stopping):
            self.is_as_good_as_new = False
            self._stopping.set()


async def _seen(store: Store) -> None:
    """Be seen, see to it that no job waits for a time that is not to come, and clean up now and then."""
    worker_id = ids.new_uuid()
    trouble = ThrottledErrorLog("jobs", "the worker could not say that it lives")
    times = 0
    try:
        while True:
            try:
                async with store.database.transaction() as transaction:
                    await queries.note_worker(transaction, worker_id)
                    await claims.keep_to_time(
                        transaction, lease_s=store.settings.job_lease_s, wait_s=runner.MAX_PAUSE_S
                    )
                if times % SWEEP_EVERY == 0:
                    await scratch.sweep(Path(store.settings.data), store.database)
            except Refused as refused:
                trouble.failed(refused)
            else:
                trouble.over()
            times += 1
            await asyncio.sleep(SEEN_EVERY_S)
    finally:
        with suppress(Refused):
            async with store.database.transaction() as transaction:
                await queries.forget_worker(transaction, worker_id)
