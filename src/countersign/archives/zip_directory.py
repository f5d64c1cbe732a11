"""The central directory of a zip file, its end records and extra fields (APPNOTE 4.3.12 to 4.3.16, 4.5)."""

import stat
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from countersign.archives.entry import Kind, checked_mode
from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused

END_SIGNATURE = b"PK\x05\x06"
_END = struct.Struct("<4s4H2LH")
_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_RECORD_SIGNATURES = (b"PK\x01\x02", b"PK\x03\x04", END_SIGNATURE, b"PK\x06\x06", b"PK\x06\x07", b"PK\x07\x08")
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF
_MAX_DIRECTORY_BYTES = 128 << 20


class EndRecord(NamedTuple):
    """What the end of a zip file says: how many entries, where their directory is and how long."""

    entries: int
    start: int
    size: int


def has_end(source: BinaryIO, size: int) -> bool:
    """Whether the file ends as a zip file does."""
    tail = _tail(source, size)
    return _end_position(tail) is not None


def find_end(source: BinaryIO, size: int, limits: Limits) -> EndRecord:
    """The end of a zip file of `size` bytes.

    Raises:
        ArchiveRefused: it is not at the end, not alone, or not true.
    """
    tail = _tail(source, size)
    place = _end_position(tail)
    if place is None:
        if END_SIGNATURE in tail:
            raise ArchiveRefused("trailing-data", "something follows the end record")
        raise ArchiveRefused("zip-end", "there is no end record")
    if any(mark in tail[place + 4 :] for mark in _RECORD_SIGNATURES):
        raise ArchiveRefused("zip-comment", "the comment looks like a record of a zip file")
    _, disk, directory_disk, here, entries, length, start, _ = _END.unpack_from(tail, place)
    if (disk, directory_disk, here) != (0, 0, entries):
        raise ArchiveRefused("split", "it is one of several files")
    end, place = _with_zip64(source, size - len(tail) + place, EndRecord(entries, start, length))
    _check_directory(end, place, limits)
    return end


def _check_directory(end: EndRecord, place: int, limits: Limits) -> None:
    """Refuse a directory that is too large, too small, or does not end at `place`."""
    if end.entries > limits.entries:
        raise ArchiveRefused("too-many-entries", f"there are {end.entries}, and {limits.entries} are allowed")
    if not 46 * end.entries <= end.size <= _MAX_DIRECTORY_BYTES:
        raise ArchiveRefused("directory-size", f"the directory of {end.entries} entries has {end.size} bytes")
    if end.start + end.size != place:
        rule = "leading-data" if end.start + end.size < place else "zip-end"
        raise ArchiveRefused(rule, "the directory is not where the end record says, directly in front of it")


def _tail(source: BinaryIO, size: int) -> bytes:
    length = min(size, _END.size + _FULL16)
    source.seek(size - length)
    return source.read(length)


def _end_position(tail: bytes) -> int | None:
    """Where in the tail the end record begins whose comment ends with the file. Of several the first counts: the
    others would lie in its comment, which is refused."""
    at = tail.find(END_SIGNATURE)
    while at >= 0:
        stop = at + _END.size
        if stop + int.from_bytes(tail[stop - 2 : stop], "little") == len(tail):
            return at
        at = tail.find(END_SIGNATURE, at + 1)
    return None


def _with_zip64(source: BinaryIO, place: int, end: EndRecord) -> tuple[EndRecord, int]:
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
    return EndRecord(entries, start, size), first


_ZIP64_FIELD, _UNICODE_PATH_FIELD = 0x0001, 0x7075
_ENCRYPTION_FIELDS = (0x0014, 0x0015, 0x0016, 0x0017, 0x0018, 0x0019, 0x9901)
# ASi Unix: a kind and a link's target of its own. Experimental: attributes of its own.
_OVERRIDING_FIELDS = (0x756E, 0x6C78)
# Times and owners, which nearly every entry has.
_IGNORED_FIELDS = (0x5455, 0x7875)
_UNSIGNED = struct.Struct("<2H")
FULL32 = 0xFFFFFFFF


