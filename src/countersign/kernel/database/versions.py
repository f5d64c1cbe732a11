"""Named version counters, so that one small read can validate caches.

The table `version (name TEXT PRIMARY KEY, number BIGINT NOT NULL)` contains them; the service's own migration creates
it together with a row for each name.
"""

import asyncio
from collections.abc import Sequence

from countersign.kernel import clock
from countersign.kernel.database.port import Database, Transaction

_EVERY_NUMBER = "SELECT name, number FROM version"
_NEXT_NUMBER = """
UPDATE version SET number = CASE WHEN number < $2 THEN $2 ELSE number + 1 END
WHERE name = $1
RETURNING number
"""


async def check_writable(transaction: Transaction) -> None:
    """Write the counters unchanged, for a health check."""
    await transaction.run("UPDATE version SET number = number")


async def bump(transaction: Transaction, name: str) -> int:
    """Increase the counter. The new number is the current time (µs), or the previous number plus one, whichever is
    larger.

    Call this last in the transaction: on PostgreSQL the row stays locked until the transaction ends, so that numbers
    are committed in order.

    Raises:
        LookupError: the table has no row with this name.
    """
    row = await transaction.fetch_one(_NEXT_NUMBER, name, clock.now())
    if row is None:
        raise LookupError(f"the table version has no row {name!r}: insert it in a migration")
    return int(row[0])


class Versions:
    """Reads the counters with the given names. The numbers are never older than the call.

    On SQLite, the numbers are read again only after a commit, which a mark in memory shows (see
    `Database.change_mark`).

    On PostgreSQL, callers that arrive during a read share the next read: one round trip serves them all, and no caller
    gets a number that was read before its call.
    """

    def __init__(self, database: Database, names: Sequence[str]) -> None:
        self._database = database
        self._names = tuple(names)
        self._running: asyncio.Task[tuple[int, ...]] | None = None
        self._next: asyncio.Task[tuple[int, ...]] | None = None
        self._known: tuple[bytes, tuple[int, ...]] | None = None

    async def current(self) -> tuple[int, ...]:
        """Return the numbers, in the order of the names, including every bump committed before the call.

        Raises:
            Unavailable: the database cannot be reached.
            LookupError: the table lacks a row for one of the names.
        """
        if self._database.dialect == "sqlite":
            return await self._read_once_per_commit()
        if self._next is None:
            self._next = asyncio.create_task(self._read_after(self._running))
            self._next.add_done_callback(_retrieve_exception)
        return await asyncio.shield(self._next)

    async def _read_once_per_commit(self) -> tuple[int, ...]:
        # Take the mark before the read: a commit in between then differs from the mark, and causes another read.
        mark = self._database.change_mark()
        if mark is None:
            return await self.read()
        if self._known is None or self._known[0] != mark:
            self._known = (mark, await self.read())
        return self._known[1]

    async def _read_after(self, running: asyncio.Task[tuple[int, ...]] | None) -> tuple[int, ...]:
        if running is not None and not running.done():
            await asyncio.wait([running])
        # Callers that arrive from now on need a later read.
        self._running, self._next = self._next, None
        return await self.read()

    async def read(self) -> tuple[int, ...]:
        """Like `current`, but with a separate read, for callers in a transaction."""
        numbers = dict(await self._database.fetch(_EVERY_NUMBER))
        missing_names = [name for name in self._names if name not in numbers]
        if missing_names:
            raise LookupError(f"the table version has no row {missing_names[0]!r}: insert it in a migration")
        return tuple(numbers[name] for name in self._names)


def _retrieve_exception(task: asyncio.Task[tuple[int, ...]]) -> None:
    """Retrieve the task's exception, so that the loop does not log it when every caller was cancelled."""
    if not task.cancelled():
        task.exception()
