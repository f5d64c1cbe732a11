"""How much may still be written: what the volume keeps free, and what one folder may take at most."""

import os
import threading
from pathlib import Path

from countersign.kernel import clock
from countersign.kernel.errors import StorageFull

MEASURED_EVERY_S = 2.0


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

    def take(self, count: int) -> None:
        """Count so many bytes that are about to be written.

        Raises:
            StorageFull: they would be more than the folder may take.
        """
        if not self._most_bytes:
            return
        with self._lock:
            now_s = clock.monotonic_s()
            if now_s - self._measured_s > MEASURED_EVERY_S or self._left < count:
                self._left, self._measured_s = self._most_bytes - _taken(self._folder), now_s
            if self._left < count:
                raise StorageFull(f"The files here may take {self._most_bytes} bytes, and they would take more.")
            self._left -= count


def _taken(folder: Path) -> int:
    """The bytes of all files under the folder; what goes away meanwhile is left out."""
    total = 0
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        except FileNotFoundError:
            continue
    return total
