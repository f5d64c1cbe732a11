"""The central directory of a zip file, its end records and extra fields (APPNOTE 4.3.12 to 4.3.16, 4.5)."""

import stat
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from countersign.archives.entry import Kind, checked_mode
from countersign.archives.limits import MAX_ZIP_DIRECTORY_BYTES, Limits
from countersign.archives.refusals import ArchiveRefused

END_SIGNATURE = b"PK\x05\x06"
_END = struct.Struct("<4s4H2LH")
_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_RECORD_SIGNATURES = (b"PK\x01\x02", b"PK\x03\x04", END_SIGNATURE, b"PK\x06\x06", b"PK\x06\x07", b"PK\x07\x08")
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF


class EndRecord(NamedTuple):
    """The values of the end record: the number of entries, and the offset and size of the central directory."""

    entries: int
    start: int
    size: int


def has_end(source: BinaryIO, size: int) -> bool:
    """Whether the file ends with the end record of a zip file."""
    tail = _tail(source, size)
    return _end_position(tail) is not None


def find_end(source: BinaryIO, size: int, limits: Limits) -> EndRecord:
    """Find and check the end record of a zip file of `size` bytes.

    Raises:
        ArchiveRefused: the end record is missing, is not at the end of the file, is ambiguous, or has wrong values.
    """
    tail = _tail(source, size)
    record_position = _end_position(tail)
    if record_position is None:
        if END_SIGNATURE in tail:
            raise ArchiveRefused("trailing-data", "the file has data after the end record")
        raise ArchiveRefused("zip-end", "the file has no end record")
    if any(mark in tail[record_position + 4 :] for mark in _RECORD_SIGNATURES):
        raise ArchiveRefused("zip-comment", "the comment looks like a record of a zip file")
    _, disk, directory_disk, disk_entries, entries, length, start, _ = _END.unpack_from(tail, record_position)
    if (disk, directory_disk, disk_entries) != (0, 0, entries):
        raise ArchiveRefused("split", "the archive is split into several files")
    end, record_position = _with_zip64(source, size - len(tail) + record_position, EndRecord(entries, start, length))
    _check_directory(end, record_position, limits)
    return end


def _check_directory(end: EndRecord, record_position: int, limits: Limits) -> None:
    """Refuse a central directory that is too large, too small, or does not end at the offset `record_position`."""
    if end.entries > limits.entries:
        raise ArchiveRefused("too-many-entries", f"it has {end.entries} entries, and {limits.entries} are allowed")
    if not 46 * end.entries <= end.size <= MAX_ZIP_DIRECTORY_BYTES:
        raise ArchiveRefused("directory-size", f"the directory of {end.entries} entries has {end.size} bytes")
    if end.start + end.size != record_position:
        rule = "leading-data" if end.start + end.size < record_position else "zip-end"
        raise ArchiveRefused(rule, "the directory does not end directly before the end record")


def _tail(source: BinaryIO, size: int) -> bytes:
    length = min(size, _END.size + _FULL16)
    source.seek(size - length)
    return source.read(length)


def _end_position(tail: bytes) -> int | None:
    """Return the offset in `tail` of the first end record with a comment that ends at the end of the file.

    If several records match, the later ones are inside the comment of the first, and `find_end` refuses that comment.
    """
    position = tail.find(END_SIGNATURE)
    while position >= 0:
        stop = position + _END.size
        if stop + int.from_bytes(tail[stop - 2 : stop], "little") == len(tail):
            return position
        position = tail.find(END_SIGNATURE, position + 1)
    return None


