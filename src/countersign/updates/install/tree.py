"""What lies in a folder, without following any link."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from countersign.updates.install.admission import OWN
from countersign.updates.install.place import PlaceRefused

MAX_DEPTH = 256
"""Folders in folders of an installation that are looked into."""


@dataclass(slots=True)
class Tree:
    """Everything below a folder but our own state, by relative path: regular files, where links point, folders, and
    what is none of these."""

    files: dict[str, os.stat_result] = field(default_factory=dict[str, os.stat_result])
    links: dict[str, str] = field(default_factory=dict[str, str])
    folders: set[str] = field(default_factory=set[str])
    others: list[str] = field(default_factory=list[str])

    @property
    def is_empty(self) -> bool:
        """Whether nothing is there."""
        return not (self.files or self.links or self.folders or self.others)


def scan(root: Path) -> Tree:
    """What lies in the folder; nothing where there is none.

    Raises:
        OSError: a folder of it cannot be read.
        PlaceRefused: folders of it lie too deep in one another.
    """
    tree = Tree()
    if not root.is_symlink() and root.is_dir():
        for path, entry in _walk(root, "", MAX_DEPTH):
            _note(tree, path, entry)
    return tree


def _walk(root: Path, above: str, levels: int) -> Iterator[tuple[str, os.DirEntry[str]]]:
    if levels < 0:
        top = root / above.partition("/")[0]
        raise PlaceRefused(f"{top} is nested more than {MAX_DEPTH} folders deep; move it out of the installation")
    with os.scandir(root / above) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        path = f"{above}/{entry.name}" if above else entry.name
        if path == OWN:
            continue
        yield path, entry
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(root, path, levels - 1)


def _note(tree: Tree, path: str, entry: os.DirEntry[str]) -> None:
    found = entry.stat(follow_symlinks=False)
    if stat.S_ISREG(found.st_mode):
        tree.files[path] = found
    elif stat.S_ISLNK(found.st_mode):
        tree.links[path] = os.readlink(entry.path)
    elif stat.S_ISDIR(found.st_mode):
        tree.folders.add(path)
    else:
        tree.others.append(path)
