"""Names that no entry may have, and names that may not occur together, in every format."""

from typing import NamedTuple

ONLY_STRICT = {
    ("dot dot", "an empty segment"),
    ("nfc and nfd", "a name that is not composed"),
    ("nfc and nfd", "a ligature"),
    ("nfc and nfd", "wide letters"),
    ("nfc and nfd", "a ligature of a folder, in another case"),
    ("reserved names", "with a question mark"),
    ("reserved names", "with a quotation mark, of a folder"),
    ("reserved names", "of the short form"),
    ("reserved names", "of the short form, with an ending"),
}


class NamesCase(NamedTuple):
    """Names of files in one archive. The last name causes the refusal."""

    threat: str
    trick: str
    rules: str
    names: tuple[str, ...]

    @property
    def is_only_strict(self) -> bool:
        """True if the profile `compatible` may accept the name, because it is legal and harmless."""
        return (self.threat, self.trick) in ONLY_STRICT


DEEP = "/".join(["d"] * 65)
LONG_SEGMENTS = "/".join(["s" * 200] * 5) + "/" + "e" * 40

NAMES = [
    NamesCase("deep paths", "65 folders", "too-deep", (f"{DEEP}/x",)),
    NamesCase("deep paths", "a path of 1045 bytes", "path-too-long", (LONG_SEGMENTS,)),
    NamesCase("deep paths", "a name of 256 bytes", "name-too-long", ("n" * 256,)),
    NamesCase("deep paths", "a name of 128 letters in 256 bytes", "name-too-long", ("é" * 128,)),
    NamesCase("absolute", "a slash first", "absolute-path", ("/tmp/countersign-escaped",)),
    NamesCase("absolute", "two slashes first", "unc-path", ("//tmp/countersign-escaped",)),
    NamesCase("dot dot", "at the start", "dot-dot", ("../escaped",)),
    NamesCase("dot dot", "twice at the start", "dot-dot", ("../../escaped",)),
    NamesCase("dot dot", "behind a folder", "dot-dot", ("a/../../escaped",)),
    NamesCase("dot dot", "that stays inside", "dot-dot", ("a/../b",)),
    NamesCase("dot dot", "at the end", "dot-dot", ("a/..",)),
    NamesCase("dot dot", "alone", "dot-dot", ("..",)),
    NamesCase("dot dot", "behind a dot", "dot-dot", ("./../a",)),
    NamesCase("dot dot", "a dot between", "dot", ("a/./b",)),
    NamesCase("dot dot", "a dot last", "dot", ("a/.",)),
    NamesCase("dot dot", "an empty segment", "empty-name", ("a//b",)),
    NamesCase("backslash", "as a separator", "backslash", ("a\\b",)),
    NamesCase("backslash", "with dot dot", "backslash", ("..\\..\\escaped",)),
    NamesCase("backslash", "at the end", "backslash", ("a\\",)),
    NamesCase("drive", "with a slash", "drive", ("C:/escaped",)),
    NamesCase("drive", "without a slash", "drive", ("c:escaped",)),
    NamesCase("drive", "below a folder", "drive", ("a/C:/b",)),
    NamesCase("unc", "with backslashes", "unc-path", ("\\\\server\\share\\x",)),
    NamesCase("unc", "with slashes", "unc-path", ("//server/share/x",)),
    NamesCase("unc", "of devices", "unc-path", ("\\\\?\\C:\\x",)),
    NamesCase("case collisions", "of two files", "collision", ("a.txt", "A.TXT")),
    NamesCase("case collisions", "of two folders", "collision", ("folder/a", "Folder/b")),
    NamesCase("case collisions", "of a file and a folder", "collision", ("folder/a", "FOLDER")),
    NamesCase("case collisions", "beyond ASCII", "collision", ("é.txt", "É.txt")),
    NamesCase("case collisions", "by full folding", "collision", ("straße", "STRASSE")),
    NamesCase("case collisions", "of the Kelvin sign", "not-nfc collision", ("k", "\u212a")),
    NamesCase("nfc and nfd", "a name that is not composed", "not-nfc", ("cafe\u0301",)),
    NamesCase("nfc and nfd", "a ligature", "collision", ("file", "\ufb01le")),
    NamesCase("nfc and nfd", "wide letters", "collision", ("\uff21\uff22", "ab")),
    NamesCase("nfc and nfd", "a ligature of a folder, in another case", "collision", ("OFFICE/a", "o\ufb03ce/b")),
    NamesCase("nfc and nfd", "one name twice", "not-nfc collision", ("caf\u00e9", "cafe\u0301")),
    NamesCase("nfc and nfd", "of folders", "not-nfc collision", ("caf\u00e9/a", "cafe\u0301/b")),
    NamesCase("nfc and nfd", "with another case", "not-nfc collision", ("caf\u00e9", "CAFE\u0301")),
    NamesCase("nfc and nfd", "of Hangul", "not-nfc collision", ("\ud55c", "\u1112\u1161\u11ab")),
    NamesCase("reserved names", "CON", "reserved-name", ("CON",)),
    NamesCase("reserved names", "with an ending", "reserved-name", ("nul.txt",)),
    NamesCase("reserved names", "with two endings", "reserved-name", ("aux.tar.gz",)),
    NamesCase("reserved names", "of a folder", "reserved-name", ("prn/a",)),
    NamesCase("reserved names", "with a number", "reserved-name", ("Com1",)),
    NamesCase("reserved names", "with another number", "reserved-name", ("lpt9.log",)),
    NamesCase("reserved names", "with a superscript", "reserved-name", ("COM\u00b9",)),
    NamesCase("reserved names", "with a question mark", "reserved-character", ("a?",)),
    NamesCase("reserved names", "with a quotation mark, of a folder", "reserved-character", ('a"b/c',)),
    NamesCase("reserved names", "of the short form", "short-name", ("PROGRA~1",)),
    NamesCase(
        "reserved names", "of the short form, with an ending", "short-name", ("long name of a file", "LONGNA~1.TXT")
    ),
    NamesCase("reserved names", "of the console", "reserved-name", ("CONIN$",)),
    NamesCase("reserved names", "with a space before the ending", "reserved-name", ("con .txt",)),
    NamesCase("trailing dot and space", "a dot", "trailing-dot-or-space", ("a.",)),
    NamesCase("trailing dot and space", "a space", "trailing-dot-or-space", ("a ",)),
    NamesCase("trailing dot and space", "of a folder", "trailing-dot-or-space", ("a./b",)),
    NamesCase("trailing dot and space", "three dots", "trailing-dot-or-space", (".../b",)),
    NamesCase("alternate streams", "of a file", "colon", ("a.txt:hidden",)),
    NamesCase("alternate streams", "the data itself", "colon", ("a.txt::$DATA",)),
    NamesCase("alternate streams", "of a folder", "colon", ("ab:$INDEX_ALLOCATION/b",)),
    NamesCase("control characters", "a new line", "control-character", ("a\nb",)),
    NamesCase("control characters", "an escape", "control-character", ("a\x1b[2Jb",)),
    NamesCase("control characters", "delete", "control-character", ("a\x7fb",)),
    NamesCase("control characters", "of the second set", "control-character", ("a\u0085b",)),
    NamesCase("control characters", "a line separator", "control-character", ("a\u2028b",)),
    NamesCase("direction override", "right to left", "bidi-control", ("photo\u202egpj.exe",)),
    NamesCase("direction override", "an isolate", "bidi-control", ("a\u2067b",)),
    NamesCase("direction override", "an embedding", "bidi-control", ("a\u202bb",)),
    NamesCase("direction override", "a mark", "bidi-control", ("a\u200fb",)),
    NamesCase("control characters", "of no width", "invisible-character", ("a\u200bb",)),
    NamesCase("control characters", "a soft hyphen", "invisible-character", ("a\u00adb",)),
    NamesCase("control characters", "a tag", "invisible-character", ("a\U000e0041",)),
    NamesCase("duplicates", "of a file", "duplicate-name", ("a", "a")),
    NamesCase("duplicates", "below a folder", "duplicate-name", ("a/b", "c", "a/b")),
    NamesCase("file and folder", "a file, then below it", "file-against-folder", ("a", "a/b")),
    NamesCase("file and folder", "a folder by a path, then a file", "file-against-folder", ("a/b", "a")),
    NamesCase("file and folder", "two levels", "file-against-folder", ("a/b", "a/b/c/d")),
]

UNDISKED = {"absolute-path", "unc-path", "dot-dot", "dot", "empty-name", "duplicate-name", "file-against-folder"}
ON_DISK = [name for name in NAMES if not UNDISKED & {*name.rules.split()} and len(name.names[-1].encode()) < 256]
"""The names that a folder on a Linux disk can also contain."""
