"""What a check of `countersign doctor` finds."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from countersign.cli import output

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

    def say(self) -> None:
        """Print it, in words."""
        output.say(f"{self.standing:4}  {self.name:{WIDTH}}  {self.detail}")
        if self.remedy:
            output.say(f"      {'':{WIDTH}}  {self.remedy}")

    def members(self) -> dict[str, str]:
        """It as an object of JSON."""
        return {"check": self.name, "standing": self.standing, "detail": self.detail, "remedy": self.remedy}
