"""With --quick, the tests that need no process of their own, no browser and no peer, on SQLite.

A test is left out by its fixtures and parameters, or by its mark `process`. Any other one that starts a process is
skipped as it does so: no list of them has to be kept.
"""

import asyncio
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType

import pytest

SERVERS = {"chromium", "node", "postgres_cluster", "redis_port", "s3_endpoint"}
"""Fixtures that start, or are, a program of others."""
STARTS = {"os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen"}
TOOLS = {"git"}
"""What a quick test may start: it looks at the repository."""
REASON = "it starts a process, as `make test` lets it; where this is shown as a failure, mark the test `process`"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --quick."""
    parser.addoption("--quick", action="store_true", help="run the tests that start no process, on SQLite alone")


def pytest_configure(config: pytest.Config) -> None:
    """Skip what starts a process."""
    if config.getoption("--quick"):
        signal.signal(signal.SIGUSR1, _skip_what_waits)
        sys.addaudithook(refuse_processes)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is seen to need more."""
    if not config.getoption("--quick"):
        return
    config.hook.pytest_deselected(items=[item for item in items if needs_more(item)])
    items[:] = [item for item in items if not needs_more(item)]


def needs_more(item: pytest.Item) -> bool:
    """Whether the test's mark, fixtures or parameters say that it needs a process or PostgreSQL."""
    if item.get_closest_marker("process") or SERVERS & set(getattr(item, "fixturenames", ())):
        return True
    called = getattr(item, "callspec", None)
    return called is not None and any(str(each).startswith("postgres") for each in called.params.values())


def refuse_processes(event: str, arguments: tuple[object, ...]) -> None:
    """Skip the test that is about to start a process."""
    if event not in STARTS or os.environ.get("PYTEST_CURRENT_TEST") is None:
        return
    if event == "subprocess.Popen" and Path(str(arguments[0])).name in TOOLS:
        return
    threading.Thread(target=_insist, args=(os.environ["PYTEST_CURRENT_TEST"],), daemon=True).start()
    pytest.skip(REASON)


_refused: list[str] = []


def _insist(test: str) -> None:
    """End the test, which may wait for a background task that the skip has ended, and nothing else."""
    time.sleep(1)
    _refused[:] = [test]
    while os.environ.get("PYTEST_CURRENT_TEST") == test:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        time.sleep(0.2)


def _skip_what_waits(_number: int, _frame: FrameType | None) -> None:
    """Skip the test whose process was refused, while its event loop runs: between tests there is none."""
    if asyncio._get_running_loop() is not None and os.environ.get("PYTEST_CURRENT_TEST") in _refused:
        pytest.skip(REASON)
