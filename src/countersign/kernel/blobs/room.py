"""How much may still be written: what the volume keeps free, and what one folder may take at most."""

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from countersign.kernel import clock
from countersign.kernel.errors import StorageFull

MEASURED_EVERY_S = 2.0

_TRIES = 8


class _Unsteady(Exception):
    """Names of files came and went each time a folder was read."""


class Room:
    """The room of a folder; for any number of threads, and several processes beside each other.

    A bound of the whole folder is kept by measuring it now and then and counting what this process writes meanwhile:
    with several processes, what the others write in two seconds may come on top.
    """

    def __init__(self, folder: Path, reserve_bytes: int, most_bytes: int = 0) -> None:
        self._folder = folder
        self._reserve_bytes = reserve_bytes
        self._most_bytes = most_bytes
        self._left = 0
        self._writing = 0
        self._measured_s = float("-inf")
        self._lock = threading.Lock()

    def require(self, folder: Path) -> None:
        """Refuse before the volume of the folder is full.

        Raises:
            StorageFull: less than the reserve is free.
        """
        volume = os.statvfs(folder)
        free = volume.f_bavail * volume.f_frsize
        if free < self._reserve_bytes:
            text = f"The volume of the blobs has {free} bytes free, and {self._reserve_bytes} are kept in reserve."
            raise StorageFull(text)

    @contextmanager
    def taking(self, count: int) -> Generator[None]:
        """Count so many bytes, which are written within.

        Raises:
            StorageFull: they would be more than the folder may take.
        """
        if not self._most_bytes:
            yield
            return
        with self._lock:
            self._count(count)
        try:
            yield
        finally:
            with self._lock:
                self._writing -= count

    def _count(self, count: int) -> None:
        now_s = clock.monotonic_s()
        if now_s - self._measured_s > MEASURED_EVERY_S or self._left < count:
            self._measured_s = now_s
            with suppress(_Unsteady):
                # What is being written may not be in its file yet: a measure alone would give its room away again.
                self._left = self._most_bytes - _taken(self._folder) - self._writing
        if self._left < count:
            raise StorageFull(f"The files here may take {self._most_bytes} bytes, and they would take more.")
        self._left -= count
        self._writing += count


def _taken(folder: Path) -> int:
    """The bytes of all files under the folder; one that moves meanwhile may count twice, but is not left out.

    Folders are taken from the last name to the first, since files move from `staging` to `sealed`.

    Raises:
        _Unsteady: they could not be counted.
    """
    total = 0
    waiting = [str(folder)]
    while waiting:
        files_bytes, folders = _held(waiting.pop())
        total += files_bytes
        waiting += sorted(folders)
    return total


def _held(folder: str) -> tuple[int, list[str]]:
    """The bytes of the folder's own files, and its folders; neither when it is gone."""
    for _ in range(_TRIES):
        try:
            with os.scandir(folder) as scanned:
                entries = list(scanned)
        except FileNotFoundError:
            return 0, []
        folders = [each.path for each in entries if each.is_dir(follow_symlinks=False)]
        files = [each for each in entries if not each.is_dir(follow_symlinks=False)]
        # A name that went away meanwhile may have become another one here: the folder is read again.
        with suppress(FileNotFoundError):
            return sum(each.stat(follow_symlinks=False).st_size for each in files), folders
    raise _Unsteady
