"""Tar archives that two parsers read in two ways: PAX against ustar, global headers, GNU's records, sparse files, other
bytes around; and what is wrong about the compression around them."""

import lzma
import struct
import zlib
from dataclasses import replace

from backports import zstd

from tests.archives import tars, zips
from tests.archives.cases import LIMITS, Case
from tests.archives.tars import END, GNU, PAX_GLOBAL, GzipMember, archive, file, header, link, long, octal, pax, record, sparse

HIDDEN = file(b"hidden", b"from the inner archive\n")
PLAIN = archive(file(b"a", b"first\n"), file(b"b", b"second\n"))


def with_pax(*records: bytes | tuple[bytes, bytes]) -> bytes:
    """A file after a PAX header of these records."""
    return archive(pax(*records), file(b"f"))


def with_global(*records: bytes | tuple[bytes, bytes]) -> bytes:
    """A file after a global header of these records."""
    return archive(pax(*records, kind=PAX_GLOBAL), file(b"f"))


OVERRIDE = [
    Case("pax override", "a global path", "pax-global", lambda: with_global((b"path", b"evil"))),
    Case("pax override", "a global path out", "pax-global", lambda: with_global((b"path", b"../evil"))),
    Case("pax override", "a global link", "pax-global", lambda: archive(pax((b"linkpath", b"../x"), kind=PAX_GLOBAL), link(b"l", b"f"))),
    Case("pax override", "a global size", "pax-global", lambda: with_global((b"size", b"0"))),
    Case("pax override", "a global sparse map", "pax-global sparse", lambda: with_global((b"GNU.sparse.major", b"1"))),
    Case("pax override", "a global character set", "pax-global pax-record pax-order", lambda: with_global((b"hdrcharset", b"BINARY"))),
    Case("pax override", "global, in the middle", "pax-global", lambda: archive(file(b"a"), pax((b"path", b"evil"), kind=PAX_GLOBAL), file(b"b"))),
    Case("pax override", "two paths", "pax-record pax-order", lambda: with_pax((b"path", b"x"), (b"path", b"y"))),
    Case("pax override", "two sizes", "pax-record pax-order", lambda: with_pax((b"size", b"6"), (b"size", b"0"))),
    Case("pax override", "a path taken back", "pax-record pax-order", lambda: with_pax((b"path", b""))),
    Case("pax override", "a size taken back", "pax-record pax-order", lambda: with_pax((b"size", b""))),
    Case("pax override", "two headers for one file", "pax-record pax-order", lambda: archive(pax((b"path", b"x")), pax((b"path", b"y")), file(b"f"))),
    Case("pax override", "a header for nothing", "pax-record pax-order truncated zip-end", lambda: archive(pax((b"path", b"x")))),
    Case("pax override", "beside a long name", "pax-record pax-order tar-header tar-magic", lambda: archive(pax((b"path", b"x")), long(b"y"), file(b"f", magic=GNU))),
    Case("pax override", "behind a long name", "pax-record pax-order tar-header tar-magic", lambda: archive(long(b"y"), pax((b"path", b"x")), file(b"f", magic=GNU))),
    Case("pax override", "a global header between", "pax-record pax-order pax-global tar-header tar-magic", lambda: archive(pax((b"path", b"x")), pax((b"comment", b"x"), kind=PAX_GLOBAL), file(b"f"))),
    Case("pax override", "a length too short", "pax-record pax-order", lambda: with_pax(record(b"path", b"evil", length=9))),
    Case("pax override", "a length too long", "pax-record pax-order", lambda: with_pax(record(b"path", b"evil", length=99))),
    Case("pax override", "a length of 0", "pax-record pax-order", lambda: with_pax(b"0 path=evil\n")),
    Case("pax override", "a length with a zero before", "pax-record pax-order", lambda: with_pax(b"013 path=evil\n")),
    Case("pax override", "a length with a sign", "pax-record pax-order", lambda: with_pax(b"+13 path=evil\n")),
    Case("pax override", "a length of other digits", "pax-record pax-order", lambda: with_pax("\u0661\u0662 a=b\n".encode())),
    Case("pax override", "no new line", "pax-record pax-order", lambda: with_pax(b"12 path=evil ")),
    Case("pax override", "no equals sign", "pax-record pax-order", lambda: with_pax(b"9 pathev\n")),
    Case("pax override", "no key", "pax-record pax-order", lambda: with_pax(b"9 =evil!\n")),
    Case("pax override", "a new line within", "pax-record pax-order control-character", lambda: with_pax((b"path", b"x\n12 path=evil"))),
    Case("pax override", "NULs behind the records", "pax-record pax-order", lambda: with_pax((b"path", b"x"), b"\x00\x00\x00")),
    Case("pax override", "a size with a sign", "pax-record pax-order tar-number size", lambda: with_pax((b"size", b"+6"))),
    Case("pax override", "a size with a point", "pax-record pax-order tar-number size", lambda: with_pax((b"size", b"6.0"))),
    Case("pax override", "a size with a line", "pax-record pax-order tar-number size", lambda: with_pax((b"size", b"6_"))),
    Case("pax override", "bytes instead of text", "pax-record pax-order not-utf8", lambda: with_pax((b"hdrcharset", b"BINARY"), (b"path", b"\xff"))),
    Case("huge directory", "a PAX header of 8 GiB", "pax-record pax-order truncated size too-large", lambda: archive(header(b"x", 8 << 30, tars.PAX), file(b"f"))),
    Case("huge directory", "a PAX header of 2 MiB", "pax-record pax-order too-large size", lambda: with_pax((b"comment", bytes(b"x" * (2 << 20))))),
    Case("huge directory", "a long name of 2 MiB", "pax-record path-too-long", lambda: archive(long(b"n/" * (1 << 20) + b"n"), file(b"f", magic=GNU))),
    Case("huge directory", "a long name of 8 GiB", "pax-record path-too-long", lambda: archive(header(b"././@LongLink", 8 << 30, tars.LONG_NAME, magic=GNU), file(b"f", magic=GNU))),
    Case("huge directory", "a long target of 2 MiB", "pax-record path-too-long", lambda: archive(long(b"n/" * (1 << 20) + b"n", tars.LONG_LINK), link(b"l", b"x", magic=GNU))),
]


