"""The redo log: the changes of our own SQLite file that belong to a commit of a file of others.

SQLite commits two files together only if neither has a write-ahead log, and without one each commit of our own file
would make its readers wait. The log is therefore a small third file without a write-ahead log. It commits together with
the file of others, and its entry has the statements that the transaction has run on our own file. Our own file commits
after it. If the process ends in between, the next transaction runs the statements of the entry first, before anything
else has changed the file.

`PRAGMA user_version` of our own file counts its commits, and an entry has the number of its commit. So an entry does
not run in a file that lacks an earlier commit, for example because it is an older copy.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

import apsw
import msgspec

from countersign.kernel.database import sqlite_connection as sqlite
from countersign.kernel.database.port import Value
from countersign.kernel.errors import Unavailable

ENDING = "-connected"
"""The suffix that is added to the name of our own file to get the name of the log."""
BUSY_MS = 2_000

_CREATE = "CREATE TABLE IF NOT EXISTS pending_commit (number INTEGER PRIMARY KEY, statements BLOB NOT NULL)"
_READ = "SELECT number, statements FROM pending_commit LIMIT 1"
_REMOVE = "DELETE FROM pending_commit WHERE number = $1"
_NUMBERS = 1 << 31
"""The count of commits begins again at 0 after this number of them, because SQLite stores it in 32 bits."""
_OLDER = (
    "The database file is older than its redo log, for example because it was restored. Remove the log, the file whose "
    f"name ends in {ENDING}, to go on without the changes in it."
)

_DAMAGED = (
    f"The redo log beside the database file, whose name ends in {ENDING}, is damaged: the last change of the connected "
    "file may have no audit entry. Check the disk, note the last changes of the connected file, and remove the log."
)

INTERRUPTED = "A crash has interrupted a change of the connected SQLite file, and the file is not in its place now."
PUT_BACK = "Put the file back, and start again: the change is then completed or taken back."

_MAGIC = bytes.fromhex("d9d505f920a163d7")
_MAX_END = 4096
_TAIL_BYTES, _LENGTH_BYTES, _ENDING_BYTES = 16, 4, 12
"""A journal of a commit of several files ends with the name of their super-journal, followed by its length, a checksum
and the magic number. The name is the name of the first of these files with a suffix such as `-mj0123ABCD9`
(https://sqlite.org/fileformat2.html#the_rollback_journal)."""

Statement: TypeAlias = tuple[str, Sequence[Value]]


class Entry(NamedTuple):
    """One entry of the log: its number, and the statements of one commit."""

    number: int
    statements: list[tuple[str, list[Any]]]


def encoded(statements: Sequence[Statement]) -> bytes:
    """Encode the statements for an entry of the log."""
    return msgspec.msgpack.encode(statements)


def interrupted(path: Path) -> Unavailable:
    """Return the refusal for a file of others that is missing after a crash. Only people on this machine see the path,
    which is a note."""
    refused = Unavailable(INTERRUPTED, resolution=PUT_BACK)
    refused.add_note(f"It is expected at {path}.")
    return refused


def next_number(number: int) -> int:
    """Return the number of the commit after this one."""
    return (number + 1) % _NUMBERS


def path_of(own: Path) -> Path:
    """Return the path of the log of a database file."""
    return own.with_name(own.name + ENDING)


class RedoLog:
    """The redo log of one database file."""

    def __init__(self, path: Path) -> None:
        """Open the log, and create it if it is missing.

        Raises:
            Unavailable: the log cannot be opened.
        """
        sqlite.create_private(path)
        self._path = path
        self.require_recoverable()
        try:
            self._connection = cast(sqlite.Connection, apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE))
            self._connection.set_busy_timeout(BUSY_MS)
            # The statements contain keys of values. Deleted entries must not stay in the file.
            self._connection.pragma("secure_delete", "ON")
            self._connection.execute(_CREATE)
        except apsw.Error as error:
            sqlite.refuse(error, file=str(path))

    def require_recoverable(self) -> None:
        """If a crash has left a transaction in both files, check that the connected file exists, because SQLite
        determines from the super-journal next to it whether the log was committed.

        Raises:
            Unavailable: the connected file is missing.
        """
        try:
            with self._path.with_name(f"{self._path.name}-journal").open("rb") as journal:
                journal.seek(-min(_MAX_END, journal.seek(0, os.SEEK_END)), os.SEEK_END)
                end = journal.read()
        except OSError:
            return
        length = int.from_bytes(end[-_TAIL_BYTES:][:_LENGTH_BYTES]) if end.endswith(_MAGIC) else 0
        bound_file = end[:-_TAIL_BYTES][-length:-_ENDING_BYTES] if length > _ENDING_BYTES else b""
        if bound_file and not Path(os.fsdecode(bound_file)).exists():
            raise interrupted(Path(os.fsdecode(bound_file)))

    def pending(self, connection: sqlite.Connection) -> Entry | None:
        """Return the entry whose changes our own file does not contain yet, or None. The connection to our own file
        must hold the write lock, so that no other process commits.

        Raises:
            Unavailable: the log cannot be read, or our own file is older than the log.
        """
        row = sqlite.fetch_one(self._connection, _READ, ())
        contained = last_number(connection)
        if row is None:
            return None
        if (contained - row[0]) % _NUMBERS < _NUMBERS // 2:
            self.remove(row[0])
            return None
        if row[0] != next_number(contained):
            raise Unavailable(_OLDER)
        try:
            return Entry(row[0], msgspec.msgpack.decode(row[1], type=list[tuple[str, list[Any]]]))
        except msgspec.DecodeError:
            raise Unavailable(_DAMAGED) from None

    def is_empty(self) -> bool:
        """Return whether the log has no entry.

        Raises:
            Unavailable: the log cannot be read.
        """
        return sqlite.fetch_one(self._connection, _READ, ()) is None

    def remove(self, number: int) -> None:
        """Remove the entry with this number, which our own file contains. If that fails now, the next entry replaces
        it."""
        with suppress(apsw.Error):
            self._connection.execute(sqlite.numbered(_REMOVE), (number,))

    def close(self) -> None:
        """Close the log."""
        self._connection.close()


def last_number(connection: sqlite.Connection) -> int:
    """Return the number of the last commit that our own file contains.

    Raises:
        Unavailable: the file cannot be read.
    """
    return int(sqlite.fetch(connection, "PRAGMA user_version", ())[0][0])


def run_pending(connection: sqlite.Connection, log: RedoLog) -> bool:
    """If the log has an entry whose changes our own file does not contain, run its statements in the open transaction
    of the connection, and commit it. Return whether there was such an entry.

    Raises:
        Unavailable: the entry cannot be read, or does not fit the file.
    """
    entry = log.pending(connection)
    if entry is None:
        return False
    try:
        for statement, values in entry.statements:
            connection.execute(sqlite.numbered(statement), values)
        connection.pragma("user_version", entry.number)
        connection.execute("COMMIT")
    except apsw.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise sqlite.refusal(error, connection) or Unavailable(_OLDER) from error
    log.remove(entry.number)
    return True
