"""Paths of strangers: what a name may be, and that no two entries meet in one place."""

import re
import unicodedata
from typing import NamedTuple

from countersign.archives.entry import Kind
from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused

_DEVICES = (
    r"(?:con|prn|aux|nul|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3]|conin\$|conout\$)(?:[ ]*\..*|[ ]*)"
)
_RESERVED = re.compile(_DEVICES, re.IGNORECASE | re.DOTALL)
# Nearly every name: letters, digits and the punctuation that no system keeps for itself, no dot or space at its end,
# no device.
_PLAIN = re.compile(rf"(?!(?i:{_DEVICES})\Z)[ !#-)+-.0-9;=@-\[\]-{{}}]*[!#-)+-\-0-9;=@-\[\]-{{}}]\Z")
_WILD = re.compile(r'[<>|"?*]')
_SHORT = re.compile(r"(?=[^.]{1,8}(?:\.|\Z))[^.]+~[0-9]+(?:\.[^.]{1,3})?")
_DRIVE = re.compile(r"[A-Za-z]:")
# Some file systems compare names as if these were not there.
_UNCOMPARED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


class Fault(NamedTuple):
    """The rule that a name breaks, and how."""

    rule: str
    detail: str


_FORBIDDEN = (
    (re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]"), Fault("control-character", "a control character is in the name")),
    (
        re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"),
        Fault("bidi-control", "a character in the name changes the direction of writing"),
    ),
    (
        re.compile(
            "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
            "\ufff9-\ufffb\U000e0000-\U000e0fff]"
        ),
        Fault("invisible-character", "a character in the name is not seen"),
    ),
    (re.compile("[\ud800-\udfff]"), Fault("not-utf8", "the name is no UTF-8")),
)


def check_path(path: str, limits: Limits) -> None:
    """Refuse a path that could lead elsewhere, or be another path on another system.

    Raises:
        ArchiveRefused: with the rule that it breaks.
    """
    if path.startswith("/"):
        rule = "unc-path" if path.startswith("//") else "absolute-path"
        raise ArchiveRefused(rule, "the path begins with a slash", entry=path)
    for name in path.split("/"):
        _check_name(name, path, limits)
    _check_length(path, limits)


def characters_fault(text: str) -> Fault | None:
    """What is wrong with the characters of a name or of a link's target; None when nothing is."""
    for pattern, fault in _FORBIDDEN:
        if pattern.search(text):
            return fault
    if "\\" in text:
        rule = "unc-path" if text.startswith("\\\\") else "backslash"
        return Fault(rule, "a backslash is in the name")
    if ":" in text:
        return Fault("drive" if _DRIVE.match(text) else "colon", "a colon is in the name")
    return None


def _name_fault(name: str, limits: Limits) -> Fault | None:
    if not name:
        return Fault("empty-name", "a name in the path is empty")
    if name in (".", ".."):
        return Fault("dot" if name == "." else "dot-dot", f"a name in the path is {name}")
    if fault := characters_fault(name):
        return fault
    if name[-1] in ". ":
        return Fault("trailing-dot-or-space", "a name ends with a dot or a space")
    if _RESERVED.fullmatch(name):
        return Fault("reserved-name", "Windows keeps the name for a device")
    return _portability_fault(name) if limits.profile == "strict" else None


def _portability_fault(name: str) -> Fault | None:
    if _WILD.search(name):
        return Fault("reserved-character", 'one of < > | " ? * is in the name')
    if _SHORT.fullmatch(name):
        return Fault("short-name", "the name has the form of Windows' short names")
    if not unicodedata.is_normalized("NFC", name):
        return Fault("not-nfc", "the name is not in the composed form NFC")
    return None


def _check_name(name: str, path: str, limits: Limits) -> None:
    # What is longer than any name may be is not looked at more closely: its normal form takes time.
    is_long = len(name) > limits.name_bytes
    if not is_long and not _PLAIN.match(name) and (fault := _name_fault(name, limits)):
        raise ArchiveRefused(fault.rule, fault.detail, entry=path)
    if len(name) * 4 > limits.name_bytes and len(name.encode()) > limits.name_bytes:
        raise ArchiveRefused("name-too-long", f"a name has more than {limits.name_bytes} bytes", entry=path)


