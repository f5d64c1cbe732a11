"""Zip bombs: by ratio, by count, by overlap, by their directory; and zip archives with false sizes."""

from collections.abc import Sequence
from dataclasses import replace

from tests.archives import zips
from tests.archives.cases import LIMITS, ArchiveCase
from tests.archives.zips import DEFLATED, EndRecord, Zip64EndRecord, ZipArchive, ZipEntry, archive, deflate_stored

ZEROS = bytes(30 << 20)
SCALED = replace(LIMITS, ratio_after_bytes=1 << 20)
A, B = ZipEntry(b"a.txt", b"first\n"), ZipEntry(b"b.txt", b"second\n")


def zip_of_one(name: bytes = b"a.txt", data: bytes = b"hello\n", **options: object) -> bytes:
    """Return an archive of one entry."""
    return archive(ZipEntry(name, data, **options))


def quoting_bomb(count: int) -> bytes:
    """Return a bomb with the overlap by Fifield: every entry except the last quotes the next local header in a stored
    block."""
    items = [ZipEntry(b"%d" % count, bytes(1 << 20), DEFLATED)]
    for number in range(count - 1, 0, -1):
        following = items[0]
        header = following.written()[: -len(following.payload())]
        block = b"\x00" + deflate_stored(header)[1:]
        items.insert(0, ZipEntry(b"%d" % number, header + following.data, DEFLATED, packed=block + following.payload()))
    offsets, offset = list[int](), 0
    for item, following in zip(items, [*items[1:], None], strict=True):
        offsets.append(offset)
        header = len(item.written()) - len(item.payload())
        offset += header + (5 if following else 0)
    first_item = items[0].written()
    return first_item + ZipArchive(listed=list(zip(items, offsets, strict=True)), shift=len(first_item)).written()


def sharing_bomb(names: Sequence[bytes]) -> bytes:
    """Return a bomb with full overlap: directory entries that share one local header."""
    item = ZipEntry(names[0], bytes(1 << 20), DEFLATED)
    return ZipArchive([item], listed=[(replace(item, name=name), 0) for name in names]).written()


def nested_entry_bomb() -> bytes:
    """Return an entry that is completely inside the stored bytes of another one."""
    inner = B.written()
    outer = ZipEntry(b"a.txt", inner)
    start = len(outer.written()) - len(inner)
    return ZipArchive([outer], listed=[(outer, 0), (B, start)]).written()


BOMBS = [
    ArchiveCase("ratio bomb", "30 MB of zeros", "ratio", lambda: zip_of_one(data=ZEROS, method=DEFLATED), SCALED),
    ArchiveCase(
        "ratio bomb", "at the usual limits", "ratio", lambda: zip_of_one(data=bytes(72 << 20), method=DEFLATED)
    ),
    ArchiveCase(
        "ratio bomb",
        "in many entries",
        "ratio",
        lambda: archive(*(ZipEntry(b"%d" % n, bytes(100_000), DEFLATED) for n in range(40))),
        SCALED,
    ),
    ArchiveCase(
        "ratio bomb",
        "in all too much",
        "too-large",
        lambda: archive(*(ZipEntry(b"%d" % n, bytes(5000)) for n in range(5))),
        replace(LIMITS, total_bytes=20_000),
    ),
    ArchiveCase("overlap", "quoted", "overlap", lambda: quoting_bomb(20)),
    ArchiveCase("overlap", "full, one name", "duplicate-name overlap", lambda: sharing_bomb([b"a"] * 30)),
    ArchiveCase(
        "overlap", "full, many names", "overlap local-mismatch", lambda: sharing_bomb([b"%d" % n for n in range(30)])
    ),
    ArchiveCase("overlap", "an entry within another", "overlap", nested_entry_bomb),
    ArchiveCase(
        "overlap",
        "an entry within the directory",
        "overlap truncated",
        lambda: ZipArchive(
            [ZipEntry(b"a", b"12", central={"packed": 30, "size": 30}, local={"packed": 30, "size": 30})]
        ).written(),
    ),
    ArchiveCase(
        "entry count",
        "more than allowed",
        "too-many-entries",
        lambda: archive(*(ZipEntry(b"%d" % n) for n in range(11))),
        replace(LIMITS, entries=10),
    ),
    ArchiveCase(
        "entry count",
        "65,535 declared, one there",
        "directory-size zip-end entry-count too-many-entries",
        lambda: ZipArchive([A], end=EndRecord(count_on_disk=65535, total=65535)).written(),
    ),
    ArchiveCase(
        "huge directory",
        "2**60 entries declared",
        "directory-size zip-end entry-count too-many-entries zip64",
        lambda: ZipArchive([A], end=zips.WIDE, end_64=Zip64EndRecord(count_on_disk=1 << 60, total=1 << 60)).written(),
    ),
    ArchiveCase(
        "huge directory",
        "4 GiB declared",
        "directory-size zip-end entry-count",
        lambda: ZipArchive([A], end=EndRecord(size=0xFFFFFFFE)).written(),
    ),
    ArchiveCase(
        "huge directory",
        "2**62 bytes declared",
        "directory-size zip-end entry-count zip64",
        lambda: ZipArchive([A], end=zips.WIDE, end_64=Zip64EndRecord(size=1 << 62)).written(),
    ),
    ArchiveCase(
        "huge directory",
        "many entries in a small limit",
        "too-many-entries",
        lambda: archive(*(ZipEntry(b"%d" % n, comment=bytes(60_000)) for n in range(101))),
        replace(LIMITS, entries=100),
    ),
    ArchiveCase("timeout", "no time at all", "too-slow", lambda: archive(A, B), replace(LIMITS, seconds=0)),
    ArchiveCase(
        "timeout",
        "a long entry",
        "too-slow",
        lambda: zip_of_one(data=ZEROS, method=DEFLATED),
        replace(LIMITS, seconds=0),
    ),
]

