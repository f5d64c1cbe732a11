"""The table in README.md names existing journeys, and covers every item."""

import re
from pathlib import Path

HERE = Path(__file__).parent


def test_every_point_of_the_checklist_has_a_journey() -> None:
    rows = re.findall(r"^\| (\d+) \|[^|]+\|([^|]+)\|", (HERE / "README.md").read_text(), re.MULTILINE)
    named_tests = {name for _, cell in rows for name in re.findall(r"`(test_\w+)`", cell)}
    store_tests = {name for file in HERE.glob("test_*.py") for name in journeys(file)}
    other_tests = {name for file in HERE.parent.glob("test_*.py") for name in journeys(file)}

    assert [int(number) for number, _ in rows] == list(range(1, 26))
    assert all("`test_" in cell for _, cell in rows)
    assert named_tests <= store_tests | other_tests


def journeys(file: Path) -> list[str]:
    """Return the tests in a file of journeys."""
    return re.findall(r"^(?:async )?def (test_\w+)\(", file.read_text(), re.MULTILINE)
