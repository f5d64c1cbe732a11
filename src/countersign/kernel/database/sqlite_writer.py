"""The one writing connection of a SQLite file, and the transactions that share its commits (group commit)."""

import asyncio
import shutil
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import apsw

from countersign.kernel import clock
from countersign.kernel.concurrency import uncancellable
from countersign.kernel.database import migration_marker
from countersign.kernel.database import sqlite_connection as sqlite
from countersign.kernel.database import sqlite_redo_log as redo_log
from countersign.kernel.database.port import ConnectedSession, Row, Value
from countersign.kernel.database.sqlite_outside_tables import ConnectedFile, OutsideTables
from countersign.kernel.database.sqlite_redo_log import RedoLog
from countersign.kernel.errors import Refused, StorageFull, Unavailable

T = TypeVar("T")

BUSY_POLL_S = 0.001
DISK_CHECK_S = 1.0

_DISK_FAILED = "The disk failed during a commit. Check it, then restart the service."
_NOT_YET_COMPLETE = (
    "The connected database has the change already, but our own database cannot be written. The rest of the change "
    "follows when it can. Do not repeat it."
)
_TRANSACTION_ENDED = "The database ended the transaction, which was rolled back."


class CommitGroup:
    """Transactions that are committed together (group commit)."""

    def __init__(self, changes: int) -> None:
        self.done: asyncio.Future[Refused | None] = asyncio.get_running_loop().create_future()
        self.changes = changes
        self.actions: list[Callable[[], None]] = []


class SqliteTransaction:
    """A member of a group: the port's Transaction on SQLite. Its writes are one SAVEPOINT of the group."""

    def __init__(self, writer: "SqliteWriter") -> None:
        self._writer = writer
        self.actions: list[Callable[[], None]] = []
        self.is_open = True
        self._savepoints = 0

    async def fetch(self, statement: str, *values: Value) -> list[Row]:
        """Return all rows, including changes of this transaction."""
        return self._writer.act(
            self, lambda connection: self._writer.noted(connection, statement, values, sqlite.fetch)
        )

    async def fetch_one(self, statement: str, *values: Value) -> Row | None:
        """Return the first row, or None, including changes of this transaction."""
        return self._writer.act(
            self, lambda connection: self._writer.noted(connection, statement, values, sqlite.fetch_one)
        )

    async def run(self, statement: str, *values: Value) -> int:
        """Run one statement, or several without values; returns the number of rows that the last one changed.

        Raises:
            StorageFull: there is no space.
            ConstraintViolation: a constraint was violated.
        """

        def run(connection: sqlite.Connection) -> int:
            changes_before = connection.total_changes()
            sqlite.fetch(connection, statement, values)
            self._writer.note(statement, values)
            return connection.changes() if connection.total_changes() != changes_before else 0

        return self._writer.act(self, run)

    async def run_many(self, statement: str, rows: Iterable[tuple[Value, ...]]) -> None:
        """Run the statement for every row in a thread, which also iterates `rows`.

        Raises:
            as `run`.
        """

        def run(connection: sqlite.Connection) -> None:
            try:
                connection.executemany(sqlite.numbered(statement), self._writer.noting(statement, rows))
            except apsw.Error as error:
                sqlite.refuse(error, connection)

        await self._writer.in_thread(lambda: self._writer.act(self, run))

    @asynccontextmanager
    async def savepoint(self) -> AsyncGenerator[None]:
        """Open a block. If it ends with an exception, its writes are rolled back, but not the rest of the
        transaction."""
        await self._run_savepoint("SAVEPOINT inner_block")
        self._savepoints += 1
        action_count = len(self.actions)
        try:
            yield
        except BaseException:
            del self.actions[action_count:]
            # If the engine has ended the transaction, the savepoint no longer exists.
            if self._writer.is_in_transaction:
                await self._run_savepoint("ROLLBACK TO inner_block; RELEASE inner_block")
            raise
        finally:
            self._savepoints -= 1
        await self._run_savepoint("RELEASE inner_block")

    async def _run_savepoint(self, statement: str) -> None:
        await self.run(statement)
        self._writer.run_outside(statement)

    def after_commit(self, action: Callable[[], None]) -> None:
        """Call the action after the commit of the group, even if the caller was cancelled by then."""
        self.actions.append(action)

    async def fetch_connected(self, session: ConnectedSession, statement: str, *values: Value) -> list[Row]:
        """Run one statement on tables of the connected file, in the writer's thread. `session` has no effect on SQLite.

        Raises:
            LookupError: the database was opened without a connected file.
            ConnectedRefusal, Unavailable: see `OutsideTables.fetch`.
        """
        outside, savepoints = self._writer.outside, self._savepoints
        return await self._writer.in_thread(
            lambda: self._writer.act(self, lambda _: outside.fetch(statement, values, savepoints))
        )

    async def check_connected(self) -> None:
        """Check the deferred constraints of the connected file.

        Raises:
            ConnectedRefusal: a constraint is violated.
        """
        self._writer.check_outside()


