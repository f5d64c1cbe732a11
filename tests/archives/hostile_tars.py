"""Hostile tar archives: their paths in each of three formats, links, kinds, modes, sizes and numbers."""

from collections.abc import Callable
from dataclasses import replace

from tests.archives import tars
from tests.archives.cases import LIMITS, ArchiveCase
from tests.archives.names import NAMES, NamesCase
from tests.archives.tars import GNU, V7, archive, base256, file, folder, hard, header, link, long, octal, pax

SEGMENT = b"d" * 247
MemberWriter = Callable[[bytes, bytes], bytes]
"""Returns the bytes of a file in an archive. The arguments are its name and its content."""


def by_ustar(name: bytes, data: bytes) -> bytes:
    """Return a file whose name is in the fields name and prefix."""
    if len(name) <= 100:
        return file(name, data)
    slash_index = name.rfind(b"/", 0, 155)
    return file(name[slash_index + 1 :], data, prefix=name[:slash_index])


def by_pax(name: bytes, data: bytes) -> bytes:
    """Return a file whose name is in a PAX header."""
    return pax((b"path", name)) + file(b"short", data)


def by_gnu(name: bytes, data: bytes) -> bytes:
    """Return a file whose name is in a long name record of GNU tar."""
    return long(name) + file(b"short", data, magic=GNU)


WRITERS_BY_FORMAT: dict[str, MemberWriter] = {"ustar": by_ustar, "pax": by_pax, "gnu": by_gnu}


def fits(format_name: str, names_case: NamesCase) -> bool:
    """Return whether the names fit into this format."""
    lengths = [len(name.encode()) for name in names_case.names]
    slash_indexes = [name.encode().rfind(b"/", 0, 155) for name in names_case.names]
    return format_name != "ustar" or all(
        length <= 100 or (slash_index > 0 and length - slash_index <= 101)
        for length, slash_index in zip(lengths, slash_indexes, strict=True)
    )


def tar_of_names(names_case: NamesCase, write_member: MemberWriter) -> bytes:
    """Return an archive of files with these names and different contents."""
    return archive(*(write_member(name.encode(), b"%d\n" % number) for number, name in enumerate(names_case.names)))


BY_NAME = [
    *(
        ArchiveCase(
            name.threat,
            f"{name.trick}, {format_name}",
            name.rules,
            lambda names_case=name, write=write_member: tar_of_names(names_case, write),
            is_only_strict=name.is_only_strict,
        )
        for name in NAMES
        for format_name, write_member in WRITERS_BY_FORMAT.items()
        if fits(format_name, name)
    ),
    *(
        ArchiveCase(
            name.threat,
            f"{name.trick}, a folder",
            name.rules,
            lambda names_case=name: archive(folder(names_case.names[0].encode() + b"/")),
            is_only_strict=name.is_only_strict,
        )
        for name in NAMES
        if len(name.names) == 1 and len(name.names[0].encode()) < 100
    ),
    *(
        ArchiveCase(
            name.threat,
            f"{name.trick}, a link",
            name.rules,
            lambda names_case=name: archive(link(names_case.names[0].encode(), b"x")),
            is_only_strict=name.is_only_strict,
        )
        for name in NAMES
        if len(name.names) == 1 and len(name.names[0].encode()) <= 100
    ),
]


