"""The refusal of an archive: it names the entry and the rule that was broken."""

from countersign.kernel.errors import Refused


class ArchiveRefused(Refused):
    """The archive breaks a rule of safe reading; nothing of it is kept."""

    status = 422
    code = "archive_refused"
    title = "Archive refused"
    resolution = "Correct the entry that is named, pack the archive anew and upload it as a new artifact."

    def __init__(self, rule: str, detail: str, *, entry: str | None = None, is_printable: bool = False) -> None:
        """`rule` is a word of docs/reference/archive-rules.md; `entry` the raw name, which is made printable unless it
        is so already."""
        shown = entry if entry is None or is_printable else entry.encode("unicode_escape").decode("ascii")[:300]
        super().__init__(
            detail if shown is None else f"{shown}: {detail}",
            members={"rule": rule} if shown is None else {"rule": rule, "entry": shown},
        )
        self.rule = rule
        self.entry = shown
        self.reason = detail
