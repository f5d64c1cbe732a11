"""What stands around the bytes of a zip entry: its own header, a data descriptor (APPNOTE 4.3.7, 4.3.9)."""

import struct

from countersign.archives import zip_extra
from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused
from countersign.archives.stretch import Reader
from countersign.archives.zip_directory import DESCRIBED, STORED, Listed
from countersign.archives.zip_extra import FULL32

_HEADER = struct.Struct("<4s3H4L2H")
_SIGNATURE = b"PK\x07\x08"
_WIDTHS = {12: (b"", 4), 16: (_SIGNATURE, 4), 20: (b"", 8), 24: (_SIGNATURE, 8)}


def read_header(reader: Reader, entry: Listed, limits: Limits) -> tuple[Listed, bool]:
    """Read the entry's own header, which has to say what the table says; whether it has a Zip64 field.

    The own header alone may announce a data descriptor, as some writers of valid files do: the entry that is returned
    says so too.

    Raises:
        ArchiveRefused: `local-mismatch`, `zip-record`, `truncated`, or as the extra fields are.
    """
    header = reader.exactly(_HEADER.size, entry.name)
    signature, _, flags, method, _, crc, packed, size, name_length, extra_length = _HEADER.unpack(header)
    if signature != b"PK\x03\x04":
        raise ArchiveRefused("zip-record", "there is no header where the directory says", entry=entry.name)
    if reader.exactly(name_length, entry.name) != entry.raw:
        raise ArchiveRefused("local-mismatch", "its own header says another name", entry=entry.name)
    entry = entry._replace(flags=entry.flags | flags & DESCRIBED)
    if flags != entry.flags or method != entry.method:
        raise ArchiveRefused("local-mismatch", "its own header says other flags or another method", entry=entry.name)
    content: bytes | None = None
    if extra_length:
        extra = reader.exactly(extra_length, entry.name)
        content = zip_extra.numbers(extra, entry.raw, entry.name, limits)
    if content is not None or FULL32 in (size, packed):
        size, packed = zip_extra.widened(content, (size, packed), entry.name)
    if (crc, packed, size) != (entry.crc, entry.packed, entry.size):
        _check_unsaid(entry, (crc, packed, size))
    return entry, content is not None


def _check_unsaid(entry: Listed, said: tuple[int, int, int]) -> None:
    """Refuse numbers that differ, but zeros for what a descriptor will say."""
    for own, true in zip(said, (entry.crc, entry.packed, entry.size), strict=True):
        if own != true and (own or not entry.flags & DESCRIBED):
            raise ArchiveRefused("local-mismatch", "its own header says another size or checksum", entry=entry.name)


def read_descriptor(reader: Reader, entry: Listed, room: int, *, is_wide: bool, limits: Limits) -> None:
    """Read what stands in the `room` bytes between the entry's bytes and the next record.

    Raises:
        ArchiveRefused: `gap` or `data-descriptor`.
    """
    if not entry.flags & DESCRIBED:
        if room:
            raise ArchiveRefused("gap", f"{room} bytes behind it belong to nothing", entry=entry.name)
        return
    signature, width = _form(entry, room)
    if limits.profile == "strict" and is_wide != (width == 8):
        raise ArchiveRefused("data-descriptor", "its numbers are of another width than announced", entry=entry.name)
    if reader.exactly(room, entry.name) != signature + _told(entry, width):
        raise ArchiveRefused("data-descriptor", "it says something else than the directory", entry=entry.name)


def _form(entry: Listed, room: int) -> tuple[bytes, int]:
    """The signature and the width of the numbers of a data descriptor of `room` bytes."""
    if room not in _WIDTHS:
        rule = "gap" if room > 24 else "data-descriptor"
        raise ArchiveRefused(rule, f"the data descriptor has {room} bytes", entry=entry.name)
    signature, width = _WIDTHS[room]
    if not signature and entry.method == STORED and entry.size:
        raise ArchiveRefused("data-descriptor", "nothing shows where its stored bytes end", entry=entry.name)
    return signature, width


def _told(entry: Listed, width: int) -> bytes:
    """What a true descriptor says after its signature; nothing where its sizes have no room."""
    if max(entry.packed, entry.size) >> (8 * width):
        return b""
    crc, packed, size = entry.crc.to_bytes(4, "little"), entry.packed, entry.size
    return crc + packed.to_bytes(width, "little") + size.to_bytes(width, "little")
