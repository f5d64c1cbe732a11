"""SQLite connections: opening them, running statements, and converting errors to refusals."""

import ctypes
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NoReturn, Protocol, cast

import apsw

from countersign.file_access import explain_permission_error
from countersign.kernel import clock
from countersign.kernel.database.port import ConstraintViolation, Row, Value, WrittenOutsideTransaction
from countersign.kernel.errors import Refused, Unavailable, disk_full, is_disk_full, is_volume_full

CACHED_STATEMENTS = 500
MAX_KEPT_LENGTH = 16 * 1024
"""The maximum length of a statement whose translation is cached. Longer statements contain lists of values, and are
seldom repeated."""

CACHE_KIB = {"read": 8 * 1024, "write": 64 * 1024}
"""The size of a connection's page cache. A writer needs more: it changes random pages of every index, and would read
pages from the log again."""

OPEN_PATIENCE_MS = 5_000
PAGE_BYTES = 4096
"""The default page size of SQLite, which all of our files use."""
PAGES_PER_STEP = 4096
MMAP_BYTES = 2 * 1024 * 1024 * 1024
WAL_LIMIT_BYTES = 64 * 1024 * 1024
CHECKPOINT_PAGES = 4000
"""A commit copies the pages of the log to the file once the log has this many pages (16 MiB). A page that many commits
change is copied once."""

