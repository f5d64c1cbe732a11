"""With --quick, runs only the tests that start no process, no browser and no other server, with SQLite alone.

A test is deselected if its fixtures, its parameters or its mark `process` show that it needs more. Any other test that
starts a process is skipped at that moment, so no list of such tests is needed.
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
"""The fixtures that start another program or return its path."""
PROCESS_EVENTS = {"os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen"}
PERMITTED_PROGRAMS = {"git"}
"""The programs that a quick test may start. Git only reads the repository."""
REASON = "it starts a process, as `make test` lets it; where this is shown as a failure, mark the test `process`"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --quick."""
    parser.addoption("--quick", action="store_true", help="run the tests that start no process, on SQLite alone")


def pytest_configure(config: pytest.Config) -> None:
    """Install the audit hook that skips tests which start a process."""
    if config.getoption("--quick"):
        signal.signal(signal.SIGUSR1, _skip_waiting_test)
        sys.addaudithook(refuse_processes)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that need a process or PostgreSQL."""
    if not config.getoption("--quick"):
        return
    config.hook.pytest_deselected(items=[item for item in items if needs_more(item)])
    items[:] = [item for item in items if not needs_more(item)]


def needs_more(item: pytest.Item) -> bool:
    """Return whether the mark, the fixtures or the parameters of the test show that it needs a process or
    PostgreSQL."""
    if item.get_closest_marker("process") or SERVERS & set(getattr(item, "fixturenames", ())):
        return True
    callspec = getattr(item, "callspec", None)
    return callspec is not None and any(str(param).startswith("postgres") for param in callspec.params.values())


def refuse_processes(event: str, arguments: tuple[object, ...]) -> None:
    """Skip the test if it is about to start a process."""
    if event not in PROCESS_EVENTS or os.environ.get("PYTEST_CURRENT_TEST") is None:
        return
    if event == "subprocess.Popen" and Path(str(arguments[0])).name in PERMITTED_PROGRAMS:
        return
    threading.Thread(target=_interrupt_until_end, args=(os.environ["PYTEST_CURRENT_TEST"],), daemon=True).start()
    pytest.skip(REASON)


_refused: list[str] = []


def _interrupt_until_end(test: str) -> None:
    """Send signals to the main thread until this test has ended. The skip may have ended only a background task, and
    the test may wait for this task."""
    time.sleep(1)
    _refused[:] = [test]
    while os.environ.get("PYTEST_CURRENT_TEST") == test:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        time.sleep(0.2)


def _skip_waiting_test(_number: int, _frame: FrameType | None) -> None:
    """Skip the current test if it is the one that was refused a process. Do so only while its event loop runs, so that
    the signal has no effect between tests."""
    if asyncio._get_running_loop() is not None and os.environ.get("PYTEST_CURRENT_TEST") in _refused:
        pytest.skip(REASON)
