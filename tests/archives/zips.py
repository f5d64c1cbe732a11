"""Zip archives written byte by byte, so that every field can have a false value (APPNOTE.TXT 6.3.10)."""

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

LOCAL, CENTRAL, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
END_64, LOCATOR_64, DESCRIPTOR = b"PK\x06\x06", b"PK\x06\x07", b"PK\x07\x08"
STORED, DEFLATED, BZIP2, LZMA = 0, 8, 12, 14
HAS_DESCRIPTOR, ENCRYPTED, UTF8 = 1 << 3, 1, 1 << 11
FF16, FF32, FF64 = 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
UNIX, DOS, MACOS = 3, 0, 19
FILE_MODE, FOLDER_MODE, LINK_MODE = 0o100644, 0o40755, 0o120777

Lies = Mapping[str, int]
"""False values of fields by their names in `HeaderFields`."""


@dataclass(frozen=True, slots=True)
class HeaderFields:
    """The numbers of a local header, and the additional ones of the central directory."""

    version: int = 20
    flags: int = 0
    method: int = STORED
    time: int = 0
    date: int = 0x21
    crc: int = 0
    packed: int = 0
    size: int = 0
    made_by: int = UNIX << 8 | 30
    disk: int = 0
    internal: int = 0
    external: int = FILE_MODE << 16
    offset: int = 0
    name_length: int = -1
    extra_length: int = -1
    comment_length: int = -1


