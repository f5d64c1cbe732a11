"""The table of contents of a zip file (APPNOTE 4.3.12), entry by entry."""

import stat
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from countersign.archives import zip_extra
from countersign.archives.entry import Kind
from countersign.archives.limits import Limits
from countersign.archives.modes import checked_mode
from countersign.archives.refusals import ArchiveRefused
from countersign.archives.zip_end import End

STORED, DEFLATED = 0, 8
ENCRYPTED, DESCRIBED, UTF8 = 0x2041, 0x0008, 0x0800
_ALLOWED = 0x0006 | DESCRIBED | UTF8
_HEADER = struct.Struct("<4s2B3H4L5H2L")
_VMS, _UNIX, _MACOS = 2, 3, 19
_KINDS: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
# What stored and deflated entries can need, and old readers know; the upper byte can name a system.
_NEWEST = 46
_DOS_FOLDER, _DOS_LABEL = 0x10, 0x08


class Listed(NamedTuple):
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


def listed(source: BinaryIO, end: End, limits: Limits) -> list[Listed]:
    """Every entry in the order of the table.

    Raises:
        ArchiveRefused: the table is not exactly those entries, or one of them breaks a rule.
    """
    source.seek(end.start)
    return list(_entries(source.read(end.size), end, limits))


def _entries(table: bytes, end: End, limits: Limits) -> Iterator[Listed]:
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


def _entry(header: tuple[int, ...], texts: bytes, limits: Limits) -> Listed:
    _, _, system, needed, flags, method, _, crc, packed, size, length, _, _, disk, _, attributes, offset = header
    raw, extra = texts[:length], texts[length:]
    name = text_of(raw, flags, is_lenient=limits.profile == "compatible" and system in (_UNIX, _MACOS))
    _check_form(name, flags, method, disk)
    if needed >> 8 == _VMS or needed & 0xFF > _NEWEST:
        raise ArchiveRefused("parsers-disagree", f"some readers do not take the version {needed}", entry=name)
    if extra:
        content = zip_extra.numbers(extra, raw, name, limits)
        size, packed, offset = zip_extra.widened(content, (size, packed, offset), name)
    elif zip_extra.FULL32 in (size, packed, offset):
        zip_extra.widened(None, (size, packed, offset), name)
    if method == STORED and size != packed:
        raise ArchiveRefused("size", "it is stored, and its two sizes differ", entry=name)
    kind, mode = _kind(name, system, attributes, limits)
    if kind == "folder" and size:
        raise ArchiveRefused("payload", "a folder has bytes", entry=name)
    return Listed(name, raw, flags, method, crc, packed, size, offset, kind, mode)


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
    kind = _kind_said(name, stat.S_IFMT(mode))
    if kind == "link" and system not in (_UNIX, _MACOS):
        raise ArchiveRefused("kind-mismatch", "it is a link from a system without them", entry=name)
    if attributes & (_DOS_LABEL if kind == "folder" else _DOS_LABEL | _DOS_FOLDER):
        raise ArchiveRefused("kind-mismatch", "name and attributes say different kinds", entry=name)
    return kind, _mode(kind, mode, name, limits)


def _kind_said(name: str, said: int) -> Kind:
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
