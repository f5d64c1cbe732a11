"""Named counters that tell, for the price of one small read, whether anything changed since an answer was made.

They live in the table `version (name TEXT PRIMARY KEY, number BIGINT NOT NULL)`, which the service's own migration
creates together with a row for each name.
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
    """Write the counters as they are: a write that changes nothing, for a health check."""
    await transaction.run("UPDATE version SET number = number")


async def bump(transaction: Transaction, name: str) -> int:
    """Count one more change; the number is its moment (µs), or more where they come too fast.

    Call it last in the transaction: on PostgreSQL the row stays locked until its end, so that numbers are committed in
    their order.

    Raises:
        LookupError: the table has no row of that name.
    """
    row = await transaction.fetch_one(_NEXT_NUMBER, name, clock.now())
    if row is None:
        raise LookupError(f"the table version has no row {name!r}: insert it in a migration")
    return int(row[0])


class Versions:
    """Reads the counters of the given names, always as fresh as the moment of the call.

    On PostgreSQL, callers that arrive while a read is under way share the next one: one round trip serves them all,
    and none gets a number that was read before it asked.
    """

    def __init__(self, database: Database, names: Sequence[str]) -> None:
        self._database = database
        self._names = tuple(names)
        self._running: asyncio.Task[tuple[int, ...]] | None = None
        self._next: asyncio.Task[tuple[int, ...]] | None = None

    async def current(self) -> tuple[int, ...]:
        """The numbers, in the order of the names. A bump acknowledged before the call is in them.

        Raises:
            Unavailable: the database cannot be reached.
            LookupError: the table has no row of one of the names.
        """
        if self._database.dialect == "sqlite":
            return await self.read()
        if self._next is None:
            self._next = asyncio.create_task(self._read_after(self._running))
            self._next.add_done_callback(_take)
        return await asyncio.shield(self._next)

    async def _read_after(self, running: asyncio.Task[tuple[int, ...]] | None) -> tuple[int, ...]:
        if running is not None and not running.done():
            await asyncio.wait([running])
        # From here on whoever asks needs a later read than this one.
        self._running, self._next = self._next, None
        return await self.read()

    async def read(self) -> tuple[int, ...]:
        """The same by a read of the caller's own, for whoever is in a transaction; raises as `current`."""
        numbers = dict(await self._database.fetch(_EVERY_NUMBER))
        missing = [name for name in self._names if name not in numbers]
        if missing:
            raise LookupError(f"the table version has no row {missing[0]!r}: insert it in a migration")
        return tuple(numbers[name] for name in self._names)


def _take(task: asyncio.Task[tuple[int, ...]]) -> None:
    """Look at the task's error, so that the loop does not complain when everyone who waited was cancelled."""
    if not task.cancelled():
        task.exception()
