"""Files and folders that get their name only when they are whole and on the disk; leftovers of dead processes go."""

import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from countersign.kernel import ids
from countersign.kernel.errors import NotEmpty, Unavailable, disk_full, is_disk_full

PREFIX, ENDING = ".countersign-", ".unfinished"


class Unfinished:
    """A file without its name, written from its beginning to its end."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.size = 0
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        """Append the bytes.

        Raises:
            StorageFull, Unavailable: the volume is full, or cannot be written.
        """
        left = memoryview(data)
        with refusals(self.path.parent):
            while left:
                left = left[os.write(self._descriptor, left) :]
        self.size += len(data)

    def flush(self) -> None:
        """Have what was written so far on the disk.

        Raises:
            StorageFull, Unavailable: as `write`.
        """
        with refusals(self.path.parent):
            os.fsync(self._descriptor)

    def finish(self, path: Path) -> None:
        """Give the file its name in the same folder, durably. What has the name already stays as it is.

        Raises:
            Unavailable: something has the name already, or the folder cannot be written.
        """
        self.flush()
        with refusals(path.parent):
            try:
                os.link(self.path, path)
            except PermissionError:
                # A volume without hard links. Of two that take the same name at the same moment one is lost there.
                if path.exists():
                    raise
                self.path.rename(path)
            sync_folder(path.parent)


@contextmanager
def file(folder: Path) -> Generator[Unfinished]:
    """A new file in the folder, for its owner alone, until the block is left; removed then unless it was finished.

    Raises:
        StorageFull, Unavailable: it cannot be made.
    """
    _remove_leftovers(folder)
    path, descriptor = _locked(folder, lambda path: os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600)), os.O_RDWR)
    try:
        yield Unfinished(path, descriptor)
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


class UnfinishedFolder:
    """A folder without its name: `path` is filled, and is what `target` becomes, or is filled with if it is there."""

    def __init__(self, path: Path, target: Path) -> None:
        self.path = path
        self.target = target

    def finish(self, *, last: str) -> None:
        """Let everything be found at `target`, durably; what the entries hold must be on the disk already.

        A folder that was not there appears at once. One that was there is filled entry by entry, the `last` at the
        end: a volume can be given no other root.

        Raises:
            NotEmpty: something came to be there meanwhile.
            StorageFull, Unavailable: it cannot be written; what was moved is gone again.
        """
        is_filled = self.path.parent == self.target
        with refusals(self.target):
            _require_empty(self.target)
            if not is_filled:
                self.path.rename(self.target)
                sync_folder(self.target.parent)
                return
            moved: list[str] = []
            try:
                for entry in sorted(self.path.iterdir(), key=lambda entry: entry.name == last):
                    entry.rename(self.target / entry.name)
                    moved.append(entry.name)
                sync_folder(self.target)
            except OSError:
                for name in moved:
                    (self.target / name).rename(self.path / name)
                raise


@contextmanager
def folder(target: Path) -> Generator[UnfinishedFolder]:
    """A new folder, for its owner alone, until the block is left; removed then with all it holds that was not finished.

    It lies beside the target; within it, if that is there already, since it may be the root of a volume. A symbolic
    link stands for what it points to. Nobody else fills the target meanwhile.

    Raises:
        NotEmpty: the target is there, and holds something; or somebody fills it at the moment.
        StorageFull, Unavailable: nothing can be made there.
    """
    # Not Path.resolve, whose errors differ for links in a circle.
    target = Path(os.path.realpath(target))
    with ExitStack() as held:
        with refusals(target):
            if target.is_dir():
                held.callback(os.close, _filled_by_one(target))
            _require_empty(target)
            parent = target if target.is_dir() else target.parent
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _remove_leftovers(parent)
        path, descriptor = _locked(parent, lambda path: path.mkdir(mode=0o700), os.O_RDONLY | os.O_DIRECTORY)
        held.callback(os.close, descriptor)
        held.callback(shutil.rmtree, path, ignore_errors=True)
        yield UnfinishedFolder(path, target)


def _filled_by_one(target: Path) -> int:
    """A descriptor that holds the folder's own lock."""
    descriptor = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise NotEmpty(f"{target} is being written by another process") from error
    return descriptor


def _require_empty(target: Path) -> None:
    """Insist that it is not there, or a folder with nothing but what is unfinished."""
    if not target.exists():
        return
    if not target.is_dir() or any(not _is_unfinished(path.name) for path in target.iterdir()):
        raise NotEmpty(f"{target} is there, and not empty")


def _is_unfinished(name: str) -> bool:
    return name.startswith(PREFIX) and name.endswith(ENDING)


def _locked(parent: Path, make: Callable[[Path], None], flags: int) -> tuple[Path, int]:
    """Something new without a name, and a descriptor that holds its lock."""
    while True:
        with refusals(parent):
            path = parent / f"{PREFIX}{ids.new_uuid()}{ENDING}"
            make(path)
            # Somebody who looks for leftovers may have found it before its lock was taken.
            with suppress(FileNotFoundError):
                descriptor = os.open(path, flags | os.O_CLOEXEC)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if path.exists():
                    return path, descriptor
                os.close(descriptor)


def _remove_leftovers(parent: Path) -> None:
    """Remove what a process left that was killed: whoever still works on something holds its lock."""
    for path in parent.glob(f"{PREFIX}*{ENDING}"):
        with suppress(OSError):
            # A folder may be others' too: what is no file or folder of one's own is passed over, and not waited for.
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


def _is_own(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode))


def sync_folder(path: Path) -> None:
    """Make the names in a folder survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def refusals(where: Path) -> Generator[None]:
    """Turn the disk's errors into StorageFull and Unavailable, which name the folder."""
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            remedy = "Free space there, or name another place. The partial file is removed."
            raise disk_full(str(where), error, resolution=remedy) from error
        text = f"{where} cannot be used: {(error.strerror or type(error).__name__).lower()}."
        raise Unavailable(text, resolution="Correct its path, owner or mode, or name another place.") from error
