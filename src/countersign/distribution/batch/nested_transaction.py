"""A transaction that is under way, as a database: what is done on it is seen by what follows, and commits with it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from math import inf

from countersign.kernel import clock
from countersign.kernel.database.port import Dialect, Row, Transaction, Value
from countersign.kernel.errors import Unavailable


class NestedTransaction:
    """Reads and writes in one transaction of a database. One task uses it at a time.

    Its transactions are parts of it: durable only once it is, and so is whatever was to happen after their
    commit. After `until_s` (by the monotonic clock) nothing more is begun on it, for others wait for its end: what it
    is asked then is Unavailable.
    """

    def __init__(self, dialect: Dialect, transaction: Transaction, *, until_s: float = inf) -> None:
        self._dialect: Dialect = dialect
        self._transaction = transaction
        self._until_s = until_s
        self._is_spoilt = False
        # Never set: the outer database's is.
        self.broken = asyncio.Event()

    @property
    def dialect(self) -> Dialect:
        """The outer database's."""
        return self._dialect

    async def fetch(self, statement: str, *values: Value) -> list[Row]:
        """All rows, with what the transaction has written so far."""
        return await self._in_time().fetch(statement, *values)

    async def fetch_one(self, statement: str, *values: Value) -> Row | None:
        """The first row, or None."""
        return await self._in_time().fetch_one(statement, *values)

    async def scan(self, statement: str, *values: Value) -> list[Row]:
        """All rows; the deadline is the transaction's own."""
        return await self._in_time().fetch(statement, *values)

    async def stream(self, statement: str, *values: Value) -> AsyncGenerator[list[Row]]:
        """The rows, all at once."""
        yield await self._in_time().fetch(statement, *values)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        """A block whose writes wait for the outer commit. One that is left by an exception spoils the whole.

        A savepoint for each would cost two round trips, and whoever nests undoes everything then anyway."""
        try:
            yield self._in_time()
        except BaseException:
            self._is_spoilt = True
            raise

    async def close(self) -> None:
        """Nothing: the outer transaction ends by itself."""

    def _in_time(self) -> Transaction:
        if self._is_spoilt:
            raise Unavailable("A part of this transaction has failed; nothing of it will be kept.")
        if clock.monotonic_s() > self._until_s:
            raise Unavailable("This takes too long for one transaction; do less in it, or try again.")
        return self._transaction
