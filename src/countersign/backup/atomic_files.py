"""Creates files and folders that get their name only once they are complete and durable.

Until then, an entry has a temporary name and a lock. An entry that a killed process left has no lock, and is removed.
"""

import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from countersign.file_sync import sync_folder
from countersign.kernel import ids
from countersign.kernel.errors import NotEmpty, Unavailable, disk_full, is_disk_full

PREFIX, ENDING = ".countersign-", ".unfinished"


class AtomicFile:
    """A file under a temporary name, written from start to end."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.size = 0
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        """Append the bytes.

        Raises:
            StorageFull, Unavailable: the volume is full, or cannot be written.
        """
        unwritten_bytes = memoryview(data)
        with disk_errors(self.path.parent):
            while unwritten_bytes:
                unwritten_bytes = unwritten_bytes[os.write(self._descriptor, unwritten_bytes) :]
        self.size += len(data)

    def flush(self) -> None:
        """Make the bytes that were written so far durable.

        Raises:
            StorageFull, Unavailable: the volume is full, or cannot be written.
        """
        with disk_errors(self.path.parent):
            os.fsync(self._descriptor)

    def finish(self, path: Path) -> None:
        """Give the file its name in the same folder, durably. An existing file is never replaced.

        Raises:
            Unavailable: the name exists already, or the folder cannot be written.
        """
        self.flush()
        with disk_errors(path.parent):
            try:
                os.link(self.path, path)
            except PermissionError:
                # The volume has no hard links, so rename the file. If two processes use the same name at the same
                # time, one of them loses its file.
                if path.exists():
                    raise
                self.path.rename(path)
            sync_folder(path.parent)


@contextmanager
def new_file(folder: Path) -> Generator[AtomicFile]:
    """Yield a new file in the folder that only its owner can access. Unless `finish` was called, the file is removed
    after the block.

    Raises:
        StorageFull, Unavailable: the file cannot be created.
    """
    _remove_leftovers(folder)

    def create(path: Path) -> None:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))

    path, descriptor = _create_locked(folder, create, os.O_RDWR)
    try:
        yield AtomicFile(path, descriptor)
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


class AtomicFolder:
    """A folder under the temporary name `path`.

    If `target` does not exist, the folder is renamed to `target`. Otherwise its entries are moved to `target`."""

    def __init__(self, path: Path, target: Path) -> None:
        self.path = path
        self.target = target

    def finish(self, *, last_name: str) -> None:
        """Move everything to `target` and make the move durable. The contents of the entries must already be durable.

        A new folder appears with all its entries at once. If `target` exists, the entries are moved one by one, and
        the entry `last_name` at the end.

        Raises:
            NotEmpty: another process created an entry in `target`.
            StorageFull, Unavailable: `target` cannot be written; the entries are moved back.
        """
        is_existing = self.path.parent == self.target
        with disk_errors(self.target):
            _require_empty(self.target)
            if not is_existing:
                self.path.rename(self.target)
                sync_folder(self.target.parent)
                return
            moved_names: list[str] = []
            try:
                for entry in sorted(self.path.iterdir(), key=lambda entry: entry.name == last_name):
                    entry.rename(self.target / entry.name)
                    moved_names.append(entry.name)
                sync_folder(self.target)
            except OSError:
                for name in moved_names:
                    (self.target / name).rename(self.path / name)
                raise


@contextmanager
def new_folder(target: Path) -> Generator[AtomicFolder]:
    """Yield a new folder that only its owner can access. Unless `finish` was called, the folder is removed after the
    block.

    The folder is created next to the target. If the target exists, the folder is created inside the target, because
    the target may be the root of a volume. Symbolic links are resolved. The target is locked while the block runs.

    Raises:
        NotEmpty: the target is not empty, or another process is writing to it.
        StorageFull, Unavailable: the folder cannot be created.
    """
    # Do not use Path.resolve, because it raises other errors for circular links.
    target = Path(os.path.realpath(target))
    with ExitStack() as stack:
        with disk_errors(target):
            if target.is_dir():
                stack.callback(os.close, _lock_folder(target))
            _require_empty(target)
            parent = target if target.is_dir() else target.parent
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _remove_leftovers(parent)
        path, descriptor = _create_locked(parent, lambda path: path.mkdir(mode=0o700), os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, descriptor)
        stack.callback(shutil.rmtree, path, ignore_errors=True)
        yield AtomicFolder(path, target)


def _lock_folder(target: Path) -> int:
    """Lock the folder, and return the file descriptor that owns the lock."""
    descriptor = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise NotEmpty(f"{target} is being written by another process") from error
    return descriptor


def _require_empty(target: Path) -> None:
    """Check that the target does not exist, or is a folder with nothing but unfinished entries."""
    if not target.exists():
        return
    if not target.is_dir() or any(not _is_unfinished(path.name) for path in target.iterdir()):
        raise NotEmpty(f"{target} exists and is not empty")


def _is_unfinished(name: str) -> bool:
    return name.startswith(PREFIX) and name.endswith(ENDING)


def _create_locked(parent: Path, create: Callable[[Path], None], flags: int) -> tuple[Path, int]:
    """Create an entry under a temporary name, and return its path and the file descriptor that owns its lock."""
    while True:
        with disk_errors(parent):
            path = parent / f"{PREFIX}{ids.new_uuid()}{ENDING}"
            create(path)
            # Try again if another process has removed the entry as a leftover, which is possible before it is locked.
            with suppress(FileNotFoundError):
                descriptor = os.open(path, flags | os.O_CLOEXEC)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if path.exists():
                    return path, descriptor
                os.close(descriptor)


def _remove_leftovers(parent: Path) -> None:
    """Remove the entries of killed processes. Entries that a running process has locked are kept."""
    for path in parent.glob(f"{PREFIX}*{ENDING}"):
        with suppress(OSError):
            # Skip everything except our own files and folders, because other users may also write to the folder.
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                if not _is_own(os.fstat(descriptor)):
                    continue
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            finally:
                os.close(descriptor)


def _is_own(file_status: os.stat_result) -> bool:
    return file_status.st_uid == os.geteuid() and (
        stat.S_ISREG(file_status.st_mode) or stat.S_ISDIR(file_status.st_mode)
    )


@contextmanager
def disk_errors(path: Path) -> Generator[None]:
    """Convert an OSError into StorageFull or Unavailable, with the path in the message."""
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            remedy = "Delete other files on that disk, or choose another path. The partial file is removed."
            raise disk_full(str(path), error, resolution=remedy) from error
        text = f"{path} cannot be used: {(error.strerror or type(error).__name__).lower()}."
        raise Unavailable(text, resolution="Correct its path, owner or mode, or choose another path.") from error
