"""Hostile zip archives: names, links, kinds, modes, encryption."""

from collections.abc import Sequence
from dataclasses import replace

from tests.archives import zips
from tests.archives.cases import LIMITS, ArchiveCase
from tests.archives.names import NAMES
from tests.archives.zips import DEFLATED, LINK_MODE, ZipEntry, archive, folder, link

ZEROS = bytes(30 << 20)
SCALED = replace(LIMITS, ratio_after_bytes=1 << 20)
A, B = ZipEntry(b"a.txt", b"first\n"), ZipEntry(b"b.txt", b"second\n")


def zip_of_one(name: bytes = b"a.txt", data: bytes = b"hello\n", **options: object) -> bytes:
    """Return an archive of one entry."""
    return archive(ZipEntry(name, data, **options))


def zip_with_link(target: bytes, *other_entries: ZipEntry) -> bytes:
    """Return an archive with a link among other entries."""
    return archive(*other_entries, link(b"l", target))


def long_links() -> bytes:
    """Return the archive of CVE-2025-4517. Short links lead to folders with long names. The resolved path exceeds
    PATH_MAX, so that vulnerable programs do not check it."""
    segment, parts, path = b"d" * 247, list[ZipEntry](), b""
    for letter in b"abcdefghijklmnop":
        parts.append(folder(path + segment + b"/"))
        parts.append(link(path + bytes([letter]), segment))
        path += bytes([letter]) + b"/"
    parts.append(link(path + b"l" * 254, b"../" * 16))
    return archive(*parts, link(b"escape", path + b"l" * 254 + b"/../../../etc"), ZipEntry(b"escape/new"))


LINKS = [
    ArchiveCase("symlink escape", "dot dot", "link-escape link-absolute", lambda: zip_with_link(b"../escaped")),
    ArchiveCase("symlink escape", "dot dot alone", "link-escape link-absolute", lambda: zip_with_link(b"..")),
    ArchiveCase("symlink escape", "absolute", "link-escape link-absolute", lambda: zip_with_link(b"/etc/passwd")),
    ArchiveCase(
        "symlink escape",
        "in, then out",
        "link-escape link-absolute",
        lambda: zip_with_link(b"a/../../x", folder(b"a/")),
    ),
    ArchiveCase(
        "symlink escape",
        "from below",
        "link-escape link-absolute",
        lambda: archive(folder(b"d/"), link(b"d/l", b"../../x")),
    ),
    ArchiveCase(
        "symlink escape", "with backslashes", "link-escape link-absolute link-target", lambda: zip_with_link(b"..\\x")
    ),
    ArchiveCase(
        "symlink escape", "to a drive", "link-escape link-absolute link-target", lambda: zip_with_link(b"C:\\x")
    ),
    ArchiveCase(
        "symlink escape",
        "to a drive with a slash",
        "link-escape link-absolute link-target",
        lambda: zip_with_link(b"C:/x"),
    ),
    ArchiveCase("symlink escape", "to nothing", "link-target", lambda: zip_with_link(b"")),
    ArchiveCase("symlink escape", "with a NUL", "link-target", lambda: zip_with_link(b"a\x00b")),
    ArchiveCase(
        "symlink escape", "to a target that is not UTF-8", "link-target not-utf8", lambda: zip_with_link(b"\xff\xfe")
    ),
    ArchiveCase(
        "symlink escape",
        "through another link",
        "link-escape link-absolute",
        lambda: archive(folder(b"d/"), link(b"d/up", b".."), link(b"l", b"d/up/../x")),
    ),
    ArchiveCase(
        "symlink escape",
        "through a link that comes later",
        "link-escape link-absolute",
        lambda: archive(folder(b"d/"), link(b"l", b"d/up/../x"), link(b"d/up", b"..")),
    ),
    ArchiveCase(
        "symlink escape",
        "deflated",
        "link-escape link-absolute",
        lambda: archive(ZipEntry(b"l", b"../x", DEFLATED, mode=LINK_MODE)),
    ),
    ArchiveCase(
        "symlink escape",
        "of macOS",
        "link-escape link-absolute",
        lambda: archive(ZipEntry(b"l", b"../x", mode=LINK_MODE, central={"made_by": zips.MACOS << 8 | 30})),
    ),
    ArchiveCase(
        "write through a link",
        "inside",
        "write-through-link file-against-folder",
        lambda: archive(folder(b"d/"), link(b"l", b"d"), ZipEntry(b"l/x")),
    ),
    ArchiveCase(
        "write through a link",
        "the link comes later",
        "write-through-link file-against-folder",
        lambda: archive(ZipEntry(b"l/x"), link(b"l", b"d")),
    ),
    ArchiveCase(
        "write through a link",
        "a folder below",
        "write-through-link file-against-folder",
        lambda: archive(link(b"l", b"d"), folder(b"l/x/")),
    ),
    ArchiveCase(
        "write through a link",
        "through a name that differs in letter case",
        "write-through-link file-against-folder collision",
        lambda: archive(link(b"l", b"d"), ZipEntry(b"L/x")),
    ),
    ArchiveCase(
        "write through a link",
        "the link's own name",
        "duplicate-name file-against-folder",
        lambda: archive(link(b"l", b"d"), ZipEntry(b"l")),
    ),
    ArchiveCase(
        "write through a link",
        "a folder of its name",
        "duplicate-name file-against-folder",
        lambda: archive(link(b"l", b"d"), folder(b"l/")),
    ),
    ArchiveCase(
        "chains past PATH_MAX",
        "CVE-2025-4517",
        "link-escape link-absolute write-through-link file-against-folder",
        long_links,
    ),
    ArchiveCase("link with payload", "a target of 5,000 bytes", "path-too-long", lambda: zip_with_link(b"x" * 5000)),
    ArchiveCase(
        "link with payload",
        "a target that is a bomb",
        "path-too-long",
        lambda: archive(ZipEntry(b"l", ZEROS, DEFLATED, mode=LINK_MODE)),
    ),
    ArchiveCase(
        "link with payload", "a target of two lines", "link-target control-character", lambda: zip_with_link(b"a\nb")
    ),
]

