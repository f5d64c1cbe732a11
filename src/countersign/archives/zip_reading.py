"""A zip file, walked byte by byte: every byte belongs to one record, and two parsers see the same."""

from collections import deque
from collections.abc import Iterator
from operator import attrgetter
from typing import BinaryIO

from countersign.archives import zip_data, zip_directory, zip_end, zip_local, zip_peer
from countersign.archives.found import NOTHING, Found
from countersign.archives.gauge import Gauge
from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused
from countersign.archives.stretch import Reader, Stretch
from countersign.archives.zip_directory import DEFLATED, Listed

EXECUTABLES = (b"#!", b"MZ", b"\x7fELF")
"""How files begin that run; some carry a zip file behind themselves."""
_SIGNING_BLOCK = b"APK Sig Block 42"


def entries(source: BinaryIO, size: int, limits: Limits, gauge: Gauge) -> Iterator[Found]:
    """The entries of a zip file of `size` bytes, in the order of their bytes.

    Raises:
        ArchiveRefused: at any entry, or after the last one.
    """
    end = zip_end.find(source, size, limits)
    listed = zip_directory.listed(source, end, limits)
    zip_peer.agree(source, listed)
    for entry in listed:
        gauge.count(entry.size, entry.name)
    in_place = sorted(listed, key=attrgetter("offset"))
    first = in_place[0].offset if in_place else end.start
    if first:
        _check_front(source, first, limits)
    reader = Reader(Stretch(source, first, end.start).more, first)
    for index, known in enumerate(in_place):
        gauge.entry()
        is_last = index + 1 == len(in_place)
        following = end.start if is_last else in_place[index + 1].offset
        entry, is_wide = zip_local.read_header(reader, known, limits)
        room = following - reader.position - entry.packed
        if room < 0:
            raise ArchiveRefused("overlap", "it shares bytes with what follows it", entry=entry.name)
        found = _found(reader, entry, limits, gauge)
        yield found
        deque(found.pieces, maxlen=0)
        if is_last and room > 24 and limits.profile == "compatible":
            room -= _signing_block(source, end.start, room)
        zip_local.read_descriptor(reader, entry, room, is_wide=is_wide, limits=limits)


def _found(reader: Reader, entry: Listed, limits: Limits, gauge: Gauge) -> Found:
    if entry.kind == "link":
        if entry.size > limits.path_bytes:
            raise ArchiveRefused("path-too-long", "where the link points to is too long", entry=entry.name)
        raw = b"".join(zip_data.pieces_of(reader, entry, gauge))
        try:
            target = raw.decode()
        except UnicodeDecodeError as error:
            raise ArchiveRefused("not-utf8", "where the link points to is no UTF-8", entry=entry.name) from error
        return Found(entry.name, "link", 0, entry.mode, target, NOTHING)
    pieces = zip_data.pieces_of(reader, entry, gauge) if entry.packed or entry.method == DEFLATED else _empty(entry)
    if entry.kind == "folder":
        deque(pieces, maxlen=0)
        pieces = NOTHING
    return Found(entry.name, entry.kind, entry.size, entry.mode, "", pieces)


def _empty(entry: Listed) -> Iterator[bytes]:
    if entry.crc:
        raise ArchiveRefused("checksum", "it is empty, and has a checksum", entry=entry.name)
    return NOTHING


def _check_front(source: BinaryIO, first: int, limits: Limits) -> None:
    """Refuse bytes in front of the first entry, but an executable's where that is allowed."""
    source.seek(0)
    if limits.profile == "strict" or not source.read(min(first, 4)).startswith(EXECUTABLES):
        raise ArchiveRefused("leading-data", f"{first} bytes stand in front of the first entry")


def _signing_block(source: BinaryIO, stop: int, room: int) -> int:
    """The size of a well-formed APK signing block that ends at `stop` and fits into `room` bytes; else 0."""
    source.seek(stop - 24)
    footer = source.read(24)
    size = int.from_bytes(footer[:8], "little")
    if footer[8:] != _SIGNING_BLOCK or not 24 <= size <= room - 8:
        return 0
    source.seek(stop - size - 8)
    return size + 8 if source.read(8) == footer[:8] else 0