@lru_cache(maxsize=1_024)
def deflate(data: bytes) -> bytes:
    """Return the bytes as a raw deflate stream, cached because most test archives contain the same few files."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def deflate_stored(data: bytes) -> bytes:
    """Return a raw deflate stream of one stored block of at most 65,535 bytes."""
    return b"\x01" + struct.pack("<HH", len(data), len(data) ^ FF16) + data


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """One entry: its two headers and its bytes. The false values in `local` and `central` replace the
    true values of the two headers.

    After the local header comes `packed`, or if it is None, `data` compressed by `method`. With `descriptor` the
    sizes come after the bytes and are 0 before them.
    """

    name: bytes = b"a.txt"
    data: bytes = b"hello\n"
    method: int = STORED
    mode: int = FILE_MODE
    flags: int = 0
    extra: bytes = b""
    packed: bytes | None = None
    comment: bytes = b""
    descriptor: bool = False
    local: Lies = field(default_factory=dict[str, int])
    central: Lies = field(default_factory=dict[str, int])
    local_name: bytes | None = None
    local_extra: bytes | None = None
    descriptor_bytes: bytes | None = None
    before: bytes = b""
    """Bytes before the local header that belong to no entry."""

    def payload(self) -> bytes:
        """Return the bytes after the local header."""
        if self.packed is not None:
            return self.packed
        return deflate(self.data) if self.method == DEFLATED else self.data

    def fields(self) -> HeaderFields:
        """Return the true values."""
        flags = self.flags | (HAS_DESCRIPTOR if self.descriptor else 0)
        return HeaderFields(
            flags=flags if self.name.isascii() else flags | UTF8,
            method=self.method,
            crc=zlib.crc32(self.data),
            packed=len(self.payload()),
            size=len(self.data),
            external=self.mode << 16 | (0x10 if self.mode & 0o170000 == 0o40000 else 0),
        )

    def written(self) -> bytes:
        """Local header, bytes and descriptor."""
        fields = replace(self.fields(), crc=0, packed=0, size=0) if self.descriptor else self.fields()
        fields = replace(fields, **self.local)
        name = self.name if self.local_name is None else self.local_name
        extra = self.extra if self.local_extra is None else self.local_extra
        return self.before + local_header(fields, name, extra) + self.payload() + self._descriptor()

    def _descriptor(self) -> bytes:
        if self.descriptor_bytes is not None:
            return self.descriptor_bytes
        true_fields = self.fields()
        return descriptor(true_fields.crc, true_fields.packed, true_fields.size) if self.descriptor else b""

    def listed(self, offset: int) -> bytes:
        """Return the entry of the central directory for a local header at the offset."""
        fields = replace(self.fields(), **{"offset": offset, **self.central})
        return central_header(fields, self.name, self.extra, self.comment)


def _length(declared_length: int, text: bytes) -> int:
    return len(text) if declared_length < 0 else declared_length


def local_header(fields: HeaderFields, name: bytes, extra: bytes = b"") -> bytes:
    """Return a local header (APPNOTE 4.3.7)."""
    numbers = (
        fields.version,
        fields.flags,
        fields.method,
        fields.time,
        fields.date,
        fields.crc,
        fields.packed,
        fields.size,
    )
    lengths = _length(fields.name_length, name), _length(fields.extra_length, extra)
    return LOCAL + struct.pack("<5H3I2H", *numbers, *lengths) + name + extra


def central_header(fields: HeaderFields, name: bytes, extra: bytes = b"", comment: bytes = b"") -> bytes:
    """Return an entry of the central directory (APPNOTE 4.3.12)."""
    numbers = (fields.made_by, fields.version, fields.flags, fields.method, fields.time, fields.date)
    sizes = (fields.crc, fields.packed, fields.size)
    lengths = (
        _length(fields.name_length, name),
        _length(fields.extra_length, extra),
        _length(fields.comment_length, comment),
    )
    trailing_fields = (fields.disk, fields.internal, fields.external, fields.offset)
    return CENTRAL + struct.pack("<6H3I5H2I", *numbers, *sizes, *lengths, *trailing_fields) + name + extra + comment


def descriptor(crc: int, packed_size: int, size: int, *, signed: bool = True, wide: bool = False) -> bytes:
    """Return a data descriptor (APPNOTE 4.3.9). `wide` selects the descriptor of Zip64."""
    return (DESCRIPTOR if signed else b"") + struct.pack("<IQQ" if wide else "<III", crc, packed_size, size)


def extra_field(kind: int, data: bytes, *, length: int | None = None) -> bytes:
    """Return an extra field. Its stated length can be wrong."""
    return struct.pack("<HH", kind, len(data) if length is None else length) + data


def zip64(*numbers: int) -> bytes:
    """Return the Zip64 extra field with those of size, packed size and offset that are given (APPNOTE 4.5.3)."""
    return extra_field(0x0001, struct.pack(f"<{len(numbers)}Q", *numbers))


def unicode_path(name: bytes, declared_name: bytes, *, version: int = 1, crc: int | None = None) -> bytes:
    """Return the extra field of Info-ZIP with another name for the entry whose header name is `name` (APPNOTE
    4.6.9)."""
    return extra_field(0x7075, struct.pack("<BI", version, zlib.crc32(name) if crc is None else crc) + declared_name)


@dataclass(frozen=True, slots=True)
class EndRecord:
    """The record at the end. A field that is None gets its true value."""

    disk: int = 0
    start_disk: int = 0
    count_on_disk: int | None = None
    total: int | None = None
    size: int | None = None
    offset: int | None = None
    comment: bytes = b""
    comment_length: int | None = None

    def written(self, count: int, size: int, offset: int) -> bytes:
        """Return the record (APPNOTE 4.3.16) of a directory with `count` entries and `size` bytes at `offset`."""
        fields = (
            self.disk,
            self.start_disk,
            (count if self.count_on_disk is None else self.count_on_disk) & FF16,
            (count if self.total is None else self.total) & FF16,
            size if self.size is None else self.size,
            offset if self.offset is None else self.offset,
            len(self.comment) if self.comment_length is None else self.comment_length,
        )
        return END + struct.pack("<4H2IH", *fields) + self.comment


ALL_FF = EndRecord(FF16, FF16, FF16, FF16, FF32, FF32)
WIDE = EndRecord(count_on_disk=FF16, total=FF16, size=FF32, offset=FF32)
"""The end of a Zip64 archive: its numbers are in the Zip64 record."""


@dataclass(frozen=True, slots=True)
class Zip64EndRecord:
    """The Zip64 record and its locator. A field that is None gets its true value."""

    count_on_disk: int | None = None
    total: int | None = None
    size: int | None = None
    offset: int | None = None
    at: int | None = None
    disks: int = 1
    disk: int = 0
    made_by: int = UNIX << 8 | 45
    sector: bytes = b""
    gap: bytes = b""
    length: int | None = None

    def written(self, count: int, size: int, offset: int, at: int) -> bytes:
        """Return the record and its locator (APPNOTE 4.3.14 and 4.3.15). The record begins at `at`."""
        fields = (
            44 + len(self.sector) if self.length is None else self.length,
            self.made_by,
            45,
            self.disk,
            self.disk,
            count if self.count_on_disk is None else self.count_on_disk,
            count if self.total is None else self.total,
            size if self.size is None else self.size,
            offset if self.offset is None else self.offset,
        )
        record = END_64 + struct.pack("<QHHIIQQQQ", *fields) + self.sector
        return record + self.gap + LOCATOR_64 + struct.pack("<IQI", self.disk, self._at(at), self.disks)

    def _at(self, true: int) -> int:
        return true if self.at is None else self.at


@dataclass(frozen=True, slots=True)
class ZipArchive:
    """A whole archive. The offsets in the headers count the prefix, and are too high by `shift`."""

    items: Sequence[ZipEntry] = ()
    prefix: bytes = b""
    between: bytes = b""
    """Bytes between the last entry and the central directory."""
    after_directory: bytes = b""
    suffix: bytes = b""
    end: EndRecord = EndRecord()
    end_64: Zip64EndRecord | None = None
    shift: int = 0
    listed: Sequence[tuple[ZipEntry, int]] | None = None
    """The entries of the central directory with their offsets, if they differ from one entry for each item."""

    def offsets(self) -> list[int]:
        """Return the positions of the local headers."""
        offset, item_offsets = self.shift + len(self.prefix), list[int]()
        for item in self.items:
            item_offsets.append(offset + len(item.before))
            offset += len(item.written())
        return item_offsets

    def directory(self) -> bytes:
        """Return the central directory alone."""
        pairs = zip(self.items, self.offsets(), strict=True) if self.listed is None else self.listed
        return b"".join(item.listed(offset) for item, offset in pairs)

    def written(self) -> bytes:
        """Return every byte."""
        entries = b"".join(item.written() for item in self.items)
        directory = self.directory()
        count = len(self.items) if self.listed is None else len(self.listed)
        offset = self.shift + len(self.prefix) + len(entries) + len(self.between)
        at = offset + len(directory) + len(self.after_directory)
        wide = b"" if self.end_64 is None else self.end_64.written(count, len(directory), offset, at)
        end = self.end.written(count, len(directory), offset)
        body = self.prefix + entries + self.between + directory + self.after_directory
        return body + wide + end + self.suffix


def archive(*items: ZipEntry) -> bytes:
    """Return an archive of the items without false values."""
    return ZipArchive(items).written()


def link(name: bytes, target: bytes) -> ZipEntry:
    """Return a symbolic link as Info-ZIP writes it: the target is the data."""
    return ZipEntry(name, target, mode=LINK_MODE)


def folder(name: bytes) -> ZipEntry:
    """Return a folder. Its name ends with a slash."""
    return ZipEntry(name, b"", mode=FOLDER_MODE)
