"""What a long run found, kept: with --full, a test that passes adds a line to docs/results/<its folder>.jsonl, and is
not run again at the same commit."""

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
SHOWN = ("src", "tests", "requirements", "pyproject.toml")
"""What a result depends on: the same commit here means the same result."""

Figures = dict[str, object]
Reporting = Generator[None, pytest.TestReport, pytest.TestReport]
_figures = pytest.StashKey[Figures]()


@pytest.fixture
def is_full(request: pytest.FixtureRequest) -> bool:
    """Whether the stated numbers are asked for (--full), or the small sample."""
    return bool(request.config.getoption("--full"))


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """What the test counted or measured, units in the names."""
    found: Figures = {}
    request.node.stash[_figures] = found
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Reporting:
    """Write down the figures of a test that has passed."""
    report = yield
    found = item.stash.get(_figures, None)
    if call.when == "call" and report.passed and found and item.config.getoption("--full"):
        line = {
            "commit": commit(),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "test": item.nodeid,
            "figures": found,
        }
        with _file(item).open("a") as file:
            file.write(json.dumps(line) + "\n")
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --full, leave out what a line of the same commit shows as passed: an interrupted run goes on."""
    if not config.getoption("--full") or commit().endswith("+"):
        return
    for item in items:
        file = _file(item)
        if item.nodeid in passed(file, commit()):
            item.add_marker(pytest.mark.skip(reason=f"passed at this commit: see {file.relative_to(ROOT)}"))


@cache
def passed(file: Path, at: str) -> frozenset[str]:
    """The tests that have passed at the commit, as the lines of the file tell."""
    lines = file.read_text().splitlines() if file.exists() else []
    entries = [json.loads(line) for line in lines]
    return frozenset(entry["test"] for entry in entries if entry["commit"] == at)


def _file(item: pytest.Item) -> Path:
    """Where figures of the test stand, named after its folder below tests/."""
    return RESULTS / f"{item.path.relative_to(ROOT / 'tests').parts[0]}.jsonl"


def commit() -> str:
    """The last commit of what a test's result depends on; see `commit_of`."""
    return commit_of(*SHOWN)


@cache
def commit_of(*paths: str) -> str:
    """The last commit of these, with a `+` when they have been changed since; no result counts as one of it then."""
    last = _git("log", "-1", "--format=%h", "--", *paths)
    return (last or "unknown") + ("+" if not last or _git("status", "--porcelain", "--", *paths) else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
