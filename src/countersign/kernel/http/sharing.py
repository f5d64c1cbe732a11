"""Work that many ask for at once and that is done once."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """Whoever asks while the work is under way waits for that and gets what it finds, or what it raises. It goes on
    when one who waits gives up."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._work = work
        self._under_way: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        """What the work finds; it begins now unless it is under way."""
        task = self._under_way
        if task is None:
            task = self._under_way = asyncio.create_task(self._work())
            task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, _: asyncio.Task[T]) -> None:
        self._under_way = None