def zip64_field(extra: bytes, raw: bytes, name: str, limits: Limits) -> bytes | None:
    """The content of the Zip64 field, or None without one; `raw` is the entry's name as it is written.

    Raises:
        ArchiveRefused: `extra-field`, `unicode-path`, `encrypted` or `zip64` (twice).
    """
    found: bytes | None = None
    at = 0
    while at < len(extra):
        if len(extra) - at < _UNSIGNED.size:
            if limits.profile == "compatible" and not extra[at:].strip(b"\0"):
                break
            raise ArchiveRefused("extra-field", "the extra fields end in the middle of one", entry=name)
        kind, length = _UNSIGNED.unpack_from(extra, at)
        content = extra[at + 4 : at + 4 + length]
        at += 4 + length
        if at > len(extra):
            raise ArchiveRefused("extra-field", "the extra fields end in the middle of one", entry=name)
        if kind == _ZIP64_FIELD:
            if found is not None:
                raise ArchiveRefused("zip64", "there are two Zip64 fields", entry=name)
            found = content
        elif kind not in _IGNORED_FIELDS:
            _check_field(kind, content, raw, name)
    return found


def _check_field(kind: int, content: bytes, raw: bytes, name: str) -> None:
    if kind == _UNICODE_PATH_FIELD:
        says_this = content[:1] == b"\x01" and content[1:5] == zlib.crc32(raw).to_bytes(4, "little")
        if not says_this or content[5:] != raw:
            raise ArchiveRefused("unicode-path", "an extra field says another name", entry=name)
    if kind in _ENCRYPTION_FIELDS:
        raise ArchiveRefused("encrypted", "an extra field says that the entry is encrypted", entry=name)
    if kind in _OVERRIDING_FIELDS:
        raise ArchiveRefused("extra-field", f"the extra field {kind:#06x} says a kind of its own", entry=name)


def apply_zip64(content: bytes | None, values: tuple[int, ...], name: str) -> tuple[int, ...]:
    """The values with those that are full replaced from the Zip64 field, in their order (APPNOTE 4.5.3).

    Raises:
        ArchiveRefused: `zip64`: the field is missing, or holds fewer or more than are full.
    """
    full = [index for index, value in enumerate(values) if value == FULL32]
    if content is None:
        if full:
            raise ArchiveRefused("zip64", "a size or place is full, and there is no Zip64 field", entry=name)
        return values
    if len(content) != 8 * len(full) or not full:
        raise ArchiveRefused("zip64", "the Zip64 field holds other numbers than are full", entry=name)
    long = struct.unpack(f"<{len(full)}Q", content)
    replaced = dict(zip(full, long, strict=True))
    return tuple(replaced.get(index, value) for index, value in enumerate(values))


STORED, DEFLATED = 0, 8
ENCRYPTED, DESCRIBED, UTF8 = 0x2041, 0x0008, 0x0800
_ALLOWED = 0x0006 | DESCRIBED | UTF8
_HEADER = struct.Struct("<4s2B3H4L5H2L")
_VMS, _UNIX, _MACOS = 2, 3, 19
_KINDS: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
# What stored and deflated entries can need, and old readers know; the upper byte can name a system.
_MAX_VERSION = 46
_DOS_FOLDER, _DOS_LABEL = 0x10, 0x08


class DirectoryEntry(NamedTuple):
    """One entry of the table: its name as text and as it is written, flags, method and CRC-32, its packed and
    unpacked bytes, where its own header is, what it is, and its mode."""

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
    """Every entry in the order of the table.

    Raises:
        ArchiveRefused: the table is not exactly those entries, or one of them breaks a rule.
    """
    source.seek(end.start)
    return list(_entries(source.read(end.size), end, limits))


