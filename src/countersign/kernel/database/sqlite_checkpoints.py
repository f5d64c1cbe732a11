"""Checkpoints of a SQLite file, which copy the pages of the write-ahead log to the file while commits continue."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import apsw

from countersign.kernel.database import sqlite_connection as sqlite

CHECKPOINT_PAGES = 4_000
"""A thread copies the log to the file once the log has this many pages more than the file (16 MiB). A page that many
commits change is copied once."""

MAX_LOG_PAGES = 16_000
"""A commit copies the rest of the log once the log has this many pages (64 MiB). The next commit then begins at the
start of the log. While other commits write to the log, the thread cannot complete a checkpoint."""


class Checkpoints:
    """Runs the checkpoints of a writing connection, in place of those that SQLite runs within commits.

    A checkpoint syncs the log before it copies pages, and the file before the log is written from its start, so that a
    crash at any moment loses no commit. A checkpoint that fails changes nothing: a later one copies its pages again.
    """

    def __init__(self, path: Path, connection: sqlite.Connection) -> None:
        """`connection` writes to the file."""
        self._path = path
        self._writing = connection
        self._copying: sqlite.Connection | None = None
        self._thread = ThreadPoolExecutor(1, "sqlite-checkpoint")
        self._is_running = False
        self._copied_pages = 0
        connection.set_wal_hook(self._after_commit)

    def _after_commit(self, _connection: object, _name: str, pages: int) -> int:
        """Start a checkpoint if one is due. SQLite calls this after each commit, in the thread of the commit, with the
        number of pages in the log."""
        if pages < self._copied_pages:
            self._copied_pages = 0
        if pages >= MAX_LOG_PAGES:
            self._copy(self._writing)
        elif pages - self._copied_pages >= CHECKPOINT_PAGES and not self._is_running:
            self._is_running = True
            self._thread.submit(self._copy_beside)
        return 0

    def _copy_beside(self) -> None:
        try:
            with suppress(apsw.Error, sqlite.Refused):
                self._copying = self._copying or sqlite.connect(self._path, use="read")
                self._copy(self._copying)
        finally:
            self._is_running = False

    def _copy(self, connection: sqlite.Connection) -> None:
        # The checkpoint fails if another one is running. After an error of the disk, a later commit fails as well.
        with suppress(apsw.Error):
            _, self._copied_pages = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def close(self) -> None:
        """Wait for a running checkpoint, and close its connection."""
        self._writing.set_wal_hook(None)
        self._thread.shutdown(wait=True)
        if self._copying is not None:
            self._copying.close()
