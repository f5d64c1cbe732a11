"""Statements on the tables of the connected file, which is the SQLite file of another application, in transactions that
also change our own file.

An error of these tables may quote their rows. The text of an error is therefore neither returned to a caller nor
logged; only the names of its table and columns are used.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias, cast

import apsw

from countersign.kernel import clock, telemetry
from countersign.kernel.database import read_only
from countersign.kernel.database import sqlite_connection as sqlite
from countersign.kernel.database.port import Row, Value
from countersign.kernel.database.sqlite_redo_log import interrupted
from countersign.kernel.errors import InvalidRequest, Refused, Unavailable, disk_full, is_disk_full, is_volume_full

LOCK_WAIT_MS = 2_000
SHORT_LOCK_WAIT_MS = 50
SHORT_WAITS_S = 5.0
"""After a timeout of a lock, how long later attempts use the short timeout, since writes to our own tables wait for
these attempts."""

STATEMENT_S = 10.0
STEPS_BETWEEN_CHECKS = 5_000

IN_WAL: Final = (
    "The SQLite file of the connected database is in WAL mode, in which SQLite does not commit two files together, so "
    "it is only read. If your application allows that, stop Countersign, switch the file (PRAGMA journal_mode=DELETE), "
    "and start again."
)
NOT_WRITABLE: Final = (
    "The SQLite file of the connected database cannot be written: let the user of this process write the file and its "
    "folder."
)

TextFunction: TypeAlias = Callable[[str | None], str | bool | int | None]
"""An SQL function with one parameter, a text."""

_WRITES = ("INSERT", "UPDATE", "DELETE")
_LOCKS = (f" {read_only.LOCK}", f" {read_only.DELETE_LOCK}")
_UNIQUE, _FOREIGN_KEY, _NOT_NULL, _CHECK = "23505", "23503", "23502", "23514"
_STATES: Mapping[int, str] = {
    apsw.SQLITE_CONSTRAINT_UNIQUE: _UNIQUE,
    apsw.SQLITE_CONSTRAINT_PRIMARYKEY: _UNIQUE,
    apsw.SQLITE_CONSTRAINT_ROWID: _UNIQUE,
    apsw.SQLITE_CONSTRAINT_FOREIGNKEY: _FOREIGN_KEY,
    apsw.SQLITE_CONSTRAINT_NOTNULL: _NOT_NULL,
    apsw.SQLITE_CONSTRAINT_CHECK: _CHECK,
}
"""Maps SQLite's result codes of constraint violations to the SQLSTATEs of PostgreSQL."""
_OTHER = "23000"
_PERMISSIONS = (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError)
_OF_FOREIGN_KEY = "FOREIGN KEY constraint"
_FAILED = re.compile(r"(?:UNIQUE|NOT NULL) constraint failed: (.*)", re.DOTALL)
_HEADER_BYTES, _VERSIONS, _WAL = 20, slice(18, 20), 2
"""The number of header bytes to read, the position of the write version and the read version in them, and the version
number of WAL mode (https://sqlite.org/fileformat2.html)."""
_ATTACH = "ATTACH $1 AS countersign"
_ANCHOR_ENDING = "-countersign"
_ATTACH_ANCHOR = "ATTACH $1 AS countersign_anchor"
_ERASE_EARLIER_ENTRIES = "PRAGMA countersign.secure_delete = ON"
_EARLIER_ENTRIES = "DELETE FROM countersign.pending_commit"
_NEW_ENTRY = "INSERT INTO countersign.pending_commit (number, statements) VALUES ($1, $2)"


@dataclass(frozen=True, slots=True)
class ConnectedFile:
    """The SQLite file of another application. `functions` are additional SQL functions for statements on its tables."""

    path: Path
    functions: Mapping[str, TextFunction]


