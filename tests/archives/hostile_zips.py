"""Hostile zip archives: names, links, kinds, modes, encryption."""

from collections.abc import Sequence
from dataclasses import replace

from tests.archives import zips
from tests.archives.cases import LIMITS, Case
from tests.archives.names import NAMES
from tests.archives.zips import DEFLATED, LINK_MODE, Item, archive, folder, link

ZEROS = bytes(30 << 20)
SCALED = replace(LIMITS, ratio_after_bytes=1 << 20)
A, B = Item(b"a.txt", b"first\n"), Item(b"b.txt", b"second\n")


def one(name: bytes = b"a.txt", data: bytes = b"hello\n", **rest: object) -> bytes:
    """An archive of one entry."""
    return archive(Item(name, data, **rest))


def linked(target: bytes, *others: Item) -> bytes:
    """An archive with a link among other entries."""
    return archive(*others, link(b"l", target))


def long_links() -> bytes:
    """CVE-2025-4517: short links stand for long folders, so that the resolved path exceeds PATH_MAX and is no longer
    checked."""
    segment, parts, path = b"d" * 247, list[Item](), b""
    for letter in b"abcdefghijklmnop":
        parts.append(folder(path + segment + b"/"))
        parts.append(link(path + bytes([letter]), segment))
        path += bytes([letter]) + b"/"
    parts.append(link(path + b"l" * 254, b"../" * 16))
    return archive(*parts, link(b"escape", path + b"l" * 254 + b"/../../../etc"), Item(b"escape/new"))


LINKS = [
    Case("symlink escape", "dot dot", "link-escape link-absolute", lambda: linked(b"../escaped")),
    Case("symlink escape", "dot dot alone", "link-escape link-absolute", lambda: linked(b"..")),
    Case("symlink escape", "absolute", "link-escape link-absolute", lambda: linked(b"/etc/passwd")),
    Case("symlink escape", "in, then out", "link-escape link-absolute", lambda: linked(b"a/../../x", folder(b"a/"))),
    Case(
        "symlink escape",
        "from below",
        "link-escape link-absolute",
        lambda: archive(folder(b"d/"), link(b"d/l", b"../../x")),
    ),
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
    Case(
        "symlink escape",
        "deflated",
        "link-escape link-absolute",
        lambda: archive(Item(b"l", b"../x", DEFLATED, mode=LINK_MODE)),
    ),
    Case(
        "symlink escape",
        "of macOS",
        "link-escape link-absolute",
        lambda: archive(Item(b"l", b"../x", mode=LINK_MODE, central={"made_by": zips.MACOS << 8 | 30})),
    ),
    Case(
        "write through a link",
        "inside",
        "write-through-link file-against-folder",
        lambda: archive(folder(b"d/"), link(b"l", b"d"), Item(b"l/x")),
    ),
    Case(
        "write through a link",
        "the link comes later",
        "write-through-link file-against-folder",
        lambda: archive(Item(b"l/x"), link(b"l", b"d")),
    ),
    Case(
        "write through a link",
        "a folder below",
        "write-through-link file-against-folder",
        lambda: archive(link(b"l", b"d"), folder(b"l/x/")),
    ),
    Case(
        "write through a link",
        "by another case",
        "write-through-link file-against-folder collision",
        lambda: archive(link(b"l", b"d"), Item(b"L/x")),
    ),
    Case(
        "write through a link",
        "the link's own name",
        "duplicate-name file-against-folder",
        lambda: archive(link(b"l", b"d"), Item(b"l")),
    ),
    Case(
        "write through a link",
        "a folder of its name",
        "duplicate-name file-against-folder",
        lambda: archive(link(b"l", b"d"), folder(b"l/")),
    ),
    Case(
        "chains past PATH_MAX",
        "CVE-2025-4517",
        "link-escape link-absolute write-through-link file-against-folder",
        long_links,
    ),
    Case("link with payload", "a target of 5,000 bytes", "path-too-long", lambda: linked(b"x" * 5000)),
    Case(
        "link with payload",
        "a target that is a bomb",
        "path-too-long",
        lambda: archive(Item(b"l", ZEROS, DEFLATED, mode=LINK_MODE)),
    ),
    Case("link with payload", "a target of two lines", "link-target control-character", lambda: linked(b"a\nb")),
]

