"""Hostile compression around tar archives: bombs, windows, streams with false sizes, and bytes before and after
them."""

import lzma
import struct
import zlib
from dataclasses import replace

from backports import zstd

from tests.archives import zips
from tests.archives.cases import LIMITS, ArchiveCase
from tests.archives.doubtful_tars import PLAIN
from tests.archives.tars import GzipMember, archive, file


def gzip_members(*members: GzipMember | bytes) -> bytes:
    """Return gzip members and other bytes, in this order."""
    return b"".join(member if isinstance(member, bytes) else member.written() for member in members)


GOOD, EMPTY = GzipMember(PLAIN), GzipMember(b"")
BOMB = archive(file(b"f", bytes(30 << 20)))
SCALED = replace(LIMITS, ratio_after_bytes=1 << 20)


def xz_with_window(properties: int) -> bytes:
    """Return an xz stream whose first block requests a dictionary of 2 or 3 times a power of two bytes (xz format
    5.3.1)."""
    data = bytearray(lzma.compress(PLAIN))
    length = (data[12] + 1) * 4
    assert data[14] == 0x21
    data[16] = properties
    data[12 + length - 4 : 12 + length] = struct.pack("<I", zlib.crc32(data[12 : 12 + length - 4]))
    return bytes(data)


def zstd_with_window(exponent: int) -> bytes:
    """Return a Zstandard frame with a window of 2**(10 + exponent) bytes and one raw block (RFC 8878 3.1.1)."""
    frame = struct.pack("<IBB", 0xFD2FB528, 0, exponent << 3)
    return frame + struct.pack("<I", len(PLAIN) << 3 | 1)[:3] + PLAIN


SKIPPABLE = struct.pack("<II", 0x184D2A50, 4) + b"hide"
FNAME, FEXTRA, FHCRC = 8, 4, 2
CASES = [
    ArchiveCase("ratio bomb", "gzip", "ratio", lambda: gzip_members(GzipMember(BOMB)), SCALED),
    ArchiveCase("ratio bomb", "xz", "ratio", lambda: lzma.compress(BOMB), SCALED),
    ArchiveCase("ratio bomb", "zstd", "ratio", lambda: zstd.compress(BOMB), SCALED),
    ArchiveCase(
        "ratio bomb",
        "zeros behind the end",
        "ratio trailing-data",
        lambda: zstd.compress(PLAIN + bytes(80 << 20)),
        SCALED,
    ),
    ArchiveCase(
        "ratio bomb",
        "gzip at the usual limits",
        "ratio",
        lambda: gzip_members(GzipMember(archive(file(b"f", bytes(72 << 20))))),
    ),
    ArchiveCase("lying sizes", "gzip's check sum", "compression checksum", lambda: gzip_members(replace(GOOD, crc=1))),
    ArchiveCase(
        "lying sizes", "gzip's length", "checksum size compression", lambda: gzip_members(replace(GOOD, size=1))
    ),
    ArchiveCase("lying sizes", "gzip cut", "truncated compression", lambda: gzip_members(GOOD)[:-9]),
    ArchiveCase("lying sizes", "gzip cut in its end", "truncated compression", lambda: gzip_members(GOOD)[:-1]),
    ArchiveCase("lying sizes", "xz cut", "truncated compression", lambda: lzma.compress(PLAIN)[:-1]),
    ArchiveCase("lying sizes", "zstd cut", "truncated compression", lambda: zstd.compress(PLAIN)[:-1]),
    ArchiveCase(
        "lying sizes",
        "xz flipped",
        "checksum compression",
        lambda: lzma.compress(PLAIN)[:40] + b"\xff" + lzma.compress(PLAIN)[41:],
    ),
    ArchiveCase("bytes after", "gzip, junk", "trailing-data compression", lambda: gzip_members(GOOD, b"junk")),
    ArchiveCase("bytes after", "gzip, zeros", "trailing-data compression", lambda: gzip_members(GOOD, bytes(100))),
    ArchiveCase(
        "bytes after", "gzip, another member", "concatenated", lambda: gzip_members(GOOD, GOOD), is_only_strict=True
    ),
    ArchiveCase(
        "bytes after", "gzip, an empty member", "concatenated", lambda: gzip_members(GOOD, EMPTY), is_only_strict=True
    ),
    ArchiveCase(
        "bytes after",
        "gzip, an empty member first",
        "concatenated",
        lambda: gzip_members(EMPTY, GOOD),
        is_only_strict=True,
    ),
    ArchiveCase(
        "bytes after",
        "gzip, one archive in two members",
        "concatenated",
        lambda: gzip_members(GzipMember(PLAIN[:700]), GzipMember(PLAIN[700:])),
        is_only_strict=True,
    ),
    ArchiveCase("bytes after", "xz, junk", "trailing-data compression", lambda: lzma.compress(PLAIN) + b"junk"),
    ArchiveCase(
        "bytes after", "xz, another stream", "concatenated", lambda: 2 * lzma.compress(PLAIN), is_only_strict=True
    ),
    ArchiveCase("bytes after", "zstd, junk", "trailing-data compression", lambda: zstd.compress(PLAIN) + b"junk"),
    ArchiveCase(
        "bytes after", "zstd, another frame", "concatenated", lambda: 2 * zstd.compress(PLAIN), is_only_strict=True
    ),
    ArchiveCase(
        "bytes after",
        "zstd, hidden bytes",
        "concatenated trailing-data compression",
        lambda: zstd.compress(PLAIN) + SKIPPABLE,
    ),
    ArchiveCase("bytes before", "zstd, hidden bytes", "unknown", lambda: SKIPPABLE + zstd.compress(PLAIN)),
    ArchiveCase(
        "bytes after", "gzip, junk in the archive", "trailing-data", lambda: gzip_members(GzipMember(PLAIN + b"junk"))
    ),
    ArchiveCase(
        "bytes after", "gzip, flags that are reserved", "compression", lambda: gzip_members(replace(GOOD, flags=0x20))
    ),
    ArchiveCase(
        "bytes after",
        "gzip, a wrong sum of the header",
        "compression checksum",
        lambda: gzip_members(replace(GOOD, flags=FHCRC, after_header=b"\x00\x00")),
    ),
    ArchiveCase("windows", "xz, 4 GiB", "window", lambda: xz_with_window(40)),
    ArchiveCase("windows", "xz, 1.5 GiB", "window", lambda: xz_with_window(37)),
    ArchiveCase("windows", "zstd, 2 GiB", "window", lambda: zstd_with_window(21)),
    ArchiveCase("windows", "zstd, 2**41 bytes", "window", lambda: zstd_with_window(31)),
    ArchiveCase("timeout", "gzip", "too-slow", lambda: gzip_members(GzipMember(BOMB)), replace(LIMITS, seconds=0)),
    ArchiveCase("nested archives", "gzip in gzip", "unknown", lambda: gzip_members(GzipMember(gzip_members(GOOD)))),
    ArchiveCase(
        "nested archives", "zip in gzip", "unknown", lambda: gzip_members(GzipMember(zips.archive(zips.ZipEntry())))
    ),
]
