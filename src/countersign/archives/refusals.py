"""The rules for archives by their code, and the refusals that name the rule and the entry."""

from collections.abc import Mapping

from countersign.kernel.errors import Refused

RULES: Mapping[str, str] = {
    # Paths
    "absolute-path": "A path is relative to the folder that is unpacked to; it does not begin with a slash.",
    "unc-path": "A path does not begin with two slashes or two backslashes, which name another machine.",
    "drive": "A path does not begin with a drive letter and a colon.",
    "dot-dot": "No part of a path is `..`.",
    "dot": "No part of a path is `.`, but for `./` at the beginning.",
    "empty-name": "An entry has a name, and a path has no two slashes in a row (`compatible` takes them as one).",
    "backslash": "No name holds a backslash, which separates folders on some systems.",
    "colon": "No name holds a colon, which opens another stream of a file on some systems.",
    "reserved-character": "No name holds an angle bracket, a bar, a quotation mark, `?` or `*`, which Windows refuses "
    "(`compatible` takes them).",
    "short-name": "No name has the form of Windows' short names, as PROGRA~1 (`compatible` takes them).",
    "control-character": "No name holds NUL, another control character or a line separator.",
    "bidi-control": "No name holds a character that changes the direction of writing.",
    "invisible-character": "No name holds a character that is not seen (but for joiners inside words).",
    "not-utf8": "Names are UTF-8, and say so where not ASCII (`compatible` takes those of Unix and macOS unsaid).",
    "not-nfc": "Names are in Unicode's composed form NFC (`compatible` takes others).",
    "reserved-name": "No name is one that Windows keeps for devices, with an extension or without.",
    "trailing-dot-or-space": "No name ends with a dot or a space, which some systems drop.",
    "name-too-long": "A name keeps to the limit `archive_name_bytes`.",
    "path-too-long": "A path, or where a link points to, keeps to the limit `archive_path_bytes`.",
    "too-deep": "An entry lies in no more folders than `archive_depth`, and a link names at most twice as many.",
    "duplicate-name": "A path stands in the archive once.",
    "collision": "No two paths differ only by upper and lower case or by the form of their Unicode text (NFC; unless "
    "`compatible` also NFKC).",
    "file-against-folder": "What is a file is not a folder as well.",
    "write-through-link": "No entry lies below a symbolic link.",
    # Links, modes, kinds
    "link-absolute": "A symbolic link points to a relative path.",
    "link-escape": "A symbolic link leads to a place inside the tree, also by way of other links.",
    "link-chain": "Following a symbolic link passes few others, and ends.",
    "link-target": "Where a link points to is a path that keeps the rules of names, and not empty; nothing else does.",
    "hard-link": "A hard link names a regular file that stands earlier in the archive, and the files that hard links "
    "name need not be looked for all over the archive again and again.",
    "payload": "Only files have bytes: a folder or link has none.",
    "special-file": "There are files, folders and links: no device, pipe or socket.",
    "special-mode": "No entry is setuid, setgid or sticky (`compatible` drops these bits).",
    "no-permission": "No entry is without any permission (`compatible` takes it with usual ones).",
    "kind-mismatch": "Name, attributes and mode of an entry say the same kind.",
    # Bounds
    "too-many-entries": "Entries, with the folders that they imply, keep to `archive_entries`.",
    "too-large": "What is unpacked keeps to `archive_total_mib`.",
    "ratio": "One byte of the archive becomes no more bytes than `archive_ratio`.",
    "too-slow": "Reading ends within `archive_seconds`.",
    "memory": "Reading keeps to `archive_memory_mib`.",
    "unreadable": "The reader understands the archive; one that it fails on is refused, and the fault is logged.",
    "directory-size": "The table of contents is of a size that its entries need.",
    "window": "Decompression needs a window of at most 128 MiB.",
    # Compression
    "compression": "Compressed data is whole and without error, and ends where it is said to end.",
    "compression-method": "Entries of a zip file are stored or deflated.",
    "concatenated": "Compressed data is one stream (`compatible` takes several in a row).",
    "checksum": "Bytes have the checksum that stands beside them.",
    "size": "An entry has as many bytes as it declares.",
    "truncated": "The archive is whole.",
    "leading-data": "An archive begins at its first byte (`compatible` takes a zip file behind an executable's bytes).",
    "trailing-data": "Nothing follows the end of the archive.",
    "two-formats": "An archive is of one format only.",
    # Zip
    "zip-end": "A zip file has one end record, at its very end, which tells the truth.",
    "zip-comment": "The comment of a zip file looks like no record of one.",
    "zip64": "Zip64 fields stand where they are needed, and agree with the others.",
    "split": "A zip file is one file.",
    "entry-count": "There are as many entries as the end record says.",
    "gap": "Every byte of a zip file belongs to a record (`compatible` takes a well-formed APK signing block).",
    "overlap": "No two entries share a byte.",
    "local-mismatch": "The header in front of an entry says what the table of contents says.",
    "data-descriptor": "A data descriptor stands where it is announced, and says what the table of contents says.",
    "extra-field": "Extra fields are well formed, and none says another kind, name or size.",
    "unicode-path": "A Unicode path in an extra field is the entry's name.",
    "encrypted": "No entry is encrypted.",
    "zip-flags": "Only flags are set that are defined for stored and deflated entries.",
    "zip-record": "Records of a zip file begin with their signature.",
    # Tar
    "tar-header": "Headers of a tar file are well formed, with nothing hidden behind the end of a text.",
    "tar-checksum": "A tar header has the checksum that it says.",
    "tar-magic": "Tar headers are ustar or GNU (`compatible` takes older ones).",
    "tar-number": "Numbers in tar headers are octal or base-256, not negative (but for times), and not beyond bounds.",
    "tar-type": "Entries of a tar file are of a kind that every reader knows.",
    "tar-padding": "The rest of a tar file's last block of an entry is zero.",
    "tar-end": "A tar file ends with two blocks of zeros (`compatible` takes it without).",
    "sparse": "No entry is sparse.",
    "pax-record": "PAX records are well formed, none is given twice, and there are few for each entry.",
    "pax-order": "Extended headers stand directly in front of one entry, each kind once, and 8 at most.",
    "pax-size": "A PAX size and the header's size are the same, unless the header has no room for it.",
    "pax-name": "The name that stands behind an extended one leads nowhere else.",
    "pax-global": "A global PAX header only comments (`compatible` takes owners and times too).",
    # Agreement
    "parsers-disagree": "A second parser finds the same entries in the same places.",
}


