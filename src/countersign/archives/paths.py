"""Paths and symbolic links in untrusted archives: portable names, no collisions, no escape from the root."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from countersign.archives.entry import Kind
from countersign.archives.limits import MAX_CHAINED_LINKS, Budget, Limits
from countersign.archives.refusals import ArchiveRefused

_DEVICES = (
    r"(?:con|prn|aux|nul|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3]|conin\$|conout\$)(?:[ ]*\..*|[ ]*)"
)
_RESERVED = re.compile(_DEVICES, re.IGNORECASE | re.DOTALL)
# A fast path for most names: only letters, digits and punctuation that no system reserves, no dot or space at the end,
# and no device name.
_PLAIN = re.compile(rf"(?!(?i:{_DEVICES})\Z)[ !#-)+-.0-9;=@-\[\]-{{}}]*[!#-)+-\-0-9;=@-\[\]-{{}}]\Z")
_WILD = re.compile(r'[<>|"?*]')
_SHORT_NAME = re.compile(r"(?=[^.]{1,8}(?:\.|\Z))[^.]+~[0-9]+(?:\.[^.]{1,3})?")
_DRIVE = re.compile(r"[A-Za-z]:")
# Some file systems ignore these characters when they compare names.
_UNCOMPARED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


class NameViolation(NamedTuple):
    """The rule that a name breaks, and how."""

    rule: str
    detail: str


_FORBIDDEN = (
    (
        re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]"),
        NameViolation("control-character", "the name contains a control character"),
    ),
    (
        re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"),
        NameViolation("bidi-control", "the name contains a character that changes the writing direction"),
    ),
    (
        re.compile(
            "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
            "\ufff9-\ufffb\U000e0000-\U000e0fff]"
        ),
        NameViolation("invisible-character", "the name contains an invisible character"),
    ),
    (re.compile("[\ud800-\udfff]"), NameViolation("not-utf8", "the name is not valid UTF-8")),
)


def check_path(path: str, limits: Limits) -> None:
    """Refuse a path that is not relative, or that another system could interpret differently.

    Raises:
        ArchiveRefused: the path breaks a rule, which the error names.
    """
    if path.startswith("/"):
        rule = "unc-path" if path.startswith("//") else "absolute-path"
        raise ArchiveRefused(rule, "the path begins with a slash", entry=path)
    for name in path.split("/"):
        _check_name(name, path, limits)
    _check_length(path, limits)


def character_violation(text: str) -> NameViolation | None:
    """Return the rule that the characters of a name or link target break, or None if they are valid."""
    for pattern, fault in _FORBIDDEN:
        if pattern.search(text):
            return fault
    if "\\" in text:
        rule = "unc-path" if text.startswith("\\\\") else "backslash"
        return NameViolation(rule, "the name contains a backslash")
    if ":" in text:
        return NameViolation("drive" if _DRIVE.match(text) else "colon", "the name contains a colon")
    return None


def _component_violation(name: str, limits: Limits) -> NameViolation | None:
    if not name:
        return NameViolation("empty-name", "a name in the path is empty")
    if name in (".", ".."):
        return NameViolation("dot" if name == "." else "dot-dot", f"a name in the path is '{name}'")
    if fault := character_violation(name):
        return fault
    if name[-1] in ". ":
        return NameViolation("trailing-dot-or-space", "a name ends with a dot or a space")
    if _RESERVED.fullmatch(name):
        return NameViolation("reserved-name", "Windows reserves the name for a device")
    return _portability_violation(name) if limits.profile == "strict" else None


def _portability_violation(name: str) -> NameViolation | None:
    if _WILD.search(name):
        return NameViolation("reserved-character", 'the name contains one of < > | " ? *')
    if _SHORT_NAME.fullmatch(name):
        return NameViolation("short-name", "the name has the form of Windows' short names")
    if not unicodedata.is_normalized("NFC", name):
        return NameViolation("not-nfc", "the name is not in the composed form NFC")
    return None


def _check_name(name: str, path: str, limits: Limits) -> None:
    # Skip the other checks for a name that is too long, because normalizing it takes time.
    is_long = len(name) > limits.name_bytes
    if not is_long and not _PLAIN.match(name) and (fault := _component_violation(name, limits)):
        raise ArchiveRefused(fault.rule, fault.detail, entry=path)
    if len(name) * 4 > limits.name_bytes and len(name.encode()) > limits.name_bytes:
        raise ArchiveRefused("name-too-long", f"a name has more than {limits.name_bytes} bytes", entry=path)


def _check_length(path: str, limits: Limits) -> None:
    if len(path) * 4 > limits.path_bytes and len(path.encode()) > limits.path_bytes:
        raise ArchiveRefused("path-too-long", f"the path has more than {limits.path_bytes} bytes", entry=path)
    if path.count("/") > limits.depth:
        raise ArchiveRefused("too-deep", f"it is nested in more than {limits.depth} folders", entry=path)


def casefold_path(text: str) -> str:
    """Return the text in a form that is equal for paths that some file system treats as the same path."""
    if text.isascii():
        return text.lower()
    comparable_text = _UNCOMPARED.sub("", text)
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", comparable_text).casefold())


def _casefold_compatibly(text: str) -> str:
    """Return `casefold_path` of the text with compatibility characters (ﬁ, ², ＡＢＣ) replaced (NFKC)."""
    if text.isascii():
        return text.lower()
    return casefold_path(unicodedata.normalize("NFKC", casefold_path(unicodedata.normalize("NFKC", text))))


class ArchivePaths:
    """Checks the paths of one archive against the rules and against each other."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._fold = _casefold_compatibly if limits.profile == "strict" else casefold_path
        self._count = 0
        self._path_by_folded: dict[str, str] = {}
        self._folders: dict[str, str] = {"": ""}
        self._listed: set[str] = set()
        self._links: set[str] = set()

    def take(self, path: str, kind: Kind) -> None:
        """Check and record the path of the next entry. It must have single slashes and no trailing slash.

        Raises:
            ArchiveRefused: the path breaks a rule, or conflicts with an earlier path.
        """
        if path.startswith("/"):
            check_path(path, self._limits)
        parent, _, name = path.rpartition("/")
        folded_above = self._folders.get(parent)
        if folded_above is None:
            folded_above = self._enter(parent, path)
        _check_name(name, path, self._limits)
        _check_length(path, self._limits)
        self._count_one(path)
        folded_path = f"{folded_above}/{self._fold(name)}" if parent else self._fold(name)
        earlier_path = self._path_by_folded.get(folded_path)
        if earlier_path is not None and (kind != "folder" or earlier_path != path or not self._is_implied(path)):
            raise self._conflict(path, earlier_path, kind=kind)
        self._path_by_folded[folded_path] = path
        if kind == "folder":
            self._folders[path] = folded_path
            self._listed.add(path)
        elif kind == "link":
            self._links.add(path)

    def _is_implied(self, path: str) -> bool:
        """Whether the path is a folder only because an entry is inside it."""
        return path in self._folders and path not in self._listed

    def _enter(self, folder: str, path: str) -> str:
        """Check and record the new folders above an entry. Return the folded path of the innermost folder."""
        folded_path = ""
        position = 0
        while position >= 0:
            end = folder.find("/", position)
            exact = folder if end < 0 else folder[:end]
            known_path = self._folders.get(exact)
            if known_path is None:
                name = exact[position:]
                _check_name(name, path, self._limits)
                _check_length(exact, self._limits)
                known_path = f"{folded_path}/{self._fold(name)}" if folded_path else self._fold(name)
                earlier_path = self._path_by_folded.get(known_path)
                if earlier_path is not None:
                    raise self._conflict(path, earlier_path, kind="folder", own_path=exact)
                self._count_one(path)
                self._path_by_folded[known_path] = exact
                self._folders[exact] = known_path
            folded_path = known_path
            position = end + 1 if end >= 0 else -1
        return folded_path

    def _count_one(self, path: str) -> None:
        self._count += 1
        if self._count > self._limits.entries:
            raise ArchiveRefused("too-many-entries", f"it has more than {self._limits.entries} entries", entry=path)

    def _conflict(self, path: str, earlier_path: str, *, kind: Kind, own_path: str | None = None) -> ArchiveRefused:
        """Return the error for an entry, or for the folder `own_path` above it, that conflicts with an earlier path."""
        if earlier_path != (own_path or path):
            return ArchiveRefused("collision", f"it can be the same as {earlier_path!a} on another system", entry=path)
        if own_path is not None and earlier_path in self._links:
            return ArchiveRefused("write-through-link", f"{earlier_path!a} is a link", entry=path)
        if (earlier_path in self._folders) != (kind == "folder"):
            detail = f"{earlier_path!a} occurs both as a folder and as a file or link"
            return ArchiveRefused("file-against-folder", detail, entry=path)
        return ArchiveRefused("duplicate-name", "the path occurs twice in the archive", entry=path)


