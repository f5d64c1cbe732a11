"""Makes the pages of the security checklists from tests/security/*.csv: a verdict, and tests or a reason, per row."""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/reference"
NOTE = "<!-- Written by `make docs`; change the rows in tests/security instead. -->\n\n"
VERDICTS = ("met", "partly", "not met", "not applicable")
ASVS = """\
# ASVS 5.0.0, levels 1 and 2

Every requirement of the levels 1 and 2 of the [OWASP Application Security Verification Standard
5.0.0](https://github.com/OWASP/ASVS/tree/v5.0.0) by its id, with our own few words for what it is about; the
standard's words, which count, are there (ids and names of sections: OWASP Foundation, CC BY-SA 4.0). It is our own
judgement, and nobody else's certificate. The tests show what a verdict rests on: some show a requirement whole, some
its core.
"""
API = """\
# OWASP API Security Top 10, 2023

The ten risks of the [OWASP API Security Top 10](https://owasp.org/API-Security/editions/2023/en/0x11-t10/) (names:
OWASP Foundation, CC BY-SA 4.0), and tests that show what stands against each. It is our own judgement. Requirement by
requirement: [ASVS](asvs.md).
"""


class Row(NamedTuple):
    """One requirement: `tests` are `path::function`; `reason` is one sentence or empty."""

    requirement: str
    level: str
    section: str
    about: str
    verdict: str
    tests: tuple[str, ...]
    reason: str


def pages() -> dict[str, str]:
    """Both pages by their file names."""
    return {"asvs.md": NOTE + _asvs_page(), "owasp-api.md": NOTE + _api_page()}


def rows(name: str) -> list[Row]:
    """The rows of a checklist, in its order."""
    with (ROOT / f"tests/security/{name}.csv").open(encoding="utf-8", newline="") as file:
        return [
            Row(*(line[each] for each in Row._fields[:5]), tuple(line["tests"].split()), line["reason"])
            for line in csv.DictReader(file)
        ]


def _asvs_page() -> str:
    listed = rows("asvs")
    parts = [ASVS, "\n", _totals(listed)]
    for (number, section), group in groupby(listed, key=lambda row: (row.requirement.rpartition(".")[0], row.section)):
        parts.append(f"\n## {number} {section}\n\n| | Level | About | Verdict | Tests, or why |\n")
        parts.append("| --- | --- | --- | --- | --- |\n")
        parts += [
            f"| {row.requirement} | {row.level} | {row.about} | {row.verdict} | {_evidence(row)} |\n" for row in group
        ]
    return "".join(parts)


def _api_page() -> str:
    """The API list, one table."""
    lines = [f"| {row.requirement} | {row.section} | {row.verdict} | {_evidence(row)} |\n" for row in rows("owasp-api")]
    return API + "\n| | Risk | Verdict | Tests, or why |\n| --- | --- | --- | --- |\n" + "".join(lines)


def _totals(listed: list[Row]) -> str:
    counted = Counter((row.level, row.verdict) for row in listed)
    lines = [f"| {verdict} | {counted['1', verdict]} | {counted['2', verdict]} |\n" for verdict in VERDICTS]
    return "| Verdict | Level 1 | Level 2 |\n| --- | --- | --- |\n" + "".join(lines)


def _evidence(row: Row) -> str:
    said = [_linked(row.reason)] if row.reason else []
    return "<br>".join([*said, *_tests(row)])


def _tests(row: Row) -> Iterator[str]:
    for each in row.tests:
        path, _, name = each.partition("::")
        yield f"[`{name}`](../../{path})"


def _linked(reason: str) -> str:
    """The reason with the pages it names as links, seen from docs/reference."""
    return re.sub(r"docs/([\w/-]+)\.md", r"[\1](../\1.md)", reason)


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
