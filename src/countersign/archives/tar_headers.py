"""Headers of a tar entry: ustar and GNU blocks, PAX records and GNU long names (POSIX.1-2017 pax)."""

import re
import struct
import zlib
from dataclasses import dataclass
from typing import NamedTuple

from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused

BLOCK = 512
MAX_SIZE = 1 << 62
_LAYOUT = struct.Struct("100s8s8s8s12s12s8s1s100s8s32s32s8s8s155s12s")
_OCTAL = re.compile(rb"[ ]*([0-7]*)[ \0]*\Z")
# mode, owner, group, size, time, checksum as every honest writer has them.
_USUAL = re.compile(
    rb"(?:[0-7]{7}[ \0]|[0-7]{6}[ ]\0){3}(?:[0-7]{11}[ \0]){2}(?:[0-7]{7}[ \0]|[0-7]{6}(?:\0[ ]|[ ]\0))\Z"
)
# Behind GNU's two times. Some readers believe what stands there whatever the entry's type is.
_GNU_SPARSE = 369
# How a time before 1970 begins; times are not kept.
_NEGATIVE = b"\xff"
_USTAR, _GNU, _OLD = b"ustar\x0000", b"ustar  \0", bytes(8)


class Header(NamedTuple):
    """What a header says; name and link as they are written, without the NUL behind them."""

    name: bytes
    mode: int
    size: int
    type: bytes
    link: bytes


def is_header(block: bytes) -> bool:
    """Whether 512 bytes look like a header, by their magic or their checksum."""
    if len(block) != BLOCK or not block.strip(b"\0"):
        return False
    said = _OCTAL.match(block[148:156])
    return block[257:262] == b"ustar" or (said is not None and int(said[1] or b"0", 8) == _checksum(block))


def parse_header(block: bytes, limits: Limits) -> Header:
    """The header in a block that is not zero.

    Raises:
        ArchiveRefused: `tar-checksum`, `tar-magic`, `tar-number`, `tar-header`, `sparse`.
    """
    fields = _LAYOUT.unpack(block)
    name = _field_text(fields[0], block)
    magic = fields[9]
    if _USUAL.match(block, 100, 156):
        mode, size, said = (int(fields[place].rstrip(b" \0"), 8) for place in (1, 4, 6))
    else:
        mode, _, _, size, said = (_field_number(fields[place], name, limits) for place in (1, 2, 3, 4, 6))
        if not fields[5].startswith(_NEGATIVE):
            _field_number(fields[5], name, limits)
    if said != _checksum(block):
        raise ArchiveRefused("tar-checksum", "header checksum mismatch", entry=printable_name(name))
    _check_form(block, fields, name, limits)
    if magic == _USTAR and fields[14][0]:
        name = _field_text(fields[14], block) + b"/" + name
    return Header(name, mode, size, fields[7], _field_text(fields[8], block))


def _check_form(block: bytes, fields: tuple[bytes, ...], name: bytes, limits: Limits) -> None:
    """Refuse a header of another form, or with something in it that some readers trip over."""
    magic = fields[9]
    if magic not in (_USTAR, _GNU) and (magic != _OLD or limits.profile == "strict"):
        raise ArchiveRefused("tar-magic", "its header is neither ustar nor GNU", entry=printable_name(name))
    if magic == _GNU and block[_GNU_SPARSE:].strip(b"\0"):
        raise ArchiveRefused("sparse", "its header says pieces or a size of a sparse entry", entry=printable_name(name))
    if block[329:345].strip(b"\0 0"):
        # Nothing of a device is kept, but some readers refuse a header in which its numbers are none.
        _field_number(fields[12], name, limits)
        _field_number(fields[13], name, limits)


def printable_name(name: bytes) -> str:
    """A name as it is written, as text for a refusal."""
    return name.decode("utf-8", "backslashreplace")


def _checksum(block: bytes) -> int:
    """The sum of the bytes, with the checksum's own place as spaces."""
    # Below 128 the sum of 512 bytes stays below the modulus of Adler-32, whose first half it then is.
    whole = zlib.adler32(block, 0) & 0xFFFF if block.isascii() else sum(block)
    return whole - sum(block[148:156]) + 8 * 32


