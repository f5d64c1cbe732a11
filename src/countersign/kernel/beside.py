"""Work that goes on beside a block of code, and ends with it."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """While the block lasts, the work goes on; it has ended when the block has been left. What made it fail before is
    raised then."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
