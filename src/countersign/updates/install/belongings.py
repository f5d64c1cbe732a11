"""What in an installation is the user's own, and where it stays when a new version needs its place."""

from collections.abc import Collection, Iterator, Mapping

from countersign.updates.install.tree import Tree
from countersign.updates.manifest import Manifest

ASIDE = ".kept"
"""Is put behind the name of what has to make room."""


def belongings(tree: Tree, old: Manifest | None, whole: Collection[str]) -> Iterator[str]:
    """The paths that no manifest put there: files, links, and what is neither. Without an old manifest that is
    everything but what is `whole` by the new one."""
    known = set(whole)
    if old is not None:
        known = {file.path for file in old.files} | {link.path for link in old.links}
    yield from (path for path in (*tree.files, *tree.links, *tree.others) if path not in known)


def folders_kept(tree: Tree, old: Manifest | None) -> Iterator[str]:
    """The folders that no manifest put there."""
    known = set[str]()
    if old is not None:
        paths = [file.path for file in old.files] + [link.path for link in old.links]
        known = {*old.folders, *(above for path in paths for above in _above(path))}
    yield from (path for path in tree.folders if path not in known)


def destinations(paths: Iterator[str], new: Manifest, *, are_folders: bool = False) -> Mapping[str, str]:
    """Where each path goes beside the new build: where it was, or aside, where the build needs its place."""
    solid = {file.path for file in new.files} | {link.path for link in new.links}
    folders = {*new.folders, *(above for path in (*solid, *new.folders) for above in _above(path))}
    blocking = solid if are_folders else solid | folders
    found: dict[str, str] = {}
    for path in paths:
        blocked = _first(_above(path), solid) or (path if path in blocking else "")
        found[path] = _aside(blocked, solid | folders) + path[len(blocked) :] if blocked else path
    return found


def _first(paths: Iterator[str], wanted: Collection[str]) -> str:
    return next((path for path in paths if path in wanted), "")


def _aside(path: str, taken: Collection[str]) -> str:
    aside = path + ASIDE
    while aside in taken:
        aside += ASIDE
    return aside


def _above(path: str) -> Iterator[str]:
    """The folders above the path, outermost first."""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)
