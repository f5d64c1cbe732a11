"""Reads a zip file byte by byte. Each byte belongs to exactly one record, and an independent parser must find the
same entries."""

import struct
import zlib
from collections import deque
from collections.abc import Iterator
from operator import attrgetter
from typing import BinaryIO

from countersign.archives import crosscheck, zip_directory
from countersign.archives.bounded_reader import PIECE_BYTES, FileRange, ForwardReader
from countersign.archives.entry import NO_CONTENT, RawEntry
from countersign.archives.limits import Budget, Limits
from countersign.archives.refusals import ArchiveRefused
from countersign.archives.zip_directory import DEFLATED, DESCRIBED, FULL32, STORED, DirectoryEntry

_LOCAL_HEADER = struct.Struct("<4s3H4L2H")
_DESCRIPTOR_SIGNATURE = b"PK\x07\x08"
_DESCRIPTOR_FORMS = {12: (b"", 4), 16: (_DESCRIPTOR_SIGNATURE, 4), 20: (b"", 8), 24: (_DESCRIPTOR_SIGNATURE, 8)}


def read_header(reader: ForwardReader, entry: DirectoryEntry, limits: Limits) -> tuple[DirectoryEntry, bool]:
    """Read the local header of an entry, which must agree with the central directory.

    Return the entry, and whether the local header has a Zip64 field. Some valid files set the data descriptor flag only
    in the local header; the returned entry then has the flag too.

    Raises:
        ArchiveRefused: the local header differs (`local-mismatch`), has no signature (`zip-record`), is incomplete
            (`truncated`), or has invalid extra fields.
    """
    header = reader.exactly(_LOCAL_HEADER.size, entry.name)
    signature, _, flags, method, _, crc, packed_size, size, name_length, extra_length = _LOCAL_HEADER.unpack(header)
    if signature != b"PK\x03\x04":
        raise ArchiveRefused("zip-record", "the central directory does not point to a local header", entry=entry.name)
    if reader.exactly(name_length, entry.name) != entry.raw:
        raise ArchiveRefused(
            "local-mismatch", "the name differs between local header and central directory", entry=entry.name
        )
    entry = entry._replace(flags=entry.flags | flags & DESCRIBED)
    if flags != entry.flags or method != entry.method:
        raise ArchiveRefused("local-mismatch", "its local header has other flags or methods", entry=entry.name)
    content: bytes | None = None
    if extra_length:
        extra = reader.exactly(extra_length, entry.name)
        content = zip_directory.zip64_field(extra, entry.raw, entry.name, limits)
    if content is not None or FULL32 in (size, packed_size):
        size, packed_size = zip_directory.apply_zip64(content, (size, packed_size), entry.name)
    if (crc, packed_size, size) != (entry.crc, entry.packed, entry.size):
        _check_deferred(entry, (crc, packed_size, size))
    return entry, content is not None


def _check_deferred(entry: DirectoryEntry, local_values: tuple[int, int, int]) -> None:
    """Refuse a size or checksum that differs from the directory. Accept zeros if a data descriptor follows."""
    for local_value, directory_value in zip(local_values, (entry.crc, entry.packed, entry.size), strict=True):
        if local_value != directory_value and (local_value or not entry.flags & DESCRIBED):
            raise ArchiveRefused("local-mismatch", "its local header has a wrong size or checksum", entry=entry.name)


def read_descriptor(reader: ForwardReader, entry: DirectoryEntry, room: int, *, is_wide: bool, limits: Limits) -> None:
    """Read the `room` bytes between the entry's content and the next record: its data descriptor, or nothing.

    Raises:
        ArchiveRefused: the bytes belong to no record (`gap`), or the descriptor is wrong (`data-descriptor`).
    """
    if not entry.flags & DESCRIBED:
        if room:
            raise ArchiveRefused("gap", f"the {room} bytes after it belong to no record", entry=entry.name)
        return
    signature, width = _descriptor_form(entry, room)
    if limits.profile == "strict" and is_wide != (width == 8):
        raise ArchiveRefused("data-descriptor", "its numbers do not have the announced width", entry=entry.name)
    if reader.exactly(room, entry.name) != signature + _expected_descriptor(entry, width):
        raise ArchiveRefused("data-descriptor", "it does not agree with the central directory", entry=entry.name)


