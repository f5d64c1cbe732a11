"""Hostile tar archives whose links lead outside of the target, redirect a later entry, or hide bytes."""

from tests.archives import tars
from tests.archives.cases import ArchiveCase
from tests.archives.tars import GNU, archive, file, folder, hard, header, link, long, pax

SEGMENT = b"d" * 247


def path_max_archive(ending_kind: bytes) -> bytes:
    """Return the archive of CVE-2025-4517. Short links lead to folders with long names. The resolved path exceeds
    PATH_MAX, so that vulnerable programs do not check it. The last entries are a link to the outside and a file below
    this link."""
    entries, path = list[bytes](), b""
    for letter in b"abcdefghijklmnop":
        for entry in (folder_with_long_name(path + SEGMENT), link_with_long_name(path + bytes([letter]), SEGMENT)):
            entries.append(entry)
        path += bytes([letter]) + b"/"
    last_link = path + b"l" * 254
    entries.append(link_with_long_name(last_link, b"../" * 16))
    entries.append(link_with_long_name(b"escape", last_link + b"/../../../etc"))
    ending = hard(b"flag", b"escape/passwd") if ending_kind == tars.HARD else file(b"escape/new")
    return archive(*entries, ending)


def folder_with_long_name(name: bytes) -> bytes:
    """Return the entry of a folder with a long name."""
    return pax((b"path", name + b"/")) + folder(name[:99] + b"/")


def link_with_long_name(name: bytes, target: bytes) -> bytes:
    """Return the entry of a symbolic link with a long name and a long target."""
    return pax((b"path", name), (b"linkpath", target)) + link(name[:100], target[:100])


TARGETS = {
    "dot dot": b"../escaped",
    "dot dot alone": b"..",
    "absolute": b"/etc/passwd",
    "in then out": b"d/../../x",
    "backslashes": b"..\\x",
    "a drive": b"C:\\x",
    "a UNC path": b"\\\\server\\share",
}

