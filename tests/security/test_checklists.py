"""The two security checklists are complete, name existing tests, and give a reason for each unmet requirement."""

import ast
import hashlib
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tools import checklists

ROOT = Path(__file__).parents[2]
# From the release's own list (ASVS 5.0.0): the count of level 1 and 2 requirements in each chapter, and the digest of
# their sorted ids, one per line.
IN_CHAPTERS = (27, 11, 19, 10, 9, 35, 18, 7, 7, 29, 14, 9, 13, 9, 13, 16, 7)
LEVELS = {"1": 70, "2": 183}
IDS_SHA256 = "86cf170f2d735bbea6709489730fedbcd1b6a5611b6b13040d534dd93346e2eb"
ROWS = [*checklists.rows("asvs"), *checklists.rows("owasp-api")]


@cache
def functions(path: str) -> frozenset[str]:
    """Return the functions of a test file, by name."""
    body = ast.parse((ROOT / path).read_text()).body
    return frozenset(
        statement.name for statement in body if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def test_every_requirement_of_levels_1_and_2_is_listed_once() -> None:
    requirements = [row.requirement for row in checklists.rows("asvs")]

    chapters = Counter(int(re.split(r"[V.]", requirement)[1]) for requirement in requirements)

    assert chapters == dict(enumerate(IN_CHAPTERS, start=1))
    assert len(set(requirements)) == len(requirements)
    assert hashlib.sha256("\n".join(sorted(requirements)).encode()).hexdigest() == IDS_SHA256
    assert Counter(row.level for row in checklists.rows("asvs")) == LEVELS


def test_every_risk_of_the_api_list_is_listed_once() -> None:
    requirements = [row.requirement for row in checklists.rows("owasp-api")]

    assert requirements == [f"API{number}:2023" for number in range(1, 11)]


@pytest.mark.parametrize("name", checklists.pages())
def test_the_page_is_fresh(name: str) -> None:
    assert (checklists.FOLDER / name).read_text() == checklists.pages()[name], "run `make docs`"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.requirement)
def test_a_row_names_tests_that_exist_or_says_why_not(row: checklists.Row) -> None:
    for test in row.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).is_file(), test
        assert name in functions(path), test
    assert row.verdict in checklists.VERDICTS
    assert row.about
    assert row.reason or (row.verdict == "met" and row.tests)
    assert not row.reason or row.reason.endswith(".")
    for page in re.findall(r"docs/[\w/-]+\.md", row.reason):
        assert (ROOT / page).is_file(), page
