"""Tar archives that two parsers read differently: PAX against ustar, global headers, GNU's records, sparse files,
surrounding bytes."""

from tests.archives import tars, zips
from tests.archives.cases import ArchiveCase
from tests.archives.tars import (
    GNU,
    PAX_GLOBAL,
    archive,
    file,
    header,
    link,
    long,
    octal,
    pax,
    record,
    sparse,
)

HIDDEN = file(b"hidden", b"from the inner archive\n")
PLAIN = archive(file(b"a", b"first\n"), file(b"b", b"second\n"))


def with_pax(*records: bytes | tuple[bytes, bytes]) -> bytes:
    """Return a file after a PAX header with these records."""
    return archive(pax(*records), file(b"f"))


def with_global(*records: bytes | tuple[bytes, bytes]) -> bytes:
    """Return a file after a global header with these records."""
    return archive(pax(*records, kind=PAX_GLOBAL), file(b"f"))


OVERRIDE = [
    ArchiveCase(
        "pax override", "a name behind that leads out", "pax-name", lambda: archive(pax((b"path", b"x")), file(b"../f"))
    ),
    ArchiveCase(
        "pax override", "an absolute name behind", "pax-name", lambda: archive(pax((b"path", b"x")), file(b"/f"))
    ),
    ArchiveCase("pax override", "a character set alone", "not-utf8", lambda: with_pax((b"hdrcharset", b"BINARY"))),
    ArchiveCase(
        "pax override", "a kind of its own", "kind-mismatch", lambda: with_pax((b"SCHILY.filetype", b"sparse"))
    ),
    ArchiveCase("pax override", "a global path", "pax-global", lambda: with_global((b"path", b"evil"))),
    ArchiveCase("pax override", "a global path out", "pax-global", lambda: with_global((b"path", b"../evil"))),
    ArchiveCase(
        "pax override",
        "a global link",
        "pax-global",
        lambda: archive(pax((b"linkpath", b"../x"), kind=PAX_GLOBAL), link(b"l", b"f")),
    ),
    ArchiveCase("pax override", "a global size", "pax-global", lambda: with_global((b"size", b"0"))),
    ArchiveCase(
        "pax override", "a global sparse map", "pax-global sparse", lambda: with_global((b"GNU.sparse.major", b"1"))
    ),
    ArchiveCase(
        "pax override",
        "a global character set",
        "pax-global pax-record pax-order",
        lambda: with_global((b"hdrcharset", b"BINARY")),
    ),
    ArchiveCase(
        "pax override",
        "global, in the middle",
        "pax-global",
        lambda: archive(file(b"a"), pax((b"path", b"evil"), kind=PAX_GLOBAL), file(b"b")),
    ),
    ArchiveCase(
        "pax override", "two paths", "pax-record pax-order", lambda: with_pax((b"path", b"x"), (b"path", b"y"))
    ),
    ArchiveCase(
        "pax override", "two sizes", "pax-record pax-order", lambda: with_pax((b"size", b"6"), (b"size", b"0"))
    ),
    ArchiveCase("pax override", "NUL in a value", "pax-record", lambda: with_pax((b"comment", b"a\0b"))),
    ArchiveCase("pax override", "NUL in a key", "pax-record", lambda: with_pax((b"comm\0ent", b"a"))),
    ArchiveCase("pax override", "NUL in a global value", "pax-record", lambda: with_global((b"comment", b"a\0b"))),
    ArchiveCase("pax override", "a path taken back", "pax-record pax-order", lambda: with_pax((b"path", b""))),
    ArchiveCase("pax override", "a size taken back", "pax-record pax-order", lambda: with_pax((b"size", b""))),
    ArchiveCase(
        "pax override",
        "two headers for one file",
        "pax-record pax-order",
        lambda: archive(pax((b"path", b"x")), pax((b"path", b"y")), file(b"f")),
    ),
    ArchiveCase(
        "pax override",
        "a header for nothing",
        "pax-record pax-order truncated zip-end",
        lambda: archive(pax((b"path", b"x"))),
    ),
    ArchiveCase(
        "pax override",
        "beside a long name",
        "pax-record pax-order tar-header tar-magic",
        lambda: archive(pax((b"path", b"x")), long(b"y"), file(b"f", magic=GNU)),
    ),
    ArchiveCase(
        "pax override",
        "behind a long name",
        "pax-record pax-order tar-header tar-magic",
        lambda: archive(long(b"y"), pax((b"path", b"x")), file(b"f", magic=GNU)),
    ),
    ArchiveCase(
        "pax override",
        "a global header between",
        "pax-record pax-order pax-global tar-header tar-magic",
        lambda: archive(pax((b"path", b"x")), pax((b"comment", b"x"), kind=PAX_GLOBAL), file(b"f")),
    ),
    ArchiveCase(
        "pax override",
        "a length too short",
        "pax-record pax-order",
        lambda: with_pax(record(b"path", b"evil", length=9)),
    ),
    ArchiveCase(
        "pax override",
        "a length too long",
        "pax-record pax-order",
        lambda: with_pax(record(b"path", b"evil", length=99)),
    ),
    ArchiveCase("pax override", "a length of 0", "pax-record pax-order", lambda: with_pax(b"0 path=evil\n")),
    ArchiveCase(
        "pax override", "a length with a zero before", "pax-record pax-order", lambda: with_pax(b"013 path=evil\n")
    ),
    ArchiveCase("pax override", "a length with a sign", "pax-record pax-order", lambda: with_pax(b"+13 path=evil\n")),
    ArchiveCase(
        "pax override",
        "a length of other digits",
        "pax-record pax-order",
        lambda: with_pax("\u0661\u0662 a=b\n".encode()),
    ),
    ArchiveCase("pax override", "no new line", "pax-record pax-order", lambda: with_pax(b"12 path=evil ")),
    ArchiveCase("pax override", "no equals sign", "pax-record pax-order", lambda: with_pax(b"9 pathev\n")),
    ArchiveCase("pax override", "no key", "pax-record pax-order", lambda: with_pax(b"9 =evil!\n")),
    ArchiveCase(
        "pax override",
        "a new line within",
        "pax-record pax-order control-character",
        lambda: with_pax((b"path", b"x\n12 path=evil")),
    ),
    ArchiveCase(
        "pax override",
        "NULs behind the records",
        "pax-record pax-order",
        lambda: with_pax((b"path", b"x"), b"\x00\x00\x00"),
    ),
    ArchiveCase(
        "pax override", "a size with a sign", "pax-record pax-order tar-number size", lambda: with_pax((b"size", b"+6"))
    ),
    ArchiveCase(
        "pax override",
        "a size with a point",
        "pax-record pax-order tar-number size",
        lambda: with_pax((b"size", b"6.0")),
    ),
    ArchiveCase(
        "pax override", "a size with a line", "pax-record pax-order tar-number size", lambda: with_pax((b"size", b"6_"))
    ),
    ArchiveCase(
        "pax override",
        "bytes instead of text",
        "pax-record pax-order not-utf8",
        lambda: with_pax((b"hdrcharset", b"BINARY"), (b"path", b"\xff")),
    ),
    ArchiveCase(
        "huge directory",
        "a PAX header of 8 GiB",
        "pax-record pax-order truncated size too-large",
        lambda: archive(header(b"x", 8 << 30, tars.PAX), file(b"f")),
    ),
    ArchiveCase(
        "huge directory",
        "a PAX header of 2 MiB",
        "pax-record pax-order too-large size",
        lambda: with_pax((b"comment", bytes(b"x" * (2 << 20)))),
    ),
    ArchiveCase(
        "huge directory",
        "a long name of 2 MiB",
        "pax-record path-too-long",
        lambda: archive(long(b"n/" * (1 << 20) + b"n"), file(b"f", magic=GNU)),
    ),
    ArchiveCase(
        "huge directory",
        "a long name of 8 GiB",
        "pax-record path-too-long",
        lambda: archive(header(b"././@LongLink", 8 << 30, tars.LONG_NAME, magic=GNU), file(b"f", magic=GNU)),
    ),
    ArchiveCase(
        "huge directory",
        "a long target of 2 MiB",
        "pax-record path-too-long",
        lambda: archive(long(b"n/" * (1 << 20) + b"n", tars.LONG_LINK), link(b"l", b"x", magic=GNU)),
    ),
]


