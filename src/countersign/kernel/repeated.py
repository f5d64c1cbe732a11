"""Work that is repeated beside an application, while it is served."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from countersign.kernel.beside import beside
from countersign.kernel.trouble import Trouble


@asynccontextmanager
async def repeated(work: Callable[[], Awaitable[None]], *, every_s: float) -> AsyncGenerator[None]:
    """While the block lasts, the work is done again and again, also after it failed; `Trouble` tells of that."""
    async with beside(_rounds(work, every_s)):
        yield


async def _rounds(work: Callable[[], Awaitable[None]], every_s: float) -> None:
    trouble = Trouble("tending", "tending failed")
    while True:
        await asyncio.sleep(every_s)
        try:
            await work()
        except Exception as error:  # the edge of a background task
            trouble.failed(error)
        else:
            trouble.over()
