"""Waiting for work that must come to its end even when nobody wants its result any more."""

import asyncio
from typing import TypeVar

T = TypeVar("T")


async def settled(work: "asyncio.Future[T]") -> T:
    """The result of the work, which is never cancelled by this.

    When the waiting task is cancelled, the work is waited for all the same and the cancellation is raised after it:
    a connection in another thread or in the middle of a COMMIT is never left behind in an unknown state.
    """
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not work.cancelled():
            work.exception()  # taken, so that the loop does not complain about a result nobody asked for
        raise cancelled
    return work.result()
