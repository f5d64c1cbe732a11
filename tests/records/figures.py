"""What a long run found, kept: with --full, a test that passes adds a line to docs/results/records.jsonl."""

import json
import platform
import subprocess
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs/results/records.jsonl"
SHOWN = ("src", "tests/records")

Figures = dict[str, object]
Reporting = Generator[None, pytest.TestReport, pytest.TestReport]
_figures = pytest.StashKey[Figures]()


@pytest.fixture
def is_full(request: pytest.FixtureRequest) -> bool:
    """Whether the stated numbers are asked for (--full), or the small sample."""
    return bool(request.config.getoption("--full"))


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """What the test counted, units in the names."""
    found: Figures = {}
    request.node.stash[_figures] = found
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Reporting:
    """Write down the figures of a test that has passed."""
    report = yield
    counted = item.stash.get(_figures, None)
    if call.when == "call" and report.passed and counted and item.config.getoption("--full"):
        line = {
            "commit": _commit(),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "test": item.nodeid,
            "figures": counted,
        }
        with RESULTS.open("a") as file:
            file.write(json.dumps(line) + "\n")
    return report


def _commit() -> str:
    """The last commit of what a figure depends on, with a `+` when that has been changed since."""
    last = _git("log", "-1", "--format=%h", "--", *SHOWN)
    return (last or "unknown") + ("+" if not last or _git("status", "--porcelain", "--", *SHOWN) else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
