"""A process that works on jobs: one at a time, until it is told to stop."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from countersign.distribution.context import Store
from countersign.distribution.jobs import claims, queries, runner, scratch
from countersign.distribution.jobs.kinds import AnyJobType
from countersign.kernel import ids
from countersign.kernel.beside import beside
from countersign.kernel.errors import Refused
from countersign.kernel.trouble import Trouble

SEEN_EVERY_S = 10
SWEEP_EVERY = 6
"""Every so many times that the worker is seen, it looks for what attempts have left behind."""


async def work(store: Store, types: Sequence[AnyJobType], stopping: asyncio.Event) -> bool:
    """Work on jobs of these types until stopping is set; False when a job had to be left behind before: the process is
    to be ended then, whatever that job's threads still do.

    Raises:
        Unavailable: the engine cannot be reached.
    """
    known = {kind.name: kind for kind in types}
    settings = store.settings
    is_as_good_as_new = True

    async def take() -> bool:
        nonlocal is_as_good_as_new
        claimed = await claims.claim(store.database, running=settings.jobs_running, lease_s=settings.job_lease_s)
        if claimed is None:
            return False
        is_as_good_as_new = await runner.perform(store, known, claimed, stopping)
        if not is_as_good_as_new:
            stopping.set()
        return not stopping.is_set()

    async with beside(_seen(store)):
        await store.jobs.serve(take, stopping)
    return is_as_good_as_new


async def _seen(store: Store) -> None:
    """Be seen, see to it that no job waits for a time that is not to come, and clean up now and then."""
    worker_id = ids.new_uuid()
    trouble = Trouble("jobs", "the worker could not say that it lives")
    times = 0
    try:
        while True:
            try:
                async with store.database.transaction() as transaction:
                    await queries.note_worker(transaction, worker_id)
                    await claims.keep_to_time(transaction, lease_s=store.settings.job_lease_s, wait_s=runner.LONGEST_S)
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
