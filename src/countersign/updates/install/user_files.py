"""The files in an installation, and which of them belong to the user and not to a manifest."""

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from countersign.updates.install.validate_manifest import STATE_FOLDER
from countersign.updates.install.workspace import WorkspaceRefused
from countersign.updates.manifest import Manifest

MAX_DEPTH = 256
"""The maximum depth of nested folders in an installation."""


@dataclass(slots=True)
class Tree:
    """The content of a folder by relative path, without the installation's own state.

    It consists of regular files, links with their targets, folders, and entries of other kinds.
    """

    files: dict[str, os.stat_result] = field(default_factory=dict[str, os.stat_result])
    links: dict[str, str] = field(default_factory=dict[str, str])
    folders: set[str] = field(default_factory=set[str])
    others: list[str] = field(default_factory=list[str])

    @property
    def is_empty(self) -> bool:
        """Whether the folder has no content."""
        return not (self.files or self.links or self.folders or self.others)


def scan(root: Path) -> Tree:
    """Return the content of the folder. The result is empty if the folder does not exist.

    Raises:
        OSError: a folder below it cannot be read.
        WorkspaceRefused: its folders are nested too deeply.
    """
    tree = Tree()
    if not root.is_symlink() and root.is_dir():
        for path, entry in _walk(root, "", MAX_DEPTH):
            _add_entry(tree, path, entry)
    return tree


def _walk(root: Path, parent: str, levels: int) -> Iterator[tuple[str, os.DirEntry[str]]]:
    if levels < 0:
        top = root / parent.partition("/")[0]
        raise WorkspaceRefused(f"{top} is nested more than {MAX_DEPTH} folders deep; move it out of the installation")
    with os.scandir(root / parent) as entries:
        sorted_entries = sorted(entries, key=lambda entry: entry.name)
    for entry in sorted_entries:
        path = f"{parent}/{entry.name}" if parent else entry.name
        if path == STATE_FOLDER:
            continue
        yield path, entry
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(root, path, levels - 1)


def _add_entry(tree: Tree, path: str, entry: os.DirEntry[str]) -> None:
    file_status = entry.stat(follow_symlinks=False)
    if stat.S_ISREG(file_status.st_mode):
        tree.files[path] = file_status
    elif stat.S_ISLNK(file_status.st_mode):
        tree.links[path] = os.readlink(entry.path)
    elif stat.S_ISDIR(file_status.st_mode):
        tree.folders.add(path)
    else:
        tree.others.append(path)


ASIDE_SUFFIX = ".kept"
"""The suffix for a file of the user if the new build needs its path."""


def user_paths(tree: Tree, old_manifest: Manifest | None, whole_files: Collection[str]) -> Iterator[str]:
    """Yield the paths that do not belong to the old manifest: files, links and entries of other kinds.

    Without an old manifest, these are all paths except those in `whole_files`: intact files of the new manifest.
    """
    known_paths = set(whole_files)
    if old_manifest is not None:
        known_paths = {file.path for file in old_manifest.files} | {link.path for link in old_manifest.links}
    yield from (path for path in (*tree.files, *tree.links, *tree.others) if path not in known_paths)


def user_folders(tree: Tree, old_manifest: Manifest | None) -> Iterator[str]:
    """Yield the folders that do not belong to the old manifest."""
    known_folders = set[str]()
    if old_manifest is not None:
        paths = [file.path for file in old_manifest.files] + [link.path for link in old_manifest.links]
        known_folders = {*old_manifest.folders, *(parent for path in paths for parent in _parents(path))}
    yield from (path for path in tree.folders if path not in known_folders)


def destinations(paths: Iterator[str], new_manifest: Manifest, *, are_folders: bool = False) -> Mapping[str, str]:
    """Map each path to its path in the new installation: the same path, or a path with a suffix if the build needs the
    original path."""
    solid = {file.path for file in new_manifest.files} | {link.path for link in new_manifest.links}
    folders = {
        *new_manifest.folders,
        *(parent for path in (*solid, *new_manifest.folders) for parent in _parents(path)),
    }
    blocking_paths = solid if are_folders else solid | folders
    destination_by_path: dict[str, str] = {}
    for path in paths:
        blocked_path = _first(_parents(path), solid) or (path if path in blocking_paths else "")
        destination_by_path[path] = (
            _aside_path(blocked_path, solid | folders) + path[len(blocked_path) :] if blocked_path else path
        )
    return destination_by_path


def _first(paths: Iterator[str], wanted_paths: Collection[str]) -> str:
    return next((path for path in paths if path in wanted_paths), "")


def _aside_path(path: str, taken_paths: Collection[str]) -> str:
    aside_path = path + ASIDE_SUFFIX
    while aside_path in taken_paths:
        aside_path += ASIDE_SUFFIX
    return aside_path


def _parents(path: str) -> Iterator[str]:
    """Yield the folders above the path, the outermost first."""
    slash_position = path.find("/")
    while slash_position >= 0:
        yield path[:slash_position]
        slash_position = path.find("/", slash_position + 1)
