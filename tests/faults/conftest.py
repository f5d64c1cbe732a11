"""What every fault test may ask for: how much to do, where to write what was measured, and not to do it twice."""

import json
import platform
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.faults.lives import Lives

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs/results/faults.jsonl"
SHOWN = ("src", "tests/faults", "tests/servers", "requirements", "pyproject.toml")
"""What a result depends on: the same commit here means the same result."""

Figures = dict[str, object]
_figures = pytest.StashKey[Figures]()


@pytest.fixture
def is_full(request: pytest.FixtureRequest) -> bool:
    """Whether the stated numbers are asked for (--full), or the small sample."""
    return bool(request.config.getoption("--full"))


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """What the test measured, units in the names. With --full, a test that passes adds a line of them to RESULTS."""
    found: Figures = {}
    request.node.stash[_figures] = found
    return found


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    """A store that is not started yet, in a directory of its own; nothing of it outlives the test."""
    made = Lives(tmp_path / "data")
    yield made
    made.kill()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Write down the figures of a test that has passed."""
    report = yield
    measured = item.stash.get(_figures, None)
    if call.when == "call" and report.passed and measured and item.config.getoption("--full"):
        line = {
            "commit": commit(),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "test": item.nodeid,
            "figures": measured,
        }
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        with RESULTS.open("a") as file:
            file.write(json.dumps(line) + "\n")
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --full, leave out what a line of the same commit shows as passed: an interrupted run goes on."""
    if not config.getoption("--full") or commit().endswith("+"):
        return
    done = passed(RESULTS.read_text() if RESULTS.exists() else "", commit())
    for item in items:
        if item.nodeid in done:
            item.add_marker(pytest.mark.skip(reason=f"passed at this commit: see {RESULTS.relative_to(ROOT)}"))


def passed(lines: str, at: str) -> set[str]:
    """The tests that have passed at the commit, as the lines tell."""
    entries = [json.loads(line) for line in lines.splitlines()]
    return {entry["test"] for entry in entries if entry["commit"] == at}


def commit() -> str:
    """The last commit of what a result depends on, with a `+` when that has been changed since; never kept then."""
    last = _git("log", "-1", "--format=%h", "--", *SHOWN)
    return (last or "unknown") + ("+" if not last or _git("status", "--porcelain", "--", *SHOWN) else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
