"""Hostile zip archives: bombs, sizes, paths, links, kinds, modes and what stands around the entries."""

import struct
from collections.abc import Sequence
from dataclasses import replace

from tests.archives import zips
from tests.archives.cases import LIMITS, Case
from tests.archives.names import NAMES
from tests.archives.zips import DEFLATED, LINK_MODE, Archive, End, End64, Item, archive, folder, inflated_by_none, link

ZEROS = bytes(30 << 20)
SCALED = replace(LIMITS, ratio_after_bytes=1 << 20)
A, B = Item(b"a.txt", b"first\n"), Item(b"b.txt", b"second\n")


def one(name: bytes = b"a.txt", data: bytes = b"hello\n", **rest: object) -> bytes:
    """An archive of one entry."""
    return archive(Item(name, data, **rest))


def linked(target: bytes, *others: Item) -> bytes:
    """An archive of others and a link."""
    return archive(*others, link(b"l", target))


def quoted(count: int) -> bytes:
    """Fifield's overlap: every entry but the last quotes the next local header in a stored block, then shares the rest
    (A better zip bomb, 2019)."""
    items = [Item(b"%d" % count, bytes(1 << 20), DEFLATED)]
    for number in range(count - 1, 0, -1):
        following = items[0]
        header = following.written()[: -len(following.payload())]
        block = b"\x00" + inflated_by_none(header)[1:]
        items.insert(0, Item(b"%d" % number, header + following.data, DEFLATED, packed=block + following.payload()))
    places, place = list[int](), 0
    for item, following in zip(items, [*items[1:], None], strict=True):
        places.append(place)
        header = len(item.written()) - len(item.payload())
        place += header + (5 if following else 0)
    first = items[0].written()
    return first + Archive(listed=list(zip(items, places, strict=True)), shift=len(first)).written()


def shared(names: Sequence[bytes]) -> bytes:
    """Full overlap: entries of the directory with one local header for all."""
    item = Item(names[0], bytes(1 << 20), DEFLATED)
    return Archive([item], listed=[(replace(item, name=name), 0) for name in names]).written()


def swallowed() -> bytes:
    """An entry that stands whole within the stored bytes of another one."""
    inner = B.written()
    outer = Item(b"a.txt", inner)
    start = len(outer.written()) - len(inner)
    return Archive([outer], listed=[(outer, 0), (B, start)]).written()


def long_links() -> bytes:
    """CVE-2025-4517: short links stand for long folders, so that the resolved path passes PATH_MAX and is no longer
    checked."""
    segment, parts, path = b"d" * 247, list[Item](), b""
    for letter in b"abcdefghijklmnop":
        parts.append(folder(path + segment + b"/"))
        parts.append(link(path + bytes([letter]), segment))
        path += bytes([letter]) + b"/"
    parts.append(link(path + b"l" * 254, b"../" * 16))
    return archive(*parts, link(b"escape", path + b"l" * 254 + b"/../../../etc"), Item(b"escape/new"))