CIRCLE = archive(link(b"a", b"b"), link(b"b", b"a"))
CHAIN = archive(*(link(b"%d" % number, b"%d" % (number + 1)) for number in range(18)), Item(b"18"))
BEYOND = [
    Case(
        "control characters",
        "UTF-8 of DOS that does not say so",
        "not-utf8",
        lambda: one("é".encode(), local={"flags": 0}, central={"flags": 0, "made_by": 20}),
    ),
    Case("symlink escape", "a circle", "link-chain", lambda: CIRCLE),
    Case("symlink escape", "a chain of 18", "link-chain", lambda: CHAIN),
    Case(
        "symlink escape",
        "of DOS",
        "kind-mismatch",
        lambda: archive(Item(b"l", b"a", mode=LINK_MODE, central={"made_by": 20})),
    ),
    Case("encrypted", "by an extra field alone", "encrypted", lambda: one(extra=zips.extra_field(0x9901, bytes(7)))),
    Case(
        "encrypted", "by a field of strong encryption", "encrypted", lambda: one(extra=zips.extra_field(0x17, bytes(8)))
    ),
    Case("device nodes", "by an extra field", "extra-field", lambda: one(extra=zips.extra_field(0x756E, bytes(14)))),
    Case(
        "control characters",
        "UTF-8 that does not say so",
        "not-utf8",
        lambda: one("é".encode(), local={"flags": 0}, central={"flags": 0}),
        is_only_strict=True,
    ),
    Case(
        "control characters",
        "neither ASCII nor UTF-8",
        "not-utf8",
        lambda: one(b"\x80", local={"flags": 0}, central={"flags": 0}),
    ),
]

KINDS = [
    *(
        Case(
            "device nodes",
            name,
            "special-file",
            lambda mode=mode: one(b"n", b"", mode=mode | 0o644),
        )
        for name, mode in (("characters", 0o020000), ("blocks", 0o060000), ("a socket", 0o140000))
    ),
    Case("fifo", "as a file", "special-file", lambda: one(b"n", b"", mode=0o010644)),
    Case("fifo", "with bytes", "special-file", lambda: one(b"n", mode=0o010644)),
    Case("device nodes", "an unknown kind", "special-file", lambda: one(b"n", b"", mode=0o170644)),
    Case("set id and sticky", "user", "special-mode", lambda: one(mode=0o104755), is_only_strict=True),
    Case("set id and sticky", "group", "special-mode", lambda: one(mode=0o102755), is_only_strict=True),
    Case("set id and sticky", "sticky", "special-mode", lambda: one(mode=0o101755), is_only_strict=True),
    Case(
        "set id and sticky",
        "of a folder",
        "special-mode",
        lambda: archive(Item(b"d/", b"", mode=0o42777)),
        is_only_strict=True,
    ),
    Case("mode 000", "of a file", "no-permission", lambda: one(mode=0o100000), is_only_strict=True),
    Case(
        "mode 000", "of a folder", "no-permission", lambda: archive(Item(b"d/", b"", mode=0o40000)), is_only_strict=True
    ),
    Case(
        "file and folder",
        "a name with a slash and bytes",
        "kind-mismatch special-file tar-type size file-against-folder",
        lambda: one(b"d/", b"data"),
    ),
    Case(
        "file and folder",
        "a folder of no slash",
        "kind-mismatch",
        lambda: one(b"d", b"", mode=zips.FOLDER_MODE),
    ),
    Case("file and folder", "a file's mode on a folder", "kind-mismatch", lambda: one(b"d/", b"")),
    Case(
        "file and folder",
        "a folder of DOS with bytes",
        "kind-mismatch",
        lambda: one(b"d", central={"external": 0x10, "made_by": 20}),
    ),
    Case(
        "file and folder",
        "a link with a slash",
        "kind-mismatch",
        lambda: archive(link(b"l/", b"a")),
    ),
    Case(
        "file and folder",
        "a folder, then a file",
        "file-against-folder duplicate-name",
        lambda: archive(folder(b"a/"), Item(b"a")),
    ),
    Case(
        "file and folder",
        "a file, then a folder",
        "file-against-folder duplicate-name",
        lambda: archive(Item(b"a"), folder(b"a/")),
    ),
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
    Case(
        "encrypted",
        "by AES",
        "encrypted compression-method",
        lambda: one(method=99, extra=zips.extra_field(0x9901, b"\x02\x00AE\x03\x08\x00")),
    ),
    *(
        Case("odd methods", f"method {method}", "compression-method", lambda method=method: one(method=method))
        for method in (1, 6, 9, 10, 18, 96, 97, 98, 0xFFFF)
    ),
    Case("odd methods", "patched data", "encrypted zip-flags compression-method", lambda: one(flags=1 << 5)),
]


def named(names: Sequence[str]) -> bytes:
    """Files with these names and different bytes."""
    return archive(*(Item(name.encode(), b"%d\n" % number) for number, name in enumerate(names)))


def folders(name: str) -> bytes:
    """A folder with this name."""
    return archive(folder(name.encode() + b"/"))


BY_NAME = [
    *(
        Case(
            each.threat, each.trick, each.rules, lambda each=each: named(each.names), is_only_strict=each.is_only_strict
        )
        for each in NAMES
    ),
    *(
        Case(
            each.threat,
            f"{each.trick}, a folder",
            each.rules,
            lambda each=each: folders(each.names[0]),
            is_only_strict=each.is_only_strict,
        )
        for each in NAMES
        if len(each.names) == 1 and each.threat not in ("file and folder",)
    ),
]

CASES = [*BEYOND, *LINKS, *KINDS, *ENCRYPTED, *BY_NAME]
