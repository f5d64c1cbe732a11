"""The bytes of a zip entry: inflated piece by piece, counted and compared with its checksum."""

import zlib
from collections.abc import Iterator

from countersign.archives.gauge import Gauge
from countersign.archives.refusals import ArchiveRefused
from countersign.archives.stretch import PIECE_BYTES, Reader
from countersign.archives.zip_directory import DESCRIBED, STORED, Listed

_RAW = -zlib.MAX_WBITS
_MARKS = (b"PK\x07\x08", b"PK\x03\x04", b"PK\x01\x02")


def pieces_of(reader: Reader, entry: Listed, gauge: Gauge) -> Iterator[bytes]:
    """The unpacked bytes of the entry that the reader stands before; small ones are read at once.

    Raises:
        ArchiveRefused: now or at any piece: `size`, `checksum`, `compression`, `truncated`, or as the gauge does.
    """
    is_open = entry.method == STORED and bool(entry.flags & DESCRIBED)
    if entry.packed <= PIECE_BYTES and entry.size <= PIECE_BYTES:
        data = _small(reader, entry)
        if is_open:
            _check_marks(data, entry)
        return iter((data,))
    plain = _stored(reader, entry, is_open=is_open) if entry.method == STORED else _inflated(reader, entry)
    return _compared(plain, entry, gauge)


def _check_marks(data: bytes, entry: Listed) -> None:
    """Refuse stored bytes in which a reader that looks for the data descriptor behind them could see their end."""
    if any(mark in data for mark in _MARKS):
        raise ArchiveRefused("data-descriptor", "its bytes look like ending earlier", entry=entry.name)


def _small(reader: Reader, entry: Listed) -> bytes:
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


def _stored(reader: Reader, entry: Listed, *, is_open: bool) -> Iterator[bytes]:
    left = entry.packed
    before = b""
    while left:
        data = reader.exactly(min(left, PIECE_BYTES), entry.name)
        left -= len(data)
        if is_open:
            _check_marks(before + data, entry)
            before = data[-3:]
        yield data


def _inflated(reader: Reader, entry: Listed) -> Iterator[bytes]:
    engine = zlib.decompressobj(_RAW)
    left = entry.packed
    while not engine.eof:
        held = engine.unconsumed_tail or reader.exactly(min(left, PIECE_BYTES), entry.name)
        left -= 0 if engine.unconsumed_tail else len(held)
        try:
            data = engine.decompress(held, PIECE_BYTES)
        except zlib.error as error:
            raise _broken(entry) from error
        if data:
            yield data
        elif not (held or engine.eof):
            raise _broken(entry)
    if engine.unused_data or left:
        raise _broken(entry)


def _compared(plain: Iterator[bytes], entry: Listed, gauge: Gauge) -> Iterator[bytes]:
    crc = size = 0
    for data in plain:
        gauge.tick()
        size += len(data)
        if size > entry.size:
            raise _other_size(entry)
        crc = zlib.crc32(data, crc)
        yield data
    if size != entry.size:
        raise _other_size(entry)
    if crc != entry.crc:
        raise _other_bytes(entry)


def _broken(entry: Listed) -> ArchiveRefused:
    return ArchiveRefused("compression", "its compressed bytes are broken, or end elsewhere", entry=entry.name)


def _other_size(entry: Listed) -> ArchiveRefused:
    return ArchiveRefused("size", f"it does not have the {entry.size} bytes that it declares", entry=entry.name)


def _other_bytes(entry: Listed) -> ArchiveRefused:
    return ArchiveRefused("checksum", "its bytes do not have their checksum", entry=entry.name)
