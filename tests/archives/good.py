"""Harmless archives written byte by byte, and their contents."""

import lzma
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from backports import zstd

from tests.archives import tars, zips
from tests.archives.tars import GNU, PAX_GLOBAL, V7, GzipMember, base256, file, folder, hard, link, long, pax
from tests.archives.zips import (
    DEFLATED,
    FF32,
    WIDE,
    EndRecord,
    Zip64EndRecord,
    ZipArchive,
    ZipEntry,
    archive,
    unicode_path,
    zip64,
)

Tree: TypeAlias = dict[str, tuple[str, bytes]]
"""Maps each path to its kind, and to its bytes or its link target. Folders that other paths imply are left out."""

HELLO: Tree = {"a.txt": ("file", b"hello\n")}
ITEM = ZipEntry()
OTHER = ZipEntry(b"b.txt", b"other\n")
BIG = {"size": FF32, "packed": FF32}
LONG = "/".join(["long folder name"] * 12) + "/" + "n" * 120
TIMES = zips.extra_field(0x5455, b"\x03" + bytes(8))
OWNER = zips.extra_field(0x7875, b"\x01\x04" + bytes(4) + b"\x04" + bytes(4))
INNER = archive(ZipEntry(b"../../escape"), ZipEntry(b"bomb", bytes(1 << 20), DEFLATED))

ZIPS: dict[str, tuple[Callable[[], bytes], Tree]] = {
    "stored": (lambda: archive(ITEM), HELLO),
    "deflated": (lambda: archive(ZipEntry(method=DEFLATED)), HELLO),
    "empty": (lambda: archive(), {}),
    "an empty file": (lambda: archive(ZipEntry(b"e", b"")), {"e": ("file", b"")}),
    "an empty file, deflated": (lambda: archive(ZipEntry(b"e", b"", DEFLATED)), {"e": ("file", b"")}),
    "a folder": (
        lambda: archive(zips.folder(b"d/"), ZipEntry(b"d/x", b"1")),
        {"d": ("folder", b""), "d/x": ("file", b"1")},
    ),
    "a folder after its file": (
        lambda: archive(ZipEntry(b"d/x", b"1"), zips.folder(b"d/")),
        {"d": ("folder", b""), "d/x": ("file", b"1")},
    ),
    "a folder of DOS": (
        lambda: archive(ZipEntry(b"d/", b"", central={"external": 0x10, "made_by": 20})),
        {"d": ("folder", b"")},
    ),
    "no attributes": (lambda: archive(ZipEntry(central={"external": 0, "made_by": 20})), HELLO),
    "a descriptor": (lambda: archive(ZipEntry(method=DEFLATED, descriptor=True)), HELLO),
    "a descriptor that the table does not announce": (
        lambda: archive(ZipEntry(method=DEFLATED, descriptor=True, central={"flags": 0}), OTHER),
        {**HELLO, "b.txt": ("file", b"other\n")},
    ),
    "a descriptor without signature": (
        lambda: archive(
            replace(
                ZipEntry(method=DEFLATED, descriptor=True),
                descriptor_bytes=zips.descriptor(0x363A3020, len(zips.deflate(b"hello\n")), 6, signed=False),
            )
        ),
        HELLO,
    ),
    "links inside": (
        lambda: archive(
            zips.folder(b"d/"), ZipEntry(b"d/x", b"1"), zips.link(b"l", b"d/x"), zips.link(b"d/up", b"../d")
        ),
        {"d": ("folder", b""), "d/x": ("file", b"1"), "l": ("link", b"d/x"), "d/up": ("link", b"../d")},
    ),
    "a name beyond ASCII": (lambda: archive(ZipEntry("naïve 名.txt".encode(), b"1")), {"naïve 名.txt": ("file", b"1")}),
    "its Unicode path beside it": (
        lambda: archive(ZipEntry("naïve".encode(), b"1", extra=unicode_path("naïve".encode(), "naïve".encode()))),
        {"naïve": ("file", b"1")},
    ),
    "times and owner": (lambda: archive(replace(ITEM, extra=TIMES + OWNER)), HELLO),
    "an archive inside": (lambda: archive(ZipEntry(b"inner.zip", INNER)), {"inner.zip": ("file", INNER)}),
    "a long path": (lambda: archive(ZipEntry(LONG.encode(), b"1")), {LONG: ("file", b"1")}),
    "a comment": (lambda: ZipArchive([ITEM], end=EndRecord(comment=b"a build of today")).written(), HELLO),
    "a comment of an entry": (lambda: archive(replace(ITEM, comment=b"the first")), HELLO),
    "Zip64": (
        lambda: ZipArchive(
            [replace(ITEM, local=BIG, central=BIG, extra=zip64(6, 6))], end=WIDE, end_64=Zip64EndRecord()
        ).written(),
        HELLO,
    ),
    "Zip64 in front alone": (lambda: archive(replace(ITEM, local=BIG, local_extra=zip64(6, 6))), HELLO),
    "a mode that runs": (lambda: archive(ZipEntry(mode=0o100755)), HELLO),
    "a directory in another order": (
        lambda: ZipArchive([ITEM, OTHER], listed=[(OTHER, len(ITEM.written())), (ITEM, 0)]).written(),
        {**HELLO, "b.txt": ("file", b"other\n")},
    ),
}