def desync(told: int, by_pax: int, behind: bytes) -> bytes:
    """A file whose size ustar and PAX tell differently, with another archive in what only one of them skips."""
    return archive(pax((b"size", b"%d" % by_pax)), header(b"f", told), behind, file(b"last"))


DESYNC = [
    Case("pax and ustar sizes", "TARmageddon, ustar 0", "pax-size", lambda: desync(0, len(HIDDEN), HIDDEN)),
    Case("pax and ustar sizes", "pax 0", "pax-size", lambda: desync(len(HIDDEN), 0, HIDDEN)),
    Case("pax and ustar sizes", "pax smaller", "pax-size", lambda: desync(2 * len(HIDDEN), len(HIDDEN), 2 * HIDDEN)),
    Case("pax and ustar sizes", "one byte in one block", "pax-size", lambda: desync(6, 5, tars.padded(b"hello\n"))),
    Case("pax and ustar sizes", "of a folder", "pax-size payload", lambda: archive(pax((b"size", b"512")), tars.folder(b"d/"), bytes(512))),
    Case("pax and ustar sizes", "of a link", "pax-size payload", lambda: archive(pax((b"size", b"1024")), link(b"l", b"x"), HIDDEN)),
    Case("pax and ustar sizes", "of a whole archive", "pax-size", lambda: desync(0, 2048, PLAIN[:2048])),
]

