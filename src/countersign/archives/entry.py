"""What an archive holds, once every rule has been kept."""

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["file", "folder", "link"]


class Entry(NamedTuple):
    """One entry: a relative path of NFC text with single slashes, its kind, its size in bytes (0 but for files),
    its mode (0o644 or 0o755), and where a link points, relative to the link's own folder."""

    path: str
    kind: Kind
    size: int
    mode: int
    target: str = ""


class Member(NamedTuple):
    """An entry and its bytes, piece by piece; they have to be read before the next member is asked for."""

    entry: Entry
    pieces: Iterator[bytes]