def desync(size_in_header: int, by_pax: int, behind: bytes) -> bytes:
    """Return a file with different sizes in ustar and PAX, and another archive in the bytes that only one of them
    skips."""
    return archive(pax((b"size", b"%d" % by_pax)), header(b"f", size_in_header), behind, file(b"last"))


DESYNC = [
    ArchiveCase("pax and ustar sizes", "TARmageddon, ustar 0", "pax-size", lambda: desync(0, len(HIDDEN), HIDDEN)),
    ArchiveCase("pax and ustar sizes", "pax 0", "pax-size", lambda: desync(len(HIDDEN), 0, HIDDEN)),
    ArchiveCase(
        "pax and ustar sizes", "pax smaller", "pax-size", lambda: desync(2 * len(HIDDEN), len(HIDDEN), 2 * HIDDEN)
    ),
    ArchiveCase(
        "pax and ustar sizes", "one byte in one block", "pax-size", lambda: desync(6, 5, tars.pad_block(b"hello\n"))
    ),
    ArchiveCase(
        "pax and ustar sizes",
        "of a folder",
        "pax-size payload",
        lambda: archive(pax((b"size", b"512")), tars.folder(b"d/"), bytes(512)),
    ),
    ArchiveCase(
        "pax and ustar sizes",
        "of a link",
        "pax-size payload",
        lambda: archive(pax((b"size", b"1024")), link(b"l", b"x"), HIDDEN),
    ),
    ArchiveCase("pax and ustar sizes", "of a whole archive", "pax-size", lambda: desync(0, 2048, PLAIN[:2048])),
]

