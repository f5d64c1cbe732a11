"""Extra fields of a zip entry (APPNOTE 4.5): well formed, and none that says another thing than the header."""

import struct
import zlib

from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused

_ZIP64, _UNICODE_PATH = 0x0001, 0x7075
_ENCRYPTING = (0x0014, 0x0015, 0x0016, 0x0017, 0x0018, 0x0019, 0x9901)
# ASi Unix: a kind and a link's target of its own. Experimental: attributes of its own.
_CONTRADICTING = (0x756E, 0x6C78)
# Times and owners, which nearly every entry has.
_MEANINGLESS = (0x5455, 0x7875)
_UNSIGNED = struct.Struct("<2H")
FULL32 = 0xFFFFFFFF


def numbers(extra: bytes, raw: bytes, name: str, limits: Limits) -> bytes | None:
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
        if kind == _ZIP64:
            if found is not None:
                raise ArchiveRefused("zip64", "there are two Zip64 fields", entry=name)
            found = content
        elif kind not in _MEANINGLESS:
            _check_field(kind, content, raw, name)
    return found


def _check_field(kind: int, content: bytes, raw: bytes, name: str) -> None:
    if kind == _UNICODE_PATH:
        says_this = content[:1] == b"\x01" and content[1:5] == zlib.crc32(raw).to_bytes(4, "little")
        if not says_this or content[5:] != raw:
            raise ArchiveRefused("unicode-path", "an extra field says another name", entry=name)
    if kind in _ENCRYPTING:
        raise ArchiveRefused("encrypted", "an extra field says that the entry is encrypted", entry=name)
    if kind in _CONTRADICTING:
        raise ArchiveRefused("extra-field", f"the extra field {kind:#06x} says a kind of its own", entry=name)


def widened(content: bytes | None, values: tuple[int, ...], name: str) -> tuple[int, ...]:
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
