"""Entries of an archive, before and after the rules for names were checked, and their file modes."""

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused

Kind: TypeAlias = Literal["file", "folder", "link"]


class ArchiveEntry(NamedTuple):
    """One entry: a relative path of NFC text with single slashes, its kind, its size in bytes (0 but for files),
    its mode (0o644 or 0o755), and where a link points, relative to the link's own folder."""

    path: str
    kind: Kind
    size: int
    mode: int
    target: str = ""


class ArchiveMember(NamedTuple):
    """An entry and its bytes, piece by piece; they have to be read before the next member is asked for."""

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
    """0o755 for what may be run by anyone and for folders, else 0o644.

    Raises:
        ArchiveRefused: `special-mode` or `no-permission`, in the profile `strict`.
    """
    if limits.profile == "strict":
        if mode & _SPECIAL_BITS:
            raise ArchiveRefused("special-mode", "it is setuid, setgid or sticky", entry=name)
        if not mode & _PERMISSION_BITS:
            raise ArchiveRefused("no-permission", "it gives no permission to anyone", entry=name)
    return 0o755 if is_folder or mode & _EXECUTE_BITS else 0o644
