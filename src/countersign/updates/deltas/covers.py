"""Where stretches of the new bytes lie in the old ones, nearly the same: the matches of HDiffPatch.

Only its search is used, by whoever makes a patch: the matches are read out of the diff that it writes, and kept in a
form of our own, which is smaller and is applied without foreign code.
"""

from typing import NamedTuple

import hdiffpatch

_MAGIC = b"HDIFF13&\0"
_HEAD = 11
_COUNT = 2


class Cover(NamedTuple):
    """`length` bytes at `new` are nearly those at `old`. Covers do not overlap in the new bytes and are in order."""

    old: int
    new: int
    length: int


class UnexpectedDiff(Exception):
    """The library wrote a diff in another form than is read here."""


def covers(old: bytes, new: bytes) -> list[Cover]:
    """The covers of the new bytes. Memory: about nine times the old bytes.

    Raises:
        UnexpectedDiff: the library changed its format.
    """
    if not old or not new:
        return []
    reader = _Reader(hdiffpatch.diff(old, new, None, validate=False))
    head = [reader.number() for _ in range(_HEAD)]
    found: list[Cover] = []
    old_end = new_end = 0
    for _ in range(head[_COUNT]):
        step, gap, length = reader.signed(), reader.number(), reader.number()
        cover = Cover(old_end + step, new_end + gap, length)
        old_end, new_end = cover.old + length, cover.new + length
        found.append(cover)
    if any(not _is_inside(cover, old, new) for cover in found):
        raise UnexpectedDiff("hdiffpatch matched outside of the files")
    return [cover for cover in found if cover.length]


def _is_inside(cover: Cover, old: bytes, new: bytes) -> bool:
    return 0 <= cover.old <= len(old) - cover.length and 0 <= cover.new <= len(new) - cover.length


class _Reader:
    """HDiffPatch's numbers: seven bits a byte, the highest first."""

    def __init__(self, diff: bytes) -> None:
        if not diff.startswith(_MAGIC):
            raise UnexpectedDiff(f"hdiffpatch wrote {diff[:16]!r}")
        self._diff = diff
        self._at = len(_MAGIC)

    def number(self) -> int:
        return self._rest(0, 0x80)

    def signed(self) -> int:
        is_negative = self._diff[self._at] & 0x80
        magnitude = self._rest(0, 0x40)
        return -magnitude if is_negative else magnitude

    def _rest(self, found: int, mark: int) -> int:
        byte = self._diff[self._at]
        self._at += 1
        found = byte & (mark - 1)
        while byte & mark:
            byte = self._diff[self._at]
            self._at += 1
            mark = 0x80
            found = found << 7 | byte & 0x7F
        return found