KINDS = [
    ArchiveCase(
        "device nodes",
        "characters",
        "special-file",
        lambda: archive(header(b"n", kind=tars.CHARACTER, raw={"major": octal(1, 8), "minor": octal(3, 8)})),
    ),
    ArchiveCase(
        "device nodes",
        "blocks",
        "special-file",
        lambda: archive(header(b"n", kind=tars.BLOCKS, raw={"major": octal(8, 8), "minor": octal(0, 8)})),
    ),
    ArchiveCase("fifo", "plain", "special-file", lambda: archive(header(b"n", kind=tars.FIFO))),
    ArchiveCase(
        "fifo",
        "with bytes",
        "special-file",
        lambda: archive(header(b"n", 5, tars.FIFO), tars.pad_block(b"hello")),
    ),
    *(
        ArchiveCase(
            "device nodes",
            f"kind {kind.decode()}",
            "tar-type",
            lambda kind=kind: archive(header(b"n", 0, kind)),
        )
        for kind in (b"V", b"M", b"D", b"N", b"A", b"X", b"Z", b"9", b"\x01", b" ")
    ),
    ArchiveCase("device nodes", "kind 7", "tar-type", lambda: archive(header(b"n", 0, b"7")), is_only_strict=True),
    ArchiveCase(
        "set id and sticky", "user", "special-mode", lambda: archive(file(b"f", mode=0o4755)), is_only_strict=True
    ),
    ArchiveCase(
        "set id and sticky", "group", "special-mode", lambda: archive(file(b"f", mode=0o2755)), is_only_strict=True
    ),
    ArchiveCase(
        "set id and sticky", "sticky", "special-mode", lambda: archive(file(b"f", mode=0o1755)), is_only_strict=True
    ),
    ArchiveCase(
        "set id and sticky",
        "of a folder",
        "special-mode",
        lambda: archive(folder(b"d/", mode=0o2777)),
        is_only_strict=True,
    ),
    ArchiveCase(
        "set id and sticky",
        "a negative mode",
        "special-mode no-permission tar-number",
        lambda: archive(file(b"f", raw={"mode": base256(-1, 8)})),
    ),
    ArchiveCase("mode 000", "of a file", "no-permission", lambda: archive(file(b"f", mode=0)), is_only_strict=True),
    ArchiveCase(
        "mode 000", "of a folder", "no-permission", lambda: archive(folder(b"d/", mode=0)), is_only_strict=True
    ),
    ArchiveCase(
        "file and folder",
        "a name with a slash and bytes",
        "kind-mismatch parsers-disagree",
        lambda: archive(file(b"d/")),
    ),
    ArchiveCase(
        "file and folder",
        "an old name with a slash and bytes",
        "tar-magic kind-mismatch parsers-disagree",
        lambda: archive(file(b"d/", kind=b"\x00", magic=V7)),
    ),
    ArchiveCase(
        "file and folder", "a link with a slash", "kind-mismatch empty-name", lambda: archive(link(b"l/", b"a"))
    ),
    ArchiveCase(
        "file and folder",
        "a folder, then a file",
        "file-against-folder duplicate-name",
        lambda: archive(folder(b"a/"), file(b"a")),
    ),
    ArchiveCase(
        "file and folder",
        "a file, then a folder",
        "file-against-folder duplicate-name",
        lambda: archive(file(b"a"), folder(b"a/")),
    ),
    ArchiveCase(
        "file and folder",
        "a file, then a link",
        "file-against-folder duplicate-name",
        lambda: archive(file(b"a"), link(b"a", b"b")),
    ),
    ArchiveCase("control characters", "no UTF-8", "not-utf8", lambda: archive(file(b"a\xff"))),
    ArchiveCase(
        "control characters",
        "no UTF-8 by pax",
        "not-utf8 pax-record pax-order",
        lambda: archive(pax((b"path", b"a\xff")), file(b"a")),
    ),
    ArchiveCase(
        "control characters",
        "a NUL by pax",
        "control-character pax-record pax-order",
        lambda: archive(pax((b"path", b"a\x00b")), file(b"a")),
    ),
    ArchiveCase(
        "control characters",
        "more behind a NUL",
        "tar-header tar-magic control-character",
        lambda: archive(file(b"a\x00hidden")),
    ),
    ArchiveCase(
        "control characters",
        "more behind a NUL, gnu",
        "tar-header tar-magic control-character pax-order",
        lambda: archive(long(b"a\x00hidden"), file(b"a", magic=GNU)),
    ),
    ArchiveCase("dot dot", "no name", "empty-name", lambda: archive(file(b""))),
    ArchiveCase("dot dot", "a prefix alone", "empty-name kind-mismatch", lambda: archive(file(b"", prefix=b"d"))),
    ArchiveCase("dot dot", "in the prefix", "dot-dot", lambda: archive(file(b"x", prefix=b".."))),
    ArchiveCase("absolute", "in the prefix", "absolute-path", lambda: archive(file(b"x", prefix=b"/tmp"))),
]

