"""Headers of a tar entry: ustar and GNU blocks, PAX records and GNU long names (POSIX.1-2017 pax)."""

import re
import struct
import zlib
from dataclasses import dataclass
from typing import NamedTuple

from countersign.archives.limits import Limits, PaxRecordCounter
from countersign.archives.refusals import ArchiveRefused

BLOCK = 512
MAX_SIZE = 1 << 62
_LAYOUT = struct.Struct("100s8s8s8s12s12s8s1s100s8s32s32s8s8s155s12s")
_OCTAL = re.compile(rb"[ ]*([0-7]*)[ \0]*\Z")
# Mode, owner, group, size, time and checksum in the usual form.
_USUAL = re.compile(
    rb"(?:[0-7]{7}[ \0]|[0-7]{6}[ ]\0){3}(?:[0-7]{11}[ \0]){2}(?:[0-7]{7}[ \0]|[0-7]{6}(?:\0[ ]|[ ]\0))\Z"
)
# The offset after GNU's two time fields. Some readers use the sparse fields at this offset for entries of every type.
_GNU_SPARSE = 369
# The first byte of a time before 1970. Times are ignored.
_NEGATIVE = b"\xff"
_USTAR, _GNU, _OLD = b"ustar\x0000", b"ustar  \0", bytes(8)


class Header(NamedTuple):
    """The fields of a header. `name` and `link` are raw bytes without the terminating NUL."""

    name: bytes
    mode: int
    size: int
    type: bytes
    link: bytes


def is_header(block: bytes) -> bool:
    """Whether 512 bytes look like a header, by their magic or their checksum."""
    if len(block) != BLOCK or not block.strip(b"\0"):
        return False
    checksum_match = _OCTAL.match(block[148:156])
    return block[257:262] == b"ustar" or (
        checksum_match is not None and int(checksum_match[1] or b"0", 8) == _checksum(block)
    )


def parse_header(block: bytes, limits: Limits) -> Header:
    """Parse the header in a block that is not all zeros.

    Raises:
        ArchiveRefused: the header is invalid: `tar-checksum`, `tar-magic`, `tar-number`, `tar-header`, `sparse`.
    """
    fields = _LAYOUT.unpack(block)
    name = _field_text(fields[0], block)
    magic = fields[9]
    if _USUAL.match(block, 100, 156):
        mode, size, stated_checksum = (int(fields[field_number].rstrip(b" \0"), 8) for field_number in (1, 4, 6))
    else:
        mode, _, _, size, stated_checksum = (
            _field_number(fields[field_number], name, limits) for field_number in (1, 2, 3, 4, 6)
        )
        if not fields[5].startswith(_NEGATIVE):
            _field_number(fields[5], name, limits)
    if stated_checksum != _checksum(block):
        raise ArchiveRefused("tar-checksum", "header checksum mismatch", entry=printable_name(name))
    _check_form(block, fields, name, limits)
    if magic == _USTAR and fields[14][0]:
        name = _field_text(fields[14], block) + b"/" + name
    return Header(name, mode, size, fields[7], _field_text(fields[8], block))


def _check_form(block: bytes, fields: tuple[bytes, ...], name: bytes, limits: Limits) -> None:
    """Refuse a header in an unsupported format, or with fields that some readers interpret differently."""
    magic = fields[9]
    if magic not in (_USTAR, _GNU) and (magic != _OLD or limits.profile == "strict"):
        raise ArchiveRefused("tar-magic", "its header is neither ustar nor GNU", entry=printable_name(name))
    if magic == _GNU and block[_GNU_SPARSE:].strip(b"\0"):
        raise ArchiveRefused("sparse", "its header has fields of a sparse entry", entry=printable_name(name))
    if block[329:345].strip(b"\0 0"):
        # Device numbers are ignored, but some readers refuse a header in which they are not numbers.
        _field_number(fields[12], name, limits)
        _field_number(fields[13], name, limits)


def printable_name(name: bytes) -> str:
    """Return a raw name as text for an error message."""
    return name.decode("utf-8", "backslashreplace")


def _checksum(block: bytes) -> int:
    """Return the sum of the bytes, with the checksum field counted as spaces."""
    # The low half of Adler-32 is the sum modulo 65521. The sum of 512 ASCII bytes is always smaller than that.
    byte_sum = zlib.adler32(block, 0) & 0xFFFF if block.isascii() else sum(block)
    return byte_sum - sum(block[148:156]) + 8 * 32


