"""Symbolic links of strangers: where they lead, through every other link of the archive."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from countersign.archives.gauge import Gauge
from countersign.archives.limits import Limits
from countersign.archives.names import characters_fault, folded
from countersign.archives.refusals import ArchiveRefused

MAX_PASSED = 16
"""Most links that are passed when one is followed."""

_Form: TypeAlias = Callable[[str], str]


def check_target(path: str, target: str, limits: Limits) -> None:
    """Refuse where a link points to, as far as its text tells.

    Raises:
        ArchiveRefused: `link-target`, `link-absolute`, `path-too-long`, `too-deep` or `link-escape`.
    """
    if not target:
        raise ArchiveRefused("link-target", "the link points to nothing", entry=path)
    if target.startswith("/"):
        raise ArchiveRefused("link-absolute", f"the link points to the absolute path {target!a}", entry=path)
    if fault := characters_fault(target):
        raise ArchiveRefused("link-target", f"the link points to {target!a}: {fault.detail}", entry=path)
    if len(target.encode()) > limits.path_bytes:
        raise ArchiveRefused("path-too-long", f"where it points to has more than {limits.path_bytes}", entry=path)
    if target.count("/") > 2 * limits.depth:
        # All the way up and all the way down again: more only takes time, which is next to nothing when packed.
        raise ArchiveRefused("too-deep", f"where it points to has more than {2 * limits.depth} folders", entry=path)
    depth = path.count("/")
    for name in _names(target):
        depth += -1 if name == ".." else 1
        if depth < 0:
            raise _escape(path, target)


def check_links(links: Mapping[str, str], gauge: Gauge) -> None:
    """Refuse links (path to target) of which one leads outside by way of the others, or nowhere.

    They are followed twice: as names are written, and as a system without upper and lower case compares them. Each is
    followed once in each way, however many others lead through it.

    Raises:
        ArchiveRefused: `link-escape` or `link-chain`.
    """
    for form in (str, folded):
        tree = _Tree(links, form)
        for path in links:
            gauge.tick()
            tree.follow(path)


@dataclass(slots=True, eq=False)
class _Node:
    """A path of the archive that is a link, or a folder above one. `target` is empty for a folder; `end` is where the
    link leads, once it is known, and `passed` how many others are passed on the way."""

    children: dict[str, "_Node"] = field(default_factory=lambda: dict[str, "_Node"]())
    folder: "_Position | None" = None
    path: str = ""
    target: str = ""
    end: "_Position | None" = None
    passed: int = -1


class _Position(NamedTuple):
    """A folder on the way: its node, None where no link is below it, and the folder above it, None for the root."""

    node: _Node | None
    above: "_Position | None"


class _Tree:
    """The links of an archive by their names, in one form of them. A step on the way costs one look-up, and where a
    link leads is shared by all that pass it."""

    def __init__(self, links: Mapping[str, str], form: _Form) -> None:
        self._form = form
        self._root = _Node()
        self._links = {path: self._add(path, target) for path, target in links.items()}

    def _add(self, path: str, target: str) -> _Node:
        *folders, name = map(self._form, path.split("/"))
        node, position = self._root, None
        for folder in folders:
            node = node.children.setdefault(folder, _Node())
            position = _Position(node, position)
        link = node.children.setdefault(name, _Node())
        link.folder, link.path, link.target = position, path, target
        return link

    def follow(self, path: str) -> None:
        """Refuse the link where it leads out of the tree or passes too many others."""
        self._follow(self._links[path], 0)

    def _follow(self, link: _Node, depth: int) -> None:
        """Walk from the link's folder along its target, name by name, through the links that are met."""
        if link.passed >= 0:
            return
        position, passed = link.folder, 0
        for name in _names(link.target):
            if name == "..":
                if position is None:
                    raise _escape(link.path, link.target)
                position = position.above
                continue
            node = self._below(position, name)
            position = _Position(node, position)
            if node is not None and node.target:
                # A link that leads to itself gets here until it has passed too many.
                _require_few(depth + passed + 1, link)
                self._follow(node, depth + 1)
                passed += 1 + node.passed
                _require_few(passed, link)
                position = node.end
        link.end, link.passed = position, passed

    def _below(self, position: _Position | None, name: str) -> _Node | None:
        folder = self._root if position is None else position.node
        return None if folder is None else folder.children.get(self._form(name))


def _names(target: str) -> list[str]:
    return [name for name in target.split("/") if name not in ("", ".")]


def _require_few(passed: int, link: _Node) -> None:
    if passed > MAX_PASSED:
        raise ArchiveRefused("link-chain", f"following it passes more than {MAX_PASSED}", entry=link.path)


def _escape(path: str, target: str) -> ArchiveRefused:
    return ArchiveRefused("link-escape", f"the link leads out of the tree by {target!a}", entry=path)
