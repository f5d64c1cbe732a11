"""One header of a tar file: 512 bytes of ustar or GNU (POSIX.1-2017 pax, "ustar Interchange Format")."""

import re
import struct
import zlib
from typing import NamedTuple

from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused

BLOCK = 512
LARGEST = 1 << 62
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
    return block[257:262] == b"ustar" or (said is not None and int(said[1] or b"0", 8) == _sum(block))


def parse(block: bytes, limits: Limits) -> Header:
    """The header in a block that is not zero.

    Raises:
        ArchiveRefused: `tar-checksum`, `tar-magic`, `tar-number`, `tar-header`, `sparse`.
    """
    fields = _LAYOUT.unpack(block)
    name = _text(fields[0], block)
    magic = fields[9]
    if _USUAL.match(block, 100, 156):
        mode, size, said = (int(fields[place].rstrip(b" \0"), 8) for place in (1, 4, 6))
    else:
        mode, _, _, size, said = (_number(fields[place], name, limits) for place in (1, 2, 3, 4, 6))
        if not fields[5].startswith(_NEGATIVE):
            _number(fields[5], name, limits)
    if said != _sum(block):
        raise ArchiveRefused("tar-checksum", "its header has another checksum than it says", entry=shown(name))
    _check_form(block, fields, name, limits)
    if magic == _USTAR and fields[14][0]:
        name = _text(fields[14], block) + b"/" + name
    return Header(name, mode, size, fields[7], _text(fields[8], block))


def _check_form(block: bytes, fields: tuple[bytes, ...], name: bytes, limits: Limits) -> None:
    """Refuse a header of another form, or with something in it that some readers trip over."""
    magic = fields[9]
    if magic not in (_USTAR, _GNU) and (magic != _OLD or limits.profile == "strict"):
        raise ArchiveRefused("tar-magic", "its header is neither ustar nor GNU", entry=shown(name))
    if magic == _GNU and block[_GNU_SPARSE:].strip(b"\0"):
        raise ArchiveRefused("sparse", "its header says pieces or a size of a sparse entry", entry=shown(name))
    if block[329:345].strip(b"\0 0"):
        # Nothing of a device is kept, but some readers refuse a header in which its numbers are none.
        _number(fields[12], name, limits)
        _number(fields[13], name, limits)


def shown(name: bytes) -> str:
    """A name as it is written, as text for a refusal."""
    return name.decode("utf-8", "backslashreplace")


def _sum(block: bytes) -> int:
    """The sum of the bytes, with the checksum's own place as spaces."""
    # Below 128 the sum of 512 bytes stays below the modulus of Adler-32, whose first half it then is.
    whole = zlib.adler32(block, 0) & 0xFFFF if block.isascii() else sum(block)
    return whole - sum(block[148:156]) + 8 * 32


def _text(field: bytes, block: bytes) -> bytes:
    text, _, rest = field.partition(b"\0")
    if rest.strip(b"\0"):
        raise ArchiveRefused("tar-header", "something is hidden behind the end of a text", entry=shown(text))
    return text


def _number(field: bytes, name: bytes, limits: Limits) -> int:
    """A number in octal, or in base-256 where the first bit is set (GNU)."""
    if field[0] & 0x80:
        if field[0] != 0x80:
            raise ArchiveRefused("tar-number", "a number in its header is negative", entry=shown(name))
        number = int.from_bytes(field[1:], "big")
        if number > LARGEST:
            raise ArchiveRefused("tar-number", "a number in its header is too large", entry=shown(name))
        return number
    octal = _OCTAL.match(field)
    if octal is None:
        raise ArchiveRefused("tar-number", "a number in its header is not octal", entry=shown(name))
    return int(octal[1] or b"0", 8)
