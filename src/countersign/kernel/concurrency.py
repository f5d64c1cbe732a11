"""Concurrency with asyncio: background and periodic work, work that is never cancelled, single flight, and yielding."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, Generic, TypeVar

from countersign.kernel import clock
from countersign.kernel.telemetry import ThrottledErrorLog

T = TypeVar("T")


@asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Run the work in a task while the block lasts. Leaving the block cancels the task, waits for it, and raises the
    exception that ended it earlier."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def periodic(work: Callable[[], Awaitable[None]], *, every_s: float) -> AsyncGenerator[None]:
    """Repeat the work while the block lasts, also after a failure. A `ThrottledErrorLog` reports failures."""
    async with background(_repeat(work, every_s)):
        yield


async def _repeat(work: Callable[[], Awaitable[None]], every_s: float) -> None:
    failures = ThrottledErrorLog("tending", "tending failed")
    while True:
        await asyncio.sleep(every_s)
        try:
            await work()
        except Exception as error:  # the edge of a background task
            failures.failed(error)
        else:
            failures.over()


async def uncancellable(work: "asyncio.Future[T]") -> T:
    """Return the result of the work, which this call never cancels.

    When the waiting task is cancelled, this call still waits for the work, and raises the cancellation afterwards. A
    connection that another thread uses, or that is in the middle of a COMMIT, is therefore never left in an unknown
    state.
    """
    cancellation: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancellation = error
    if cancellation is not None:
        if not work.cancelled():
            work.exception()  # retrieved, so that the loop does not log it as "never retrieved"
        raise cancellation
    return work.result()


class SingleFlight(Generic[T]):
    """Concurrent calls share one run of the work, and get its result or its exception. The run continues when a caller
    is cancelled."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._work = work
        self._running: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        """Return the result of the current run. If there is no current run, start one."""
        task = self._running
        if task is None:
            task = self._running = asyncio.create_task(self._work())
            task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, _: asyncio.Task[T]) -> None:
        self._running = None


class CooperativeIterator(Generic[T]):
    """Iterates the items with `async for`, and yields to the event loop after every `max_items` items, or earlier if
    MAX_BLOCK_S has passed, because a single item may contain a text of a megabyte. Statements on SQLite and values from
    memory never suspend, so a loop over thousands of items would block every other request of the process.
    """

    EACH = 20
    MAX_BLOCK_S = 0.02
    """The time after which the loop yields before the next item."""

    def __init__(self, items: Iterable[T], max_items: int = EACH) -> None:
        self._items = iter(items)
        self._each = max_items
        self._count = 0
        self._began_s = clock.monotonic_s()

    def __aiter__(self) -> "CooperativeIterator[T]":
        return self

    async def __anext__(self) -> T:
        self._count += 1
        if self._count % self._each == 0 or clock.monotonic_s() - self._began_s > self.MAX_BLOCK_S:
            await asyncio.sleep(0)
            self._began_s = clock.monotonic_s()
        for item in self._items:
            return item
        raise StopAsyncIteration