CIRCLE = archive(link(b"a", b"b"), link(b"b", b"a"))
CHAIN = archive(*(link(b"%d" % number, b"%d" % (number + 1)) for number in range(18)), ZipEntry(b"18"))
BEYOND = [
    ArchiveCase(
        "control characters",
        "UTF-8 of DOS that does not say so",
        "not-utf8",
        lambda: zip_of_one("é".encode(), local={"flags": 0}, central={"flags": 0, "made_by": 20}),
    ),
    ArchiveCase("symlink escape", "a circle", "link-chain", lambda: CIRCLE),
    ArchiveCase("symlink escape", "a chain of 18", "link-chain", lambda: CHAIN),
    ArchiveCase(
        "symlink escape",
        "of DOS",
        "kind-mismatch",
        lambda: archive(ZipEntry(b"l", b"a", mode=LINK_MODE, central={"made_by": 20})),
    ),
    ArchiveCase(
        "encrypted",
        "by an extra field alone",
        "encrypted",
        lambda: zip_of_one(extra=zips.extra_field(0x9901, bytes(7))),
    ),
    ArchiveCase(
        "encrypted",
        "by a field of strong encryption",
        "encrypted",
        lambda: zip_of_one(extra=zips.extra_field(0x17, bytes(8))),
    ),
    ArchiveCase(
        "device nodes",
        "by an extra field",
        "extra-field",
        lambda: zip_of_one(extra=zips.extra_field(0x756E, bytes(14))),
    ),
    ArchiveCase(
        "control characters",
        "UTF-8 that does not say so",
        "not-utf8",
        lambda: zip_of_one("é".encode(), local={"flags": 0}, central={"flags": 0}),
        is_only_strict=True,
    ),
    ArchiveCase(
        "control characters",
        "neither ASCII nor UTF-8",
        "not-utf8",
        lambda: zip_of_one(b"\x80", local={"flags": 0}, central={"flags": 0}),
    ),
]