class OutsideTables:
    """The tables of the connected file, for one writer of our own file. Only one thread at a time may use the object.

    The connected file is the main database of the connection, and the redo log is attached. SQLite therefore creates
    the super-journal of both commits next to the connected file, where every application that opens the file after a
    crash finds it.

    An application that rolls back the connected file also deletes the super-journal if it finds no other journal that
    names it. SQLite would then treat the entry of the log as committed. The application does not find the journal of
    the log, which is in our data directory. Each commit therefore also changes the anchor, an empty database next to
    the connected file, whose journal the application finds.
    """

    def __init__(self, file: ConnectedFile, log: Path) -> None:
        self._file = file
        self._log = log
        self._connection: sqlite.Connection | None = None
        self._file_id: tuple[int, int] | None = None
        self._changes = 0
        self._is_begun = False
        self._is_attached = False
        self._short_waits_until_s = float("-inf")

    @property
    def has_changes(self) -> bool:
        """Return whether the open transaction has changed rows, or was ended by SQLite, so that it cannot be
        committed."""
        if not self._is_begun or self._connection is None:
            return False
        return not self._connection.in_transaction or self._connection.total_changes() != self._changes

    def fetch(self, statement: str, values: Sequence[Value], savepoints: int) -> list[Row]:
        """Run a statement and return its rows. A statement that writes, or that ends with a lock clause, begins a
        transaction if none is open. The transaction locks the file for other writers, and gets as many savepoints as
        the transaction of our own file has.

        Raises:
            ConnectedRefusal: the file refused the statement with these values.
            Unavailable: another application has locked the file, it cannot be written, or a table has changed.
        """
        read_only.require_few_values(len(values))
        text, is_locking = _without_lock(statement)
        is_writing = is_locking or text.startswith(_WRITES)
        if is_writing or self._is_begun:
            self._require_begun(savepoints)
        connection = self._opened()
        deadline_s = clock.monotonic_s() + STATEMENT_S
        connection.set_progress_handler(lambda: clock.monotonic_s() >= deadline_s, STEPS_BETWEEN_CHECKS)
        try:
            rows = connection.execute(sqlite.numbered(text), values).fetchall()
        except apsw.Error as error:
            self._refuse(error, is_writing=is_writing)
        finally:
            if self._connection is connection:
                connection.set_progress_handler(None)
        return rows

    def check_constraints(self) -> None:
        """Check the deferred foreign keys.

        Raises:
            ConnectedRefusal: a foreign key is violated.
        """
        connection = self._connection
        if self._is_begun and connection is not None and connection.status(apsw.SQLITE_DBSTATUS_DEFERRED_FKS)[0]:
            raise read_only.ConnectedRefusal(_FOREIGN_KEY)

    def run(self, statement: str) -> None:
        """Run a SAVEPOINT, ROLLBACK TO or RELEASE statement in the open transaction, if there is one."""
        connection = self._connection
        if connection is not None and connection.in_transaction:
            connection.execute(statement)

    def commit(self, number: int, statements: bytes) -> None:
        """Commit the transaction together with an entry of the redo log.

        Raises:
            InvalidRequest: the file refused the transaction.
            StorageFull, Unavailable: the transaction was rolled back.
        """
        connection = self._opened()
        try:
            if not connection.in_transaction:
                raise InvalidRequest(read_only.REFUSED)
            self._set_lock_wait(connection)
            connection.execute(_EARLIER_ENTRIES)
            connection.execute(sqlite.numbered(_NEW_ENTRY), (number, statements))
            connection.pragma("user_version", number, schema="countersign_anchor")
            connection.execute("COMMIT")
        except apsw.Error as error:
            try:
                self._refuse(error, is_writing=True)
            except read_only.ConnectedRefusal:
                raise InvalidRequest(read_only.REFUSED) from None
        finally:
            self.roll_back()

    def roll_back(self) -> None:
        """Roll back the open transaction, if any, which also releases the lock."""
        self._is_begun = False
        connection = self._connection
        if connection is not None and connection.in_transaction:
            try:
                connection.execute("ROLLBACK")
            except apsw.Error:
                self.close()

    def recover(self) -> None:
        """Roll back the transaction that a crash has left in the file; a read-only connection cannot do this. If the
        file cannot be opened now, the first statement on it rolls the transaction back.

        Raises:
            Unavailable: see `require_recoverable`.
        """
        self.require_recoverable()
        if _journal(self._file.path).exists():
            with suppress(Unavailable, read_only.ConnectedRefusal):
                self.fetch("SELECT count(*) FROM sqlite_schema", (), 0)

    def require_recoverable(self) -> None:
        """If a crash may have left a transaction in both files, check that the connected file exists, because SQLite
        determines from the super-journal next to it whether the redo log was committed.

        Raises:
            Unavailable: the file is missing.
        """
        if _journal(self._log).exists() and not self._file.path.exists():
            raise interrupted(self._file.path)

    def close(self) -> None:
        """Close the connection. The next statement opens it again."""
        if self._connection is not None:
            self._connection.close(True)
            self._connection = None
            self._is_attached = False

    def _opened(self) -> sqlite.Connection:
        """Return a connection to the file that is now at the path.

        Raises:
            TableChanged: the file was replaced by another file.
            Unavailable: the file cannot be opened, or is in WAL mode.
        """
        file_id, file_id_before = file_id_of(self._file.path), self._file_id
        if file_id is None:
            raise Unavailable(read_only.AWAY)
        if file_id != file_id_before:
            self.close()
        if self._connection is None:
            try:
                self._connection = self._open()
            except apsw.Error as error:
                self._refuse(error, is_writing=False)
            self._file_id = file_id
        if file_id_before not in (None, file_id):
            raise read_only.TableChanged(read_only.CHANGED)
        return self._connection

    def _open(self) -> sqlite.Connection:
        opened = apsw.Connection(str(self._file.path), flags=apsw.SQLITE_OPEN_READWRITE)
        for name, function in self._file.functions.items():
            cast("Any", opened).create_scalar_function(name, function, 1, deterministic=True)
        connection = cast(sqlite.Connection, opened)
        connection.set_busy_timeout(LOCK_WAIT_MS)
        connection.pragma("foreign_keys", "ON")
        connection.pragma("synchronous", "FULL")
        return connection

    def _set_lock_wait(self, connection: sqlite.Connection) -> None:
        is_short = clock.monotonic_s() < self._short_waits_until_s
        connection.set_busy_timeout(min(LOCK_WAIT_MS, SHORT_LOCK_WAIT_MS) if is_short else LOCK_WAIT_MS)

    def _attach(self, connection: sqlite.Connection) -> None:
        """Attach the anchor and then the log: in this order, SQLite writes the name of the super-journal to their
        journals. A missing anchor is created with the permissions of the connected file.

        Raises:
            Unavailable: the anchor cannot be created.
        """
        if self._is_attached:
            return
        path = Path(connection.filename + _ANCHOR_ENDING)
        try:
            _create_anchor(path, self._file.path.stat())
        except OSError:
            raise Unavailable(NOT_WRITABLE) from None
        try:
            connection.execute(sqlite.numbered(_ATTACH_ANCHOR), (str(path),))
            connection.execute(sqlite.numbered(_ATTACH), (str(self._log),))
            connection.execute(_ERASE_EARLIER_ENTRIES)
        except apsw.Error:
            self.close()
            raise
        self._is_attached = True

    def _require_begun(self, savepoints: int) -> None:
        """Begin a transaction if none is open.

        Raises:
            ConnectedRefusal: the file has ended the transaction.
            Unavailable: another application has locked the file, it cannot be written, or is in WAL mode.
        """
        connection = self._opened()
        if self._is_begun:
            if not connection.in_transaction:
                raise read_only.ConnectedRefusal(_OTHER)
            return
        if is_wal(self._file.path):
            self.close()
            raise Unavailable(IN_WAL)
        try:
            self._set_lock_wait(connection)
            self._attach(connection)
            connection.execute("BEGIN IMMEDIATE")
            # The file cannot be switched to WAL mode while it is locked.
            if connection.execute("PRAGMA main.journal_mode").fetchall() == [("wal",)]:
                connection.execute("ROLLBACK")
                self.close()
                raise Unavailable(IN_WAL)
            for _ in range(savepoints):
                connection.execute("SAVEPOINT inner_block")
        except apsw.Error as error:
            self._refuse(error, is_writing=True)
        self._changes, self._is_begun = connection.total_changes(), True

    def _refuse(self, error: apsw.Error, *, is_writing: bool) -> NoReturn:
        """Raise the refusal for an error, and log the class of the error.

        Raises:
            ConnectedRefusal: the file refused the values.
            StorageFull, Unavailable: the file cannot be written now, or a table has changed.
        """
        state = _state_of(error) if isinstance(error, apsw.ConstraintError) else ""
        telemetry.logger("connected-database").warning(
            "the connected database refused a statement", sqlstate=state, error=type(error).__name__
        )
        if isinstance(error, apsw.BusyError):
            self._short_waits_until_s = clock.monotonic_s() + SHORT_WAITS_S
        if is_writing and isinstance(error, _PERMISSIONS):
            # Open the file again for the next statement, because the permissions may have changed by then.
            self.close()
        # Leave out the cause, whose text may be logged with this error.
        raise self._meaning(error, state, is_writing=is_writing) from None

    def _meaning(self, error: apsw.Error, state: str, *, is_writing: bool) -> Refused | read_only.ConnectedRefusal:
        if is_disk_full(error) or (isinstance(error, apsw.IOError) and is_volume_full(self._file.path)):
            return disk_full("the connected database")
        if is_writing and isinstance(error, _PERMISSIONS):
            return Unavailable(NOT_WRITABLE)
        if state:
            table, names = _columns_in(str(error)) if state in (_UNIQUE, _NOT_NULL) else ("", ())
            return read_only.ConnectedRefusal(state, ("", table), columns=names)
        return _meaning_of_statement(error, is_writing=is_writing)