_NameForm: TypeAlias = Callable[[str], str]


def check_target(path: str, target: str, limits: Limits) -> None:
    """Check the text of a link target, without regard to other entries.

    Raises:
        ArchiveRefused: the target breaks a rule: `link-target`, `link-absolute`, `path-too-long`, `too-deep` or
            `link-escape`.
    """
    if not target:
        raise ArchiveRefused("link-target", "the link points to nothing", entry=path)
    if target.startswith("/"):
        raise ArchiveRefused("link-absolute", f"the link points to the absolute path {target!a}", entry=path)
    if fault := character_violation(target):
        raise ArchiveRefused("link-target", f"the link points to {target!a}: {fault.detail}", entry=path)
    if len(target.encode()) > limits.path_bytes:
        raise ArchiveRefused("path-too-long", f"its target has more than {limits.path_bytes} bytes", entry=path)
    if target.count("/") > 2 * limits.depth:
        # No valid target needs more parts. A small archive can hold long targets, which
        # take time to resolve.
        raise ArchiveRefused("too-deep", f"its target has more than {2 * limits.depth} folders", entry=path)
    depth = path.count("/")
    for name in _components(target):
        depth += -1 if name == ".." else 1
        if depth < 0:
            raise _escape(path, target)


def check_links(links: Mapping[str, str], budget: Budget) -> None:
    """Resolve all links, and refuse a link that leads out of the tree or passes through too many others.

    `links` maps paths to targets. Every link is resolved twice: with names as written, and with names as a
    case-insensitive system compares them. Each result is cached for the links that pass through it.

    Raises:
        ArchiveRefused: a link leads out of the tree (`link-escape`), or passes through too many links or a cycle
            (`link-chain`).
    """
    for form in (str, casefold_path):
        tree = _LinkTree(links, form)
        for path in links:
            budget.tick()
            tree.follow(path)


