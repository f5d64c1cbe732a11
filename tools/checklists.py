"""Generates the pages of the security checklists from tests/security/*.csv. Each row has a verdict, and tests or a
reason."""

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

This page lists every requirement of the levels 1 and 2 of the [OWASP Application Security Verification Standard
5.0.0](https://github.com/OWASP/ASVS/tree/v5.0.0) by its id, with a short description of our own. Only the text of the
standard is authoritative (ids and names of sections: OWASP Foundation, CC BY-SA 4.0). The verdicts are our own
judgement; no one else has certified them. The tests are the evidence for a verdict: some cover a whole requirement,
some only its core.
"""
API = """\
# OWASP API Security Top 10, 2023

This page lists the ten risks of the [OWASP API Security Top
10](https://owasp.org/API-Security/editions/2023/en/0x11-t10/) (names: OWASP Foundation, CC BY-SA 4.0), with tests of
the protection against each risk. The verdicts are our own judgement. For single requirements, see [ASVS](asvs.md).
"""


class Row(NamedTuple):
    """One requirement: `tests` are `path::function`; `reason` is a short text or empty."""

    requirement: str
    level: str
    section: str
    about: str
    verdict: str
    tests: tuple[str, ...]
    reason: str


def pages() -> dict[str, str]:
    """Map the file names of both pages to their texts."""
    return {"asvs.md": NOTE + _asvs_page(), "owasp-api.md": NOTE + _api_page()}


def rows(name: str) -> list[Row]:
    """Return the rows of a checklist in the order of its file."""
    with (ROOT / f"tests/security/{name}.csv").open(encoding="utf-8", newline="") as file:
        return [
            Row(*(line[field] for field in Row._fields[:5]), tuple(line["tests"].split()), line["reason"])
            for line in csv.DictReader(file)
        ]


def _asvs_page() -> str:
    requirement_rows = rows("asvs")
    page_parts = [ASVS, "\n", _totals(requirement_rows)]
    for (number, section), group in groupby(
        requirement_rows, key=lambda row: (row.requirement.rpartition(".")[0], row.section)
    ):
        page_parts.append(f"\n## {number} {section}\n\n| | Level | About | Verdict | Tests, or why |\n")
        page_parts.append("| --- | --- | --- | --- | --- |\n")
        page_parts += [
            f"| {row.requirement} | {row.level} | {row.about} | {row.verdict} | {_evidence(row)} |\n" for row in group
        ]
    return "".join(page_parts)


def _api_page() -> str:
    """Return the page with the table of API risks."""
    lines = [f"| {row.requirement} | {row.section} | {row.verdict} | {_evidence(row)} |\n" for row in rows("owasp-api")]
    return API + "\n| | Risk | Verdict | Tests, or why |\n| --- | --- | --- | --- |\n" + "".join(lines)


def _totals(requirement_rows: list[Row]) -> str:
    row_counts = Counter((row.level, row.verdict) for row in requirement_rows)
    lines = [f"| {verdict} | {row_counts['1', verdict]} | {row_counts['2', verdict]} |\n" for verdict in VERDICTS]
    return "| Verdict | Level 1 | Level 2 |\n| --- | --- | --- |\n" + "".join(lines)


def _evidence(row: Row) -> str:
    reason = [_link_pages(row.reason)] if row.reason else []
    return "<br>".join([*reason, *_tests(row)])


def _tests(row: Row) -> Iterator[str]:
    for test in row.tests:
        path, _, name = test.partition("::")
        yield f"[`{name}`](../../{path})"


def _link_pages(reason: str) -> str:
    """Return the reason with links to the pages that it names, relative to docs/reference."""
    return re.sub(r"docs/([\w/-]+)\.md", r"[\1](../\1.md)", reason)


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