BOMBS = [
    Case("ratio bomb", "30 MB of zeros", "ratio", lambda: one(data=ZEROS, method=DEFLATED), SCALED),
    Case("ratio bomb", "at the usual limits", "ratio", lambda: one(data=bytes(72 << 20), method=DEFLATED)),
    Case(
        "ratio bomb",
        "in many entries",
        "ratio",
        lambda: archive(*(Item(b"%d" % n, bytes(100_000), DEFLATED) for n in range(40))),
        SCALED,
    ),
    Case(
        "ratio bomb",
        "in all too much",
        "too-large",
        lambda: archive(*(Item(b"%d" % n, bytes(5000)) for n in range(5))),
        replace(LIMITS, total_bytes=20_000),
    ),
    Case("overlap", "quoted", "overlap", lambda: quoted(20)),
    Case("overlap", "full, one name", "duplicate-name overlap", lambda: shared([b"a"] * 30)),
    Case("overlap", "full, many names", "overlap local-mismatch", lambda: shared([b"%d" % n for n in range(30)])),
    Case("overlap", "an entry within another", "overlap", swallowed),
    Case("overlap", "an entry within the directory", "overlap truncated", lambda: Archive([Item(b"a", b"12", central={"packed": 30, "size": 30}, local={"packed": 30, "size": 30})]).written()),
    Case("entry count", "more than allowed", "too-many-entries", lambda: archive(*(Item(b"%d" % n) for n in range(11))), replace(LIMITS, entries=10)),
    Case("entry count", "65,535 told, one there", "directory-size zip-end entry-count too-many-entries", lambda: Archive([A], end=End(here=65535, total=65535)).written()),
    Case(
        "huge directory",
        "2**60 entries told",
        "directory-size zip-end entry-count too-many-entries zip64",
        lambda: Archive([A], end=zips.WIDE, end_64=End64(here=1 << 60, total=1 << 60)).written(),
    ),
    Case("huge directory", "4 GiB told", "directory-size zip-end entry-count", lambda: Archive([A], end=End(size=0xFFFFFFFE)).written()),
    Case(
        "huge directory",
        "2**62 bytes told",
        "directory-size zip-end entry-count zip64",
        lambda: Archive([A], end=zips.WIDE, end_64=End64(size=1 << 62)).written(),
    ),
    Case(
        "huge directory",
        "many entries in a small limit",
        "too-many-entries",
        lambda: archive(*(Item(b"%d" % n, comment=bytes(60_000)) for n in range(101))),
        replace(LIMITS, entries=100),
    ),
    Case("timeout", "no time at all", "too-slow", lambda: archive(A, B), replace(LIMITS, seconds=0)),
    Case("timeout", "a long entry", "too-slow", lambda: one(data=ZEROS, method=DEFLATED), replace(LIMITS, seconds=0)),
]

BOTH_10 = {"local": {"size": 10}, "central": {"size": 10}}
SIZES = [
    Case("lying sizes", "10 bytes told, 30 MB there", "size", lambda: one(data=ZEROS, method=DEFLATED, **BOTH_10)),
    Case("lying sizes", "more told than there", "size", lambda: one(method=DEFLATED, local={"size": 9}, central={"size": 9})),
    Case("lying sizes", "stored in two sizes", "size local-mismatch", lambda: one(local={"size": 5}, central={"size": 5})),
    Case("lying sizes", "packed beyond the end", "ratio truncated overlap", lambda: one(local={"packed": 1 << 30, "size": 1 << 30}, central={"packed": 1 << 30, "size": 1 << 30})),
    Case("lying sizes", "a wrong check sum", "checksum", lambda: one(local={"crc": 1}, central={"crc": 1})),
    Case("lying sizes", "a wrong check sum of nothing", "checksum", lambda: one(data=b"", local={"crc": 1}, central={"crc": 1})),
    Case("lying sizes", "bytes behind the stream", "compression size", lambda: one(method=DEFLATED, packed=zips.deflated(b"hello\n") + b"junk")),
    Case("lying sizes", "a stream without an end", "compression truncated size", lambda: one(method=DEFLATED, packed=zips.deflated(b"hello\n")[:-1])),
    Case("lying sizes", "no stream", "compression", lambda: one(method=DEFLATED, packed=b"\xff\xff\xff\xff")),
    Case("lying sizes", "an offset beyond the end", "leading-data truncated", lambda: one(central={"offset": 0xFFFFFF})),
    Case("lying sizes", "an offset into the middle", "leading-data zip-record", lambda: one(central={"offset": 3})),
    Case("lying sizes", "cut in the end", "truncated zip-end trailing-data", lambda: archive(A)[:-5]),
    Case("lying sizes", "cut in the directory", "truncated zip-end", lambda: archive(A)[:-30]),
]

