"""Maps the codes of the rules for archives to their texts, and defines the refusals that name the rule and the
entry."""

from collections.abc import Mapping

from countersign.kernel.errors import Refused

RULES: Mapping[str, str] = {
    # Paths
    "absolute-path": "A path is relative to the target folder; it does not begin with a slash.",
    "unc-path": "A path does not begin with two slashes or two backslashes, which name another machine.",
    "drive": "A path does not begin with a drive letter and a colon.",
    "dot-dot": "No part of a path is `..`.",
    "dot": "No part of a path is `.`, except `./` at the beginning.",
    "empty-name": "An entry has a name, and a path has no two slashes in a row (`compatible` reads them as one).",
    "backslash": "No name contains a backslash, which separates folders on some systems.",
    "colon": "No name contains a colon, which opens another stream of a file on some systems.",
    "reserved-character": "No name contains an angle bracket, a bar, a quotation mark, `?` or `*`, which Windows "
    "refuses (`compatible` accepts them).",
    "short-name": "No name has the form of Windows' short names, such as PROGRA~1 (`compatible` accepts them).",
    "control-character": "No name contains NUL, another control character or a line separator.",
    "bidi-control": "No name contains a character that changes the direction of writing.",
    "invisible-character": "No name contains an invisible character, except joiners inside words.",
    "not-utf8": "Names are UTF-8. In a zip file, a name that is not ASCII has the UTF-8 flag (`compatible` does not "
    "require the flag for names from Unix and macOS).",
    "not-nfc": "Names are in Unicode's composed form NFC (`compatible` accepts other forms).",
    "reserved-name": "No name is reserved for a device by Windows, with or without an extension.",
    "trailing-dot-or-space": "No name ends with a dot or a space, which some systems drop.",
    "name-too-long": "A name has at most `archive_name_bytes` bytes.",
    "path-too-long": "A path, or the target of a link, has at most `archive_path_bytes` bytes.",
    "too-deep": "An entry is nested in at most `archive_depth` folders; a link's target has at most twice as many.",
    "duplicate-name": "No path occurs twice in the archive.",
    "collision": "No two paths differ only by upper and lower case or by the form of their Unicode text (NFC; in the "
    "profile `strict` also NFKC).",
    "file-against-folder": "No path is both a file and a folder.",
    "write-through-link": "No entry lies below a symbolic link.",
    # Links, modes, kinds
    "link-absolute": "A symbolic link points to a relative path.",
    "link-escape": "A symbolic link resolves to a path inside the tree, also through other links.",
    "link-chain": "A symbolic link resolves through at most 16 other links, without a cycle.",
    "link-target": "The target of a link is not empty and meets the rules for names; only links have a target.",
    "hard-link": "A hard link names a regular file that comes earlier in the archive. Resolving all hard links does "
    "not read the archive many times.",
    "payload": "Only files have content: a folder or link has no bytes.",
    "special-file": "Entries are files, folders and links: no device, pipe or socket.",
    "special-mode": "No entry is setuid, setgid or sticky (`compatible` drops these bits).",
    "no-permission": "The mode of an entry has a permission bit (`compatible` uses the default mode otherwise).",
    "kind-mismatch": "Name, attributes and mode of an entry agree on its kind.",
    # Bounds
    "too-many-entries": "The archive has at most `archive_entries` entries, implied folders included.",
    "too-large": "The unpacked content has at most `archive_total_mib` MiB.",
    "ratio": "The unpacked content is at most `archive_ratio` times as large as the archive.",
    "too-slow": "Reading takes at most `archive_seconds` seconds.",
    "memory": "Reading needs at most `archive_memory_mib` MiB of memory.",
    "unreadable": "The reader can parse the archive. If the reader itself fails, it refuses the archive.",
    "directory-size": "The size of the central directory fits the number of its entries.",
    "window": "Decompression needs a window of at most 128 MiB.",
    # Compression
    "compression": "Compressed data is complete and valid, and ends at its declared size.",
    "compression-method": "Entries of a zip file are stored or deflated.",
    "concatenated": "Compressed data is one stream (`compatible` accepts several streams in a row).",
    "checksum": "The content of an entry matches its checksum.",
    "size": "The content of an entry has its declared size.",
    "truncated": "The archive is complete.",
    "leading-data": "An archive begins at the first byte (`compatible` accepts a zip file after an executable).",
    "trailing-data": "Nothing follows the end of the archive.",
    "two-formats": "An archive is of one format only.",
    # Zip
    "zip-end": "A zip file has one end record, at its very end, with correct values.",
    "zip-comment": "The comment of a zip file does not contain the signature of a record.",
    "zip64": "Zip64 fields occur only where they are needed, and agree with the other fields.",
    "split": "A zip file is not split into several files.",
    "entry-count": "The number of entries is the number in the end record.",
    "gap": "Every byte of a zip file belongs to a record (`compatible` accepts a well-formed APK signing block).",
    "overlap": "No two entries share a byte.",
    "local-mismatch": "The local header of an entry agrees with the central directory.",
    "data-descriptor": "A data descriptor occurs only where a flag announces it; it matches the central directory.",
    "extra-field": "Extra fields are well formed, and none declares another kind, name or size.",
    "unicode-path": "A Unicode path in an extra field is the entry's name.",
    "encrypted": "No entry is encrypted.",
    "zip-flags": "Only flags are set that are defined for stored and deflated entries.",
    "zip-record": "Records of a zip file begin with their signature.",
    # Tar
    "tar-header": "Headers of a tar file are well formed, with only zeros after the end of a text field.",
    "tar-checksum": "A tar header matches its checksum.",
    "tar-magic": "Tar headers are ustar or GNU (`compatible` accepts older formats).",
    "tar-number": "Numbers in tar headers are octal or base-256, in range, and not negative (except for times).",
    "tar-type": "Entries of a tar file are of a standard type.",
    "tar-padding": "The padding after an entry of a tar file is zero.",
    "tar-end": "A tar file ends with two blocks of zeros (`compatible` does not require them).",
    "sparse": "No entry is sparse.",
    "pax-record": "PAX records are well formed, none occurs twice, and their number is limited.",
    "pax-order": "Extended headers come directly before one entry, each kind once, and 8 at most.",
    "pax-size": "A PAX size and the header's size are equal, unless the size does not fit into the header.",
    "pax-name": "An entry with an extended name also has a safe path in its plain header.",
    "pax-global": "A global PAX header contains only comments (`compatible` takes owners and times too).",
    # Agreement
    "parsers-disagree": "A second parser finds the same entries at the same offsets.",
}