def _with_zip64(source: BinaryIO, record_position: int, end: EndRecord) -> tuple[EndRecord, int]:
    """Return the end record with its Zip64 values, if the file has them, and the offset of the first end record.

    `record_position` is the offset of the end record `end`.
    """
    zip64_position = record_position - _LOCATOR.size - _END64.size
    source.seek(max(0, zip64_position))
    record_bytes = source.read(record_position - source.tell())
    if zip64_position < 0 or record_bytes[_END64.size :][:4] != b"PK\x06\x07":
        if _FULL32 in (end.start, end.size):
            raise ArchiveRefused("zip64", "the Zip64 end record is missing")
        return end, record_position
    _, disk, zip64_offset, disks = _LOCATOR.unpack_from(record_bytes, _END64.size)
    signature, length, _, _, own_disk, directory_disk, disk_entries, entries, size, start = _END64.unpack_from(
        record_bytes
    )
    if (signature, zip64_offset, length) != (b"PK\x06\x06", zip64_position, _END64.size - 12):
        raise ArchiveRefused("zip64", "the Zip64 end record is not directly before its locator")
    if (disk, own_disk, directory_disk, disk_entries) != (0, 0, 0, entries) or disks > 1:
        raise ArchiveRefused("split", "the archive is split into several files")
    if end.entries not in (_FULL16, entries) or end.size not in (_FULL32, size) or end.start not in (_FULL32, start):
        raise ArchiveRefused("zip64", "the two end records have different values")
    return EndRecord(entries, start, size), zip64_position


_ZIP64_FIELD, _UNICODE_PATH_FIELD = 0x0001, 0x7075
_ENCRYPTION_FIELDS = (0x0014, 0x0015, 0x0016, 0x0017, 0x0018, 0x0019, 0x9901)
# These fields override an entry's kind, link target (ASi Unix, 0x756E) or attributes (experimental, 0x6C78).
_OVERRIDING_FIELDS = (0x756E, 0x6C78)
# Nearly every entry has these fields. They contain times and owners.
_IGNORED_FIELDS = (0x5455, 0x7875)
_UNSIGNED = struct.Struct("<2H")
FULL32 = 0xFFFFFFFF


def zip64_field(extra: bytes, raw: bytes, name: str, limits: Limits) -> bytes | None:
    """Return the content of the Zip64 field, or None if `extra` has none. `raw` is the entry's name in bytes.

    Raises:
        ArchiveRefused: the extra fields are malformed or override the kind (`extra-field`), change the name
            (`unicode-path`), mark the entry as encrypted (`encrypted`), or contain two Zip64 fields (`zip64`).
    """
    field_content: bytes | None = None
    position = 0
    while position < len(extra):
        if len(extra) - position < _UNSIGNED.size:
            if limits.profile == "compatible" and not extra[position:].strip(b"\0"):
                break
            raise ArchiveRefused("extra-field", "the last extra field is incomplete", entry=name)
        kind, length = _UNSIGNED.unpack_from(extra, position)
        content = extra[position + 4 : position + 4 + length]
        position += 4 + length
        if position > len(extra):
            raise ArchiveRefused("extra-field", "the last extra field is incomplete", entry=name)
        if kind == _ZIP64_FIELD:
            if field_content is not None:
                raise ArchiveRefused("zip64", "there are two Zip64 fields", entry=name)
            field_content = content
        elif kind not in _IGNORED_FIELDS:
            _check_field(kind, content, raw, name)
    return field_content


def _check_field(kind: int, content: bytes, raw: bytes, name: str) -> None:
    if kind == _UNICODE_PATH_FIELD:
        says_this = content[:1] == b"\x01" and content[1:5] == zlib.crc32(raw).to_bytes(4, "little")
        if not says_this or content[5:] != raw:
            raise ArchiveRefused("unicode-path", "an extra field has a different name", entry=name)
    if kind in _ENCRYPTION_FIELDS:
        raise ArchiveRefused("encrypted", "an extra field says that the entry is encrypted", entry=name)
    if kind in _OVERRIDING_FIELDS:
        raise ArchiveRefused("extra-field", f"the extra field {kind:#06x} overrides the kind of the entry", entry=name)