def _descriptor_form(entry: DirectoryEntry, room: int) -> tuple[bytes, int]:
    """Return the signature of a data descriptor of `room` bytes, and the width of its numbers."""
    if room not in _DESCRIPTOR_FORMS:
        rule = "gap" if room > 24 else "data-descriptor"
        raise ArchiveRefused(rule, f"the data descriptor has {room} bytes", entry=entry.name)
    signature, width = _DESCRIPTOR_FORMS[room]
    if not signature and entry.method == STORED and entry.size:
        raise ArchiveRefused("data-descriptor", "the end of its stored bytes is ambiguous", entry=entry.name)
    return signature, width


def _expected_descriptor(entry: DirectoryEntry, width: int) -> bytes:
    """Return the bytes that must follow the descriptor's signature, or no bytes if the sizes do not fit into `width`
    bytes."""
    if max(entry.packed, entry.size) >> (8 * width):
        return b""
    crc, packed_size, size = entry.crc.to_bytes(4, "little"), entry.packed, entry.size
    return crc + packed_size.to_bytes(width, "little") + size.to_bytes(width, "little")


_RAW = -zlib.MAX_WBITS
_RECORD_SIGNATURES = (b"PK\x07\x08", b"PK\x03\x04", b"PK\x01\x02")


def pieces_of(reader: ForwardReader, entry: DirectoryEntry, budget: Budget) -> Iterator[bytes]:
    """Return the unpacked content of the entry at the reader's position. A small entry is read at once.

    Raises:
        ArchiveRefused: `size`, `checksum`, `compression` or `truncated`, or the content exceeds a limit of the budget.
            The call raises this error, or the iteration over the pieces does.
    """
    is_open = entry.method == STORED and bool(entry.flags & DESCRIBED)
    if entry.packed <= PIECE_BYTES and entry.size <= PIECE_BYTES:
        data = _small(reader, entry)
        if is_open:
            _check_no_signatures(data, entry)
        return iter((data,))
    content = _stored(reader, entry, is_open=is_open) if entry.method == STORED else _inflated(reader, entry)
    return _check_size_and_crc(content, entry, budget)


def _check_no_signatures(data: bytes, entry: DirectoryEntry) -> None:
    """Refuse stored bytes that look like a data descriptor, because some readers would end the content at these
    bytes."""
    if any(mark in data for mark in _RECORD_SIGNATURES):
        raise ArchiveRefused("data-descriptor", "its bytes contain the signature of a record", entry=entry.name)


def _small(reader: ForwardReader, entry: DirectoryEntry) -> bytes:
    data = reader.exactly(entry.packed, entry.name)
    if entry.method != STORED:
        engine = zlib.decompressobj(_RAW)
        try:
            data = engine.decompress(data, entry.size + 1)
        except zlib.error as error:
            raise _broken(entry) from error
        if len(data) <= entry.size and (not engine.eof or engine.unused_data):
            raise _broken(entry)
    if len(data) != entry.size:
        raise _other_size(entry)
    if zlib.crc32(data) != entry.crc:
        raise _other_bytes(entry)
    return data


def _stored(reader: ForwardReader, entry: DirectoryEntry, *, is_open: bool) -> Iterator[bytes]:
    bytes_left = entry.packed
    tail_before = b""
    while bytes_left:
        data = reader.exactly(min(bytes_left, PIECE_BYTES), entry.name)
        bytes_left -= len(data)
        if is_open:
            _check_no_signatures(tail_before + data, entry)
            tail_before = data[-3:]
        yield data


def _inflated(reader: ForwardReader, entry: DirectoryEntry) -> Iterator[bytes]:
    engine = zlib.decompressobj(_RAW)
    bytes_left = entry.packed
    while not engine.eof:
        packed_piece = engine.unconsumed_tail or reader.exactly(min(bytes_left, PIECE_BYTES), entry.name)
        bytes_left -= 0 if engine.unconsumed_tail else len(packed_piece)
        try:
            data = engine.decompress(packed_piece, PIECE_BYTES)
        except zlib.error as error:
            raise _broken(entry) from error
        if data:
            yield data
        elif not (packed_piece or engine.eof):
            raise _broken(entry)
    if engine.unused_data or bytes_left:
        raise _broken(entry)


def _check_size_and_crc(content: Iterator[bytes], entry: DirectoryEntry, budget: Budget) -> Iterator[bytes]:
    crc = size = 0
    for data in content:
        budget.tick()
        size += len(data)
        if size > entry.size:
            raise _other_size(entry)
        crc = zlib.crc32(data, crc)
        yield data
    if size != entry.size:
        raise _other_size(entry)
    if crc != entry.crc:
        raise _other_bytes(entry)