def _field_text(field: bytes, block: bytes) -> bytes:
    text, _, padding = field.partition(b"\0")
    if padding.strip(b"\0"):
        raise ArchiveRefused("tar-header", "a text field has data after its NUL", entry=printable_name(text))
    return text


def _field_number(field: bytes, name: bytes, limits: Limits) -> int:
    """Parse a number in octal, or in base-256 if its first bit is set (GNU)."""
    if field[0] & 0x80:
        if field[0] != 0x80:
            raise ArchiveRefused("tar-number", "a number in its header is negative", entry=printable_name(name))
        number = int.from_bytes(field[1:], "big")
        if number > MAX_SIZE:
            raise ArchiveRefused("tar-number", "a number in its header is too large", entry=printable_name(name))
        return number
    octal = _OCTAL.match(field)
    if octal is None:
        raise ArchiveRefused("tar-number", "a number in its header is not octal", entry=printable_name(name))
    return int(octal[1] or b"0", 8)


_EFFECTIVE = ("path", "linkpath", "size")
_UNMASKED = tuple(f" {key}=".encode() for key in (*_EFFECTIVE, "hdrcharset", "charset"))
_COMMON = ("comment", "mtime")
_HARMLESS = ("atime", "ctime", "uid", "gid", "uname", "gname")
_NO_DIGITS = bytes(ord("_") if byte in b"0123456789" else byte for byte in range(256))
_UTF8 = ("ISO-IR 10646 2000 UTF-8", "UTF-8")
_NO_ROOM = 8 << 30
"""The smallest size that does not fit into the size field of a header."""


@dataclass(slots=True)
class ExtendedHeaders:
    """The values from the extended headers of the next entry."""

    path: str | None = None
    link: str | None = None
    size: int | None = None
    seen: str = ""

    def take(self, header: Header, payload: bytes, counter: PaxRecordCounter) -> None:
        """Read an extended header of the entry: PAX `x`, or GNU `L` or `K`.

        Raises:
            ArchiveRefused: the header is invalid: `pax-order`, `pax-record`, `sparse`, `tar-header`, `not-utf8`.
        """
        kind = header.type.decode("ascii")
        if kind in self.seen or "x" in self.seen or (self.seen and kind == "x"):
            raise ArchiveRefused("pax-order", "two extended headers apply to one entry", entry=_name(header))
        self.seen += kind
        if kind == "x":
            records = parse_records(payload, _name(header), counter)
            self.path, self.link = records.get("path"), records.get("linkpath")
            self.size = _size(records.get("size"), _name(header))
            _check_effective(records, _name(header))
        elif kind == "L":
            self.path = _long(payload, header)
        else:
            self.link = _long(payload, header)

    def check_behind(self, header: Header) -> None:
        """Check the plain header that follows extended headers.

        Its name must be a safe path, because a reader without extensions uses this name. Only a link may have an
        extended target.

        Raises:
            ArchiveRefused: `pax-name` or `link-target`.
        """
        if self.link is not None and header.type not in (b"1", b"2"):
            raise ArchiveRefused("link-target", "it has a target and is not a link", entry=_name(header))
        name = header.name
        if self.path is not None and (name.startswith(b"/") or b"\\" in name or b".." in name.split(b"/")):
            raise ArchiveRefused("pax-name", "its plain header has an unsafe path", entry=_name(header))

    def size_of(self, header: Header, name: str) -> int:
        """Return the size of the entry.

        Raises:
            ArchiveRefused: `pax-size`: the sizes differ, although the extended size fits into the plain header.
        """
        if self.size is None or self.size == header.size:
            return header.size
        if self.size < _NO_ROOM or header.size not in (0, _NO_ROOM - 1):
            detail = f"its PAX size is {self.size}, but the size in its header is {header.size}"
            raise ArchiveRefused("pax-size", detail, entry=name)
        return self.size


NO_EXTENSION = ExtendedHeaders()
"""The value for an entry without extended headers. It is never changed."""