LINKS = [
    Case("symlink escape", "dot dot", "link-escape link-absolute", lambda: linked(b"../escaped")),
    Case("symlink escape", "dot dot alone", "link-escape link-absolute", lambda: linked(b"..")),
    Case("symlink escape", "absolute", "link-escape link-absolute", lambda: linked(b"/etc/passwd")),
    Case("symlink escape", "in, then out", "link-escape link-absolute", lambda: linked(b"a/../../x", folder(b"a/"))),
    Case("symlink escape", "from below", "link-escape link-absolute", lambda: archive(folder(b"d/"), link(b"d/l", b"../../x"))),
    Case("symlink escape", "with backslashes", "link-escape link-absolute link-target", lambda: linked(b"..\\x")),
    Case("symlink escape", "to a drive", "link-escape link-absolute link-target", lambda: linked(b"C:\\x")),
    Case("symlink escape", "to a drive with a slash", "link-escape link-absolute link-target", lambda: linked(b"C:/x")),
    Case("symlink escape", "to nothing", "link-target", lambda: linked(b"")),
    Case("symlink escape", "with a NUL", "link-target", lambda: linked(b"a\x00b")),
    Case("symlink escape", "of no UTF-8", "link-target not-utf8", lambda: linked(b"\xff\xfe")),
    Case(
        "symlink escape",
        "through another link",
        "link-escape link-absolute",
        lambda: archive(folder(b"d/"), link(b"d/up", b".."), link(b"l", b"d/up/../x")),
    ),
    Case(
        "symlink escape",
        "through a link that comes later",
        "link-escape link-absolute",
        lambda: archive(folder(b"d/"), link(b"l", b"d/up/../x"), link(b"d/up", b"..")),
    ),
    Case("symlink escape", "deflated", "link-escape link-absolute", lambda: archive(Item(b"l", b"../x", DEFLATED, mode=LINK_MODE))),
    Case(
        "symlink escape",
        "of macOS",
        "link-escape link-absolute",
        lambda: archive(Item(b"l", b"../x", mode=LINK_MODE, central={"made_by": zips.MACOS << 8 | 30})),
    ),
    Case("write through a link", "inside", "write-through-link file-against-folder", lambda: archive(folder(b"d/"), link(b"l", b"d"), Item(b"l/x"))),
    Case("write through a link", "the link comes later", "write-through-link file-against-folder", lambda: archive(Item(b"l/x"), link(b"l", b"d"))),
    Case("write through a link", "a folder below", "write-through-link file-against-folder", lambda: archive(link(b"l", b"d"), folder(b"l/x/"))),
    Case("write through a link", "by another case", "write-through-link file-against-folder collision", lambda: archive(link(b"l", b"d"), Item(b"L/x"))),
    Case("write through a link", "the link's own name", "duplicate-name file-against-folder", lambda: archive(link(b"l", b"d"), Item(b"l"))),
    Case("write through a link", "a folder of its name", "duplicate-name file-against-folder", lambda: archive(link(b"l", b"d"), folder(b"l/"))),
    Case("chains past PATH_MAX", "CVE-2025-4517", "link-escape link-absolute write-through-link file-against-folder", long_links),
    Case("link with payload", "a target of 5,000 bytes", "path-too-long", lambda: linked(b"x" * 5000)),
    Case("link with payload", "a target that is a bomb", "path-too-long", lambda: archive(Item(b"l", ZEROS, DEFLATED, mode=LINK_MODE))),
    Case("link with payload", "a target of two lines", "link-target control-character", lambda: linked(b"a\nb")),
]