def apply_zip64(content: bytes | None, values: tuple[int, ...], name: str) -> tuple[int, ...]:
    """Return `values` with each placeholder 0xFFFFFFFF replaced by the next Zip64 value (APPNOTE 4.5.3).

    Raises:
        ArchiveRefused: `zip64`: the Zip64 field is missing although a value is a placeholder, or the number of its
            values differs from the number of placeholders.
    """
    overflowed_indexes = [index for index, value in enumerate(values) if value == FULL32]
    if content is None:
        if overflowed_indexes:
            raise ArchiveRefused("zip64", "a size or offset needs the Zip64 field, which is missing", entry=name)
        return values
    if len(content) != 8 * len(overflowed_indexes) or not overflowed_indexes:
        raise ArchiveRefused("zip64", "the Zip64 field has a wrong number of values", entry=name)
    long_values = struct.unpack(f"<{len(overflowed_indexes)}Q", content)
    value_by_index = dict(zip(overflowed_indexes, long_values, strict=True))
    return tuple(value_by_index.get(index, value) for index, value in enumerate(values))


STORED, DEFLATED = 0, 8
ENCRYPTED, DESCRIBED, UTF8 = 0x2041, 0x0008, 0x0800
_ALLOWED = 0x0006 | DESCRIBED | UTF8
_HEADER = struct.Struct("<4s2B3H4L5H2L")
_VMS, _UNIX, _MACOS = 2, 3, 19
_KINDS: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
# The highest version that stored and deflated entries need (4.6). The upper byte of the field can name a system.
_MAX_VERSION = 46
_DOS_FOLDER, _DOS_LABEL = 0x10, 0x08


class DirectoryEntry(NamedTuple):
    """One entry of the central directory.

    `raw` is the name in bytes, `packed` and `size` are the compressed and uncompressed sizes, and `offset` is the
    offset of the local header.
    """

    name: str
    raw: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int
    kind: Kind
    mode: int


def directory_entries(source: BinaryIO, end: EndRecord, limits: Limits) -> list[DirectoryEntry]:
    """Return every entry in the order of the central directory.

    Raises:
        ArchiveRefused: the directory does not contain exactly `end.entries` entries, or an entry breaks a rule.
    """
    source.seek(end.start)
    return list(_entries(source.read(end.size), end, limits))


def _entries(table: bytes, end: EndRecord, limits: Limits) -> Iterator[DirectoryEntry]:
    position = 0
    for _ in range(end.entries):
        if len(table) - position < _HEADER.size:
            raise ArchiveRefused("entry-count", f"there are fewer entries than {end.entries}")
        header = _HEADER.unpack_from(table, position)
        stop = position + _HEADER.size + header[10] + header[11] + header[12]
        if header[0] != b"PK\x01\x02":
            raise ArchiveRefused("zip-record", "an entry of the directory has no signature")
        if stop > len(table):
            raise ArchiveRefused("zip-end", "an entry extends beyond the end of the directory")
        yield _entry(header, table[position + _HEADER.size : stop - header[12]], limits)
        position = stop
    if position != len(table):
        has_more = table.startswith(b"PK\x01\x02", position)
        raise ArchiveRefused("entry-count" if has_more else "gap", "the directory has data after its last entry")


def _entry(header: tuple[int, ...], texts: bytes, limits: Limits) -> DirectoryEntry:
    (
        _,
        _,
        system,
        needed_version,
        flags,
        method,
        _,
        crc,
        packed_size,
        size,
        length,
        _,
        _,
        disk,
        _,
        attributes,
        offset,
    ) = header
    raw, extra = texts[:length], texts[length:]
    name = text_of(raw, flags, is_lenient=limits.profile == "compatible" and system in (_UNIX, _MACOS))
    _check_form(name, flags, method, disk)
    if needed_version >> 8 == _VMS or needed_version & 0xFF > _MAX_VERSION:
        raise ArchiveRefused("parsers-disagree", f"some readers do not support version {needed_version}", entry=name)
    if extra:
        content = zip64_field(extra, raw, name, limits)
        size, packed_size, offset = apply_zip64(content, (size, packed_size, offset), name)
    elif FULL32 in (size, packed_size, offset):
        apply_zip64(None, (size, packed_size, offset), name)
    if method == STORED and size != packed_size:
        raise ArchiveRefused("size", "the entry is not compressed, but its two sizes differ", entry=name)
    kind, mode = _kind(name, system, attributes, limits)
    if kind == "folder" and size:
        raise ArchiveRefused("payload", "a folder has content", entry=name)
    return DirectoryEntry(name, raw, flags, method, crc, packed_size, size, offset, kind, mode)