def gzip_file(data: bytes) -> bytes:
    """Return the usual gzip file."""
    return GzipMember(data).written()


SMALL = tars.archive(file(b"a.txt"))
COMMENT = pax((b"comment", b"0123456789abcdef0123456789abcdef01234567"), kind=PAX_GLOBAL, name=b"pax_global_header")

TARS: dict[str, tuple[Callable[[], bytes], Tree]] = {
    "ustar": (lambda: SMALL, HELLO),
    "a global time": (
        lambda: tars.archive(pax((b"mtime", b"1700000000.5"), kind=PAX_GLOBAL), file(b"a.txt")),
        HELLO,
    ),
    "of GNU": (lambda: tars.archive(file(b"a.txt", magic=GNU)), HELLO),
    "of a time before 1970": (
        lambda: tars.archive(file(b"a.txt", magic=GNU, raw={"mtime": base256(-86400, 12)})),
        HELLO,
    ),
    "of a time far ahead": (
        lambda: tars.archive(file(b"a.txt", magic=GNU, raw={"mtime": base256(1 << 40, 12)})),
        HELLO,
    ),
    "of blocks of 10 KiB": (lambda: tars.archive(file(b"a.txt"), block=10240), HELLO),
    "empty": (lambda: bytes(1024), {}),
    "empty, of 10 KiB": (lambda: bytes(10240), {}),
    "an empty file": (lambda: tars.archive(file(b"e", b"")), {"e": ("file", b"")}),
    "the kind of old": (lambda: tars.archive(file(b"a.txt", kind=b"\x00")), HELLO),
    "a folder": (
        lambda: tars.archive(folder(b"d/"), file(b"d/x", b"1")),
        {"d": ("folder", b""), "d/x": ("file", b"1")},
    ),
    "dot first": (
        lambda: tars.archive(folder(b"./"), folder(b"./d/"), file(b"./d/x", b"1")),
        {"d": ("folder", b""), "d/x": ("file", b"1")},
    ),
    "links inside": (
        lambda: tars.archive(folder(b"d/"), link(b"l", b"d/x"), file(b"d/x", b"1"), link(b"d/up", b"../d")),
        {"d": ("folder", b""), "d/x": ("file", b"1"), "l": ("link", b"d/x"), "d/up": ("link", b"../d")},
    ),
    "a hard link": (
        lambda: tars.archive(file(b"x", b"1"), hard(b"h", b"x")),
        {"x": ("file", b"1"), "h": ("file", b"1")},
    ),
    "a long path by prefix": (
        lambda: tars.archive(file(b"n" * 90, b"1", prefix=b"p" * 120)),
        {"p" * 120 + "/" + "n" * 90: ("file", b"1")},
    ),
    "a long path by PAX": (
        lambda: tars.archive(pax((b"path", LONG.encode())), file(LONG.encode()[:100], b"1")),
        {LONG: ("file", b"1")},
    ),
    "a long path by GNU": (
        lambda: tars.archive(long(LONG.encode()), file(LONG.encode()[:100], b"1", magic=GNU)),
        {LONG: ("file", b"1")},
    ),
    "a long target by PAX": (
        lambda: tars.archive(pax((b"linkpath", LONG.encode())), link(b"l", LONG.encode()[:100])),
        {"l": ("link", LONG.encode())},
    ),
    "a long target by GNU": (
        lambda: tars.archive(long(LONG.encode(), tars.LONG_LINK), link(b"l", LONG.encode()[:100], magic=GNU)),
        {"l": ("link", LONG.encode())},
    ),
    "dots first": (lambda: tars.archive(file(b"././a.txt")), HELLO),
    "the kind within the mode": (lambda: tars.archive(file(b"a.txt", mode=0o100644)), HELLO),
    "gzip with an extra field": (lambda: GzipMember(SMALL, 4, b"\x04\x00AP\x00\x00").written(), HELLO),
    "honest PAX": (
        lambda: tars.archive(
            pax((b"mtime", b"1.5"), (b"atime", b"1"), (b"uname", "jöran".encode()), (b"uid", b"5")), file(b"a.txt")
        ),
        HELLO,
    ),
    "a PAX size that is true": (lambda: tars.archive(pax((b"size", b"6")), file(b"a.txt")), HELLO),
    "a name beyond ASCII by PAX": (
        lambda: tars.archive(pax((b"path", "naïve 名".encode())), file("naïve 名".encode(), b"1")),
        {"naïve 名": ("file", b"1")},
    ),
    "git's comment": (lambda: tars.archive(COMMENT, file(b"a.txt")), HELLO),
    "a mode that runs": (lambda: tars.archive(file(b"a.txt", mode=0o755)), HELLO),
    "a size in base 256": (lambda: tars.archive(file(b"a.txt", magic=GNU, raw={"size": base256(6, 12)})), HELLO),
    "numbers with blanks": (
        lambda: tars.archive(file(b"a.txt", raw={"mode": b"   644 \x00", "size": b"          6 "})),
        HELLO,
    ),
    "an archive inside": (
        lambda: tars.archive(file(b"i.tar", SMALL), file(b"i.zip", INNER)),
        {"i.tar": ("file", SMALL), "i.zip": ("file", INNER)},
    ),
    "gzip": (lambda: gzip_file(SMALL), HELLO),
    "gzip with a name": (lambda: GzipMember(SMALL, 8, b"a.tar\x00").written(), HELLO),
    "xz": (lambda: lzma.compress(SMALL), HELLO),
    "xz of several blocks' checks": (lambda: lzma.compress(SMALL, check=lzma.CHECK_SHA256), HELLO),
    "zstd": (lambda: zstd.compress(SMALL), HELLO),
    "zstd with a check sum": (
        lambda: zstd.compress(SMALL, options={zstd.CompressionParameter.checksum_flag: 1}),
        HELLO,
    ),
    "an empty tar in gzip": (lambda: gzip_file(bytes(10240)), {}),
}

