"""The tutorial about a database of others runs as printed, and its numbers are those of the run."""

import re
import time
from pathlib import Path

from tests import docs
from tests.figures import Figures
from tests.servers.process import free_port

PAGE = docs.ROOT / "docs/tutorial/your-own-database.md"
MAX_SECONDS = 60
DECISIONS = re.compile(r"--(?:clear|label|hide) |writable=True&|api approve/")


def test_every_command_has_the_documented_result_within_the_stated_time(
    postgres_url: str, tmp_path: Path, figures: Figures
) -> None:
    tour = docs.with_postgres(docs.commands(PAGE.read_text()), postgres_url)
    ports = free_port(), free_port()
    started = time.monotonic()

    printed_output = docs.run(tour, tmp_path, *ports)

    took = time.monotonic() - started
    figures |= {"commands": len(tour), "decisions": _decisions(tour), "seconds": round(took, 1)}
    print(figures)
    assert not "\n".join(docs.differences(tour, printed_output, *ports))
    assert took < MAX_SECONDS


def test_the_page_states_the_number_of_its_commands_and_decisions() -> None:
    tour = docs.commands(PAGE.read_text())

    assert f"{len(tour)} commands and {_decisions(tour)} decisions" in PAGE.read_text()


def _decisions(tour: list[docs.DocumentedCommand]) -> int:
    return sum(len(DECISIONS.findall(command.line)) for command in tour)