NUMBERS = [
    ArchiveCase(
        "lying sizes",
        "more than 2**62",
        "tar-number",
        lambda: archive(header(b"f", raw={"size": b"\x80" + b"\xff" * 11})),
    ),
    ArchiveCase(
        "negative offsets",
        "CVE-2025-8194",
        "tar-number size",
        lambda: archive(header(b"f", raw={"size": base256(-512, 12)})),
    ),
    ArchiveCase(
        "negative offsets",
        "of one block and the header",
        "tar-number size",
        lambda: archive(file(b"a"), header(b"f", raw={"size": base256(-1024, 12)})),
    ),
    ArchiveCase(
        "negative offsets",
        "in octal",
        "tar-number size",
        lambda: archive(header(b"f", raw={"size": b"-0000001000\x00"})),
    ),
    ArchiveCase(
        "negative offsets",
        "by pax",
        "pax-record pax-order tar-number size",
        lambda: archive(pax((b"size", b"-512")), file(b"f")),
    ),
    ArchiveCase(
        "negative offsets",
        "of a pax header",
        "tar-number size",
        lambda: archive(header(b"x", kind=b"x", raw={"size": base256(-512, 12)}), file(b"f")),
    ),
    ArchiveCase(
        "negative offsets",
        "of a long name",
        "tar-number size",
        lambda: archive(
            header(b"././@LongLink", kind=b"L", magic=GNU, raw={"size": base256(-512, 12)}), file(b"f", magic=GNU)
        ),
    ),
    ArchiveCase(
        "negative offsets",
        "a time before all",
        "tar-number",
        lambda: archive(file(b"f", raw={"mtime": b"-0000001000\x00"})),
    ),
    ArchiveCase("lying sizes", "beyond the end", "truncated size", lambda: archive(file(b"f", size=1 << 20))),
    ArchiveCase(
        "lying sizes",
        "2**62",
        "ratio too-large tar-number",
        lambda: archive(header(b"f", raw={"size": base256(1 << 62, 12)})),
    ),
    ArchiveCase(
        "lying sizes",
        "2**94",
        "truncated size too-large tar-number",
        lambda: archive(header(b"f", raw={"size": b"\xbf" + b"\xff" * 11})),
    ),
    ArchiveCase(
        "lying sizes", "less than there", "tar-checksum tar-padding", lambda: archive(file(b"f", b"x" * 1000, size=10))
    ),
    ArchiveCase(
        "lying sizes",
        "by pax, 2**70",
        "truncated size too-large pax-record pax-order tar-number",
        lambda: archive(pax((b"size", b"%d" % 2**70)), file(b"f", b"", size=0)),
    ),
    ArchiveCase(
        "lying sizes", "no octal digits", "tar-number", lambda: archive(file(b"f", raw={"size": b"00000000009\x00"}))
    ),
    ArchiveCase("lying sizes", "letters", "tar-number", lambda: archive(file(b"f", raw={"size": b"0000000000a\x00"}))),
    ArchiveCase(
        "lying sizes",
        "a number with a blank in it",
        "tar-number",
        lambda: archive(file(b"f", raw={"size": b"0000 000006\x00"})),
    ),
    ArchiveCase(
        "lying sizes",
        "a hidden end of the number",
        "tar-number",
        lambda: archive(file(b"f", raw={"size": b"6\x0000000000\x00"})),
    ),
    ArchiveCase(
        "lying sizes",
        "a wrong check sum",
        "tar-checksum",
        lambda: archive(file(b"f", raw={"checksum": b"000001\x00 "})),
    ),
    ArchiveCase("lying sizes", "no check sum", "tar-checksum", lambda: archive(file(b"f", raw={"checksum": bytes(8)}))),
    ArchiveCase(
        "lying sizes",
        "cut in a header",
        "truncated tar-header tar-magic zip-end",
        lambda: archive(file(b"f"), file(b"g"))[:1200],
    ),
    ArchiveCase("lying sizes", "cut in the bytes", "truncated", lambda: archive(file(b"f", b"x" * 2000))[:1500]),
    ArchiveCase("lying sizes", "no end", "tar-end", lambda: archive(file(b"f"), end=b""), is_only_strict=True),
    ArchiveCase(
        "lying sizes", "half an end", "tar-end", lambda: archive(file(b"f"), end=bytes(512)), is_only_strict=True
    ),
    ArchiveCase(
        "entry count",
        "more than allowed",
        "too-many-entries",
        lambda: archive(*(file(b"%d" % n) for n in range(11))),
        replace(LIMITS, entries=10),
    ),
    ArchiveCase(
        "entry count",
        "of folders alone",
        "too-many-entries",
        lambda: archive(*(folder(b"%d/" % n) for n in range(11))),
        replace(LIMITS, entries=10),
    ),
    ArchiveCase(
        "entry count",
        "folders that paths imply",
        "too-many-entries",
        lambda: archive(*(file(b"%d/%d/%d/x" % (n, n, n)) for n in range(6))),
        replace(LIMITS, entries=10),
    ),
    ArchiveCase(
        "ratio bomb",
        "in all too much",
        "too-large",
        lambda: archive(*(file(b"%d" % n, bytes(5000)) for n in range(5))),
        replace(LIMITS, total_bytes=20_000),
    ),
    ArchiveCase(
        "ratio bomb",
        "hard links to one file",
        "too-large",
        lambda: archive(file(b"x", bytes(5000)), *(hard(b"%d" % n, b"x") for n in range(5))),
        replace(LIMITS, total_bytes=20_000),
    ),
    ArchiveCase("timeout", "no time at all", "too-slow", lambda: archive(file(b"f")), replace(LIMITS, seconds=0)),
]

CASES = [*BY_NAME, *KINDS, *NUMBERS]