EXTENDED = {"is_extended": b"\x01", "real_size": octal(1 << 20, 12)}
SPARSE = [
    ArchiveCase(
        "sparse",
        "a real size of what is not",
        "sparse",
        lambda: archive(file(b"f", magic=GNU, raw={"real_size": octal(1, 12)})),
    ),
    ArchiveCase(
        "sparse",
        "a map of what is not",
        "sparse",
        lambda: archive(file(b"f", magic=GNU, raw={"sparse": octal(0, 12) + octal(1, 12)})),
    ),
    ArchiveCase(
        "sparse",
        "more of the map of what is not",
        "sparse",
        lambda: archive(file(b"f", magic=GNU, raw={"is_extended": b"\x01"})),
    ),
    ArchiveCase(
        "sparse",
        "of GNU",
        "sparse kind-mismatch special-file tar-type",
        lambda: archive(sparse(b"f", b"x" * 512, [(0, 512)], 512)),
    ),
    ArchiveCase(
        "sparse",
        "a bomb of GNU",
        "sparse kind-mismatch special-file tar-type",
        lambda: archive(sparse(b"f", b"x" * 512, [(1 << 40, 512)], (1 << 40) + 512)),
    ),
    ArchiveCase(
        "sparse",
        "with more of the map behind",
        "sparse kind-mismatch special-file tar-type",
        lambda: archive(header(b"f", 0, tars.SPARSE, magic=GNU, raw=EXTENDED), bytes(512)),
    ),
    ArchiveCase(
        "sparse",
        "a negative piece",
        "sparse",
        lambda: archive(header(b"f", 512, tars.SPARSE, magic=GNU, raw={"sparse": b"\xff" * 24}), bytes(512)),
    ),
    ArchiveCase(
        "sparse",
        "0.0 by PAX",
        "sparse pax-record pax-order",
        lambda: with_pax(
            (b"GNU.sparse.size", b"1000000"),
            (b"GNU.sparse.numblocks", b"1"),
            (b"GNU.sparse.offset", b"0"),
            (b"GNU.sparse.numbytes", b"6"),
        ),
    ),
    ArchiveCase(
        "sparse",
        "0.1 by PAX",
        "sparse pax-record pax-order",
        lambda: with_pax((b"GNU.sparse.size", b"1000000"), (b"GNU.sparse.map", b"0,6")),
    ),
    ArchiveCase(
        "sparse",
        "1.0 by PAX",
        "sparse pax-record pax-order",
        lambda: archive(
            pax(
                (b"GNU.sparse.major", b"1"),
                (b"GNU.sparse.minor", b"0"),
                (b"GNU.sparse.name", b"../evil"),
                (b"GNU.sparse.realsize", b"1000000"),
            ),
            file(b"f", tars.pad_block(b"1\n0\n6\n") + b"hello\n"),
        ),
    ),
    ArchiveCase(
        "sparse", "another name", "sparse pax-record pax-order", lambda: with_pax((b"GNU.sparse.name", b"evil"))
    ),
    ArchiveCase(
        "sparse", "a real size", "sparse pax-record pax-order", lambda: with_pax((b"GNU.sparse.realsize", b"1000000"))
    ),
    ArchiveCase("sparse", "of Solaris", "sparse pax-record pax-order", lambda: with_pax((b"SUN.holesdata", b" 0 6"))),
    ArchiveCase("sparse", "of star", "sparse pax-record pax-order", lambda: with_pax((b"SCHILY.realsize", b"1000000"))),
]