# Matches a placeholder with its number, or text that contains none: a literal, a quoted name, a comment, or a name with
# a dollar sign.
_PIECE = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|\w[\w$]*|\$(\d+)""", re.DOTALL)

_CANNOT_OPEN = "The database file cannot be opened; check that the data directory exists and its owner."
_LET_WRITE = "Allow the user who runs this to write to the data directory."
_RESTORE = (
    "Keep the file as it is: `countersign verify` of its directory shows what is damaged, and `countersign restore` "
    "restores it from the newest intact backup."
)

LIBRARY = apsw.sqlite_lib_version()
"""The version of the SQLite library that the driver includes."""

_MAPPINGS = Path("/proc/self/maps")
_WAL_INDEX_HEADER = ctypes.c_char * 96
"""The header of the shared index of a write-ahead log, with its second copy (https://sqlite.org/walformat.html)."""

_REMEDIES: list[tuple[type[apsw.Error], str]] = [
    (apsw.BusyError, "Another process locked the database for too long; find out which, or try again."),
    (apsw.LockedError, "Another process locked the database for too long; find out which, or try again."),
    (apsw.IOError, "The disk under the data directory failed to read or write; check it, then restart the service."),
    (apsw.CantOpenError, _CANNOT_OPEN),
    (apsw.ReadOnlyError, "The database file is read-only; check owner and mode of the data directory."),
    (apsw.CorruptError, "The database file is damaged; check the disk and restore a backup."),
    (apsw.NotADBError, "The database file is not a SQLite database; restore a backup."),
    (apsw.ProtocolError, "The locks of the database file do not work; do not use a network file system."),
    (apsw.ConnectionClosedError, "The service is stopping."),
    (apsw.NoMemError, "The process ran out of memory; give it more, or try again."),
]


_FILE_ERRORS = (apsw.IOError, apsw.CantOpenError)
"""The errors that SQLite raises when the volume has no space for the journal and the shared memory next to the
database."""


class Cursor(Protocol):
    """The part of `apsw.Cursor` that this package uses."""

    def fetchall(self) -> list[Row]:
        """Return the remaining rows."""
        ...

    def fetchone(self) -> Row | None:
        """Return the next row."""
        ...

    def close(self, force: bool = False) -> None:
        """End the statement; with `force`, even if it has more rows."""
        ...

    def __iter__(self) -> Iterator[Row]: ...


class Connection(Protocol):
    """The part of `apsw.Connection` that this package uses, with the types of the port."""

    @property
    def filename(self) -> str:
        """The absolute path of the file."""
        ...

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        ...

    def execute(self, statements: str, bindings: Sequence[Value] | None = None) -> Cursor:
        """Run one statement with values, or several without."""
        ...

    def executemany(self, statements: str, sequenceofbindings: Iterable[Sequence[Value]]) -> Cursor:
        """Run the statement for each row of values."""
        ...

    def pragma(self, name: str, value: int | str | None = None, *, schema: str | None = None) -> object:
        """Set or read a pragma, of the attached database `schema` if it is given."""
        ...

    def changes(self) -> int:
        """Return the number of rows that the last writing statement changed."""
        ...

    def total_changes(self) -> int:
        """Return the number of rows that were changed since the connection was opened."""
        ...

    def status(self, op: int, reset: bool = False) -> tuple[int, int]:
        """Return a counter of the connection, and its highest value."""
        ...

    def set_busy_timeout(self, milliseconds: int) -> None:
        """Set how long SQLite waits for a lock."""
        ...

    def set_progress_handler(self, callable: Callable[[], bool] | None, nsteps: int = 100) -> None:
        """Call `callable` every `nsteps` steps. If it returns True, the statement is interrupted."""
        ...

    def close(self, force: bool = False) -> None:
        """Close the connection; with `force` even after an error."""
        ...


def connect(path: Path, *, use: Literal["write", "read"], max_bytes: int = 0) -> Connection:
    """Open a connection to the file, which a writer creates if it is missing. A reader is read-only. The file does not
    grow beyond `max_bytes` (0: no limit).

    The journal is in WAL mode with synchronous=FULL: a COMMIT has reached the disk (fsync) when it returns.

    Raises:
        Unavailable: the file cannot be opened or is not a database.
    """
    if use == "write":
        create_private(path)
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if use == "write" else 0)
    try:
        opened = apsw.Connection(str(path), flags=flags, statementcachesize=CACHED_STATEMENTS)
        # Plans must not depend on values. Otherwise SQLite would plan a statement again whenever its LIMIT is bound.
        opened.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection = cast(Connection, opened)
        # Wait while another process recovers the file. The timeout of BEGIN is set separately.
        connection.set_busy_timeout(OPEN_PATIENCE_MS)
        if use == "write":
            _enable_wal(connection)
        connection.pragma("synchronous", "FULL")
        connection.pragma("foreign_keys", "ON")
        connection.pragma("cache_size", -CACHE_KIB[use])
        connection.pragma("mmap_size", MMAP_BYTES)
        connection.pragma("journal_size_limit", WAL_LIMIT_BYTES)
        connection.pragma("temp_store", "MEMORY")
        if use == "read":
            connection.pragma("query_only", "ON")
        else:
            connection.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        if use == "write" and max_bytes:
            connection.pragma("max_page_count", max(1, max_bytes // PAGE_BYTES))
    except apsw.Error as error:
        refuse(error, file=str(path))
    return connection


def create_private(path: Path) -> None:
    """Create the file if it is missing, readable only by its owner. SQLite copies the mode to the log and its index."""
    try:
        # O_EXCL prevents opening an existing file: closing it would release the locks that this process has on it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        unavailable = Unavailable(_CANNOT_OPEN, resolution=_LET_WRITE)
        unavailable.add_note(explain_permission_error(path, error, "made"))
        raise unavailable from error


def _enable_wal(connection: Connection) -> None:
    """Switch the file to WAL mode. SQLite itself does not wait here for other processes that open the new file, so this
    function does."""
    deadline_s = clock.monotonic_s() + OPEN_PATIENCE_MS / 1000
    while True:
        try:
            connection.pragma("journal_mode", "WAL")
            return
        except apsw.BusyError:
            if clock.monotonic_s() >= deadline_s:
                raise
            threading.Event().wait(0.005)


def empty_log(connection: Connection) -> None:
    """Checkpoint and reset the log that a crash has left, unless another process is using it.

    After a failed sync, reads of the log may return pages in the kernel's cache that are not on the disk. Commits after
    such pages would be lost together with them. The checkpoint writes these pages to the disk.

    Raises:
        Unavailable: the disk failed, or the file is damaged.
    """
    try:
        connection.pragma("wal_checkpoint", "TRUNCATE")
    except (apsw.BusyError, apsw.LockedError):
        return
    except apsw.FullError:
        # There is no space for the checkpoint. Reads are correct, and a later start tries again.
        return
    except apsw.Error as error:
        refuse(error, connection)


def wal_index_header(connection: Connection) -> ctypes.Array[ctypes.c_char] | None:
    """Return the header of the shared index of the file's write-ahead log, or None if its address is unknown. Do not
    use it after the connection is closed.

    Each commit changes the header: it contains a counter, the number of pages in the log, and a checksum of them. The
    library maps it into the memory of every process that has the file open. This function uses the address of that
    mapping. It does not open the file, because closing it would release the library's locks.
    """
    # The first read maps the index.
    fetch(connection, "SELECT count(1) FROM sqlite_schema", ())
    index_path = f"{connection.filename}-shm"
    try:
        lines = _MAPPINGS.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    for line in lines:
        addresses, _, offset, _, _, *path = line.split(maxsplit=5)
        if path == [index_path] and int(offset, 16) == 0:
            return _WAL_INDEX_HEADER.from_address(int(addresses.partition("-")[0], 16))
    return None


def numbered(statement: str) -> str:
    """Replace `$1` by `?1` in the statement, but not in literals, quoted names and comments."""
    return _numbered_once(statement) if len(statement) <= MAX_KEPT_LENGTH else _renumber(statement)


def _renumber(statement: str) -> str:
    return _PIECE.sub(lambda matched: f"?{matched[1]}" if matched[1] else matched[0], statement)


_numbered_once = lru_cache(maxsize=4096)(_renumber)


def fetch(connection: Connection, statement: str, values: Sequence[Value]) -> list[Row]:
    """Return all rows of the statement.

    Raises:
        StorageFull, Unavailable, ConstraintViolation, WrittenOutsideTransaction: see `refuse`.
    """
    try:
        return connection.execute(numbered(statement), values).fetchall()
    except apsw.Error as error:
        refuse(error, connection)


def fetch_within(
    connection: Connection, statement: str, values: Sequence[Value], is_over: Callable[[], bool], steps: int
) -> list[Row] | None:
    """Return all rows of the statement, or None if `is_over`, which SQLite calls every `steps` steps, interrupted it.

    Raises:
        StorageFull, Unavailable, ConstraintViolation, WrittenOutsideTransaction: see `refuse`.
    """
    try:
        connection.set_progress_handler(is_over, steps)
        try:
            return connection.execute(numbered(statement), values).fetchall()
        finally:
            connection.set_progress_handler(None)
    except apsw.InterruptError:
        return None
    except apsw.Error as error:
        refuse(error, connection)


def fetch_one(connection: Connection, statement: str, values: Sequence[Value]) -> Row | None:
    """Return the first row, or None. The statement stops after the first row.

    Raises:
        StorageFull, Unavailable, ConstraintViolation, WrittenOutsideTransaction: see `refuse`.
    """
    try:
        cursor = connection.execute(numbered(statement), values)
        row = cursor.fetchone()
        cursor.close(True)
    except apsw.Error as error:
        refuse(error, connection)
    return row


def rows(connection: Connection, statement: str, values: Sequence[Value]) -> Iterator[Row]:
    """Yield the rows of the statement, one at a time.

    Raises:
        StorageFull, Unavailable, ConstraintViolation, WrittenOutsideTransaction: see `refuse`.
    """
    try:
        yield from connection.execute(numbered(statement), values)
    except apsw.Error as error:
        refuse(error, connection)


def begin_snapshot(path: Path, begin: str) -> Connection:
    """Open a connection with a transaction that has read something, since only a read fixes its snapshot.

    Raises:
        Unavailable: the file cannot be opened, or another process has locked it for too long.
    """
    connection = connect(path, use="read" if begin == "BEGIN" else "write")
    try:
        connection.execute(begin)
        connection.execute("SELECT count(1) FROM sqlite_schema").fetchall()
    except apsw.Error as error:
        connection.close(True)
        refuse(error, file=str(path))
    return connection


def copy_to(connection: Connection, path: Path, progress: Callable[[int], None]) -> None:
    """Copy the database to a new file, which is not durable yet; `progress` gets the number of bytes copied so far.

    Raises:
        StorageFull, Unavailable: see `refuse`.
    """
    try:
        copy_connection = apsw.Connection(str(path))
        target = cast(Connection, copy_connection)
        try:
            # Only the caller uses the copy, and flushes it when it must be durable, so the copy needs no journal.
            target.pragma("journal_mode", "OFF")
            target.pragma("synchronous", "OFF")
            with copy_connection.backup("main", cast(apsw.Connection, connection), "main") as backup:
                while not backup.done:
                    backup.step(PAGES_PER_STEP)
                    progress((backup.page_count - backup.remaining) * PAGE_BYTES)
        finally:
            target.close(True)
    except apsw.Error as error:
        refuse(error, connection)


def refuse(error: apsw.Error, connection: Connection | None = None, *, file: str = "") -> NoReturn:
    """Convert the error to a refusal and raise it; errors of the statement itself are raised unchanged.

    Raises:
        StorageFull: there is no space on the volume.
        Unavailable: the file is locked, damaged or unreadable. The text names the remedy; only a note of the exception
            contains the path.
        ConstraintViolation: a constraint was violated.
        WrittenOutsideTransaction: the statement writes, and the connection is read-only.
    """
    if isinstance(error, apsw.ConstraintError):
        raise ConstraintViolation(str(error)) from error
    if isinstance(error, apsw.ReadOnlyError) and connection is not None and connection.pragma("query_only"):
        raise WrittenOutsideTransaction(str(error)) from error
    meaning = refusal(error, connection, file=file)
    if meaning is None:
        raise error
    raise meaning from error


def refusal(error: apsw.Error, connection: Connection | None = None, *, file: str = "") -> Refused | None:
    """Return the refusal for the error, or None for an error of the statement itself. Notes are for the operator."""
    # A closed connection has no file name, so do not ask for it.
    if not file and connection is not None and not isinstance(error, apsw.ConnectionClosedError):
        file = connection.filename
    unavailable = _refusal_for(error, file)
    if unavailable is not None and file:
        unavailable.add_note(f"The file is {file}.")
    return unavailable


def _refusal_for(error: apsw.Error, file: str) -> Refused | None:
    if is_disk_full(error) or (isinstance(error, _FILE_ERRORS) and file and is_volume_full(Path(file))):
        return disk_full("the database")
    remedy = next((text for kind, text in _REMEDIES if isinstance(error, kind)), None)
    if remedy is None:
        return None
    is_damaged = isinstance(error, apsw.CorruptError | apsw.NotADBError)
    return Unavailable(remedy, resolution=_RESTORE if is_damaged else None)
