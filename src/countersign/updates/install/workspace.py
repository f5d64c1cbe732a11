"""The folder beside an installation where the next version is built, locked by one process."""

import fcntl
import os
import re
import shutil
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from countersign.kernel.errors import Refused

LOCK = "lock"

_ESCAPED = re.compile(rb"\\([0-7]{3})")


class WorkspaceLocked(Refused):
    """Another process installs into the same folder."""

    status = 409
    code = "install_running"
    title = "Install running"
    resolution = "Wait until it ends, then try again."


class WorkspaceRefused(Refused):
    """The folder cannot contain an installation."""

    status = 403
    code = "place_refused"
    title = "Place refused"
    resolution = "Choose another folder, or correct the problem that the message names."


class Workspace:
    """The folder of an installation, and the folder beside it for the next version."""

    def __init__(self, target: Path, side: Path) -> None:
        self.target = target
        self.side = side
        self.stage = side / "stage"
        self.made = side / "made"
        self.parts = side / "parts"
        self.unpacked = side / "unpacked"
        self.swap = side / "swap"
        self.retired = side / "retired"

    @property
    def is_begun(self) -> bool:
        """Whether an interrupted pull has left files to continue with."""
        return self.made.exists() or self.parts.exists()

    def clear(self, *paths: Path) -> None:
        """Remove the paths, whether they are files, links or folders.

        Raises:
            OSError: a path cannot be removed.
        """
        for path in paths:
            if path.is_symlink() or path.is_file():
                path.unlink()
            elif path.exists():
                _make_removable(path)
                shutil.rmtree(path)

    def clear_all(self) -> None:
        """Remove all files of a pull, including those of an interrupted one.

        Raises:
            OSError: a file cannot be removed.
        """
        self.clear(self.stage, self.retired, self.made, self.parts, self.unpacked, self.swap)


def side_folder(target: Path) -> Path:
    """Return the path of the folder beside the installation."""
    return target.with_name(f".{target.name}.countersign")


@contextmanager
def open_workspace(folder: Path) -> Generator[Workspace]:
    """Lock an installation's workspace for the block. Links to the folder are resolved once.

    Raises:
        WorkspaceLocked: another process holds the lock.
        WorkspaceRefused: the folder or its parent cannot be written, or is on another file system, or belongs to
            another user.
        OSError: the folder cannot be read.
    """
    target = Path(os.path.realpath(folder))
    _require_rights(target)
    side = side_folder(target)
    descriptor = _lock(side)
    try:
        yield Workspace(target, side)
    finally:
        if os.listdir(side) == [LOCK]:
            (side / LOCK).unlink()
            side.rmdir()
        os.close(descriptor)


def _require_rights(target: Path) -> None:
    parent = target.parent
    if target.name == "":
        raise WorkspaceRefused("the root folder cannot hold an installation")
    if not parent.is_dir():
        raise WorkspaceRefused(f"{parent} is not a folder")
    if target.exists() and not target.is_dir():
        raise WorkspaceRefused(f"{target} is not a folder")
    needed_rights = os.R_OK | os.W_OK | os.X_OK
    for path in (parent, target):
        if path.exists() and not os.access(path, needed_rights):
            raise WorkspaceRefused(f"{path} cannot be written: the new version is put together beside the old one")
    if target.exists():
        _require_one_owner_and_disk(target)


def _require_one_owner_and_disk(target: Path) -> None:
    if target.stat().st_uid != os.geteuid():
        raise WorkspaceRefused(f"{target} belongs to another user, who could add links to it: pull as that user")
    if target.stat().st_dev != target.parent.stat().st_dev:
        raise WorkspaceRefused(f"{target} is a mount point: choose a folder inside it")
    for mount_point in _mount_points():
        if mount_point.startswith(f"{target}/"):
            # Refuse: the mount would be moved with the old version, and its files would be deleted.
            raise WorkspaceRefused(f"{mount_point} is a file system of its own inside of the folder: unmount it first")


def _mount_points() -> list[str]:
    """Return all mount points (proc(5), /proc/PID/mountinfo), or none if the system does not list them."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return []
    return [os.fsdecode(_ESCAPED.sub(lambda matched: bytes((int(matched[1], 8),)), line.split()[4])) for line in lines]


def _lock(side: Path) -> int:
    """Lock the workspace. Return the descriptor that holds the lock."""
    for _ in range(100):
        side.mkdir(mode=0o700, exist_ok=True)
        side_status = side.lstat()
        if not stat.S_ISDIR(side_status.st_mode) or side_status.st_uid != os.geteuid():
            raise WorkspaceRefused(f"{side} exists and is not a folder of the current user")
        try:
            descriptor = os.open(side / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise WorkspaceLocked(f"another process installs into the folder that {side} belongs to") from error
        if _is_same(descriptor, side / LOCK):
            return descriptor
        # The former holder of the lock deleted the file, so a lock on that file has no effect. Open the new file.
        os.close(descriptor)
    raise WorkspaceLocked(f"{side} is repeatedly deleted by another process")


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _make_removable(path: Path) -> None:
    """Make every folder below the path writable, because the user's folders can lack the permission to be emptied."""
    for folder, _, _ in os.walk(path):
        if not os.access(folder, os.W_OK | os.X_OK):
            Path(folder).chmod(0o700)