BOTH_10 = {"local": {"size": 10}, "central": {"size": 10}}
LARGE = bytes(range(256)) * 1200
STREAM = zips.deflate(LARGE)
SIZES = [
    ArchiveCase(
        "lying sizes",
        "large, a wrong check sum",
        "checksum",
        lambda: zip_of_one(data=LARGE, local={"crc": 1}, central={"crc": 1}),
    ),
    ArchiveCase(
        "lying sizes",
        "large and deflated, a wrong check sum",
        "checksum",
        lambda: zip_of_one(data=LARGE, method=DEFLATED, local={"crc": 1}, central={"crc": 1}),
    ),
    ArchiveCase(
        "lying sizes",
        "large, more than declared",
        "size",
        lambda: zip_of_one(data=LARGE, method=DEFLATED, local={"size": 300_000}, central={"size": 300_000}),
    ),
    ArchiveCase(
        "lying sizes",
        "large, less than declared",
        "size",
        lambda: zip_of_one(data=LARGE, method=DEFLATED, local={"size": 400_000}, central={"size": 400_000}),
    ),
    ArchiveCase(
        "lying sizes",
        "large, a broken stream",
        "compression",
        lambda: zip_of_one(data=LARGE, method=DEFLATED, packed=STREAM[:99] + b"\xff" * 9 + STREAM[108:]),
    ),
    ArchiveCase(
        "lying sizes",
        "large, a stream without an end",
        "compression",
        lambda: zip_of_one(data=LARGE, method=DEFLATED, packed=STREAM[:-9]),
    ),
    ArchiveCase(
        "lying sizes",
        "large, bytes behind the stream",
        "compression",
        lambda: zip_of_one(data=LARGE, method=DEFLATED, packed=STREAM + b"junk"),
    ),
    ArchiveCase(
        "entry count",
        "one declared, two there",
        "entry-count",
        lambda: ZipArchive([A, B], end=EndRecord(count_on_disk=1, total=1)).written(),
    ),
    ArchiveCase(
        "entry count",
        "three declared, two there",
        "entry-count",
        lambda: ZipArchive(
            [replace(A, comment=bytes(30)), replace(B, comment=bytes(30))], end=EndRecord(count_on_disk=3, total=3)
        ).written(),
    ),
    ArchiveCase(
        "entry count",
        "bytes behind the last of the directory",
        "gap",
        lambda: ZipArchive([A], end=EndRecord(size=66), after_directory=bytes(15)).written(),
    ),
    ArchiveCase(
        "entry count",
        "a directory without signatures",
        "zip-record",
        lambda: archive(A).replace(b"PK\x01\x02", b"PK\x01\x03"),
    ),
    ArchiveCase(
        "entry count",
        "a small directory of many",
        "directory-size",
        lambda: ZipArchive([A], end=EndRecord(count_on_disk=100, total=100)).written(),
    ),
    ArchiveCase(
        "lying sizes",
        "10 bytes declared, 30 MB there",
        "size",
        lambda: zip_of_one(data=ZEROS, method=DEFLATED, **BOTH_10),
    ),
    ArchiveCase(
        "lying sizes",
        "more declared than there",
        "size",
        lambda: zip_of_one(method=DEFLATED, local={"size": 9}, central={"size": 9}),
    ),
    ArchiveCase(
        "lying sizes",
        "stored in two sizes",
        "size local-mismatch",
        lambda: zip_of_one(local={"size": 5}, central={"size": 5}),
    ),
    ArchiveCase(
        "lying sizes",
        "packed beyond the end",
        "ratio truncated overlap",
        lambda: zip_of_one(local={"packed": 1 << 30, "size": 1 << 30}, central={"packed": 1 << 30, "size": 1 << 30}),
    ),
    ArchiveCase(
        "lying sizes", "a wrong check sum", "checksum", lambda: zip_of_one(local={"crc": 1}, central={"crc": 1})
    ),
    ArchiveCase(
        "lying sizes",
        "a wrong check sum of nothing",
        "checksum",
        lambda: zip_of_one(data=b"", local={"crc": 1}, central={"crc": 1}),
    ),
    ArchiveCase(
        "lying sizes",
        "bytes behind the stream",
        "compression size",
        lambda: zip_of_one(method=DEFLATED, packed=zips.deflate(b"hello\n") + b"junk"),
    ),
    ArchiveCase(
        "lying sizes",
        "a stream without an end",
        "compression truncated size",
        lambda: zip_of_one(method=DEFLATED, packed=zips.deflate(b"hello\n")[:-1]),
    ),
    ArchiveCase(
        "lying sizes", "no stream", "compression", lambda: zip_of_one(method=DEFLATED, packed=b"\xff\xff\xff\xff")
    ),
    ArchiveCase(
        "lying sizes",
        "an offset beyond the end",
        "leading-data truncated",
        lambda: zip_of_one(central={"offset": 0xFFFFFF}),
    ),
    ArchiveCase(
        "lying sizes", "an offset into the middle", "leading-data zip-record", lambda: zip_of_one(central={"offset": 3})
    ),
    ArchiveCase("lying sizes", "cut in the end", "truncated zip-end trailing-data", lambda: archive(A)[:-5]),
    ArchiveCase("lying sizes", "cut in the directory", "truncated zip-end", lambda: archive(A)[:-30]),
]

CASES = [*BOMBS, *SIZES]
