"""The engine that needs nothing: workers look into the job table, often enough that nobody waits for them."""

import asyncio

from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.jobs.engine import Take
from countersign.kernel.telemetry import ThrottledErrorLog

LOOK_EVERY_S = 0.04
"""On SQLite a look takes some 20 µs; a hundredth of a second's wait would not be noticed by anybody."""
AWAY_S = 1.0


class EmbeddedEngine:
    """Looks by itself. What is deferred is in the table, and that is enough."""

    async def defer(self, transaction: Transaction, run_after: Instant | None = None) -> None:
        """Nothing has to be told to anybody."""

    async def serve(self, take: Take, stopping: asyncio.Event) -> None:
        """Look, and look again; a database that is away for a while is waited for."""
        trouble = ThrottledErrorLog("jobs", "no job could be taken")
        while not stopping.is_set():
            try:
                has_done = await take()
            except Refused as refused:
                trouble.failed(refused)
                await paused(stopping, AWAY_S)
                continue
            trouble.over()
            if not has_done:
                await paused(stopping, LOOK_EVERY_S)


async def paused(stopping: asyncio.Event, seconds: float) -> None:
    """Do nothing for a while, unless stopping is set."""
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        return
