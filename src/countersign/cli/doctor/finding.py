"""What a check of `countersign doctor` finds."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from countersign.cli import output
from countersign.kernel.errors import Refused, Unavailable, is_disk_full

Standing: TypeAlias = Literal["ok", "warn", "fail"]

WIDTH = len("distribution database")
"""Of the longest name."""


@dataclass(slots=True)
class Finding:
    """What one check found; a remedy unless all is well."""

    name: str
    standing: Standing
    detail: str
    remedy: str = ""
    is_disk_full: bool = False

    def say(self) -> None:
        """Print it, in words."""
        output.say(f"{self.standing:4}  {self.name:{WIDTH}}  {self.detail}")
        if self.remedy:
            output.say(f"      {'':{WIDTH}}  {self.remedy}")

    def members(self) -> dict[str, str]:
        """It as an object of JSON."""
        return {"check": self.name, "standing": self.standing, "detail": self.detail, "remedy": self.remedy}


def failed(name: str, refused: Refused, remedy: str = "") -> Finding:
    """What a refusal means to whoever runs the services, with a remedy of the check's own where it has one."""
    # Waiting helps callers alone.
    known = "See to it, and check again." if refused.remedy == Unavailable.resolution else refused.remedy
    # What is of the machine alone, like a path, is noted on the exception.
    detail = " ".join((refused.detail, *getattr(refused, "__notes__", ())))
    return Finding(name, "fail", detail, remedy or known, is_disk_full=is_disk_full(refused))