def _check_form(name: str, flags: int, method: int, disk: int) -> None:
    if flags & ENCRYPTED:
        raise ArchiveRefused("encrypted", "the entry is encrypted", entry=name)
    if flags & ~_ALLOWED:
        raise ArchiveRefused("zip-flags", f"the flags {flags:#06x} are not known", entry=name)
    if method not in (STORED, DEFLATED):
        raise ArchiveRefused("compression-method", f"the compression method is {method}", entry=name)
    if disk:
        raise ArchiveRefused("split", "the entry is in another file", entry=name)


def text_of(raw: bytes, flags: int, *, is_lenient: bool) -> str:
    """Decode a name: as UTF-8 if the UTF-8 flag is set, otherwise as ASCII, which all readers decode the same way.

    With `is_lenient`, UTF-8 is also accepted without the flag. Pass False for entries from DOS, because readers decode
    their names with other encodings.

    Raises:
        ArchiveRefused: the name has the wrong encoding (`not-utf8`), contains NUL, at which some readers cut it off
            (`control-character`), or is empty (`empty-name`).
    """
    escaped_text = raw.decode("ascii", "backslashreplace")
    if not raw:
        raise ArchiveRefused("empty-name", "an entry has no name", entry="")
    if 0 in raw:
        raise ArchiveRefused("control-character", "the name contains NUL", entry=escaped_text)
    if raw.isascii():
        return escaped_text
    if not flags & UTF8 and not is_lenient:
        raise ArchiveRefused("not-utf8", "the name is not ASCII, and the UTF-8 flag is not set", entry=escaped_text)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ArchiveRefused("not-utf8", "the name is not valid UTF-8", entry=escaped_text) from error


def _kind(name: str, system: int, attributes: int, limits: Limits) -> tuple[Kind, int]:
    """Return the kind and mode of the entry. Its name and its attributes must agree on the kind."""
    mode = attributes >> 16
    kind = _stated_kind(name, stat.S_IFMT(mode))
    if kind == "link" and system not in (_UNIX, _MACOS):
        raise ArchiveRefused("kind-mismatch", "the entry is a link, but was made on a system without links", entry=name)
    if attributes & (_DOS_LABEL if kind == "folder" else _DOS_LABEL | _DOS_FOLDER):
        raise ArchiveRefused("kind-mismatch", "the name and the attributes indicate different kinds", entry=name)
    return kind, _mode(kind, mode, name, limits)


def _stated_kind(name: str, mode_bits: int) -> Kind:
    """Return the kind of the entry. If the mode states a kind, the name must agree with it."""
    is_folder = name.endswith("/")
    if not mode_bits:
        return "folder" if is_folder else "file"
    if mode_bits not in _KINDS:
        raise ArchiveRefused("special-file", "the entry is a device, pipe, socket or of unknown kind", entry=name)
    if is_folder != (mode_bits == stat.S_IFDIR):
        raise ArchiveRefused("kind-mismatch", "the name and the mode indicate different kinds", entry=name)
    return _KINDS[mode_bits]


def _mode(kind: Kind, mode: int, name: str, limits: Limits) -> int:
    """Return the mode to extract the entry with. An entry without a mode gets the default for its kind."""
    return 0o755 if kind == "link" else checked_mode(mode or 0o644, name, limits, is_folder=kind == "folder")