class ArchiveRefused(Refused):
    """The archive violates a rule of safe reading; nothing of it is stored."""

    status = 422
    code = "archive_refused"
    title = "Archive refused"
    resolution = "Correct the entry that the message names, pack the archive again and upload it as a new artifact."

    def __init__(self, rule: str, detail: str, *, entry: str | None = None, is_printable: bool = False) -> None:
        """`rule` is a code from docs/reference/archive-rules.md. `entry` is the raw name of the entry, or its printable
        form with `is_printable`."""
        printable_entry = entry if entry is None or is_printable else printable(entry)
        super().__init__(
            detail if printable_entry is None else f"{printable_entry}: {detail}",
            members={"rule": rule} if printable_entry is None else {"rule": rule, "entry": printable_entry},
        )
        self.rule = rule
        self.entry = printable_entry
        self.reason = detail

    @classmethod
    def reported(cls, rule: str, detail: str, printable_entry: str | None) -> "ArchiveRefused":
        """Return a refusal that another process reported. `detail` already contains the printable name of the entry."""
        refusal = cls(rule, detail)
        refusal.entry = printable_entry
        if printable_entry is not None:
            refusal.members = {"rule": rule, "entry": printable_entry}
        return refusal


class ArchiveUnknown(Refused):
    """The file is not an archive in a supported format."""

    status = 422
    code = "archive_unknown"
    title = "Not an archive"
    resolution = "Upload a zip file, or a tar file, plain or compressed with gzip, xz or zstd."


def printable(name: str) -> str:
    """Return an untrusted name as ASCII that is safe in terminals and logs, cut off after 300 characters."""
    return name.encode("unicode_escape").decode("ascii")[:300]
