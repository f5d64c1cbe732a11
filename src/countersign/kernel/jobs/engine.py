"""The job engine's interface, and the embedded engine, whose workers poll the job table."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.telemetry import ThrottledErrorLog

TakeJob: TypeAlias = Callable[[], Awaitable[bool]]
"""Takes up the job whose turn it is and does it; False when there is none. Never called while it still runs."""


class Engine(Protocol):
    """Wakes a worker when there is work, and another one when that one dies.

    Which job is whose is decided by leases in the job table, so that an engine may call once too often.
    """

    async def defer(self, transaction: Transaction, run_after: Instant | None = None) -> None:
        """Have a worker look for a job once the transaction is durable, and not before the moment; never when it is
        rolled back."""
        ...

    async def serve(self, take: TakeJob, stopping: asyncio.Event) -> None:
        """Call `take` whenever there may be a job, as long as it finds one, until stopping is set.

        Raises:
            Unavailable: the engine cannot be reached; the process is to be started anew.
        """
        ...


POLL_EVERY_S = 0.04
"""On SQLite a look takes some 20 µs; a hundredth of a second's wait would not be noticed by anybody."""
RETRY_S = 1.0


class EmbeddedEngine:
    """Looks by itself. What is deferred is in the table, and that is enough."""

    async def defer(self, transaction: Transaction, run_after: Instant | None = None) -> None:
        """Nothing has to be told to anybody."""

    async def serve(self, take: TakeJob, stopping: asyncio.Event) -> None:
        """Look, and look again; a database that is away for a while is waited for."""
        failures = ThrottledErrorLog("jobs", "no job could be taken")
        while not stopping.is_set():
            try:
                has_done = await take()
            except Refused as refused:
                failures.failed(refused)
                await pause(stopping, RETRY_S)
                continue
            failures.over()
            if not has_done:
                await pause(stopping, POLL_EVERY_S)


async def pause(stopping: asyncio.Event, seconds: float) -> None:
    """Do nothing for a while, unless stopping is set."""
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        return
