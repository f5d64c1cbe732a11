"""Swaps the new version with the old one (renameat2 where available), and completes an interrupted swap."""

import ctypes
import errno
import os
import sys
from pathlib import Path

from countersign.updates.install import state
from countersign.updates.install.user_files import destinations, scan, user_paths
from countersign.updates.install.workspace import Workspace

_AT_FDCWD = -100
_EXCHANGE = 2
_MISSING = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""What systems and file systems answer that cannot exchange."""


def exchange(one: Path, other: Path) -> bool:
    """Let both folders change names at once; False where this system or file system cannot.

    Raises:
        OSError: it can, and did not.
    """
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        return False
    paths = os.fsencode(one), os.fsencode(other)
    if library.renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _MISSING:
        return False
    raise OSError(code, os.strerror(code), str(other))


def sync_folder(path: Path) -> None:
    """Make the folder's entries outlive a power cut.

    Raises:
        OSError: the disk refuses.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def swap_in(place: Workspace, number: str) -> None:
    """Put the stage in the installation's place; `number` is the id in the stage's state. From here on an interrupted
    pull is finished by `recover`.

    Raises:
        OSError: it cannot be done; the installation is as it was.
    """
    with place.swap.open("x") as file:
        file.write(number)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(place.side)
    if not place.target.exists():
        place.stage.rename(place.target)
    elif not exchange(place.stage, place.target):
        place.clear(place.retired)
        place.target.rename(place.retired)
        place.stage.rename(place.target)
    sync_folder(place.target.parent)
    sync_folder(place.side)


def recover(place: Workspace) -> None:
    """Bring an interrupted pull to an end, if there is one: when the new version is in its place, what the user has put
    beside the old one meanwhile goes over to it; when it is not, the old one is as it was.

    Raises:
        OSError: something cannot be moved.
    """
    if place.swap.is_file():
        number = place.swap.read_text()
        if not place.target.exists() and place.stage.is_dir() and _id(place.stage) == number:
            # Between the two steps of a system that cannot exchange folders.
            place.stage.rename(place.target)
            sync_folder(place.target.parent)
        elif not place.target.exists() and place.retired.is_dir():
            place.retired.rename(place.target)
            sync_folder(place.target.parent)
        if _id(place.target) == number:
            for former in (place.retired, place.stage):
                _move_user_files(former, place.target)
        # Before the old version is removed: what an interruption leaves of it must not be taken for the user's.
        place.clear(place.swap)
        sync_folder(place.side)
    place.clear(place.stage, place.retired, place.unpacked)


def _id(root: Path) -> str:
    found = state.read(root)
    return "" if found is None else found.state.id


def _move_user_files(former: Path, target: Path) -> None:
    """Move what the user has put into the old version, or changed there, after it was carried over."""
    tree, new = scan(former), state.read(target)
    if tree.is_empty or new is None:
        return
    old = state.read(former)
    manifest = None if old is None else old.manifest
    whole = {file.path for file in new.manifest.files if _is_same_file(former / file.path, target / file.path)}
    for path, goal in destinations(user_paths(tree, manifest, whole), new.manifest).items():
        _move(former / path, target / goal, is_file=path in tree.files)


def _move(here: Path, there: Path, *, is_file: bool) -> None:
    """Move it where nothing is, or an earlier state of the same file."""
    if not os.path.lexists(there):
        there.parent.mkdir(parents=True, exist_ok=True)
        here.rename(there)
    elif is_file and not _is_same_file(here, there) and _is_newer(here, there):
        here.rename(there)


def _is_same_file(one: Path, other: Path) -> bool:
    return os.path.lexists(one) and os.path.lexists(other) and os.path.samestat(one.lstat(), other.lstat())


def _is_newer(one: Path, other: Path) -> bool:
    return one.lstat().st_mtime_ns > other.lstat().st_mtime_ns
