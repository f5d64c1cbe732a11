"""The job engine's interface, and the embedded engine, whose workers poll the job table."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.telemetry import ThrottledErrorLog

TakeJob: TypeAlias = Callable[[], Awaitable[bool]]
"""Runs the next job, and returns False if no job is due. Calls must not overlap."""


class Engine(Protocol):
    """Wakes a worker when there is work, and wakes another worker if the first one dies.

    Leases in the job table assign jobs to workers, so that a redundant wake-up is harmless.
    """

    async def defer(self, transaction: Transaction, run_after: Instant | None = None) -> None:
        """Wake a worker after the transaction commits, but not before `run_after`. After a rollback, no worker is
        woken."""
        ...

    async def serve(self, take: TakeJob, stop_event: asyncio.Event) -> None:
        """Call `take` whenever there may be a job, and again as long as it finds one, until stopping is set.

        Raises:
            Unavailable: the engine cannot be reached; the process must be restarted.
        """
        ...


POLL_EVERY_S = 0.04
"""The interval of polls. On SQLite a poll takes about 20 µs, and the delay is not noticeable."""
RETRY_S = 1.0


class EmbeddedEngine:
    """Polls the job table, which contains all deferred jobs."""

    async def defer(self, transaction: Transaction, run_after: Instant | None = None) -> None:
        """Do nothing: workers poll."""

    async def serve(self, take: TakeJob, stop_event: asyncio.Event) -> None:
        """Poll until stopping is set. While the database is unavailable, wait for it."""
        failures = ThrottledErrorLog("jobs", "no job could be taken")
        while not stop_event.is_set():
            try:
                has_done = await take()
            except Refused as refused:
                failures.failed(refused)
                await pause(stop_event, RETRY_S)
                continue
            failures.over()
            if not has_done:
                await pause(stop_event, POLL_EVERY_S)


async def pause(stop_event: asyncio.Event, seconds: float) -> None:
    """Sleep for this time, or until stopping is set."""
    try:
        async with asyncio.timeout(seconds):
            await stop_event.wait()
    except TimeoutError:
        return
