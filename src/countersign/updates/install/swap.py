"""Stages the new version in a folder beside the old one and swaps the two (renameat2 where available).

Files are hard links where the file system allows them. `recover` completes an interrupted swap.
"""

import ctypes
import errno
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from countersign.file_sync import sync_file, sync_folder
from countersign.updates.install import state
from countersign.updates.install.file_builder import FileBuilder, has_digest
from countersign.updates.install.user_files import Tree, destinations, scan, user_paths
from countersign.updates.install.workspace import Workspace
from countersign.updates.manifest import File, Manifest
from countersign.updates.planner import UpdatePlan

_UNLINKABLE = (errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


def can_link(workspace: Workspace) -> bool:
    """Return whether the file system of the workspace supports hard links.

    Raises:
        OSError: the workspace cannot be written.
    """
    one, other = workspace.side / "probe", workspace.side / "probe2"
    workspace.clear(one, other)
    one.touch()
    try:
        os.link(one, other)
    except OSError as error:
        if error.errno not in _UNLINKABLE:
            raise
        return False
    finally:
        workspace.clear(one, other)
    return True


def stage(
    workspace: Workspace, manifest: Manifest, plan: UpdatePlan, builder: FileBuilder, seen: Mapping[str, os.stat_result]
) -> dict[str, tuple[int, int]]:
    """Create the files, links and folders of the build in the stage. Return the size and mtime of each intact file.

    `seen` is the state of the kept files when they were checked. A file that changed since then no longer matches its
    stamp, so that the next pull reads it.

    Raises:
        OSError: an entry cannot be written.
    """
    workspace.clear(workspace.stage)
    workspace.stage.mkdir(mode=0o755)
    for folder in _folders(manifest):
        (workspace.stage / folder).mkdir(mode=0o755)
    kept, copied = set(plan.kept), dict(plan.copied)
    used: set[str] = set()
    stamps: dict[str, tuple[int, int]] = {}
    for number, file in enumerate(manifest.files):
        target = workspace.stage / file.path
        if number in kept:
            link_or_copy(workspace.target / file.path, target)
            stamps[file.path] = _stamp(seen[file.path])
            continue
        if number in copied:
            _copy(workspace.target / copied[number], target, file)
        elif file.sha256 in used:
            _copy(builder.path(file), target, file)
        else:
            link_or_copy(builder.path(file), target)
            target.chmod(file.mode)
            sync_file(target)
            used.add(file.sha256)
        if number not in copied or has_digest(target, file.sha256):
            stamps[file.path] = _stamp(target.lstat())
    for link in manifest.links:
        (workspace.stage / link.path).symlink_to(link.target)
    return stamps


def carry(workspace: Workspace, tree: Tree, goals: Mapping[str, str], folders: Mapping[str, str]) -> None:
    """Add the user's files, links and folders to the stage. Files are linked or copied, and links are created again.

    Raises:
        OSError: an entry cannot be written.
    """
    for folder, goal in sorted(folders.items()):
        target = workspace.stage / goal
        if not os.path.lexists(target):
            target.mkdir(parents=True)
            target.chmod((workspace.target / folder).lstat().st_mode & 0o777 | 0o700)
    for path, goal in goals.items():
        target = workspace.stage / goal
        target.parent.mkdir(parents=True, exist_ok=True)
        if path in tree.files:
            link_or_copy(workspace.target / path, target)
        elif path in tree.links:
            target.symlink_to(tree.links[path])


def sync(workspace: Workspace) -> None:
    """Make every folder of the stage durable. Its files are durable already.

    Raises:
        OSError: a folder cannot be synced.
    """
    for folder, _, _ in os.walk(workspace.stage, topdown=False):
        if os.access(folder, os.R_OK):
            sync_folder(Path(folder))
    sync_folder(workspace.side)


def link_or_copy(source: Path, target: Path) -> None:
    """Create a hard link to the file, or a durable copy if the file system does not support the link.

    Raises:
        OSError: the link or the copy cannot be created.
    """
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _UNLINKABLE:
            raise
        shutil.copy2(source, target, follow_symlinks=False)
        sync_file(target)


def _copy(source: Path, target: Path, file: File) -> None:
    """Create a durable copy of the file, with the mode from the manifest."""
    shutil.copyfile(source, target, follow_symlinks=False)
    target.chmod(file.mode)
    sync_file(target)


def _stamp(found: os.stat_result) -> tuple[int, int]:
    return found.st_size, found.st_mtime_ns


def _folders(manifest: Manifest) -> list[str]:
    """Return every folder of the build, parents before their children."""
    folders = set(manifest.folders)
    for path in (*(file.path for file in manifest.files), *(link.path for link in manifest.links), *manifest.folders):
        above = path.rpartition("/")[0]
        while above and above not in folders:
            folders.add(above)
            above = above.rpartition("/")[0]
    return sorted(folders)


_AT_FDCWD = -100
_EXCHANGE = 2
_MISSING = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""The error codes of systems and file systems that cannot exchange folders."""


def exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders atomically. Return False if the system or file system does not support this.

    Raises:
        OSError: the exchange failed for another reason.
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


def swap_in(workspace: Workspace, number: str) -> None:
    """Replace the installation by the stage. `number` is the id in the state of the stage.

    If the pull is interrupted from now on, `recover` completes the swap.

    Raises:
        OSError: a folder or file cannot be written or renamed.
    """
    with workspace.swap.open("x") as file:
        file.write(number)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(workspace.side)
    if not workspace.target.exists():
        workspace.stage.rename(workspace.target)
    elif not exchange(workspace.stage, workspace.target):
        workspace.clear(workspace.retired)
        workspace.target.rename(workspace.retired)
        workspace.stage.rename(workspace.target)
    sync_folder(workspace.target.parent)
    sync_folder(workspace.side)


def recover(workspace: Workspace) -> None:
    """Complete an interrupted pull, if there is one.

    If the new version is installed, files that the user added to the old version meanwhile are moved to it. Otherwise
    the old version stays unchanged.

    Raises:
        OSError: an entry cannot be moved.
    """
    if workspace.swap.is_file():
        number = workspace.swap.read_text()
        if not workspace.target.exists() and workspace.stage.is_dir() and _id(workspace.stage) == number:
            # The pull was interrupted between the two renames of a system that cannot exchange folders.
            workspace.stage.rename(workspace.target)
            sync_folder(workspace.target.parent)
        elif not workspace.target.exists() and workspace.retired.is_dir():
            workspace.retired.rename(workspace.target)
            sync_folder(workspace.target.parent)
        if _id(workspace.target) == number:
            for former in (workspace.retired, workspace.stage):
                _move_user_files(former, workspace.target)
        # Remove this file before the old version: parts of a half removed version must not count as the user's files.
        workspace.clear(workspace.swap)
        sync_folder(workspace.side)
    workspace.clear(workspace.stage, workspace.retired, workspace.unpacked)


def _id(root: Path) -> str:
    found = state.read(root)
    return "" if found is None else found.state.id


def _move_user_files(former: Path, target: Path) -> None:
    """Move files that the user added to or changed in the old version after `carry`."""
    tree, new = scan(former), state.read(target)
    if tree.is_empty or new is None:
        return
    old = state.read(former)
    manifest = None if old is None else old.manifest
    whole = {file.path for file in new.manifest.files if _is_same_file(former / file.path, target / file.path)}
    for path, goal in destinations(user_paths(tree, manifest, whole), new.manifest).items():
        _move(former / path, target / goal, is_file=path in tree.files)


def _move(here: Path, there: Path, *, is_file: bool) -> None:
    """Move an entry if `there` does not exist, or is an older state of the same file."""
    if not os.path.lexists(there):
        there.parent.mkdir(parents=True, exist_ok=True)
        here.rename(there)
    elif is_file and not _is_same_file(here, there) and _is_newer(here, there):
        here.rename(there)


def _is_same_file(one: Path, other: Path) -> bool:
    return os.path.lexists(one) and os.path.lexists(other) and os.path.samestat(one.lstat(), other.lstat())


def _is_newer(one: Path, other: Path) -> bool:
    return one.lstat().st_mtime_ns > other.lstat().st_mtime_ns