def _broken(entry: DirectoryEntry) -> ArchiveRefused:
    return ArchiveRefused("compression", "its compressed data is damaged, or has the wrong length", entry=entry.name)


def _other_size(entry: DirectoryEntry) -> ArchiveRefused:
    return ArchiveRefused("size", f"its content does not have the declared {entry.size} bytes", entry=entry.name)


def _other_bytes(entry: DirectoryEntry) -> ArchiveRefused:
    return ArchiveRefused("checksum", "CRC mismatch", entry=entry.name)


EXECUTABLES = (b"#!", b"MZ", b"\x7fELF")
"""The first bytes of executable files. A zip file may follow an executable."""
_SIGNING_BLOCK = b"APK Sig Block 42"


def entries(source: BinaryIO, size: int, limits: Limits, budget: Budget) -> Iterator[RawEntry]:
    """Yield the entries of a zip file of `size` bytes, in the order of their offsets.

    Raises:
        ArchiveRefused: the archive breaks a rule. This can happen at any entry, and after the last one.
    """
    end = zip_directory.find_end(source, size, limits)
    sorted_entries = zip_directory.directory_entries(source, end, limits)
    crosscheck.check_zip(source, sorted_entries)
    for entry in sorted_entries:
        budget.count(entry.size, entry.name)
    in_place = sorted(sorted_entries, key=attrgetter("offset"))
    first_offset = in_place[0].offset if in_place else end.start
    if first_offset:
        _check_front(source, first_offset, limits)
    reader = ForwardReader(FileRange(source, first_offset, end.start).more, first_offset)
    for index, placed_entry in enumerate(in_place):
        budget.entry()
        is_last = index + 1 == len(in_place)
        next_offset = end.start if is_last else in_place[index + 1].offset
        entry, is_wide = read_header(reader, placed_entry, limits)
        room = next_offset - reader.position - entry.packed
        if room < 0:
            raise ArchiveRefused("overlap", "it overlaps the next record", entry=entry.name)
        raw_entry = _raw_entry(reader, entry, limits, budget)
        yield raw_entry
        deque(raw_entry.pieces, maxlen=0)
        if is_last and room > 24 and limits.profile == "compatible":
            room -= _signing_block(source, end.start, room)
        read_descriptor(reader, entry, room, is_wide=is_wide, limits=limits)


def _raw_entry(reader: ForwardReader, entry: DirectoryEntry, limits: Limits, budget: Budget) -> RawEntry:
    if entry.kind == "link":
        if entry.size > limits.path_bytes:
            raise ArchiveRefused("path-too-long", "the target of the link is too long", entry=entry.name)
        raw = b"".join(pieces_of(reader, entry, budget))
        try:
            target = raw.decode()
        except UnicodeDecodeError as error:
            raise ArchiveRefused("not-utf8", "the target of the link is not valid UTF-8", entry=entry.name) from error
        return RawEntry(entry.name, "link", 0, entry.mode, target, NO_CONTENT)
    pieces = pieces_of(reader, entry, budget) if entry.packed or entry.method == DEFLATED else _empty_content(entry)
    if entry.kind == "folder":
        deque(pieces, maxlen=0)
        pieces = NO_CONTENT
    return RawEntry(entry.name, entry.kind, entry.size, entry.mode, "", pieces)


def _empty_content(entry: DirectoryEntry) -> Iterator[bytes]:
    if entry.crc:
        raise ArchiveRefused("checksum", "it is empty, but its CRC is not zero", entry=entry.name)
    return NO_CONTENT


def _check_front(source: BinaryIO, first_offset: int, limits: Limits) -> None:
    """Refuse bytes before the first entry. The profile `compatible` allows an executable there."""
    source.seek(0)
    if limits.profile == "strict" or not source.read(min(first_offset, 4)).startswith(EXECUTABLES):
        raise ArchiveRefused("leading-data", f"{first_offset} bytes precede the first entry")


def _signing_block(source: BinaryIO, stop: int, room: int) -> int:
    """Return the size of a well-formed APK signing block that ends at `stop` and fits into `room` bytes, or 0."""
    source.seek(stop - 24)
    footer = source.read(24)
    size = int.from_bytes(footer[:8], "little")
    if footer[8:] != _SIGNING_BLOCK or not 24 <= size <= room - 8:
        return 0
    source.seek(stop - size - 8)
    return size + 8 if source.read(8) == footer[:8] else 0
