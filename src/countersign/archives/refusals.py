"""The refusals of an archive: of one that breaks a rule, by entry and rule, and of bytes that are none."""

from countersign.kernel.errors import Refused


class ArchiveRefused(Refused):
    """The archive breaks a rule of safe reading; nothing of it is kept."""

    status = 422
    code = "archive_refused"
    title = "Archive refused"
    resolution = "Correct the entry that is named, pack the archive anew and upload it as a new artifact."

    def __init__(self, rule: str, detail: str, *, entry: str | None = None) -> None:
        """`rule` is a word of docs/reference/archive-rules.md; `entry` the raw name, made printable."""
        shown = None if entry is None else printable(entry)
        super().__init__(
            detail if shown is None else f"{shown}: {detail}",
            members={"rule": rule} if shown is None else {"rule": rule, "entry": shown},
        )
        self.rule = rule
        self.entry = shown

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
