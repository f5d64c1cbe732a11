"""Shared functions of database tests: insert rows, count them, and cancel a task at a given await."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any

from countersign.kernel.database.port import Database, Reader

PUT = "INSERT INTO thing (id, word) VALUES ($1, $2)"


async def put(database: Database, *numbers: int) -> None:
    """Insert the rows in one transaction."""
    async with database.transaction() as transaction:
        for number in numbers:
            await transaction.run(PUT, number, f"word {number}")


async def things(reader: Reader) -> list[int]:
    """Return the numbers of the rows in the table."""
    return [row[0] for row in await reader.fetch("SELECT id FROM thing ORDER BY id")]


class CancelAtWait:
    """Awaits the work, and cancels its task at the wait with this `number` (from 0).

    With `is_late`, the task is cancelled when its result is ready and before it continues.
    """

    def __init__(self, work: Coroutine[Any, Any, None], number: int, *, is_late: bool = False) -> None:
        self._work = work
        self._number = number
        self._is_late = is_late
        self.waited = 0

    def __await__(self) -> Generator[Any, None, None]:
        task = asyncio.current_task()
        assert task is not None
        error: BaseException | None = None
        while True:
            try:
                future = self._work.throw(error) if error else self._work.send(None)
            except StopIteration:
                return
            error = None
            if self.waited == self._number:
                if self._is_late and future is not None:
                    future.add_done_callback(lambda _: task.cancel())
                else:
                    task.get_loop().call_soon(task.cancel)
            self.waited += 1
            try:
                yield future
            except BaseException as thrown:
                error = thrown
