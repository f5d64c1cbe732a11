"""Turns of the event loop within a long loop: other requests are answered in between."""

import asyncio
from collections.abc import Iterable
from typing import Generic, TypeVar

_Item = TypeVar("_Item")


class Turns(Generic[_Item]):
    """The items for `async for`; the event loop has a turn after every `each` of them.

    A statement on SQLite and a value from memory wait for nothing: a loop of thousands of them would keep every other
    request of the process waiting.
    """

    EACH = 20

    def __init__(self, items: Iterable[_Item], each: int = EACH) -> None:
        self._items = iter(items)
        self._each = each
        self._count = 0

    def __aiter__(self) -> "Turns[_Item]":
        return self

    async def __anext__(self) -> _Item:
        self._count += 1
        if self._count % self._each == 0:
            await asyncio.sleep(0)
        for item in self._items:
            return item
        raise StopAsyncIteration