EXTENDED = {"is_extended": b"\x01", "real_size": octal(1 << 20, 12)}
SPARSE = [
    Case("sparse", "of GNU", "sparse kind-mismatch special-file tar-type", lambda: archive(sparse(b"f", b"x" * 512, [(0, 512)], 512))),
    Case("sparse", "a bomb of GNU", "sparse kind-mismatch special-file tar-type", lambda: archive(sparse(b"f", b"x" * 512, [(1 << 40, 512)], (1 << 40) + 512))),
    Case("sparse", "with more of the map behind", "sparse kind-mismatch special-file tar-type", lambda: archive(header(b"f", 0, tars.SPARSE, magic=GNU, raw=EXTENDED), bytes(512))),
    Case("sparse", "a negative piece", "sparse", lambda: archive(header(b"f", 512, tars.SPARSE, magic=GNU, raw={"sparse": b"\xff" * 24}), bytes(512))),
    Case("sparse", "0.0 by PAX", "sparse pax-record pax-order", lambda: with_pax((b"GNU.sparse.size", b"1000000"), (b"GNU.sparse.numblocks", b"1"), (b"GNU.sparse.offset", b"0"), (b"GNU.sparse.numbytes", b"6"))),
    Case("sparse", "0.1 by PAX", "sparse pax-record pax-order", lambda: with_pax((b"GNU.sparse.size", b"1000000"), (b"GNU.sparse.map", b"0,6"))),
    Case("sparse", "1.0 by PAX", "sparse pax-record pax-order", lambda: archive(pax((b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"), (b"GNU.sparse.name", b"../evil"), (b"GNU.sparse.realsize", b"1000000")), file(b"f", tars.padded(b"1\n0\n6\n") + b"hello\n"))),
    Case("sparse", "another name", "sparse pax-record pax-order", lambda: with_pax((b"GNU.sparse.name", b"evil"))),
    Case("sparse", "a real size", "sparse pax-record pax-order", lambda: with_pax((b"GNU.sparse.realsize", b"1000000"))),
    Case("sparse", "of Solaris", "sparse pax-record pax-order", lambda: with_pax((b"SUN.holesdata", b" 0 6"))),
    Case("sparse", "of star", "sparse pax-record pax-order", lambda: with_pax((b"SCHILY.realsize", b"1000000"))),
]

AROUND = [
    Case("bytes after", "junk", "trailing-data", lambda: PLAIN + b"junk"),
    Case("bytes after", "a block of junk", "trailing-data", lambda: PLAIN + b"j" * 512),
    Case("bytes after", "junk after more zeros", "trailing-data", lambda: PLAIN + bytes(4096) + b"j" * 512),
    Case("bytes after", "another archive", "trailing-data", lambda: PLAIN + PLAIN),
    Case("bytes after", "one block of zeros, then more", "trailing-data zip-end", lambda: archive(file(b"a"), bytes(512), file(b"b"))),
    Case("bytes after", "in the padding", "tar-padding", lambda: archive(header(b"f", 5), b"hello" + b"x" * 507)),
    Case("bytes before", "a block of zeros", "trailing-data tar-end", lambda: bytes(512) + PLAIN, name="build.tar"),
    Case("bytes before", "a block of junk", "tar-header tar-number tar-checksum", lambda: header(b"", raw={"checksum": b"junk"}) + PLAIN),
    Case("polyglots", "a zip behind", "two-formats", lambda: PLAIN + zips.archive(zips.Item())),
    Case("polyglots", "a zip behind, with true offsets", "two-formats", lambda: PLAIN + zips.Archive([zips.Item()], shift=len(PLAIN)).written()),
    Case("polyglots", "a name that looks like zip", "two-formats", lambda: archive(file(b"PK\x03\x04"))),
    Case("polyglots", "a zip within the padding", "tar-padding", lambda: archive(header(b"f", 5), (b"hello" + zips.archive(zips.Item())).ljust(512, b"\x00"))),
    Case("local and central", "a prefix of GNU's magic", "tar-header parsers-disagree", lambda: archive(file(b"f", magic=GNU, prefix=b"d"))),
    Case("local and central", "neither ustar nor old", "tar-header tar-magic", lambda: archive(file(b"a"), file(b"b", magic=b"ustaz\x0000"))),
    Case("local and central", "a version that is none", "tar-header tar-magic", lambda: archive(file(b"f", magic=b"ustar\x0017"))),
    Case("local and central", "a long name for nothing", "pax-order truncated zip-end", lambda: archive(long(b"x"))),
    Case("local and central", "two long names", "pax-order", lambda: archive(long(b"x"), long(b"y"), file(b"f", magic=GNU))),
    Case("local and central", "a long target of a file", "pax-order link-target", lambda: archive(long(b"x", tars.LONG_LINK), file(b"f", magic=GNU))),
    Case("local and central", "a linkpath of a file", "pax-record pax-order link-target", lambda: with_pax((b"linkpath", b"../x"))),
]


def gzipped(*members: GzipMember | bytes) -> bytes:
    """Members and other bytes, one after another."""
    return b"".join(each if isinstance(each, bytes) else each.written() for each in members)


GOOD, EMPTY = GzipMember(PLAIN), GzipMember(b"")
BOMB = archive(file(b"f", bytes(30 << 20)))
SCALED = replace(LIMITS, ratio_after_bytes=1 << 20)


def xz_with_window(properties: int) -> bytes:
    """An xz stream whose first block asks for a dictionary of 2 or 3 times a power of two bytes (xz format 5.3.1)."""
    data = bytearray(lzma.compress(PLAIN))
    length = (data[12] + 1) * 4
    assert data[14] == 0x21
    data[16] = properties
    data[12 + length - 4 : 12 + length] = struct.pack("<I", zlib.crc32(data[12 : 12 + length - 4]))
    return bytes(data)


def zstd_with_window(exponent: int) -> bytes:
    """A Zstandard frame with a window of 2**(10 + exponent) bytes and one raw block (RFC 8878 3.1.1)."""
    frame = struct.pack("<IBB", 0xFD2FB528, 0, exponent << 3)
    return frame + struct.pack("<I", len(PLAIN) << 3 | 1)[:3] + PLAIN


SKIPPABLE = struct.pack("<II", 0x184D2A50, 4) + b"hide"
FNAME, FEXTRA, FHCRC = 8, 4, 2
COMPRESSED = [
    Case("ratio bomb", "gzip", "ratio", lambda: gzipped(GzipMember(BOMB)), SCALED),
    Case("ratio bomb", "xz", "ratio", lambda: lzma.compress(BOMB), SCALED),
    Case("ratio bomb", "zstd", "ratio", lambda: zstd.compress(BOMB), SCALED),
    Case("ratio bomb", "zeros behind the end", "ratio trailing-data", lambda: zstd.compress(PLAIN + bytes(80 << 20)), SCALED),
    Case("ratio bomb", "gzip at the usual limits", "ratio", lambda: gzipped(GzipMember(archive(file(b"f", bytes(72 << 20)))))),
    Case("lying sizes", "gzip's check sum", "compression checksum", lambda: gzipped(replace(GOOD, crc=1))),
    Case("lying sizes", "gzip's length", "checksum size compression", lambda: gzipped(replace(GOOD, size=1))),
    Case("lying sizes", "gzip cut", "truncated compression", lambda: gzipped(GOOD)[:-9]),
    Case("lying sizes", "gzip cut in its end", "truncated compression", lambda: gzipped(GOOD)[:-1]),
    Case("lying sizes", "xz cut", "truncated compression", lambda: lzma.compress(PLAIN)[:-1]),
    Case("lying sizes", "zstd cut", "truncated compression", lambda: zstd.compress(PLAIN)[:-1]),
    Case("lying sizes", "xz flipped", "checksum compression", lambda: lzma.compress(PLAIN)[:40] + b"\xff" + lzma.compress(PLAIN)[41:]),
    Case("bytes after", "gzip, junk", "trailing-data compression", lambda: gzipped(GOOD, b"junk")),
    Case("bytes after", "gzip, zeros", "trailing-data compression", lambda: gzipped(GOOD, bytes(100))),
    Case("bytes after", "gzip, another member", "concatenated", lambda: gzipped(GOOD, GOOD), is_only_strict=True),
    Case("bytes after", "gzip, an empty member", "concatenated", lambda: gzipped(GOOD, EMPTY), is_only_strict=True),
    Case("bytes after", "gzip, an empty member first", "concatenated", lambda: gzipped(EMPTY, GOOD), is_only_strict=True),
    Case("bytes after", "gzip, one archive in two members", "concatenated", lambda: gzipped(GzipMember(PLAIN[:700]), GzipMember(PLAIN[700:])), is_only_strict=True),
    Case("bytes after", "xz, junk", "trailing-data compression", lambda: lzma.compress(PLAIN) + b"junk"),
    Case("bytes after", "xz, another stream", "concatenated", lambda: 2 * lzma.compress(PLAIN), is_only_strict=True),
    Case("bytes after", "zstd, junk", "trailing-data compression", lambda: zstd.compress(PLAIN) + b"junk"),
    Case("bytes after", "zstd, another frame", "concatenated", lambda: 2 * zstd.compress(PLAIN), is_only_strict=True),
    Case("bytes after", "zstd, hidden bytes", "concatenated trailing-data compression", lambda: zstd.compress(PLAIN) + SKIPPABLE),
    Case("bytes before", "zstd, hidden bytes", "unknown", lambda: SKIPPABLE + zstd.compress(PLAIN)),
    Case("bytes after", "gzip, junk in the archive", "trailing-data", lambda: gzipped(GzipMember(PLAIN + b"junk"))),
    Case("bytes after", "gzip, flags that are reserved", "compression", lambda: gzipped(replace(GOOD, flags=0x20))),
    Case("bytes after", "gzip, a wrong sum of the header", "compression checksum", lambda: gzipped(replace(GOOD, flags=FHCRC, after_header=b"\x00\x00"))),
    Case("windows", "xz, 4 GiB", "window compression", lambda: xz_with_window(40)),
    Case("windows", "xz, 1.5 GiB", "window compression", lambda: xz_with_window(37)),
    Case("windows", "zstd, 2 GiB", "window compression", lambda: zstd_with_window(21)),
    Case("windows", "zstd, 2**41 bytes", "window compression", lambda: zstd_with_window(31)),
    Case("timeout", "gzip", "too-slow", lambda: gzipped(GzipMember(BOMB)), replace(LIMITS, seconds=0)),
    Case("nested archives", "gzip in gzip", "unknown", lambda: gzipped(GzipMember(gzipped(GOOD)))),
    Case("nested archives", "zip in gzip", "unknown", lambda: gzipped(GzipMember(zips.archive(zips.Item())))),
]

CASES = [*OVERRIDE, *DESYNC, *SPARSE, *AROUND]
