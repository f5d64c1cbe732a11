"""Reading a SQLite file that other applications write."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, cast

import apsw

from countersign.kernel.database import port, read_only, sqlite_connection
from countersign.kernel.database.port import Dialect, Row, Value
from countersign.kernel.database.row_spool import RowSpool, TooManyRows
from countersign.kernel.database.sqlite import SqliteReaders
from countersign.kernel.errors import Refused, Unavailable

BUSY_MS = 2_000

TextFunction: TypeAlias = Callable[[str | None], str | None]
"""A function of statements that takes and returns a text."""

_ERRORS = (apsw.Error, port.ConstraintViolation, port.WrittenOutsideTransaction, Refused)


class ExistingSqlite:
    """A SQLite file, opened read-only."""

    def __init__(self, path: Path, count: int, read_deadline_s: float, functions: Mapping[str, TextFunction]) -> None:
        def connected() -> sqlite_connection.Connection:
            return _open_file(path, functions)

        self._slots = read_only.Slots(count)
        try:
            self._readers = SqliteReaders(path, count, read_deadline_s, connected)
        except _ERRORS as error:
            _refuse(error)

    @property
    def dialect(self) -> Dialect:
        """Return the dialect of SQLite."""
        return "sqlite"

    async def scan(self, statement: str, *values: Value) -> list[Row]:
        """Return all rows, read in a thread."""
        try:
            async with self._slots.one():
                return await self._readers.scan(statement, values)
        except _ERRORS as error:
            _refuse(error)

    async def stream(self, statement: str, *values: Value) -> AsyncGenerator[list[Row]]:
        """Yield the rows in batches. They are read in a thread."""
        with closing(RowSpool()) as spool:
            try:
                async with self._slots.one(is_stream=True):
                    await self._readers.read_into(spool.add, statement, values)
            except _ERRORS as error:
                _refuse(error)
            for batch in spool.batches():
                yield batch
                await asyncio.sleep(0)

    async def close(self) -> None:
        """Wait for running reads, then close every connection."""
        await self._readers.close()


def _open_file(path: Path, functions: Mapping[str, TextFunction]) -> sqlite_connection.Connection:
    opened = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    for name, function in functions.items():
        cast("Any", opened).create_scalar_function(name, function, 1, deterministic=True)
    connection = cast(sqlite_connection.Connection, opened)
    connection.set_busy_timeout(BUSY_MS)
    connection.pragma("query_only", "ON")
    # Opening a file reads nothing of it.
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    return connection


def _refuse(error: BaseException) -> NoReturn:
    if isinstance(error, read_only.Busy | TooManyRows):
        raise error
    if isinstance(error, Refused):
        is_slow = "took longer" in error.detail
        read_only.refuse(error, Unavailable(read_only.SLOW if is_slow else read_only.AWAY))
    is_changed = type(error) is apsw.SQLError
    read_only.refuse(
        error, read_only.TableChanged(read_only.CHANGED) if is_changed else Unavailable(read_only.AWAY)
    )
