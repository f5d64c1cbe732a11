"""Files that are durable when a call returns, written in threads within a quota; disk errors become refusals."""

import asyncio
import hashlib
import os
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Executor, Future, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from countersign.kernel import clock, ids
from countersign.kernel.blobs.layout import PIECE_BYTES
from countersign.kernel.errors import StorageFull, Unavailable, disk_full, is_disk_full

MEASURE_EVERY_S = 2.0

_TRIES = 8


class _UnstableFolder(Exception):
    """Names of files came and went each time a folder was read."""


class DiskQuota:
    """The room of a folder; for any number of threads, and several processes beside each other.

    A bound of the whole folder is kept by measuring it now and then and counting what this process writes meanwhile:
    with several processes, what the others write in two seconds may come on top.
    """

    def __init__(self, folder: Path, reserve_bytes: int, max_bytes: int = 0) -> None:
        self._folder = folder
        self._reserve_bytes = reserve_bytes
        self._max_bytes = max_bytes
        self._left = 0
        self._writing = 0
        self._measured_s = float("-inf")
        self._lock = threading.Lock()

    def require_free(self, folder: Path) -> None:
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
    def reserve(self, count: int) -> Generator[None]:
        """Count so many bytes, which are written within.

        Raises:
            StorageFull: they would be more than the folder may take.
        """
        if not self._max_bytes:
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
        if now_s - self._measured_s > MEASURE_EVERY_S or self._left < count:
            self._measured_s = now_s
            with suppress(_UnstableFolder):
                # What is being written may not be in its file yet: a measure alone would give its room away again.
                self._left = self._max_bytes - _used_bytes(self._folder) - self._writing
        if self._left < count:
            raise StorageFull(f"The files here may take {self._max_bytes} bytes, and they would take more.")
        self._left -= count
        self._writing += count


def _used_bytes(folder: Path) -> int:
    """The bytes of all files under the folder; one that moves meanwhile may count twice, but is not left out.

    Folders are taken from the last name to the first, since files move from `staging` to `sealed`.

    Raises:
        _Unsteady: they could not be counted.
    """
    total = 0
    waiting = [str(folder)]
    while waiting:
        files_bytes, folders = _scan(waiting.pop())
        total += files_bytes
        waiting += sorted(folders)
    return total


def _scan(folder: str) -> tuple[int, list[str]]:
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
    raise _UnstableFolder


P = ParamSpec("P")
T = TypeVar("T")

_FLUSH_BYTES = 32 * PIECE_BYTES
"""How much may wait in memory for the disk: a last flush of everything would stall the caller."""


class Descriptor:
    """An open file that closes when nobody holds it any more, a thread that outlives its caller included."""

    def __init__(self, path: Path, flags: int, mode: int = 0o600) -> None:
        self._fd = -1
        self._fd = os.open(path, flags | os.O_CLOEXEC, mode)

    @property
    def fd(self) -> int:
        """The descriptor's number; good as long as this object is held."""
        return self._fd

    def read(self, start: int, count: int) -> bytes:
        """Up to `count` bytes from `start`; fewer only at the end of the file."""
        return os.pread(self._fd, count, start)

    def close(self) -> None:
        """Close now; again is fine."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


@contextmanager
def refusals() -> Generator[None, None, None]:
    """Turn the disk's errors into StorageFull and Unavailable."""
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise disk_full("the folder of the blobs", error) from error
        raise Unavailable(f"The folder of the blobs cannot be used: {error.strerror}.") from error


async def in_thread(pool: Executor, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work of the disk in a thread.

    Raises:
        StorageFull, Unavailable: the disk is full, or refuses for another reason.
    """

    def refusing() -> T:
        with refusals():
            return work(*args, **kwargs)

    return await asyncio.wrap_future(pool.submit(refusing))


def sync_folder(folder: Path) -> None:
    """Make names that were added to the folder, or taken from it, survive a loss of power."""
    held = Descriptor(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(held.fd)
    held.close()


def make_folder(folder: Path) -> None:
    """Make the folder and those above it, durably and for their owner alone; there already is fine."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)


def write_all(held: Descriptor, piece: memoryview) -> None:
    """Write all of the piece at the file's position."""
    while piece:
        piece = piece[os.write(held.fd, piece) :]


def write_atomically(path: Path, content: bytes, *, is_new: bool) -> bool:
    """Write a small file at once, durably: whoever reads it finds all of it or what was there before. `is_new` leaves a
    file that is there as it is, and returns False.

    Raises:
        OSError: it cannot be written.
    """
    fresh = path.with_name(f".{path.name}-{ids.new_uuid()}")
    try:
        held = Descriptor(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        write_all(held, memoryview(content))
        os.fsync(held.fd)
        if is_new:
            os.link(fresh, path)
        else:
            fresh.replace(path)
        sync_folder(path.parent)
    except FileExistsError:
        return False
    finally:
        fresh.unlink(missing_ok=True)
    return True


class IncomingFile:
    """A file while its bytes arrive: one piece is hashed and written while the next is received.

    Nobody else writes to the file, and it has its name only when whole: what was sealed from it cannot be
    reached by a later or a slower writer.
    """

    def __init__(self, pool: Executor, path: Path, quota: DiskQuota) -> None:
        make_folder(path.parent)
        quota.require_free(path.parent)
        self._pool = pool
        self.path = path
        self._quota = quota
        self._held = Descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        self._hash = hashlib.sha256()
        self._working: list[Future[None]] = []
        self._unflushed = 0
        self.length = 0

    async def add(self, piece: bytes | bytearray) -> None:
        """Take the next bytes; returns as soon as those before are written, and may raise for those."""
        await self._settle()
        self.length += len(piece)
        self._working = [self._pool.submit(self._hash.update, piece), self._pool.submit(self._write, piece)]

    async def finish(self) -> str:
        """Wait until everything is on the disk; gives the SHA-256."""
        await self._settle()
        await in_thread(self._pool, os.fdatasync, self._held.fd)
        return self._hash.hexdigest()

    async def drop(self) -> None:
        """Close, and remove the file unless it was given its name."""
        await asyncio.shield(asyncio.wrap_future(self._pool.submit(self._drop)))

    async def _settle(self) -> None:
        working = self._working
        for each in working:
            await asyncio.wrap_future(each)

    def _write(self, piece: bytes | bytearray) -> None:
        with refusals():
            with self._quota.reserve(len(piece)):
                write_all(self._held, memoryview(piece))
            self._unflushed += len(piece)
            if self._unflushed >= _FLUSH_BYTES:
                self._unflushed = 0
                self._quota.require_free(self.path.parent)
                os.fdatasync(self._held.fd)

    def _drop(self) -> None:
        wait(self._working)
        self._held.close()
        with refusals():
            self.path.unlink(missing_ok=True)