def _entries(table: bytes, end: EndRecord, limits: Limits) -> Iterator[DirectoryEntry]:
    at = 0
    for _ in range(end.entries):
        if len(table) - at < _HEADER.size:
            raise ArchiveRefused("entry-count", f"there are fewer entries than {end.entries}")
        header = _HEADER.unpack_from(table, at)
        stop = at + _HEADER.size + header[10] + header[11] + header[12]
        if header[0] != b"PK\x01\x02":
            raise ArchiveRefused("zip-record", "an entry of the directory has no signature")
        if stop > len(table):
            raise ArchiveRefused("zip-end", "an entry of the directory goes beyond its end")
        yield _entry(header, table[at + _HEADER.size : stop - header[12]], limits)
        at = stop
    if at != len(table):
        more = table.startswith(b"PK\x01\x02", at)
        raise ArchiveRefused("entry-count" if more else "gap", "something follows the last entry of the directory")


def _entry(header: tuple[int, ...], texts: bytes, limits: Limits) -> DirectoryEntry:
    _, _, system, needed, flags, method, _, crc, packed, size, length, _, _, disk, _, attributes, offset = header
    raw, extra = texts[:length], texts[length:]
    name = text_of(raw, flags, is_lenient=limits.profile == "compatible" and system in (_UNIX, _MACOS))
    _check_form(name, flags, method, disk)
    if needed >> 8 == _VMS or needed & 0xFF > _MAX_VERSION:
        raise ArchiveRefused("parsers-disagree", f"some readers do not take the version {needed}", entry=name)
    if extra:
        content = zip64_field(extra, raw, name, limits)
        size, packed, offset = apply_zip64(content, (size, packed, offset), name)
    elif FULL32 in (size, packed, offset):
        apply_zip64(None, (size, packed, offset), name)
    if method == STORED and size != packed:
        raise ArchiveRefused("size", "it is stored, and its two sizes differ", entry=name)
    kind, mode = _kind(name, system, attributes, limits)
    if kind == "folder" and size:
        raise ArchiveRefused("payload", "a folder has bytes", entry=name)
    return DirectoryEntry(name, raw, flags, method, crc, packed, size, offset, kind, mode)


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
    """The name as text: UTF-8 where the flag says so, else ASCII alone, as every reader reads it the same; lenient,
    UTF-8 without the flag too. Entries from DOS have other encodings, and their readers take them so.

    Raises:
        ArchiveRefused: `not-utf8`, `control-character` (NUL, at which some readers end) or `empty-name`.
    """
    shown = raw.decode("ascii", "backslashreplace")
    if not raw:
        raise ArchiveRefused("empty-name", "an entry has no name", entry="")
    if 0 in raw:
        raise ArchiveRefused("control-character", "NUL is in the name", entry=shown)
    if raw.isascii():
        return shown
    if not flags & UTF8 and not is_lenient:
        raise ArchiveRefused("not-utf8", "the name is not ASCII and does not say that it is UTF-8", entry=shown)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ArchiveRefused("not-utf8", "the name is no UTF-8", entry=shown) from error


def _kind(name: str, system: int, attributes: int, limits: Limits) -> tuple[Kind, int]:
    """What the entry is, by its name and attributes, which have to agree; and its mode."""
    mode = attributes >> 16
    kind = _stated_kind(name, stat.S_IFMT(mode))
    if kind == "link" and system not in (_UNIX, _MACOS):
        raise ArchiveRefused("kind-mismatch", "it is a link from a system without them", entry=name)
    if attributes & (_DOS_LABEL if kind == "folder" else _DOS_LABEL | _DOS_FOLDER):
        raise ArchiveRefused("kind-mismatch", "name and attributes say different kinds", entry=name)
    return kind, _mode(kind, mode, name, limits)


def _stated_kind(name: str, said: int) -> Kind:
    """The kind that the name shows, and that the mode's kind, where there is one, agrees to."""
    is_folder = name.endswith("/")
    if not said:
        return "folder" if is_folder else "file"
    if said not in _KINDS:
        raise ArchiveRefused("special-file", "it is a device, pipe, socket or unknown", entry=name)
    if is_folder != (said == stat.S_IFDIR):
        raise ArchiveRefused("kind-mismatch", "name and mode say different kinds", entry=name)
    return _KINDS[said]


def _mode(kind: Kind, mode: int, name: str, limits: Limits) -> int:
    """The mode to keep; an entry from a system without modes has usual ones."""
    return 0o755 if kind == "link" else checked_mode(mode or 0o644, name, limits, is_folder=kind == "folder")