KINDS = [
    *(
        ArchiveCase(
            "device nodes",
            name,
            "special-file",
            lambda mode=mode: zip_of_one(b"n", b"", mode=mode | 0o644),
        )
        for name, mode in (("characters", 0o020000), ("blocks", 0o060000), ("a socket", 0o140000))
    ),
    ArchiveCase("fifo", "as a file", "special-file", lambda: zip_of_one(b"n", b"", mode=0o010644)),
    ArchiveCase("fifo", "with bytes", "special-file", lambda: zip_of_one(b"n", mode=0o010644)),
    ArchiveCase("device nodes", "an unknown kind", "special-file", lambda: zip_of_one(b"n", b"", mode=0o170644)),
    ArchiveCase("set id and sticky", "user", "special-mode", lambda: zip_of_one(mode=0o104755), is_only_strict=True),
    ArchiveCase("set id and sticky", "group", "special-mode", lambda: zip_of_one(mode=0o102755), is_only_strict=True),
    ArchiveCase("set id and sticky", "sticky", "special-mode", lambda: zip_of_one(mode=0o101755), is_only_strict=True),
    ArchiveCase(
        "set id and sticky",
        "of a folder",
        "special-mode",
        lambda: archive(ZipEntry(b"d/", b"", mode=0o42777)),
        is_only_strict=True,
    ),
    ArchiveCase("mode 000", "of a file", "no-permission", lambda: zip_of_one(mode=0o100000), is_only_strict=True),
    ArchiveCase(
        "mode 000",
        "of a folder",
        "no-permission",
        lambda: archive(ZipEntry(b"d/", b"", mode=0o40000)),
        is_only_strict=True,
    ),
    ArchiveCase(
        "file and folder",
        "a name with a slash and bytes",
        "kind-mismatch special-file tar-type size file-against-folder",
        lambda: zip_of_one(b"d/", b"data"),
    ),
    ArchiveCase(
        "file and folder",
        "a folder of no slash",
        "kind-mismatch",
        lambda: zip_of_one(b"d", b"", mode=zips.FOLDER_MODE),
    ),
    ArchiveCase("file and folder", "a file's mode on a folder", "kind-mismatch", lambda: zip_of_one(b"d/", b"")),
    ArchiveCase(
        "file and folder",
        "a folder of DOS with bytes",
        "kind-mismatch",
        lambda: zip_of_one(b"d", central={"external": 0x10, "made_by": 20}),
    ),
    ArchiveCase(
        "file and folder",
        "a link with a slash",
        "kind-mismatch",
        lambda: archive(link(b"l/", b"a")),
    ),
    ArchiveCase(
        "file and folder",
        "a folder, then a file",
        "file-against-folder duplicate-name",
        lambda: archive(folder(b"a/"), ZipEntry(b"a")),
    ),
    ArchiveCase(
        "file and folder",
        "a file, then a folder",
        "file-against-folder duplicate-name",
        lambda: archive(ZipEntry(b"a"), folder(b"a/")),
    ),
    ArchiveCase("duplicates", "of a folder", "duplicate-name", lambda: archive(folder(b"a/"), folder(b"a/"))),
    ArchiveCase("absolute", "a folder alone", "absolute-path", lambda: archive(folder(b"/"))),
    ArchiveCase("dot dot", "a folder alone", "dot-dot", lambda: archive(folder(b"../"))),
    ArchiveCase("dot dot", "no name", "empty-name dot", lambda: zip_of_one(b"")),
    ArchiveCase("control characters", "a NUL", "control-character", lambda: zip_of_one(b"a\x00.txt")),
    ArchiveCase(
        "control characters", "no UTF-8 but declared so", "not-utf8", lambda: zip_of_one(b"a\xff", flags=zips.UTF8)
    ),
]

ENCRYPTED = [
    ArchiveCase("encrypted", "declared twice", "encrypted", lambda: zip_of_one(flags=1)),
    ArchiveCase(
        "encrypted", "declared in front alone", "encrypted local-mismatch", lambda: zip_of_one(local={"flags": 1})
    ),
    ArchiveCase(
        "encrypted",
        "declared in the directory alone",
        "encrypted local-mismatch",
        lambda: zip_of_one(central={"flags": 1}),
    ),
    ArchiveCase("encrypted", "the first alone", "encrypted", lambda: archive(replace(A, flags=1), B)),
    ArchiveCase("encrypted", "the last alone", "encrypted", lambda: archive(A, replace(B, flags=1))),
    ArchiveCase("encrypted", "strongly", "encrypted", lambda: zip_of_one(flags=1 | 1 << 6)),
    ArchiveCase("encrypted", "the directory", "encrypted", lambda: zip_of_one(flags=1 << 13)),
    ArchiveCase(
        "encrypted",
        "by AES",
        "encrypted compression-method",
        lambda: zip_of_one(method=99, extra=zips.extra_field(0x9901, b"\x02\x00AE\x03\x08\x00")),
    ),
    *(
        ArchiveCase(
            "odd methods", f"method {method}", "compression-method", lambda method=method: zip_of_one(method=method)
        )
        for method in (1, 6, 9, 10, 18, 96, 97, 98, 0xFFFF)
    ),
    ArchiveCase(
        "odd methods", "patched data", "encrypted zip-flags compression-method", lambda: zip_of_one(flags=1 << 5)
    ),
]


def zip_of_names(names: Sequence[str]) -> bytes:
    """Return an archive of files with these names and different contents."""
    return archive(*(ZipEntry(name.encode(), b"%d\n" % number) for number, name in enumerate(names)))


def folders(name: str) -> bytes:
    """Return a folder with this name."""
    return archive(folder(name.encode() + b"/"))


BY_NAME = [
    *(
        ArchiveCase(
            name.threat,
            name.trick,
            name.rules,
            lambda names_case=name: zip_of_names(names_case.names),
            is_only_strict=name.is_only_strict,
        )
        for name in NAMES
    ),
    *(
        ArchiveCase(
            name.threat,
            f"{name.trick}, a folder",
            name.rules,
            lambda names_case=name: folders(names_case.names[0]),
            is_only_strict=name.is_only_strict,
        )
        for name in NAMES
        if len(name.names) == 1 and name.threat not in ("file and folder",)
    ),
]

CASES = [*BEYOND, *LINKS, *KINDS, *ENCRYPTED, *BY_NAME]