def _check_length(path: str, limits: Limits) -> None:
    if len(path) * 4 > limits.path_bytes and len(path.encode()) > limits.path_bytes:
        raise ArchiveRefused("path-too-long", f"the path has more than {limits.path_bytes} bytes", entry=path)
    if path.count("/") > limits.depth:
        raise ArchiveRefused("too-deep", f"it lies in more than {limits.depth} folders", entry=path)


def folded(text: str) -> str:
    """The text as the most forgiving file system compares it: paths that are equal here can be one file there."""
    if text.isascii():
        return text.lower()
    bare = _UNCOMPARED.sub("", text)
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", bare).casefold())


def _folded_compatibly(text: str) -> str:
    """`folded`, and characters that look alike or stand for others (ﬁ, ², ＡＢＣ) are one (NFKC)."""
    if text.isascii():
        return text.lower()
    return folded(unicodedata.normalize("NFKC", folded(unicodedata.normalize("NFKC", text))))


class Names:
    """The paths of one archive, taken one after another."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._folded = _folded_compatibly if limits.profile == "strict" else folded
        self._count = 0
        self._places: dict[str, str] = {}
        self._folders: dict[str, str] = {"": ""}
        self._listed: set[str] = set()
        self._links: set[str] = set()

    def take(self, path: str, kind: Kind) -> None:
        """Note the next entry; its path has single slashes and none at its end.

        Raises:
            ArchiveRefused: the path breaks a rule, or cannot be there beside an earlier one.
        """
        if path.startswith("/"):
            check_path(path, self._limits)
        above, _, name = path.rpartition("/")
        folded_above = self._folders.get(above)
        if folded_above is None:
            folded_above = self._enter(above, path)
        _check_name(name, path, self._limits)
        _check_length(path, self._limits)
        self._count_one(path)
        place = f"{folded_above}/{self._folded(name)}" if above else self._folded(name)
        earlier = self._places.get(place)
        if earlier is not None and (kind != "folder" or earlier != path or not self._is_implied(path)):
            raise self._conflict(path, earlier, wanted=kind)
        self._places[place] = path
        if kind == "folder":
            self._folders[path] = place
            self._listed.add(path)
        elif kind == "link":
            self._links.add(path)

    def _is_implied(self, path: str) -> bool:
        """Whether the path is a folder only because something lies in it."""
        return path in self._folders and path not in self._listed

    def _enter(self, folder: str, path: str) -> str:
        """Note the folders above an entry that are not known yet; the last one's place."""
        place = ""
        position = 0
        while position >= 0:
            end = folder.find("/", position)
            exact = folder if end < 0 else folder[:end]
            known = self._folders.get(exact)
            if known is None:
                name = exact[position:]
                _check_name(name, path, self._limits)
                _check_length(exact, self._limits)
                known = f"{place}/{self._folded(name)}" if place else self._folded(name)
                earlier = self._places.get(known)
                if earlier is not None:
                    raise self._conflict(path, earlier, wanted="folder", at=exact)
                self._count_one(path)
                self._places[known] = exact
                self._folders[exact] = known
            place = known
            position = end + 1 if end >= 0 else -1
        return place

    def _count_one(self, path: str) -> None:
        self._count += 1
        if self._count > self._limits.entries:
            raise ArchiveRefused("too-many-entries", f"there are more than {self._limits.entries}", entry=path)

    def _conflict(self, path: str, earlier: str, *, wanted: Kind, at: str | None = None) -> ArchiveRefused:
        """Why an entry, or the folder `at` above it, cannot be in a place that an earlier one has."""
        if earlier != (at or path):
            return ArchiveRefused("collision", f"it can be the same as {earlier!a} on another system", entry=path)
        if at is not None and earlier in self._links:
            return ArchiveRefused("write-through-link", f"{earlier!a} is a link", entry=path)
        if (earlier in self._folders) != (wanted == "folder"):
            return ArchiveRefused("file-against-folder", f"{earlier!a} is a folder and something else", entry=path)
        return ArchiveRefused("duplicate-name", "the path is there already", entry=path)
