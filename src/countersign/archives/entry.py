"""The entries of an archive before and after their names are checked, and their file modes."""

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused

Kind: TypeAlias = Literal["file", "folder", "link"]


class ArchiveEntry(NamedTuple):
    """One checked entry.

    `path` is relative, with single slashes. `size` is in bytes, and 0 unless the entry is a file. `mode` is 0o644 or
    0o755. `target` is the path that a link points to, relative to the folder that contains the link.
    """

    path: str
    kind: Kind
    size: int
    mode: int
    target: str = ""


class ArchiveMember(NamedTuple):
    """An entry and the pieces of its content. Read them before you request the next member."""

    entry: ArchiveEntry
    pieces: Iterator[bytes]


NO_CONTENT: Iterator[bytes] = iter(())


class RawEntry(NamedTuple):
    """An entry as the archive contains it: `name` may end with one slash and begin with `./`."""

    name: str
    kind: Kind
    size: int
    mode: int
    target: str
    pieces: Iterator[bytes]


_SPECIAL_BITS = 0o7000
_PERMISSION_BITS = 0o777
_EXECUTE_BITS = 0o111


def checked_mode(mode: int, name: str, limits: Limits, *, is_folder: bool) -> int:
    """Return 0o755 for folders and for files that anyone may execute, otherwise 0o644.

    Raises:
        ArchiveRefused: in the profile `strict`, the mode has a special bit (`special-mode`) or no permission bit
            (`no-permission`).
    """
    if limits.profile == "strict":
        if mode & _SPECIAL_BITS:
            raise ArchiveRefused("special-mode", "its mode is setuid, setgid or sticky", entry=name)
        if not mode & _PERMISSION_BITS:
            raise ArchiveRefused("no-permission", "its mode has no permission bits", entry=name)
    return 0o755 if is_folder or mode & _EXECUTE_BITS else 0o644
