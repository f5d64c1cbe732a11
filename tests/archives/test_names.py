"""No name in an archive leads elsewhere, changes its meaning on another system, or collides with another entry's."""

from dataclasses import replace

import pytest

from countersign.archives.entry import Kind
from countersign.archives.limits import Limits
from countersign.archives.paths import ArchivePaths, check_path
from countersign.archives.refusals import ArchiveRefused

STRICT, COMPATIBLE = Limits(), Limits(profile="compatible")

PATHS_BY_BROKEN_RULE = {
    "absolute-path": ["/etc/passwd", "/"],
    "unc-path": ["//host/share", "\\\\host\\share"],
    "drive": ["C:file", "c:/windows", "a/D:x"],
    "dot-dot": ["..", "a/../b", "a/.."],
    "dot": [".", "a/./b"],
    "empty-name": ["", "a//b", "a/"],
    "backslash": ["a\\b", "..\\x"],
    "colon": ["name.txt:stream", "ab::$DATA"],
    "control-character": ["a\0b", "a\nb", "a\x7fb", "a\x85b", "a\u2028b"],
    "bidi-control": ["a\u202egpj.exe", "a\u2067b", "a\u200fb"],
    "invisible-character": ["a\u200bb", "a\ufeffb", "a\U000e0041b"],
    "not-utf8": ["a\udc80b"],
    "not-nfc": ["u\u0308ber"],
    "reserved-name": ["con", "CON", "aux.c", "nul.tar.gz", "a/Com1", "lpt\u00b9", "CONIN$", "nul .txt"],
    "trailing-dot-or-space": ["a.", "a ", "a./b", "..."],
    "reserved-character": ["a<b", "a>b", "a|b", 'a"b', "x?y", "x*y", "?/a"],
    "short-name": ["PROGRA~1", "a~1", "LONGN~12.TXT", "a/ABCD~123/b", "\u00fcber~1"],
    "name-too-long": ["a" * 256, "\u00fc" * 128],
    "path-too-long": ["/".join(["a" * 200] * 6)],
    "too-deep": ["/".join("a" * 66)],
}
ACCEPTED_PATHS = (
    "a", ".hidden", "..a", "a..b", "console", "auxiliary.c", "com10", "a b", "(1) [x] {y} ~$#@!%^&+=,;'`.txt",
    "\u00fcber/stra\u00dfe", "\u65e5\u672c", "\U0001f468\u200d\U0001f469", "a" * 255, "/".join("a" * 65), "backup~",
    "config.toml~1~", "long-name-~1.txt", "a~1.html", "1~2~x",
)  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "path"), [(rule, path) for rule, paths in PATHS_BY_BROKEN_RULE.items() for path in paths]
)
def test_a_path_that_breaks_a_rule_is_refused_with_the_name_of_the_rule(rule: str, path: str) -> None:
    with pytest.raises(ArchiveRefused) as refusal:
        check_path(path, STRICT)

    assert refusal.value.rule == rule
    assert refusal.value.detail.isascii()


@pytest.mark.parametrize(
    ("rule", "path"), [(rule, path) for rule, paths in PATHS_BY_BROKEN_RULE.items() for path in paths if path]
)
def test_an_entry_whose_path_breaks_a_rule_is_refused_with_the_name_of_the_rule(rule: str, path: str) -> None:
    for prefix in (
        ("", "above/") if not path.startswith(("/", "\\")) and rule not in ("path-too-long", "drive") else ("",)
    ):
        with pytest.raises(ArchiveRefused) as refusal:
            ArchivePaths(STRICT).take(prefix + path, "file")

        assert refusal.value.rule == rule


@pytest.mark.parametrize("path", ACCEPTED_PATHS)
def test_a_path_that_breaks_no_rule_is_accepted(path: str) -> None:
    check_path(path, STRICT)
    ArchivePaths(STRICT).take(path, "file")


def test_a_decomposed_name_is_accepted_only_in_the_compatible_profile() -> None:
    check_path("u\u0308ber", COMPATIBLE)

    with pytest.raises(ArchiveRefused, match="NFC"):
        check_path("u\u0308ber", STRICT)


CONFLICTING_ENTRIES: list[tuple[str, list[tuple[str, Kind]]]] = [
    ("duplicate-name", [("a", "file"), ("a", "file")]),
    ("duplicate-name", [("a", "link"), ("a", "link")]),
    ("duplicate-name", [("a", "folder"), ("a", "folder")]),
    ("duplicate-name", [("a/b", "file"), ("a", "folder"), ("a", "folder")]),
    ("duplicate-name", [("a", "file"), ("a", "link")]),
    ("collision", [("a", "file"), ("A", "file")]),
    ("collision", [("a/x", "file"), ("A/y", "file")]),
    ("collision", [("a", "folder"), ("A", "folder")]),
    ("collision", [("stra\u00dfe", "file"), ("STRASSE", "file")]),
    ("collision", [("\u00fc", "file"), ("u\u0308", "file")]),
    ("collision", [("\u212a", "file"), ("k", "file")]),
    ("collision", [("a\u200db", "file"), ("ab", "file")]),
    ("file-against-folder", [("a", "file"), ("a/b", "file")]),
    ("file-against-folder", [("a/b", "file"), ("a", "file")]),
    ("file-against-folder", [("a/b", "file"), ("a", "link")]),
    ("file-against-folder", [("a", "folder"), ("a", "file")]),
    ("file-against-folder", [("a", "file"), ("a", "folder")]),
    ("write-through-link", [("a", "link"), ("a/b", "file")]),
    ("write-through-link", [("x/a", "link"), ("x/a/b/c", "file")]),
]


@pytest.mark.parametrize(("rule", "entries"), CONFLICTING_ENTRIES)
def test_an_entry_that_conflicts_with_an_earlier_entry_is_refused(rule: str, entries: list[tuple[str, Kind]]) -> None:
    paths = ArchivePaths(COMPATIBLE)
    for path, kind in entries[:-1]:
        paths.take(path, kind)

    with pytest.raises(ArchiveRefused) as refusal:
        paths.take(*entries[-1])

    assert refusal.value.rule == rule


def test_the_entry_of_a_folder_may_follow_the_entries_of_its_content() -> None:
    paths = ArchivePaths(STRICT)

    for path, kind in (("a/b/c", "file"), ("a", "folder"), ("a/b", "folder"), ("a/b/d", "file"), ("e", "folder")):
        paths.take(path, "folder" if kind == "folder" else "file")


def test_folders_that_are_only_implied_count_as_entries() -> None:
    paths = ArchivePaths(replace(STRICT, entries=4))
    paths.take("a/b/c", "file")
    paths.take("d", "file")

    with pytest.raises(ArchiveRefused) as refusal:
        paths.take("e", "file")

    assert refusal.value.rule == "too-many-entries"