@dataclass(slots=True, eq=False)
class _Node:
    """A link, or a folder above a link.

    `target` is empty for a folder. `passed` is -1 until the link is resolved. Then `passed` is the number of other
    links that were followed, and `end` is the result.
    """

    children: dict[str, "_Node"] = field(default_factory=lambda: dict[str, "_Node"]())
    folder: "_Position | None" = None
    path: str = ""
    target: str = ""
    end: "_Position | None" = None
    passed: int = -1


class _Position(NamedTuple):
    """A folder below the root. It has no `node` if no link is in it or below it, and no `above` if it is in the
    root."""

    node: _Node | None
    above: "_Position | None"


class _LinkTree:
    """The links of an archive as a tree. `form` converts the names to the form in which they are compared.

    Each name of a path costs one look-up. All links that pass through a link share its result.
    """

    def __init__(self, links: Mapping[str, str], form: _NameForm) -> None:
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
        """Resolve a link. Refuse it if it leads out of the tree or passes through too many others."""
        self._follow(self._links[path], 0)

    def _follow(self, link: _Node, depth: int) -> None:
        """Resolve the target name by name, beginning at the link's folder, and follow the links in the target."""
        if link.passed >= 0:
            return
        position, link_count = link.folder, 0
        for name in _components(link.target):
            if name == "..":
                if position is None:
                    raise _escape(link.path, link.target)
                position = position.above
                continue
            node = self._below(position, name)
            position = _Position(node, position)
            if node is not None and node.target:
                # A link to itself reaches this line until it exceeds the limit.
                _require_few_links(depth + link_count + 1, link)
                self._follow(node, depth + 1)
                link_count += 1 + node.passed
                _require_few_links(link_count, link)
                position = node.end
        link.end, link.passed = position, link_count

    def _below(self, position: _Position | None, name: str) -> _Node | None:
        folder = self._root if position is None else position.node
        return None if folder is None else folder.children.get(self._form(name))


def _components(target: str) -> list[str]:
    return [name for name in target.split("/") if name not in ("", ".")]


def _require_few_links(link_count: int, link: _Node) -> None:
    if link_count > MAX_CHAINED_LINKS:
        raise ArchiveRefused("link-chain", f"it passes through more than {MAX_CHAINED_LINKS} links", entry=link.path)


def _escape(path: str, target: str) -> ArchiveRefused:
    return ArchiveRefused("link-escape", f"the target {target!a} leads out of the tree", entry=path)
