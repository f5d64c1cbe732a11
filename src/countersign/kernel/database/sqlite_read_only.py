"""Reading a SQLite file that other applications write."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn, cast

import apsw

from countersign.kernel.database import port, read_only, sqlite_connection
from countersign.kernel.database.port import Dialect, Row, Value
from countersign.kernel.database.row_spool import NewCipher, RowSpool, TooManyRows
from countersign.kernel.database.sqlite import SqliteReaders
from countersign.kernel.database.sqlite_outside_tables import TextFunction, file_id_of, is_wal
from countersign.kernel.errors import Refused, Unavailable

BUSY_MS = 2_000

MISSING = "The SQLite file of the connected database does not exist, or may not be read."
NO_DATABASE = "The file of the connected database is not a SQLite database."
IN_UTF_16 = "the SQLite file of the connected database is in UTF-16"
COPY_IN_UTF_8 = "Make a copy in UTF-8 (sqlite3 old .dump | sqlite3 new), and connect that."
CORRECT_URL = "Correct the path in COUNTERSIGN_EXISTING_URL, or the permissions of the file."

effective_user = os.geteuid

_ERRORS = (apsw.Error, port.ConstraintViolation, port.WrittenOutsideTransaction, Refused)


class ForeignWalFile(Unavailable):
    """The file is in WAL mode and belongs to another user."""


class ExistingSqlite:
    """A SQLite file, opened read-only. If the file is replaced by another file, that file is opened."""

    def __init__(
        self,
        path: Path,
        count: int,
        read_deadline_s: float,
        functions: Mapping[str, TextFunction],
        new_cipher: NewCipher,
        *,
        recovers: bool = False,
    ) -> None:
        """With `recovers`, a transaction that a crash has left in the file is rolled back before a read. Otherwise the
        file is opened only for reading."""

        def open_connection() -> sqlite_connection.Connection:
            return _open_file(path, functions, recovers=recovers)

        def open_readers() -> SqliteReaders:
            try:
                return SqliteReaders(path, count, read_deadline_s, open_connection)
            except ForeignWalFile:
                raise
            except _ERRORS as error:
                _refuse(error)

        self._path = path
        self._open = open_readers
        self._opening = asyncio.Lock()
        self._new_cipher = new_cipher
        self._slots = read_only.Slots(count)
        self._file = file_id_of(path)
        self._readers = open_readers()

    @property
    def dialect(self) -> Dialect:
        """Return the dialect of SQLite."""
        return "sqlite"

    async def scan(
        self, statement: str, *values: Value, settings: Mapping[str, str] = read_only.NO_SETTINGS
    ) -> list[Row]:
        """Return all rows, read in a thread. `settings` have no effect on SQLite."""
        read_only.require_few_values(len(values))
        try:
            async with self._slots.use():
                await self._follow_file()
                return await self._readers.scan(statement, values)
        except _ERRORS as error:
            _refuse(error)

    async def stream(
        self, statement: str, *values: Value, settings: Mapping[str, str] = read_only.NO_SETTINGS
    ) -> AsyncGenerator[list[Row]]:
        """Yield the rows in batches. They are read in a thread."""
        read_only.require_few_values(len(values))
        with closing(RowSpool(self._new_cipher())) as spool:
            try:
                async with self._slots.use(is_stream=True):
                    await self._follow_file()
                    await self._readers.read_into(spool.add, statement, values)
            except _ERRORS as error:
                _refuse(error)
            for batch in spool.batches():
                yield batch
                await asyncio.sleep(0)

    async def _follow_file(self) -> None:
        """Open the file again if another file has replaced it, because an open connection still reads the old file.

        Raises:
            TableChanged: the file was replaced, so the tables of the new file must be compared with their fingerprints
                first.
            Unavailable: the file does not exist now, or cannot be opened.
        """
        if file_id_of(self._path) == self._file:
            return
        async with self._opening:
            file = file_id_of(self._path)
            if file == self._file:
                return
            if file is None:
                raise Unavailable(read_only.AWAY)
            previous_readers, self._readers = self._readers, await asyncio.to_thread(self._open)
            self._file = file
            await previous_readers.close()
        raise read_only.TableChanged(read_only.CHANGED)

    async def close(self) -> None:
        """Wait for running reads, then close every connection."""
        await self._readers.close()


def _require_own_if_wal(path: Path) -> None:
    """Refuse a file in WAL mode that belongs to another user. Even a reader makes SQLite create files next to it, which
    the application of the other user could not write.

    Raises:
        ForeignWalFile: the file is in WAL mode and belongs to another user.
    """
    try:
        owner = path.stat().st_uid
    except OSError:
        return  # Opening the file raises the same error with an explanation.
    if owner != effective_user() and is_wal(path):
        raise ForeignWalFile(
            "The SQLite file is in WAL mode and belongs to another user. Reading it would create files beside it that "
            "its application cannot write.",
            resolution="Run this command as the owner of the file, or read a copy.",
        )


def _open_file(
    path: Path, functions: Mapping[str, TextFunction], *, recovers: bool
) -> sqlite_connection.Connection:
    _require_own_if_wal(path)
    flags = apsw.SQLITE_OPEN_READWRITE if recovers else apsw.SQLITE_OPEN_READONLY
    opened = apsw.Connection(str(path), flags=flags)
    for name, function in functions.items():
        cast("Any", opened).create_scalar_function(name, function, 1, deterministic=True)
    connection = cast(sqlite_connection.Connection, opened)
    connection.set_busy_timeout(BUSY_MS)
    connection.pragma("query_only", "ON")
    # Read something now, because opening a file does not read it.
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    return connection


def _refuse(error: BaseException) -> NoReturn:
    if isinstance(error, read_only.Busy | TooManyRows | read_only.TableChanged):
        raise error
    if isinstance(error, Refused):
        is_slow = "took longer" in error.detail
        read_only.refuse(error, read_only.TooSlow() if is_slow else Unavailable(read_only.AWAY))
    if isinstance(error, apsw.CantOpenError | apsw.NotADBError):
        is_missing = isinstance(error, apsw.CantOpenError)
        read_only.refuse(error, Unavailable(MISSING if is_missing else NO_DATABASE, resolution=CORRECT_URL))
    is_changed = type(error) is apsw.SQLError
    read_only.refuse(
        error, read_only.TableChanged(read_only.CHANGED) if is_changed else Unavailable(read_only.AWAY)
    )