CASES = [
    ArchiveCase("symlink escape", "a circle", "link-chain", lambda: archive(link(b"a", b"b"), link(b"b", b"a"))),
    ArchiveCase("symlink escape", "to itself", "link-chain", lambda: archive(link(b"a", b"a"))),
    ArchiveCase(
        "symlink escape",
        "a chain of 18",
        "link-chain",
        lambda: archive(*(link(b"%d" % number, b"%d" % (number + 1)) for number in range(18)), file(b"18")),
    ),
    *(
        ArchiveCase(
            "symlink escape",
            f"{trick}, ustar",
            "link-escape link-absolute link-target",
            lambda target=target: archive(folder(b"d/"), link(b"l", target)),
        )
        for trick, target in TARGETS.items()
    ),
    *(
        ArchiveCase(
            "symlink escape",
            f"{trick}, pax",
            "link-escape link-absolute link-target",
            lambda target=target: archive(pax((b"linkpath", target)), link(b"l", b"d")),
        )
        for trick, target in TARGETS.items()
    ),
    *(
        ArchiveCase(
            "symlink escape",
            f"{trick}, gnu",
            "link-escape link-absolute link-target",
            lambda target=target: archive(long(target, tars.LONG_LINK), link(b"l", target[:100], magic=GNU)),
        )
        for trick, target in TARGETS.items()
    ),
    *(
        ArchiveCase(
            "hardlink escape",
            trick,
            "hard-link link-escape link-absolute link-target absolute-path dot-dot backslash drive",
            lambda target=target: archive(folder(b"d/"), file(b"x"), hard(b"h", target)),
        )
        for trick, target in TARGETS.items()
    ),
    ArchiveCase("symlink escape", "to nothing", "link-target", lambda: archive(link(b"l", b""))),
    ArchiveCase(
        "symlink escape", "to a target that is not UTF-8", "link-target not-utf8", lambda: archive(link(b"l", b"\xff"))
    ),
    ArchiveCase(
        "symlink escape",
        "through a link",
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
        "CVE-2025-4330",
        "link-escape link-absolute write-through-link file-against-folder",
        lambda: archive(folder(b"d/"), link(b"d/l", b"."), link(b"d/l/m", b"../..")),
    ),
    ArchiveCase("hardlink escape", "to what is not there", "hard-link", lambda: archive(hard(b"h", b"missing"))),
    ArchiveCase("hardlink escape", "to what comes later", "hard-link", lambda: archive(hard(b"h", b"x"), file(b"x"))),
    ArchiveCase("hardlink escape", "to itself", "hard-link", lambda: archive(hard(b"h", b"h"))),
    ArchiveCase("hardlink escape", "to a folder", "hard-link", lambda: archive(folder(b"d/"), hard(b"h", b"d"))),
    ArchiveCase(
        "hardlink escape", "to a link", "hard-link", lambda: archive(link(b"l", b"x"), file(b"x"), hard(b"h", b"l"))
    ),
    ArchiveCase(
        "hardlink escape",
        "through a link",
        "hard-link write-through-link",
        lambda: archive(folder(b"d/"), file(b"d/x"), link(b"l", b"d"), hard(b"h", b"l/x")),
    ),
    ArchiveCase("hardlink escape", "to nothing", "hard-link link-target", lambda: archive(file(b"x"), hard(b"h", b""))),
    ArchiveCase(
        "hardlink escape",
        "over what is there",
        "duplicate-name",
        lambda: archive(file(b"x"), file(b"y"), hard(b"x", b"y")),
    ),
    ArchiveCase(
        "write through a link",
        "inside",
        "write-through-link file-against-folder",
        lambda: archive(folder(b"d/"), link(b"l", b"d"), file(b"l/x")),
    ),
    ArchiveCase(
        "write through a link",
        "the link comes later",
        "write-through-link file-against-folder",
        lambda: archive(file(b"l/x"), link(b"l", b"d")),
    ),
    ArchiveCase(
        "write through a link",
        "a link below",
        "write-through-link file-against-folder",
        lambda: archive(link(b"l", b"d"), link(b"l/x", b"y")),
    ),
    ArchiveCase(
        "write through a link",
        "a hard link below",
        "write-through-link file-against-folder",
        lambda: archive(folder(b"d/"), file(b"f"), link(b"l", b"d"), hard(b"l/x", b"f")),
    ),
    ArchiveCase(
        "write through a link",
        "through a name that differs in letter case",
        "write-through-link file-against-folder collision",
        lambda: archive(link(b"l", b"d"), file(b"L/x")),
    ),
    ArchiveCase(
        "write through a link",
        "the link's own name",
        "duplicate-name file-against-folder",
        lambda: archive(link(b"l", b"d"), file(b"l")),
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
        lambda: path_max_archive(tars.FILE),
    ),
    ArchiveCase(
        "chains past PATH_MAX",
        "by a hard link",
        "link-escape link-absolute write-through-link file-against-folder",
        lambda: path_max_archive(tars.HARD),
    ),
    ArchiveCase(
        "link with payload",
        "a link",
        "payload",
        lambda: archive(
            link(b"l", b"d").replace(
                header(b"l", kind=b"2", target=b"d", mode=0o777), header(b"l", 6, b"2", target=b"d", mode=0o777)
            ),
            tars.pad_block(b"hidden"),
        ),
    ),
    ArchiveCase(
        "link with payload",
        "a file hidden in it",
        "payload",
        lambda: archive(header(b"l", 1024, b"2", target=b"d"), file(b"hidden")),
    ),
    ArchiveCase(
        "link with payload",
        "a hard link",
        "payload hard-link",
        lambda: archive(file(b"x"), header(b"h", 512, b"1", target=b"x"), bytes(512)),
    ),
    ArchiveCase("link with payload", "a folder", "payload", lambda: archive(header(b"d/", 512, b"5"), bytes(512))),
    ArchiveCase(
        "link with payload",
        "a target of 5,000 bytes",
        "path-too-long",
        lambda: archive(pax((b"linkpath", b"x" * 5000)), link(b"l", b"x" * 100)),
    ),
]
