"""A command that was read and found allowed, ready to be done now or, as a plan, later."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from countersign.records.commands.given import Given


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a writing command is going to do.

    `record_id` is the record it is about (None for create); `revision` the number its stored record had. `cascade` says
    of a deletion that what the declarations name goes along.
    """

    model: str
    command: str
    record_id: str | None = None
    revision: int = 0
    given: Mapping[str, Given] = field(default_factory=dict[str, Given])
    cascade: bool = False

    @property
    def id(self) -> str:
        """The command as it is called: lead.update."""
        return f"{self.model}.{self.command}"