EMPTY_NAMES = {
    "tar, empty": "empty.tar",
    "tar, empty, of 10 KiB": "empty.tar",
    "tar, an empty tar in gzip": "empty.tar.gz",
}
"""An empty tar is all zeros, so only its name identifies it."""

COMPATIBLE: dict[str, tuple[Callable[[], bytes], Tree]] = {
    "an old tar": (lambda: tars.archive(file(b"a.txt", magic=V7)), HELLO),
    "a tar without an end": (lambda: file(b"a.txt"), HELLO),
    "setuid in tar": (lambda: tars.archive(file(b"a.txt", mode=0o4755)), HELLO),
    "setuid in zip": (lambda: archive(ZipEntry(mode=0o104755)), HELLO),
    "no permission in tar": (lambda: tars.archive(file(b"a.txt", mode=0)), HELLO),
    "no permission in zip": (lambda: archive(ZipEntry(mode=0o100000)), HELLO),
    "two slashes": (lambda: tars.archive(file(b"d//a.txt")), {"d/a.txt": ("file", b"hello\n")}),
    "decomposed names": (lambda: archive(ZipEntry("e\u0301".encode(), b"1")), {"e\u0301": ("file", b"1")}),
    "gzip of two members": (lambda: gzip_file(SMALL[:700]) + gzip_file(SMALL[700:]), HELLO),
    "xz of two streams": (lambda: lzma.compress(SMALL[:700]) + lzma.compress(SMALL[700:]), HELLO),
    "zstd of two frames": (lambda: zstd.compress(SMALL[:700]) + zstd.compress(SMALL[700:]), HELLO),
    "a global header of owners": (
        lambda: tars.archive(pax((b"uname", b"x"), (b"mtime", b"5"), kind=PAX_GLOBAL), file(b"a.txt")),
        HELLO,
    ),
    "a zip of UTF-8 names that does not say so": (
        lambda: archive(ZipEntry("naïve".encode(), b"1", central={"flags": 0}, local={"flags": 0})),
        {"naïve": ("file", b"1")},
    ),
    "a program before a zip": (
        lambda: ZipArchive([ITEM], prefix=b"MZ" + bytes(200)).written(),
        HELLO,
    ),
}
"""Archives that the profile `compatible` accepts and `strict` refuses."""

COMPATIBLE_NAMES = {"a program before a zip": "setup.zip"}