def _field_text(field: bytes, block: bytes) -> bytes:
    text, _, rest = field.partition(b"\0")
    if rest.strip(b"\0"):
        raise ArchiveRefused("tar-header", "something is hidden behind the end of a text", entry=printable_name(text))
    return text


def _field_number(field: bytes, name: bytes, limits: Limits) -> int:
    """A number in octal, or in base-256 where the first bit is set (GNU)."""
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
"""From this size on the header's own field is too short."""
SPARE_RECORDS, RECORDS_PER_ENTRY = 10_000, 16
"""PAX records that an archive may have: so many, and so many more for each entry."""


class PaxRecordCounter:
    """How many PAX records an archive has had. They take more time than their bytes tell, and nearly none when they
    are compressed."""

    def __init__(self) -> None:
        self._left = SPARE_RECORDS

    def entry(self) -> None:
        """Make room for those of another entry."""
        self._left += RECORDS_PER_ENTRY

    def take(self, name: str) -> None:
        """Note one more.

        Raises:
            ArchiveRefused: `pax-record`: there are too many.
        """
        self._left -= 1
        if self._left < 0:
            detail = f"there are more than {RECORDS_PER_ENTRY} PAX records for each entry and {SPARE_RECORDS} besides"
            raise ArchiveRefused("pax-record", detail, entry=name)


@dataclass(slots=True)
class ExtendedHeaders:
    """What the headers before the next entry say about it."""

    path: str | None = None
    link: str | None = None
    size: int | None = None
    seen: str = ""

    def take(self, header: Header, payload: bytes, counted: PaxRecordCounter) -> None:
        """Note an extended header of one entry: PAX `x`, or GNU `L` or `K`.

        Raises:
            ArchiveRefused: `pax-order`, `pax-record`, `sparse`, `tar-header`, `not-utf8`.
        """
        kind = header.type.decode("ascii")
        if kind in self.seen or "x" in self.seen or (self.seen and kind == "x"):
            raise ArchiveRefused("pax-order", "two extended headers speak of one entry", entry=_name(header))
        self.seen += kind
        if kind == "x":
            records = parse_records(payload, _name(header), counted)
            self.path, self.link = records.get("path"), records.get("linkpath")
            self.size = _size(records.get("size"), _name(header))
            _check_effective(records, _name(header))
        elif kind == "L":
            self.path = _long(payload, header)
        else:
            self.link = _long(payload, header)

    def check_behind(self, header: Header) -> None:
        """Check the plain header after extended ones: its name must be a safe path, because a reader without extensions
        uses it, and only a link may have an extended target.

        Raises:
            ArchiveRefused: `pax-name` or `link-target`.
        """
        if self.link is not None and header.type not in (b"1", b"2"):
            raise ArchiveRefused("link-target", "it has a target and is not a link", entry=_name(header))
        name = header.name
        if self.path is not None and (name.startswith(b"/") or b"\\" in name or b".." in name.split(b"/")):
            raise ArchiveRefused("pax-name", "its plain header has an unsafe path", entry=_name(header))

    def size_of(self, header: Header, name: str) -> int:
        """The entry's size.

        Raises:
            ArchiveRefused: `pax-size`: the sizes differ, and the extended size fits into the plain header.
        """
        if self.size is None or self.size == header.size:
            return header.size
        if self.size < _NO_ROOM or header.size not in (0, _NO_ROOM - 1):
            raise ArchiveRefused("pax-size", f"its sizes are {self.size} and {header.size}", entry=name)
        return self.size


NO_EXTENSION = ExtendedHeaders()
"""The headers of an entry without extended headers; never changed."""


def check_global(header: Header, payload: bytes, counted: PaxRecordCounter, limits: Limits) -> None:
    """Refuse a global header that says more than a comment, as git's archives have it, or the time of all entries.

    Raises:
        ArchiveRefused: `pax-global` or `pax-record`.
    """
    allowed = _COMMON if limits.profile == "strict" else (*_COMMON, *_HARMLESS)
    for key in parse_records(payload, _name(header), counted):
        if key not in allowed:
            raise ArchiveRefused("pax-global", f"a global header says {key!a}", entry=_name(header))


