"""Records the results of long runs. With --full, each test that passes adds a line to docs/results/<its folder>.jsonl,
and is skipped in later runs at the same commit."""

import json
import platform
import subprocess
from collections.abc import Generator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs/results"
TESTED_PATHS = ("src", "tests", "requirements", "pyproject.toml")
"""The paths on which a result depends. The result is valid as long as they do not change."""

Figures = dict[str, object]
Reporting = Generator[None, pytest.TestReport, pytest.TestReport]
_figures = pytest.StashKey[Figures]()


@pytest.fixture
def is_full(request: pytest.FixtureRequest) -> bool:
    """Return whether the test runs with its full numbers (--full) or with a small sample."""
    return bool(request.config.getoption("--full"))


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """A dictionary for the numbers that the test counts or measures. The names contain the units."""
    figures_of_test: Figures = {}
    request.node.stash[_figures] = figures_of_test
    return figures_of_test


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Reporting:
    """With --full, append the figures of a test that has passed to its results file."""
    report = yield
    figures_of_test = item.stash.get(_figures, None)
    if call.when == "call" and report.passed and figures_of_test and item.config.getoption("--full"):
        line = {
            "commit": commit(),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "test": item.nodeid,
            "figures": figures_of_test,
        }
        with _file(item).open("a") as file:
            file.write(json.dumps(line) + "\n")
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --full, skip each test that has passed at the same commit. A run that was interrupted can then be
    continued."""
    if not config.getoption("--full") or commit().endswith("+"):
        return
    for item in items:
        file = _file(item)
        if item.nodeid in passed_tests(file, commit()):
            item.add_marker(pytest.mark.skip(reason=f"passed at this commit: see {file.relative_to(ROOT)}"))


@cache
def passed_tests(file: Path, at: str) -> frozenset[str]:
    """Return the tests that have passed at the commit, according to the results file."""
    lines = file.read_text().splitlines() if file.exists() else []
    entries = [json.loads(line) for line in lines]
    return frozenset(entry["test"] for entry in entries if entry["commit"] == at)


def _file(item: pytest.Item) -> Path:
    """Return the results file of the test. It is named after the test's folder in tests/."""
    return RESULTS / f"{item.path.relative_to(ROOT / 'tests').parts[0]}.jsonl"


def commit() -> str:
    """Return the last commit that changed `TESTED_PATHS` (see `commit_of`)."""
    return commit_of(*TESTED_PATHS)


@cache
def commit_of(*paths: str) -> str:
    """Return the last commit that changed these paths. If they have uncommitted changes, a `+` follows, and results do
    not count as results of the commit."""
    last_commit = _git("log", "-1", "--format=%h", "--", *paths)
    return (last_commit or "unknown") + ("+" if not last_commit or _git("status", "--porcelain", "--", *paths) else "")


def _git(*arguments: str) -> str:
    result = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return result.stdout.strip()