def _create_anchor(path: Path, status: os.stat_result) -> None:
    """Create the anchor, if it is missing, with the mode and the owner of the connected file."""
    with suppress(FileExistsError):
        # O_EXCL prevents opening an existing file: closing it would release the locks that this process has on it.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with suppress(OSError):
            os.fchown(descriptor, status.st_uid, status.st_gid)
        with suppress(OSError):
            os.fchmod(descriptor, status.st_mode & 0o666)
        os.close(descriptor)


def _meaning_of_statement(error: apsw.Error, *, is_writing: bool) -> Refused | read_only.ConnectedRefusal:
    if isinstance(error, apsw.InterruptError):
        return Unavailable(read_only.SLOW)
    if type(error) is apsw.SQLError and (not is_writing or "no such" in str(error)):
        return read_only.TableChanged(read_only.CHANGED)
    is_of_values = isinstance(error, apsw.SQLError | apsw.TooBigError | apsw.RangeError | apsw.MismatchError)
    return read_only.ConnectedRefusal(_OTHER) if is_of_values else Unavailable(read_only.AWAY)


def _state_of(error: apsw.ConstraintError) -> str:
    """Return the SQLSTATE of a constraint violation."""
    if str(error).startswith(_OF_FOREIGN_KEY):
        # ON DELETE RESTRICT has the code of a trigger.
        return _FOREIGN_KEY
    return _STATES.get(int(getattr(error, "extendedresult", 0)), _OTHER)


