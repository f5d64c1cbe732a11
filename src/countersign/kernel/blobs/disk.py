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

from countersign.file_sync import sync_folder
from countersign.kernel import clock, ids
from countersign.kernel.blobs.layout import PIECE_BYTES
from countersign.kernel.errors import StorageFull, Unavailable, disk_full, is_disk_full

MEASURE_EVERY_S = 2.0

_TRIES = 8


class _UnstableFolder(Exception):
    """The files of a folder changed during each scan."""


class DiskQuota:
    """Limits the size of a folder, which any number of threads and processes may share.

    The size of the folder is measured periodically, and the writes of this process are counted in between. With several
    processes, the folder may exceed the limit by the bytes that the other processes write in two seconds.
    """

    def __init__(self, folder: Path, reserve_bytes: int, max_bytes: int = 0) -> None:
        self._folder = folder
        self._reserve_bytes = reserve_bytes
        self._max_bytes = max_bytes
        self._remaining_bytes = 0
        self._reserved_bytes = 0
        self._measured_s = float("-inf")
        self._lock = threading.Lock()

    def require_free(self, folder: Path) -> None:
        """Check the free space on the volume of the folder.

        Raises:
            StorageFull: less than the reserve is free.
        """
        volume = os.statvfs(folder)
        free_bytes = volume.f_bavail * volume.f_frsize
        if free_bytes < self._reserve_bytes:
            text = f"The volume of the blobs has {free_bytes} bytes free, and {self._reserve_bytes} are reserved."
            raise StorageFull(text)

    @contextmanager
    def reserve(self, count: int) -> Generator[None]:
        """Reserve `count` bytes for what the block writes.

        Raises:
            StorageFull: the bytes would exceed the quota of the folder.
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
                self._reserved_bytes -= count

    def _count(self, count: int) -> None:
        now_s = clock.monotonic_s()
        if now_s - self._measured_s > MEASURE_EVERY_S or self._remaining_bytes < count:
            self._measured_s = now_s
            with suppress(_UnstableFolder):
                # A scan misses reserved bytes that are not written yet, so subtract them as well.
                self._remaining_bytes = self._max_bytes - _used_bytes(self._folder) - self._reserved_bytes
        if self._remaining_bytes < count:
            raise StorageFull(f"The files here would exceed their limit of {self._max_bytes} bytes.")
        self._remaining_bytes -= count
        self._reserved_bytes += count


def _used_bytes(folder: Path) -> int:
    """Return the size of all files under the folder. A file that moves during the scan may count twice, but is never
    missed.

    Folders are scanned from the last name to the first, since files move from `staging` to `sealed`.

    Raises:
        _UnstableFolder: the files could not be counted.
    """
    total = 0
    pending_folders = [str(folder)]
    while pending_folders:
        files_bytes, folders = _scan(pending_folders.pop())
        total += files_bytes
        pending_folders += sorted(folders)
    return total


def _scan(folder: str) -> tuple[int, list[str]]:
    """Return the total size of the files directly in the folder, and the paths of its subfolders. If the folder was
    removed, return 0 and an empty list."""
    for _ in range(_TRIES):
        try:
            with os.scandir(folder) as directory:
                entries = list(directory)
        except FileNotFoundError:
            return 0, []
        folders = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        files = [entry for entry in entries if not entry.is_dir(follow_symlinks=False)]
        # A file that vanished may have been renamed within the folder: scan it again.
        with suppress(FileNotFoundError):
            return sum(file.stat(follow_symlinks=False).st_size for file in files), folders
    raise _UnstableFolder


P = ParamSpec("P")
T = TypeVar("T")

_FLUSH_BYTES = 32 * PIECE_BYTES
"""The number of bytes after which a file is flushed: a single flush at the end would block the caller."""


class Descriptor:
    """An open file. It is closed when the last reference is gone, because a thread may use it longer than its caller
    does."""

    def __init__(self, path: Path, flags: int, mode: int = 0o600) -> None:
        self._fd = -1
        self._fd = os.open(path, flags | os.O_CLOEXEC, mode)

    @property
    def fd(self) -> int:
        """The file descriptor; valid as long as this object is referenced."""
        return self._fd

    def read(self, start: int, count: int) -> bytes:
        """Return `count` bytes from `start`; fewer only at the end of the file."""
        return os.pread(self._fd, count, start)

    def close(self) -> None:
        """Close the file; idempotent."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


@contextmanager
def refusals() -> Generator[None, None, None]:
    """Convert disk errors to StorageFull and Unavailable."""
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise disk_full("the folder of the blobs", error) from error
        raise Unavailable(f"The folder of the blobs cannot be used: {error.strerror}.") from error


async def in_thread(pool: Executor, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking disk work in a thread.

    Raises:
        StorageFull, Unavailable: the disk is full, or failed for another reason.
    """

    def run() -> T:
        with refusals():
            return work(*args, **kwargs)

    return await asyncio.wrap_future(pool.submit(run))


def make_folder(folder: Path) -> None:
    """Create the folder and its parents, durably and for their owner only, if missing."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)


def write_all(descriptor: Descriptor, piece: memoryview) -> None:
    """Write all of the piece at the file's position."""
    while piece:
        piece = piece[os.write(descriptor.fd, piece) :]


def write_atomically(path: Path, content: bytes, *, is_new: bool) -> bool:
    """Write a small file atomically and durably: readers find its old or its new content. With `is_new`, an existing
    file stays unchanged, and the result is False.

    Raises:
        OSError: the file cannot be written.
    """
    temporary_path = path.with_name(f".{path.name}-{ids.new_uuid()}")
    try:
        file = Descriptor(temporary_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        write_all(file, memoryview(content))
        os.fsync(file.fd)
        if is_new:
            os.link(temporary_path, path)
        else:
            temporary_path.replace(path)
        sync_folder(path.parent)
    except FileExistsError:
        return False
    finally:
        temporary_path.unlink(missing_ok=True)
    return True


class IncomingFile:
    """A file that is being received: one piece is hashed and written while the next arrives.

    The file has a single writer, and gets its final name only when it is complete. A later or slower writer therefore
    cannot change complete content.
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
        """Add the next bytes. Returns when the previous bytes are written, and raises the exception if writing them
        failed."""
        await self._finish_write()
        self.length += len(piece)
        self._working = [self._pool.submit(self._hash.update, piece), self._pool.submit(self._write, piece)]

    async def finish(self) -> str:
        """Wait until all bytes are on the disk; returns the SHA-256."""
        await self._finish_write()
        await in_thread(self._pool, os.fdatasync, self._held.fd)
        return self._hash.hexdigest()

    async def drop(self) -> None:
        """Close, and remove the file unless it got its final name."""
        await asyncio.shield(asyncio.wrap_future(self._pool.submit(self._drop)))

    async def _finish_write(self) -> None:
        working = self._working
        for task in working:
            await asyncio.wrap_future(task)

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