class SqliteWriter:
    """Runs transactions one after the other, and commits concurrent ones together.

    A fair lock, the turn, controls the use of the connection. The first transaction of a group begins the group and
    starts the committer, a task that queues for the turn as well: transactions that queued before the committer join
    the group. The committer commits in a thread, so that the event loop does not wait for the disk; then every member
    gets the outcome.

    After an I/O error during COMMIT, the state on the disk is unknown (the kernel may have dropped the pages that it
    could not write). Therefore, as in PostgreSQL, no transaction can begin until the process has been restarted and
    SQLite has read the file again. In this case `broken` is set, and reads continue.

    A transaction that also changes the connected file commits its group as soon as its block is left: first the
    connected file together with an entry of the redo log, then the group. If the commit of the connected file fails,
    only this transaction is rolled back.
    """

    def __init__(
        self,
        path: Path,
        *,
        busy_timeout_s: float,
        reserve_bytes: int,
        max_bytes: int = 0,
        connected: ConnectedFile | None = None,
    ) -> None:
        self._path = path
        self._busy_timeout_s = busy_timeout_s
        self._reserve_bytes = reserve_bytes
        self._connection = sqlite.connect(path, use="write", max_bytes=max_bytes)
        self._connection.set_busy_timeout(0)
        sqlite.empty_log(self._connection)
        log_path = redo_log.path_of(path)
        self._outside = None if connected is None else OutsideTables(connected, log_path)
        if self._outside is not None:
            self._outside.recover()
        self._log = RedoLog(log_path) if connected is not None or log_path.exists() else None
        self._statements: list[redo_log.Statement] = []
        self._run_pending_now()
        self._thread = ThreadPoolExecutor(1, "sqlite-writer")
        # Start the thread now. If it could not be started for a COMMIT, the transaction would stay open.
        self._thread.submit(int).result()
        self._using = threading.Lock()
        self._turn = asyncio.Lock()
        self._holder: asyncio.Task[object] | None = None
        self._group: CommitGroup | None = None
        self._committer: asyncio.Task[None] | None = None
        self._ended_by: Refused | None = None
        self._refusal: Refused | None = None
        self.broken = asyncio.Event()
        self._room_checked_s = float("-inf")
        self._has_room = True

    @property
    def is_in_transaction(self) -> bool:
        """Whether SQLite has an open transaction on the connection."""
        return self._connection.in_transaction

    @property
    def outside(self) -> OutsideTables:
        """The tables of the connected file.

        Raises:
            LookupError: the database was opened without a connected file.
        """
        if self._outside is None:
            raise LookupError("the database was opened without a connected file")
        return self._outside

    def _run_pending_now(self) -> None:
        """Apply the changes that a crash has left in the redo log, so that readers see them."""
        if self._log is None or self._log.is_empty():
            return
        self._connection.set_busy_timeout(int(self._busy_timeout_s * 1000))
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            if not redo_log.run_pending(self._connection, self._log):
                self._connection.execute("ROLLBACK")
        except apsw.Error as error:
            sqlite.refuse(error, self._connection)
        finally:
            self._connection.set_busy_timeout(0)

    def note(self, statement: str, values: Sequence[Value]) -> None:
        """Record a statement that has changed our own file, for the redo log."""
        if self._outside is not None:
            self._statements.append((statement, values))

    def noted(
        self,
        connection: sqlite.Connection,
        statement: str,
        values: Sequence[Value],
        fetch: Callable[[sqlite.Connection, str, Sequence[Value]], T],
    ) -> T:
        """Run a statement that returns rows, and record it if it has changed any rows."""
        changes_before = connection.total_changes()
        result = fetch(connection, statement, values)
        if connection.total_changes() != changes_before:
            self.note(statement, values)
        return result

    def noting(self, statement: str, rows: Iterable[tuple[Value, ...]]) -> Iterable[tuple[Value, ...]]:
        """Yield the rows to `executemany`, and record the statement with each row after it has run."""
        return rows if self._outside is None else self._each_noted(statement, rows)

    def _each_noted(self, statement: str, rows: Iterable[tuple[Value, ...]]) -> Iterator[tuple[Value, ...]]:
        for row in rows:
            yield row
            # `executemany` requests the next row after it has run the statement with this row.
            self.note(statement, row)

    def check_outside(self) -> None:
        """Check the deferred constraints of the connected file, if there is one.

        Raises:
            ConnectedRefusal: a constraint is violated.
        """
        if self._outside is not None:
            self._outside.check_constraints()

    def run_outside(self, statement: str) -> None:
        """Run a savepoint statement in the transaction of the connected file as well, if there is one."""
        if self._outside is not None:
            self._outside.run(statement)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[SqliteTransaction]:
        """Open a transaction. It is durable when the block has been left normally; an exception rolls back only this
        transaction.

        A block that waits for anything except its own statements blocks every other writer.

        Raises:
            StorageFull: the volume is full, or has less free space than the reserve; the transaction was rolled back.
            Unavailable: the file is locked or damaged, or an earlier COMMIT failed on the disk.
            RuntimeError: this task is in a transaction already.
        """
        task = asyncio.current_task()
        if self._holder is task:
            raise RuntimeError("this task is in a transaction already; use that one")
        deadline_s = clock.monotonic_s() + self._busy_timeout_s
        await self._take_turn()
        self._holder = task
        try:
            group = self._group or await self._begin(deadline_s)
            member = SqliteTransaction(self)
            async with self._savepoint(member, group):
                yield member
        finally:
            self._holder = None
            self._turn.release()
        failure = await asyncio.shield(group.done)
        if failure is not None:
            raise type(failure)(failure.detail) from failure

    async def _take_turn(self) -> None:
        try:
            async with asyncio.timeout(self._busy_timeout_s):
                await self._turn.acquire()
        except TimeoutError as error:
            raise Unavailable("The database was busy with other writes for too long; try again.") from error

    @asynccontextmanager
    async def _savepoint(self, member: SqliteTransaction, group: CommitGroup) -> AsyncGenerator[None]:
        noted = len(self._statements)
        try:
            self.act(member, lambda connection: sqlite.fetch(connection, "SAVEPOINT member", ()))
            yield
            if self._outside is not None and self._outside.has_changes:
                await self._commit_with_outside(member, group, self._outside)
            else:
                self.act(member, lambda connection: sqlite.fetch(connection, "RELEASE member", ()))
                group.actions += member.actions
        except BaseException:
            del self._statements[noted:]
            self._undo(group)
            raise
        finally:
            member.is_open = False
            if self._outside is not None:
                self._outside.roll_back()

    async def _commit_with_outside(
        self, member: SqliteTransaction, group: CommitGroup, outside: OutsideTables
    ) -> None:
        """Commit the connected file together with the changes of the group in the redo log, and then the group.

        Raises:
            InvalidRequest, StorageFull, Unavailable: the connected file was rolled back, and the group is still open.
        """

        def commit() -> Refused | None:
            number = self._count_commit()
            outside.commit(number, redo_log.encoded(self._statements))
            failure = self._committed(self._connection)
            if failure is None and self._log is not None:
                self._log.remove(number)
            if failure is None:
                return None
            not_yet_complete = Unavailable(_NOT_YET_COMPLETE)
            not_yet_complete.__cause__ = failure
            return not_yet_complete

        # Once the connected file is committed, the group must be committed as well, even if the caller is cancelled.
        committing = asyncio.get_running_loop().run_in_executor(
            self._thread, lambda: self.act(member, lambda _: commit())
        )
        try:
            await uncancellable(committing)
        finally:
            if committing.done() and not committing.cancelled() and committing.exception() is None:
                group.actions += member.actions
                self._end(group, committing.result())

    def _count_commit(self) -> int:
        """Set the number of this commit in our own file, and return it."""
        number = redo_log.next_number(int(self._connection.execute("PRAGMA user_version").fetchall()[0][0]))
        self._connection.pragma("user_version", number)
        return number

    def _undo(self, group: CommitGroup) -> None:
        """Roll back the writes of one member. If that fails, roll back the writes of the whole group."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO member; RELEASE member")
                return
        except apsw.Error as error:
            self._ended_by = sqlite.refusal(error, self._connection)
        self._roll_back()
        self._end(group, self._ended_by or Unavailable(_TRANSACTION_ENDED))

    def act(self, member: SqliteTransaction, work: Callable[[sqlite.Connection], T]) -> T:
        """Run the work on the connection, within the open transaction of the member.

        Raises:
            RuntimeError: the transaction's block has been left, or another task is using the transaction.
            StorageFull, Unavailable: the engine has ended the whole transaction.
        """
        if not member.is_open:
            raise RuntimeError("the transaction is over")
        if not self._using.acquire(blocking=False):
            raise RuntimeError("another statement of this transaction is still running")
        try:
            # Refuse: without a transaction, the statement would be committed at once.
            if not self._connection.in_transaction:
                ended_by = self._ended_by or Unavailable(_TRANSACTION_ENDED)
                raise type(ended_by)(ended_by.detail)
            return work(self._connection)
        except (StorageFull, Unavailable) as refused:
            self._ended_by = refused
            raise
        finally:
            self._using.release()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run the work in the writer's thread; a cancelled caller waits until it is done."""
        return await uncancellable(asyncio.get_running_loop().run_in_executor(self._thread, work))

    async def _begin(self, deadline_s: float) -> CommitGroup:
        if self._refusal is not None:
            raise type(self._refusal)(self._refusal.detail)
        self._require_free_space()
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except apsw.BusyError as error:
                if clock.monotonic_s() >= deadline_s:
                    sqlite.refuse(error, self._connection)
            except apsw.Error as error:
                sqlite.refuse(error, self._connection)
            else:
                self._require_not_moved()
                if not await self._run_pending():
                    break
            # Another process writes: wait and try again. SQLite's own busy handler sleeps up to 0.1 s at a time, and
            # would starve next to a busy writer.
            await asyncio.sleep(BUSY_POLL_S)
        self._ended_by = None
        self._group = group = CommitGroup(self._connection.total_changes())
        self._committer = asyncio.create_task(self._commit(group))
        return group

    async def _run_pending(self) -> bool:
        """Apply the changes that another process has left in the redo log when it ended. Return whether there were any:
        they have then been committed, and the transaction has ended. The log is read in the thread, because another
        process may have locked it, and the changes may be many."""
        outside, log = self._outside, self._log
        if log is None:
            return False

        def run() -> bool:
            if outside is not None:
                outside.require_recoverable()
            log.require_recoverable()
            return redo_log.run_pending(self._connection, log)

        try:
            return await self.in_thread(run)
        except apsw.Error as error:
            self._roll_back()
            sqlite.refuse(error, self._connection)
        except BaseException:
            self._roll_back()
            raise

    def _require_not_moved(self) -> None:
        """Check that the database was not moved: a migration to PostgreSQL writes its marker before it releases the
        write lock."""
        try:
            migration_marker.require_not_moved(self._path.parent)
        except migration_marker.DatabaseMoved:
            self._connection.execute("ROLLBACK")
            raise

    def _require_free_space(self) -> None:
        now_s = clock.monotonic_s()
        if now_s - self._room_checked_s >= DISK_CHECK_S:
            self._has_room = shutil.disk_usage(self._path.parent).free >= self._reserve_bytes
            self._room_checked_s = now_s
        if not self._has_room:
            mib = self._reserve_bytes // 2**20
            raise StorageFull(f"Less than {mib} MiB are free on the volume of the database.")

    async def _commit(self, group: CommitGroup) -> None:
        try:
            async with self._turn:
                if not group.done.done():
                    failure = await self._try_commit(group)
                    self._end(group, failure)
        finally:
            # The group is still unfinished only if the event loop is shut down while the committer runs. No member may
            # then assume a commit.
            self._end(group, Unavailable(_TRANSACTION_ENDED))

    async def _try_commit(self, group: CommitGroup) -> Refused | None:
        """Commit the group; returns None, or the refusal if that failed. If nothing was changed, this does not wait for
        the disk."""
        if self._connection.total_changes() == group.changes:
            return self._committed(self._connection)
        return await self.in_thread(lambda: self._committed(self._connection, is_counted=self._log is not None))

    def _committed(self, connection: sqlite.Connection, *, is_counted: bool = False) -> Refused | None:
        """Commit the open transaction with all its savepoints. Return None, or the refusal if that failed. With
        `is_counted`, the commit gets a number."""
        try:
            if is_counted:
                self._count_commit()
            connection.execute("COMMIT")
        except apsw.Error as error:
            if isinstance(error, apsw.IOError):
                self._mark_broken()
            self._roll_back()
            return sqlite.refusal(error, connection) or Unavailable(_TRANSACTION_ENDED)
        return None

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except apsw.Error:
            self._mark_broken()

    def _mark_broken(self) -> None:
        self._refusal = Unavailable(_DISK_FAILED)
        self.broken.set()

    def _end(self, group: CommitGroup, failure: Refused | None) -> None:
        """Set the outcome for the members. Their `after_commit` actions run before the members continue."""
        if group.done.done():
            return
        if self._group is group:
            self._group = None
            # The values may be personal, so they are not kept until the next transaction.
            self._statements.clear()
        if failure is None:
            for action in group.actions:
                group.done.get_loop().call_soon(action)
        group.done.set_result(failure)

    async def close(self) -> None:
        """Commit open transactions, then close. Later transactions raise Unavailable."""
        self._refusal = Unavailable("The service is stopping.")
        is_closed = False
        while not is_closed:
            if self._committer is not None:
                await asyncio.wait([self._committer])
            async with self._turn:
                # A transaction that waited for another process may have begun a last group.
                if self._group is None:
                    await self.in_thread(self._close_files)
                    is_closed = True
        self._thread.shutdown(wait=True)

    def _close_files(self) -> None:
        self._connection.close()
        if self._outside is not None:
            self._outside.close()
        if self._log is not None:
            self._log.close()