KINDS = [
    *(
        Case("device nodes", name, "kind-mismatch special-file tar-type", lambda mode=mode: one(b"n", b"", mode=mode | 0o644))
        for name, mode in (("characters", 0o020000), ("blocks", 0o060000), ("a socket", 0o140000))
    ),
    Case("fifo", "as a file", "kind-mismatch special-file tar-type", lambda: one(b"n", b"", mode=0o010644)),
    Case("fifo", "with bytes", "kind-mismatch special-file tar-type", lambda: one(b"n", mode=0o010644)),
    Case("device nodes", "an unknown kind", "kind-mismatch special-file tar-type", lambda: one(b"n", b"", mode=0o170644)),
    Case("set id and sticky", "user", "special-mode", lambda: one(mode=0o104755), is_only_strict=True),
    Case("set id and sticky", "group", "special-mode", lambda: one(mode=0o102755), is_only_strict=True),
    Case("set id and sticky", "sticky", "special-mode", lambda: one(mode=0o101755), is_only_strict=True),
    Case("set id and sticky", "of a folder", "special-mode", lambda: archive(Item(b"d/", b"", mode=0o42777)), is_only_strict=True),
    Case("mode 000", "of a file", "no-permission", lambda: one(mode=0o100000), is_only_strict=True),
    Case("mode 000", "of a folder", "no-permission", lambda: archive(Item(b"d/", b"", mode=0o40000)), is_only_strict=True),
    Case("file and folder", "a name with a slash and bytes", "kind-mismatch special-file tar-type size file-against-folder", lambda: one(b"d/", b"data")),
    Case("file and folder", "a folder of no slash", "kind-mismatch special-file tar-type", lambda: one(b"d", b"", mode=zips.FOLDER_MODE)),
    Case("file and folder", "a file's mode on a folder", "kind-mismatch special-file tar-type", lambda: one(b"d/", b"")),
    Case("file and folder", "a folder of DOS with bytes", "kind-mismatch special-file tar-type", lambda: one(b"d", central={"external": 0x10, "made_by": 20})),
    Case("file and folder", "a link with a slash", "kind-mismatch special-file tar-type", lambda: archive(link(b"l/", b"a"))),
    Case("file and folder", "a folder, then a file", "file-against-folder duplicate-name", lambda: archive(folder(b"a/"), Item(b"a"))),
    Case("file and folder", "a file, then a folder", "file-against-folder duplicate-name", lambda: archive(Item(b"a"), folder(b"a/"))),
    Case("duplicates", "of a folder", "duplicate-name", lambda: archive(folder(b"a/"), folder(b"a/"))),
    Case("absolute", "a folder alone", "absolute-path", lambda: archive(folder(b"/"))),
    Case("dot dot", "a folder alone", "dot-dot", lambda: archive(folder(b"../"))),
    Case("dot dot", "no name", "empty-name dot", lambda: one(b"")),
    Case("control characters", "a NUL", "control-character", lambda: one(b"a\x00.txt")),
    Case("control characters", "no UTF-8 but told so", "not-utf8", lambda: one(b"a\xff", flags=zips.UTF8)),
]

ENCRYPTED = [
    Case("encrypted", "told twice", "encrypted", lambda: one(flags=1)),
    Case("encrypted", "told in front alone", "encrypted local-mismatch", lambda: one(local={"flags": 1})),
    Case("encrypted", "told in the directory alone", "encrypted local-mismatch", lambda: one(central={"flags": 1})),
    Case("encrypted", "the first alone", "encrypted", lambda: archive(replace(A, flags=1), B)),
    Case("encrypted", "the last alone", "encrypted", lambda: archive(A, replace(B, flags=1))),
    Case("encrypted", "strongly", "encrypted", lambda: one(flags=1 | 1 << 6)),
    Case("encrypted", "the directory", "encrypted", lambda: one(flags=1 << 13)),
    Case("encrypted", "by AES", "encrypted compression-method", lambda: one(method=99, extra=zips.extra(0x9901, b"\x02\x00AE\x03\x08\x00"))),
    *(
        Case("odd methods", f"method {method}", "compression-method", lambda method=method: one(method=method))
        for method in (1, 6, 9, 10, 18, 96, 97, 98, 0xFFFF)
    ),
    Case("odd methods", "patched data", "encrypted zip-flags compression-method", lambda: one(flags=1 << 5)),
]


def named(names: Sequence[str]) -> bytes:
    """Files of these names with bytes that differ."""
    return archive(*(Item(name.encode(), b"%d\n" % number) for number, name in enumerate(names)))


def folders(name: str) -> bytes:
    """A folder of the name."""
    return archive(folder(name.encode() + b"/"))


BY_NAME = [
    *(Case(each.threat, each.trick, each.rules, lambda each=each: named(each.names), is_only_strict=each.is_only_strict) for each in NAMES),
    *(
        Case(each.threat, f"{each.trick}, a folder", each.rules, lambda each=each: folders(each.names[0]), is_only_strict=each.is_only_strict)
        for each in NAMES
        if len(each.names) == 1 and each.threat not in ("file and folder",)
    ),
]

CASES = [*BOMBS, *SIZES, *LINKS, *KINDS, *ENCRYPTED, *BY_NAME]


def spanned(number: int) -> bytes:
    """The number of a disk, as a marker of spanned archives has it."""
    return struct.pack("<I", number)
