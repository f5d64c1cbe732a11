"""The port between those who ask for work and those who do it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Transaction

Take: TypeAlias = Callable[[], Awaitable[bool]]
"""Takes up the job whose turn it is and does it; False when there is none. Never called while it still runs."""


class Engine(Protocol):
    """Wakes a worker when there is work, and another one when that one dies.

    Which job is whose is decided by leases in the job table, so that an engine may call once too often.
    """

    async def defer(self, transaction: Transaction, run_after: Instant | None = None) -> None:
        """Have a worker look for a job once the transaction is durable, and not before the moment; never when it is
        rolled back."""
        ...

    async def serve(self, take: Take, stopping: asyncio.Event) -> None:
        """Call `take` whenever there may be a job, as long as it finds one, until stopping is set.

        Raises:
            Unavailable: the engine cannot be reached; the process is to be started anew.
        """
        ...