class ArchiveRefused(Refused):
    """The archive breaks a rule of safe reading; nothing of it is kept."""

    status = 422
    code = "archive_refused"
    title = "Archive refused"
    resolution = "Correct the entry that is named, pack the archive anew and upload it as a new artifact."

    def __init__(self, rule: str, detail: str, *, entry: str | None = None, is_printable: bool = False) -> None:
        """`rule` is a word of docs/reference/archive-rules.md; `entry` the raw name, which is made printable unless it
        is so already."""
        shown = entry if entry is None or is_printable else printable(entry)
        super().__init__(
            detail if shown is None else f"{shown}: {detail}",
            members={"rule": rule} if shown is None else {"rule": rule, "entry": shown},
        )
        self.rule = rule
        self.entry = shown
        self.reason = detail

    @classmethod
    def told(cls, rule: str, detail: str, shown: str | None) -> "ArchiveRefused":
        """The refusal that another process made: its detail names the entry already, which is printable."""
        refused = cls(rule, detail)
        refused.entry = shown
        if shown is not None:
            refused.members = {"rule": rule, "entry": shown}
        return refused


class ArchiveUnknown(Refused):
    """The bytes are no archive of a kind that is read here."""

    status = 422
    code = "archive_unknown"
    title = "Not an archive"
    resolution = "Upload a zip file, or a tar file, plain or compressed with gzip, xz or zstd."


def printable(name: str) -> str:
    """A stranger's name as ASCII that a terminal or a log shows as it is, at most 300 characters of it."""
    return name.encode("unicode_escape").decode("ascii")[:300]
