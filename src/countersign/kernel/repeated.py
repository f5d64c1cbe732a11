"""Work that is repeated beside an application, while it is served."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from countersign.kernel import telemetry
from countersign.kernel.beside import beside


@asynccontextmanager
async def repeated(work: Callable[[], Awaitable[None]], *, every_s: float) -> AsyncGenerator[None]:
    """While the block lasts, the work is done again and again; a failure is logged, and the next round tries again."""
    async with beside(_rounds(work, every_s)):
        yield


async def _rounds(work: Callable[[], Awaitable[None]], every_s: float) -> None:
    log = telemetry.logger("tending")
    while True:
        await asyncio.sleep(every_s)
        try:
            await work()
        except Exception as error:  # the edge of a background task
            log.error("tending failed", exc_info=error)
