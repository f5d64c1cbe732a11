"""Puts the new version together as a folder of its own: linked where a file stays the same, moved in where it was made,
with everything of the user's."""

import errno
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from countersign.updates.install.file_builder import FileBuilder, has_digest
from countersign.updates.install.swap import sync_folder
from countersign.updates.install.user_files import Tree
from countersign.updates.install.workspace import Workspace
from countersign.updates.manifest import File, Manifest
from countersign.updates.planner import Plan

_UNLINKABLE = (errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


def can_link(place: Workspace) -> bool:
    """Whether a file can have two names here.

    Raises:
        OSError: nothing can be written at all.
    """
    one, other = place.side / "probe", place.side / "probe2"
    place.clear(one, other)
    one.touch()
    try:
        os.link(one, other)
    except OSError as error:
        if error.errno not in _UNLINKABLE:
            raise
        return False
    finally:
        place.clear(one, other)
    return True


def stage(
    place: Workspace, manifest: Manifest, plan: Plan, building: FileBuilder, seen: Mapping[str, os.stat_result]
) -> dict[str, tuple[int, int]]:
    """Put the build's files, links and folders into the stage; the size and time of change that each file had when it
    was whole. `seen` is how the kept ones were found: what somebody has changed since is looked at the next time.

    Raises:
        OSError: something cannot be written.
    """
    place.clear(place.stage)
    place.stage.mkdir(mode=0o755)
    for folder in _folders(manifest):
        (place.stage / folder).mkdir(mode=0o755)
    kept, copied = set(plan.kept), dict(plan.copied)
    used: set[str] = set()
    stamps: dict[str, tuple[int, int]] = {}
    for number, file in enumerate(manifest.files):
        target = place.stage / file.path
        if number in kept:
            link_or_copy(place.target / file.path, target)
            stamps[file.path] = _stamp(seen[file.path])
            continue
        if number in copied:
            _copy(place.target / copied[number], target, file)
        elif file.sha256 in used:
            _copy(building.path(file), target, file)
        else:
            link_or_copy(building.path(file), target)
            target.chmod(file.mode)
            _sync(target)
            used.add(file.sha256)
        if number not in copied or has_digest(target, file.sha256):
            stamps[file.path] = _stamp(target.lstat())
    for link in manifest.links:
        (place.stage / link.path).symlink_to(link.target)
    return stamps


def carry(place: Workspace, tree: Tree, goals: Mapping[str, str], folders: Mapping[str, str]) -> None:
    """Give the stage everything of the user's that is there now: files by another name, links anew.

    Raises:
        OSError: something cannot be written.
    """
    for folder, goal in sorted(folders.items()):
        target = place.stage / goal
        if not os.path.lexists(target):
            target.mkdir(parents=True)
            target.chmod((place.target / folder).lstat().st_mode & 0o777 | 0o700)
    for path, goal in goals.items():
        target = place.stage / goal
        target.parent.mkdir(parents=True, exist_ok=True)
        if path in tree.files:
            link_or_copy(place.target / path, target)
        elif path in tree.links:
            target.symlink_to(tree.links[path])


def sync(place: Workspace) -> None:
    """Make every folder of the stage outlive a power cut; its files do already.

    Raises:
        OSError: the disk refuses.
    """
    for folder, _, _ in os.walk(place.stage, topdown=False):
        if os.access(folder, os.R_OK):
            sync_folder(Path(folder))
    sync_folder(place.side)


def link_or_copy(source: Path, target: Path) -> None:
    """The same file under another name, or a durable copy where names cannot be shared.

    Raises:
        OSError: neither can be had.
    """
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _UNLINKABLE:
            raise
        shutil.copy2(source, target, follow_symlinks=False)
        _sync(target)


def _copy(source: Path, target: Path, file: File) -> None:
    """A durable copy that shares nothing with its source."""
    shutil.copyfile(source, target, follow_symlinks=False)
    target.chmod(file.mode)
    _sync(target)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _stamp(found: os.stat_result) -> tuple[int, int]:
    return found.st_size, found.st_mtime_ns


def _folders(manifest: Manifest) -> list[str]:
    """Every folder of the build, those above first."""
    folders = set(manifest.folders)
    for path in (*(file.path for file in manifest.files), *(link.path for link in manifest.links), *manifest.folders):
        above = path.rpartition("/")[0]
        while above and above not in folders:
            folders.add(above)
            above = above.rpartition("/")[0]
    return sorted(folders)
