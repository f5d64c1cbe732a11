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
    probe, second_probe = workspace.side / "probe", workspace.side / "probe2"
    workspace.clear(probe, second_probe)
    probe.touch()
    try:
        os.link(probe, second_probe)
    except OSError as error:
        if error.errno not in _UNLINKABLE:
            raise
        return False
    finally:
        workspace.clear(probe, second_probe)
    return True


def stage(
    workspace: Workspace,
    manifest: Manifest,
    plan: UpdatePlan,
    builder: FileBuilder,
    status_by_path: Mapping[str, os.stat_result],
) -> dict[str, tuple[int, int]]:
    """Create the files, links and folders of the build in the stage. Return the size and mtime of each intact file.

    `status_by_path` is the state of the kept files when they were checked. A file that changed since then no longer
    matches its stamp, so that the next pull reads it.

    Raises:
        OSError: an entry cannot be written.
    """
    workspace.clear(workspace.stage)
    workspace.stage.mkdir(mode=0o755)
    for folder in _folders(manifest):
        (workspace.stage / folder).mkdir(mode=0o755)
    kept_paths, copied_paths = set(plan.kept), dict(plan.copied)
    used_sources: set[str] = set()
    stamps: dict[str, tuple[int, int]] = {}
    for number, file in enumerate(manifest.files):
        target = workspace.stage / file.path
        if number in kept_paths:
            link_or_copy(workspace.target / file.path, target)
            stamps[file.path] = _stamp(status_by_path[file.path])
            continue
        if number in copied_paths:
            _copy(workspace.target / copied_paths[number], target, file)
        elif file.sha256 in used_sources:
            _copy(builder.path(file), target, file)
        else:
            link_or_copy(builder.path(file), target)
            target.chmod(file.mode)
            sync_file(target)
            used_sources.add(file.sha256)
        if number not in copied_paths or has_digest(target, file.sha256):
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


def _stamp(file_status: os.stat_result) -> tuple[int, int]:
    return file_status.st_size, file_status.st_mtime_ns


def _folders(manifest: Manifest) -> list[str]:
    """Return every folder of the build, parents before their children."""
    folders = set(manifest.folders)
    for path in (*(file.path for file in manifest.files), *(link.path for link in manifest.links), *manifest.folders):
        parent = path.rpartition("/")[0]
        while parent and parent not in folders:
            folders.add(parent)
            parent = parent.rpartition("/")[0]
    return sorted(folders)


_AT_FDCWD = -100
_EXCHANGE = 2
_MISSING = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""The error codes of systems and file systems that cannot exchange folders."""


def exchange(path: Path, other_path: Path) -> bool:
    """Exchange the names of two folders atomically. Return False if the system or file system does not support this.

    Raises:
        OSError: the exchange failed for another reason.
    """
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        return False
    paths = os.fsencode(path), os.fsencode(other_path)
    if library.renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _MISSING:
        return False
    raise OSError(code, os.strerror(code), str(other_path))


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
            for former_folder in (workspace.retired, workspace.stage):
                _move_user_files(former_folder, workspace.target)
        # Remove this file before the old version: parts of a half removed version must not count as the user's files.
        workspace.clear(workspace.swap)
        sync_folder(workspace.side)
    workspace.clear(workspace.stage, workspace.retired, workspace.unpacked)


def _id(root: Path) -> str:
    installation = state.read(root)
    return "" if installation is None else installation.state.id


def _move_user_files(former_folder: Path, target: Path) -> None:
    """Move files that the user added to or changed in the old version after `carry`."""
    tree, new_installation = scan(former_folder), state.read(target)
    if tree.is_empty or new_installation is None:
        return
    old_installation = state.read(former_folder)
    manifest = None if old_installation is None else old_installation.manifest
    unchanged_paths = {
        file.path
        for file in new_installation.manifest.files
        if _is_same_file(former_folder / file.path, target / file.path)
    }
    for path, goal in destinations(user_paths(tree, manifest, unchanged_paths), new_installation.manifest).items():
        _move(former_folder / path, target / goal, is_file=path in tree.files)


def _move(source: Path, target: Path, *, is_file: bool) -> None:
    """Move an entry if `target` does not exist, or is an older state of the same file."""
    if not os.path.lexists(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
    elif is_file and not _is_same_file(source, target) and _is_newer(source, target):
        source.rename(target)


def _is_same_file(first_path: Path, other_path: Path) -> bool:
    return (
        os.path.lexists(first_path)
        and os.path.lexists(other_path)
        and os.path.samestat(first_path.lstat(), other_path.lstat())
    )


def _is_newer(path: Path, other_path: Path) -> bool:
    return path.lstat().st_mtime_ns > other_path.lstat().st_mtime_ns