def parse_records(payload: bytes, name: str, counted: PaxRecordCounter) -> dict[str, str]:
    """The records `length key=value` and a line's end, each exactly as long as it says.

    Raises:
        ArchiveRefused: `pax-record` or `not-utf8`.
    """
    records: dict[str, str] = {}
    at = 0
    while at < len(payload):
        counted.take(name)
        space = payload.find(b" ", at, at + 10)
        digits = payload[at:space]
        if space < 0 or not digits.isdigit() or digits[:1] == b"0":
            raise ArchiveRefused("pax-record", "a PAX record does not begin with its length", entry=name)
        stop = at + int(digits)
        key, equals, value = payload[space + 1 : stop - 1].partition(b"=")
        if stop > len(payload) or stop <= space + 1 or payload[stop - 1 : stop] != b"\n" or not equals or not key:
            raise ArchiveRefused("pax-record", "a PAX record is not as long as it says", entry=name)
        at = stop
        _take_record(records, key, value, name)
    return records


def without_digits(payload: bytes) -> bytes:
    """The payload of valid records with no digit in the records that change nothing of an entry. Python before 3.11.10
    and 3.12.6 searches a PAX header in quadratic time for its runs of digits (CVE-2024-6232)."""
    pieces: list[bytes] = []
    at = 0
    while at < len(payload):
        space = payload.index(b" ", at)
        stop = at + int(payload[at:space])
        record = payload[space:stop]
        is_meant = record.startswith(_UNMASKED)
        pieces += [payload[at:space], record if is_meant else record.translate(_NO_DIGITS)]
        at = stop
    return b"".join(pieces)


def _take_record(records: dict[str, str], key: bytes, value: bytes, name: str) -> None:
    if key.startswith((b"SCHILY.xattr.", b"LIBARCHIVE.xattr.")):
        # Attributes are bytes of any kind, and nothing of them is kept.
        return
    try:
        word, text = key.decode(), value.decode()
    except UnicodeDecodeError as error:
        raise ArchiveRefused("not-utf8", "a PAX record is no UTF-8", entry=name) from error
    if "\0" in word or "\0" in text:
        raise ArchiveRefused("pax-record", f"the PAX record {word[:40]!a} holds NUL", entry=name)
    if word in records:
        raise ArchiveRefused("pax-record", f"the PAX record {word!a} is given twice", entry=name)
    records[word] = text


def _check_effective(records: dict[str, str], name: str) -> None:
    for key, value in records.items():
        if key.startswith(("GNU.sparse.", "SUN.holes")) or key == "SCHILY.realsize":
            raise ArchiveRefused("sparse", "the entry is sparse", entry=name)
        if key in _EFFECTIVE and not value:
            raise ArchiveRefused("pax-record", f"the PAX record {key!a} is empty", entry=name)
        if key in ("hdrcharset", "charset") and value not in _UTF8:
            raise ArchiveRefused("not-utf8", f"its names are {value!a}", entry=name)
        if key == "SCHILY.filetype":
            raise ArchiveRefused("kind-mismatch", "a PAX record says a kind of its own", entry=name)


def _size(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > MAX_SIZE:
        raise ArchiveRefused("pax-record", f"the size {text[:40]!a} is no number, or too large", entry=name)
    return int(text)


def _long(payload: bytes, header: Header) -> str:
    text, _, rest = payload.partition(b"\0")
    if rest or not text or len(text) == len(payload):
        raise ArchiveRefused("tar-header", "a long name does not end with one NUL", entry=_name(header))
    return decode_name(text)


def decode_name(text: bytes) -> str:
    """A name that is written as UTF-8.

    Raises:
        ArchiveRefused: `not-utf8`.
    """
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise ArchiveRefused("not-utf8", "the name is no UTF-8", entry=printable_name(text)) from error


def _name(header: Header) -> str:
    return printable_name(header.name)