def check_global(header: Header, payload: bytes, counter: PaxRecordCounter, limits: Limits) -> None:
    """Refuse a global header with records that change entries. Comments (as in git's archives) and times are allowed.

    Raises:
        ArchiveRefused: a record is not allowed (`pax-global`), or is malformed (`pax-record`, `not-utf8`).
    """
    allowed_keys = _COMMON if limits.profile == "strict" else (*_COMMON, *_HARMLESS)
    for key in parse_records(payload, _name(header), counter):
        if key not in allowed_keys:
            raise ArchiveRefused("pax-global", f"a global header has the record {key!a}", entry=_name(header))


def parse_records(payload: bytes, name: str, counter: PaxRecordCounter) -> dict[str, str]:
    """Parse PAX records: each is `length key=value` and a newline, and `length` is its size in bytes.

    Raises:
        ArchiveRefused: a record is malformed (`pax-record`), or is not UTF-8 (`not-utf8`).
    """
    records: dict[str, str] = {}
    position = 0
    while position < len(payload):
        counter.take(name)
        space = payload.find(b" ", position, position + 10)
        digits = payload[position:space]
        if space < 0 or not digits.isdigit() or digits[:1] == b"0":
            raise ArchiveRefused("pax-record", "a PAX record does not begin with its length", entry=name)
        stop = position + int(digits)
        key, equals, value = payload[space + 1 : stop - 1].partition(b"=")
        if stop > len(payload) or stop <= space + 1 or payload[stop - 1 : stop] != b"\n" or not equals or not key:
            raise ArchiveRefused("pax-record", "the length of a PAX record is wrong", entry=name)
        position = stop
        _take_record(records, key, value, name)
    return records


def without_digits(payload: bytes) -> bytes:
    """Replace the digits in all PAX records except those that change an entry.

    Python before 3.11.10 and 3.12.6 takes quadratic time to search a PAX header for runs of digits (CVE-2024-6232).
    `payload` contains valid records.
    """
    pieces: list[bytes] = []
    position = 0
    while position < len(payload):
        space = payload.index(b" ", position)
        stop = position + int(payload[position:space])
        record = payload[space:stop]
        is_meant = record.startswith(_UNMASKED)
        pieces += [payload[position:space], record if is_meant else record.translate(_NO_DIGITS)]
        position = stop
    return b"".join(pieces)


def _take_record(records: dict[str, str], key: bytes, value: bytes, name: str) -> None:
    if key.startswith((b"SCHILY.xattr.", b"LIBARCHIVE.xattr.")):
        # Extended attributes can be arbitrary bytes. They are ignored.
        return
    try:
        key_text, text = key.decode(), value.decode()
    except UnicodeDecodeError as error:
        raise ArchiveRefused("not-utf8", "a PAX record is not valid UTF-8", entry=name) from error
    if "\0" in key_text or "\0" in text:
        raise ArchiveRefused("pax-record", f"the PAX record {key_text[:40]!a} holds NUL", entry=name)
    if key_text in records:
        raise ArchiveRefused("pax-record", f"the PAX record {key_text!a} is given twice", entry=name)
    records[key_text] = text


def _check_effective(records: dict[str, str], name: str) -> None:
    for key, value in records.items():
        if key.startswith(("GNU.sparse.", "SUN.holes")) or key == "SCHILY.realsize":
            raise ArchiveRefused("sparse", "the entry is sparse", entry=name)
        if key in _EFFECTIVE and not value:
            raise ArchiveRefused("pax-record", f"the PAX record {key!a} is empty", entry=name)
        if key in ("hdrcharset", "charset") and value not in _UTF8:
            raise ArchiveRefused("not-utf8", f"its names have the encoding {value!a}", entry=name)
        if key == "SCHILY.filetype":
            raise ArchiveRefused("kind-mismatch", "a PAX record overrides the kind of the entry", entry=name)


def _size(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > MAX_SIZE:
        raise ArchiveRefused("pax-record", f"the size {text[:40]!a} is not a number, or is too large", entry=name)
    return int(text)


def _long(payload: bytes, header: Header) -> str:
    text, _, padding = payload.partition(b"\0")
    if padding or not text or len(text) == len(payload):
        raise ArchiveRefused("tar-header", "a long name does not end with one NUL", entry=_name(header))
    return decode_name(text)


def decode_name(text: bytes) -> str:
    """Decode a name from UTF-8.

    Raises:
        ArchiveRefused: `not-utf8`: the name is not valid UTF-8.
    """
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise ArchiveRefused("not-utf8", "the name is not valid UTF-8", entry=printable_name(text)) from error


def _name(header: Header) -> str:
    return printable_name(header.name)
