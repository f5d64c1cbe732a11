"""Counts transactions that wait for another one, so that a test can force the order of a race."""

import asyncio

import pytest

from countersign.kernel.database.port import Database
from countersign.kernel.database.sqlite_writer import SqliteWriter

GIVEN_UP_S = 30
WAITING = """
SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
"""


class LockWaits:
    """Counts the transactions that wait: for a row on PostgreSQL, for the write lock on SQLite. Both handle them in the
    order of their arrival."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self._database = database
        self._for_turn = 0
        take_turn = SqliteWriter._take_turn

        async def take_counted(writer: SqliteWriter) -> None:
            self._for_turn += 1
            try:
                await take_turn(writer)
            finally:
                self._for_turn -= 1

        monkeypatch.setattr(SqliteWriter, "_take_turn", take_counted)

    async def reach(self, count: int) -> None:
        """Return when this number of transactions waits."""
        async with asyncio.timeout(GIVEN_UP_S):
            while await self._count() != count:
                await asyncio.sleep(0.005)

    async def _count(self) -> int:
        if self._database.dialect == "sqlite":
            return self._for_turn
        row = await self._database.fetch_one(WAITING)
        assert row is not None
        return int(row[0])
