"""The end of a zip file: its end record, and the Zip64 ones in front of it (APPNOTE 4.3.14 to 4.3.16)."""

import struct
from typing import BinaryIO, NamedTuple

from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused

SIGNATURE = b"PK\x05\x06"
_END = struct.Struct("<4s4H2LH")
_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOOKING_LIKE_RECORDS = (b"PK\x01\x02", b"PK\x03\x04", SIGNATURE, b"PK\x06\x06", b"PK\x06\x07", b"PK\x07\x08")
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF
_LARGEST_DIRECTORY = 128 << 20


class End(NamedTuple):
    """What the end of a zip file says: how many entries, where their directory is and how long."""

    entries: int
    start: int
    size: int


def has_end(source: BinaryIO, size: int) -> bool:
    """Whether the file ends as a zip file does."""
    tail = _tail(source, size)
    return _place(tail) is not None


def find(source: BinaryIO, size: int, limits: Limits) -> End:
    """The end of a zip file of `size` bytes.

    Raises:
        ArchiveRefused: it is not at the end, not alone, or not true.
    """
    tail = _tail(source, size)
    place = _place(tail)
    if place is None:
        if SIGNATURE in tail:
            raise ArchiveRefused("trailing-data", "something follows the end record")
        raise ArchiveRefused("zip-end", "there is no end record")
    if any(mark in tail[place + 4 :] for mark in _LOOKING_LIKE_RECORDS):
        raise ArchiveRefused("zip-comment", "the comment looks like a record of a zip file")
    _, disk, directory_disk, here, entries, length, start, _ = _END.unpack_from(tail, place)
    if (disk, directory_disk, here) != (0, 0, entries):
        raise ArchiveRefused("split", "it is one of several files")
    end, place = _with_zip64(source, size - len(tail) + place, End(entries, start, length))
    _check_directory(end, place, limits)
    return end


def _check_directory(end: End, place: int, limits: Limits) -> None:
    """Refuse a directory that is too large, too small, or does not end at `place`."""
    if end.entries > limits.entries:
        raise ArchiveRefused("too-many-entries", f"there are {end.entries}, and {limits.entries} are allowed")
    if not 46 * end.entries <= end.size <= _LARGEST_DIRECTORY:
        raise ArchiveRefused("directory-size", f"the directory of {end.entries} entries has {end.size} bytes")
    if end.start + end.size != place:
        rule = "leading-data" if end.start + end.size < place else "zip-end"
        raise ArchiveRefused(rule, "the directory is not where the end record says, directly in front of it")


def _tail(source: BinaryIO, size: int) -> bytes:
    length = min(size, _END.size + _FULL16)
    source.seek(size - length)
    return source.read(length)


def _place(tail: bytes) -> int | None:
    """Where in the tail the end record begins whose comment ends with the file. Of several the first counts: the
    others would lie in its comment, which is refused."""
    at = tail.find(SIGNATURE)
    while at >= 0:
        stop = at + _END.size
        if stop + int.from_bytes(tail[stop - 2 : stop], "little") == len(tail):
            return at
        at = tail.find(SIGNATURE, at + 1)
    return None


def _with_zip64(source: BinaryIO, place: int, end: End) -> tuple[End, int]:
    """The end with the Zip64 values, where there are, and where the first of the end records begins."""
    first = place - _LOCATOR.size - _END64.size
    source.seek(max(0, first))
    before = source.read(place - source.tell())
    if first < 0 or before[_END64.size :][:4] != b"PK\x06\x07":
        if _FULL32 in (end.start, end.size):
            raise ArchiveRefused("zip64", "the Zip64 end record is missing")
        return end, place
    _, disk, at, disks = _LOCATOR.unpack_from(before, _END64.size)
    signature, length, _, _, own_disk, directory_disk, here, entries, size, start = _END64.unpack_from(before)
    if (signature, at, length) != (b"PK\x06\x06", first, _END64.size - 12):
        raise ArchiveRefused("zip64", "the Zip64 end record is not directly in front of its locator")
    if (disk, own_disk, directory_disk, here) != (0, 0, 0, entries) or disks > 1:
        raise ArchiveRefused("split", "it is one of several files")
    if end.entries not in (_FULL16, entries) or end.size not in (_FULL32, size) or end.start not in (_FULL32, start):
        raise ArchiveRefused("zip64", "the two end records say different things")
    return End(entries, start, size), first
