"""Runs upgrades in processes that are killed. It reads lines `K URL`, and for each line it forks a process that dies
before its K-th statement.

It prints `killed` for each line or, if the upgrade has fewer statements, `done`.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from countersign.declare import Model, Money, Number, Ref, Select, Text
from countersign.kernel.database.port import Database, Dialect, Row, Transaction, Value
from countersign.records.schema import install
from tests.records.schema.conftest import MASTER, model, open_schema, registry

BEFORE: tuple[type[Model], ...] = (
    model(
        "lead",
        title=Text(index=True),
        mail=Text(),
        size=Number(),
        stage=Select("new", "lost", index=True),
        nick=Text(personal="PERSON"),
    ),
    model("note", lead=Ref("lead"), text=Text()),
    model("gone", note=Ref("note"), name=Text(personal="PERSON")),
)


def _cost(rank: int) -> int:
    return rank * 10


AFTER: tuple[type[Model], ...] = (
    model(
        "lead",
        title=Text(),
        mail=Text(personal="EMAIL", index=True),
        size=Text(),
        stage=Select("new", required=True, default="new", index=True),
        total_minor=Money(sum_of="note.cost_minor", index=True),
        task=Ref("task"),
    ),
    model(
        "note",
        lead=Ref("lead"),
        text=Text(personal="NOTES"),
        rank=Number(required=True, default=3),
        cost_minor=Money(computed=_cost),
    ),
    model("task", lead=Ref("lead", required=True), title=Text(unique=True)),
)
"""The models before and after. The upgrade between them has every kind of step."""


class StatementCountdown:
    """Counts statements, and kills this process before the statement with the given number."""

    def __init__(self, last_statement: int) -> None:
        self._left = last_statement

    def count(self) -> None:
        """Count a statement before it is run."""
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class DyingTransaction:
    """A transaction whose statements are counted."""

    def __init__(self, inner: Transaction, dying: StatementCountdown) -> None:
        self._inner = inner
        self._dying = dying
        self.after_commit = inner.after_commit

    async def fetch(self, statement: str, *values: Value) -> list[Row]:
        """See `Transaction`."""
        self._dying.count()
        return await self._inner.fetch(statement, *values)

    async def fetch_one(self, statement: str, *values: Value) -> Row | None:
        """See `Transaction`."""
        self._dying.count()
        return await self._inner.fetch_one(statement, *values)

    async def run(self, statement: str, *values: Value) -> int:
        """See `Transaction`."""
        self._dying.count()
        return await self._inner.run(statement, *values)

    async def run_many(self, statement: str, rows: Iterable[tuple[Value, ...]]) -> None:
        """See `Transaction`."""
        self._dying.count()
        await self._inner.run_many(statement, rows)

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """See `Transaction`."""
        return self._inner.savepoint()


class DyingDatabase:
    """A database whose transactions count their statements."""

    def __init__(self, inner: Database, dying: StatementCountdown) -> None:
        self._inner = inner
        self._dying = dying
        self.fetch = inner.fetch
        self.fetch_one = inner.fetch_one
        self.scan = inner.scan
        self.close = inner.close
        self.change_mark = inner.change_mark

    @property
    def dialect(self) -> Dialect:
        """See `Database`."""
        return self._inner.dialect

    @property
    def broken(self) -> asyncio.Event:
        """See `Database`."""
        return self._inner.broken

    def stream(self, statement: str, *values: Value) -> AsyncIterator[list[Row]]:
        """See `Database`."""
        return self._inner.stream(statement, *values)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        """See `Database`."""
        async with self._inner.transaction() as inner:
            yield DyingTransaction(inner, self._dying)


async def upgrade(url: str, last_statement: int) -> None:
    """Upgrade the database to AFTER, or kill this process before the statement with the number `last`."""
    database = DyingDatabase(await open_schema(url), StatementCountdown(last_statement))
    await install.upgrade(database, registry(*AFTER), MASTER, destroy=True)
    await database.close()


def main() -> None:
    """Fork a process for each line, one after the other."""
    for line in sys.stdin:
        last_statement, url = line.split()
        child = os.fork()
        if child == 0:
            asyncio.run(upgrade(url, int(last_statement)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        was_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        outcome = "killed" if was_killed else "done" if status == 0 else f"failed: {status}"
        sys.stdout.write(outcome + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
