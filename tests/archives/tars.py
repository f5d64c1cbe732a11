"""Tar archives written byte by byte, so that every field can have a false value (POSIX.1-2017 pax, GNU tar's
manual)."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

BLOCK = 512
END = bytes(2 * BLOCK)
USTAR, GNU, V7 = b"ustar\x0000", b"ustar  \x00", bytes(8)
FILE, HARD, LINK, CHARACTER, BLOCKS, FOLDER, FIFO, CONTIGUOUS = b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7"
PAX, PAX_GLOBAL, LONG_NAME, LONG_LINK, SPARSE = b"x", b"g", b"L", b"K", b"S"

FIELDS = {
    "name": (0, 100),
    "mode": (100, 8),
    "uid": (108, 8),
    "gid": (116, 8),
    "size": (124, 12),
    "mtime": (136, 12),
    "checksum": (148, 8),
    "kind": (156, 1),
    "target": (157, 100),
    "magic": (257, 8),
    "owner": (265, 32),
    "group": (297, 32),
    "major": (329, 8),
    "minor": (337, 8),
    "prefix": (345, 155),
    "rest": (500, 12),
    "sparse": (386, 97),
    "is_extended": (482, 1),
    "real_size": (483, 12),
}
"""The offset and length of each field; the last three belong to GNU's sparse files and overlap the prefix."""

Raw = Mapping[str, bytes]
"""The bytes of fields by name, to be padded with zeros."""


def octal(number: int, width: int) -> bytes:
    """Return a number as ustar writes it: with leading zeros and a trailing NUL."""
    return b"%0*o\x00" % (width - 1, number)


def base256(number: int, width: int) -> bytes:
    """Return a number as GNU writes large and negative ones: the first bit set, then big-endian two's complement."""
    marked = bytearray((number & (1 << 8 * width) - 1).to_bytes(width, "big"))
    marked[0] |= 0x80
    return bytes(marked)


def pad_block(data: bytes) -> bytes:
    """Return the data, padded with zeros to a whole block."""
    return data + bytes(-len(data) % BLOCK)


def header(
    name: bytes,
    size: int = 0,
    kind: bytes = FILE,
    *,
    target: bytes = b"",
    mode: int = 0o644,
    magic: bytes = USTAR,
    prefix: bytes = b"",
    raw: Raw | None = None,
) -> bytes:
    """Return a header block. `raw` overrides fields. The checksum is correct unless `raw` contains one."""
    block = bytearray(BLOCK)
    fields: dict[str, bytes] = {
        "name": name,
        "mode": octal(mode, 8),
        "uid": octal(0, 8),
        "gid": octal(0, 8),
        "size": octal(size, 12) if size < 8**11 else base256(size, 12),
        "mtime": octal(0, 12),
        "checksum": b" " * 8,
        "kind": kind,
        "target": target,
        "magic": magic,
        "prefix": prefix,
        **(raw or {}),
    }
    for key, value in fields.items():
        start, length = FIELDS[key]
        block[start : start + length] = value[:length].ljust(length, b"\x00")
    if "checksum" not in (raw or {}):
        block[148:156] = b"%06o\x00 " % sum(block)
    return bytes(block)


def file(name: bytes, data: bytes = b"hello\n", *, size: int | None = None, **options: object) -> bytes:
    """Return a file: its header and its bytes. The stated size can be wrong."""
    return header(name, len(data) if size is None else size, **options) + pad_block(data)


def link(name: bytes, target: bytes, **options: object) -> bytes:
    """Return a symbolic link."""
    return header(name, kind=LINK, target=target, mode=0o777, **options)


def hard(name: bytes, target: bytes, **options: object) -> bytes:
    """Return a hard link to an earlier entry."""
    return header(name, kind=HARD, target=target, **options)


def folder(name: bytes, **options: object) -> bytes:
    """Return a folder."""
    return header(name, kind=FOLDER, **{"mode": 0o755, **options})


def record(key: bytes, value: bytes, *, length: int | None = None) -> bytes:
    """Return a PAX record, `LENGTH KEY=VALUE\\n`. Its length can be wrong."""
    body = b" " + key + b"=" + value + b"\n"
    true = len(body) + 1
    while len(str(true)) + len(body) != true:
        true = len(str(true)) + len(body)
    return str(true if length is None else length).encode() + body


def pax(*records: bytes | tuple[bytes, bytes], kind: bytes = PAX, name: bytes = b"PaxHeaders/x") -> bytes:
    """Return an extended header for the next entry, or with `g` for all that follow."""
    data = b"".join(entry if isinstance(entry, bytes) else record(*entry) for entry in records)
    return header(name, len(data), kind) + pad_block(data)


def long(text: bytes, kind: bytes = LONG_NAME) -> bytes:
    """Return GNU's long name of the next entry, or with kind `K` its long link target."""
    return header(b"././@LongLink", len(text) + 1, kind, magic=GNU) + pad_block(text + b"\x00")


def archive(*parts: bytes, end: bytes = END, block: int = BLOCK) -> bytes:
    """Return the parts and the end, padded to whole blocks of this size."""
    tar_bytes = b"".join(parts) + end
    return tar_bytes + bytes(-len(tar_bytes) % block)


def sparse(name: bytes, data: bytes, pieces: Sequence[tuple[int, int]], real_size: int) -> bytes:
    """Return a sparse file in GNU's old format: the offsets of its pieces, its declared size and its bytes."""
    sparse_map = b"".join(octal(at, 12) + octal(length, 12) for at, length in pieces)
    raw = {"sparse": sparse_map, "real_size": octal(real_size, 12)}
    return header(name, len(data), SPARSE, magic=GNU, raw=raw) + pad_block(data)


@dataclass(frozen=True, slots=True)
class GzipMember:
    """One member of a gzip file (RFC 1952), whose checksum and length can be false."""

    data: bytes
    flags: int = 0
    after_header: bytes = b""
    crc: int | None = None
    size: int | None = None
    packed: bytes | None = None
    reserved: Mapping[str, int] = field(default_factory=dict[str, int])

    def written(self) -> bytes:
        """Return the header, the deflate stream and the trailer."""
        import zlib

        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed_data = packer.compress(self.data) + packer.flush() if self.packed is None else self.packed
        crc = zlib.crc32(self.data) if self.crc is None else self.crc
        size = len(self.data) & 0xFFFFFFFF if self.size is None else self.size
        head = b"\x1f\x8b\x08" + bytes([self.flags]) + bytes(4) + b"\x02\x03"
        return head + self.after_header + packed_data + struct.pack("<II", crc, size)