AROUND = [
    ArchiveCase(
        "local and central",
        "numbers that only some read",
        "tar-number",
        lambda: archive(file(b"a"), file(b"f", raw={"major": b"\n"})),
    ),
    ArchiveCase(
        "local and central",
        "the first of them",
        "tar-number",
        lambda: archive(file(b"f", raw={"minor": b"zzzzzzz\x00"})),
    ),
    ArchiveCase("bytes after", "junk", "trailing-data", lambda: PLAIN + b"junk"),
    ArchiveCase("bytes after", "a block of junk", "trailing-data", lambda: PLAIN + b"j" * 512),
    ArchiveCase("bytes after", "junk after more zeros", "trailing-data", lambda: PLAIN + bytes(4096) + b"j" * 512),
    ArchiveCase("bytes after", "another archive", "trailing-data", lambda: PLAIN + PLAIN),
    ArchiveCase(
        "bytes after",
        "one block of zeros, then more",
        "trailing-data zip-end",
        lambda: archive(file(b"a"), bytes(512), file(b"b")),
    ),
    ArchiveCase(
        "bytes after", "in the padding", "tar-padding", lambda: archive(header(b"f", 5), b"hello" + b"x" * 507)
    ),
    ArchiveCase(
        "bytes before", "a block of zeros", "trailing-data tar-end", lambda: bytes(512) + PLAIN, name="build.tar"
    ),
    ArchiveCase(
        "bytes before",
        "a block of junk",
        "tar-header tar-number tar-checksum",
        lambda: header(b"", raw={"checksum": b"junk"}) + PLAIN,
    ),
    ArchiveCase(
        "polyglots", "a zip behind", "two-formats trailing-data", lambda: PLAIN + zips.archive(zips.ZipEntry())
    ),
    ArchiveCase(
        "polyglots",
        "a zip behind, with true offsets",
        "two-formats trailing-data",
        lambda: PLAIN + zips.ZipArchive([zips.ZipEntry()], shift=len(PLAIN)).written(),
    ),
    ArchiveCase(
        "polyglots", "a name that looks like zip", "two-formats control-character", lambda: archive(file(b"PK\x03\x04"))
    ),
    ArchiveCase(
        "polyglots",
        "a zip within the padding",
        "tar-padding",
        lambda: archive(header(b"f", 5), (b"hello" + zips.archive(zips.ZipEntry())).ljust(512, b"\x00")),
    ),
    ArchiveCase(
        "local and central",
        "a prefix of GNU's magic",
        "parsers-disagree",
        lambda: archive(file(b"f", magic=GNU, prefix=b"d")),
    ),
    ArchiveCase(
        "local and central",
        "neither ustar nor old",
        "tar-header tar-magic",
        lambda: archive(file(b"a"), file(b"b", magic=b"ustaz\x0000")),
    ),
    ArchiveCase(
        "local and central",
        "a version that is none",
        "tar-header tar-magic",
        lambda: archive(file(b"f", magic=b"ustar\x0017")),
    ),
    ArchiveCase(
        "local and central", "a long name for nothing", "pax-order truncated zip-end", lambda: archive(long(b"x"))
    ),
    ArchiveCase(
        "local and central",
        "two long names",
        "pax-order",
        lambda: archive(long(b"x"), long(b"y"), file(b"f", magic=GNU)),
    ),
    ArchiveCase(
        "local and central",
        "a long target of a file",
        "pax-order link-target",
        lambda: archive(long(b"x", tars.LONG_LINK), file(b"f", magic=GNU)),
    ),
    ArchiveCase(
        "local and central",
        "a linkpath of a file",
        "pax-record pax-order link-target",
        lambda: with_pax((b"linkpath", b"../x")),
    ),
]


CASES = [*OVERRIDE, *DESYNC, *SPARSE, *AROUND]