def _journal(path: Path) -> Path:
    return path.with_name(f"{path.name}-journal")


def _without_lock(statement: str) -> tuple[str, bool]:
    """Return the statement without its final lock clause, and whether it has one. SQLite has no row locks."""
    for lock in _LOCKS:
        if statement.endswith(lock):
            return statement.removesuffix(lock), True
    return statement, False


def _columns_in(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the table and the columns that the text of an error names. They are empty if the text names an index, or
    if a character in a name makes the text ambiguous."""
    match = _FAILED.search(text)
    parts = [] if match is None else [each.split(".") for each in match[1].split(", ")]
    if not parts or any(len(each) != 2 for each in parts) or len({table for table, *_ in parts}) != 1:
        return "", ()
    return parts[0][0], tuple(column for _, column in parts)


def file_id_of(path: Path) -> tuple[int, int] | None:
    """Return the device and inode number of the file at the path, or None if there is no file."""
    try:
        file_status = path.stat()
    except OSError:
        return None
    return file_status.st_dev, file_status.st_ino


def is_wal(path: Path) -> bool:
    """Return whether the file is in WAL mode; False if it cannot be read.

    The file is read through SQLite, because the operating system releases all locks of a process on a file, also those
    of its SQLite connections, when the process closes a descriptor of the file.
    """
    try:
        file = apsw.VFSFile("", str(path), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
        try:
            return _WAL in file.xRead(_HEADER_BYTES, 0)[_VERSIONS]
        finally:
            file.xClose()
    except apsw.Error:
        return False
