"""The setup of the whole test run: shared fixtures, and the block of connections to other machines."""

import gc
import ipaddress
import os
import signal
import sys
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from countersign.kernel import telemetry
from tests.servers.memory import memory_folder

HUNG_S = 900
"""The time after which a test counts as hung and fails."""

SERVERS = ("chromium", "firefox", "fork_server", "postgres", "redis", "s3", "transaction_waits")
pytest_plugins = [
    "tests.figures",
    "tests.passwords",
    "tests.quick",
    *(f"tests.servers.{server}" for server in SERVERS),
]

# A property test must not fail because the machine is busy, so the time for generating examples has no limit.
hypothesis_settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option --full, which also runs the tests marked `full`."""
    parser.addoption("--full", action="store_true", help="also run the tests that take long")


def pytest_configure(config: pytest.Config) -> None:
    """Block connections to other machines for the whole run, and store the tests' folders in memory.

    Memory is faster than a disk, and a killed process leaves the same files in both. With --full, the folders are on
    the disk, so that the measurements apply to a disk. Errors are logged in the format of a service: the default format
    shows the variables of all frames, which takes up to a minute.

    Servers that tests start cache their compiled code, as in an installation. Without the cache, a third of each start
    would be compilation. Their output is buffered by line: without buffering, lines of two processes can mix.
    """
    for setting in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"):
        os.environ.pop(setting, None)
    # A run that a shell script starts in the background ignores ctrl-C, and so would the programs that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Let pytest cache its rewritten test modules: rewriting their asserts takes longer than importing them.
    sys.dont_write_bytecode = False
    sys.addaudithook(refuse_other_machines)
    telemetry.configure()
    if "sniffio" not in sys.modules and find_spec("sniffio") is None:
        # With every request to an application in the same process, httpx searches all import folders for sniffio.
        sys.modules.update(sniffio=cast("ModuleType", None))
    memory = None if config.getoption("--full") else memory_folder()
    if memory:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


def pytest_xdist_auto_num_workers() -> int:
    """Return two workers more than processors, because many tests wait, but at most four."""
    return min(4, len(os.sched_getaffinity(0)) + 2)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without --full, deselect the tests marked `full`, run the slowest tests first, and give each test a timeout."""
    if config.getoption("--full"):
        return
    deselected = [item for item in items if item.get_closest_marker("full")]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if not item.get_closest_marker("full")]
    # Run the slowest tests first. At the end of a run, one worker would run such a test alone while the others wait.
    items.sort(key=lambda item: item.path.parent.name != "faults")
    for item in items:
        # The timeout does not measure speed: the slowest test takes a twentieth of it. It ends a test that hangs.
        item.add_marker(pytest.mark.timeout(HUNG_S))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Disable the garbage collector while a failure is reported. A finalizer may parse code while the report parses
    code. Before Python 3.11.9, this ends the whole run ("AST constructor recursion depth mismatch", CPython issue
    106905)."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection() -> None:
    """Disable the garbage collector until `pytest_collection_finish`. It would find little and take a fifth of the
    time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Let the garbage collector ignore the million objects that exist now and stay for the whole run."""
    gc.enable()
    gc.freeze()


def refuse_other_machines(event: str, arguments: tuple[object, ...]) -> None:
    """Raise an error if Python code is about to connect to another machine or to look up the name of one.

    This audit hook receives every use of Python's socket module and cannot be removed. It does not receive the
    connections of uvloop, which does not use this module.
    """
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    if isinstance(host, str | bytes) and not _is_this_machine(host.decode() if isinstance(host, bytes) else host):
        raise PermissionError(f"tests stay on this machine, and this one tried to reach {host!r}")


def _is_this_machine(host: str) -> bool:
    if host in ("", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the address of an empty database for this test. The test runs once with SQLite and once with
    PostgreSQL."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/test.db"
    else:
        yield request.getfixturevalue("postgres_url")
