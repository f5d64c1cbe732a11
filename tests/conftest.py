"""What every test may ask for, and the wall that keeps tests on this machine."""

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
from tests.servers.memory import quick_folder

HUNG_S = 900
"""After this a test is held to wait for what never comes."""

SERVERS = ("chromium", "firefox", "fork_server", "postgres", "redis", "s3", "transaction_waits")
pytest_plugins = [
    "tests.figures",
    "tests.passwords",
    "tests.quick",
    *(f"tests.servers.{each}" for each in SERVERS),
]

# A busy machine fails no property: how long examples take to be made decides nothing.
hypothesis_settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --full, which runs the tests marked `full` too."""
    parser.addoption("--full", action="store_true", help="run the tests that take long, too")


def pytest_configure(config: pytest.Config) -> None:
    """Close the way out of this machine for the whole run, and keep the tests' folders in memory.

    A process that is killed leaves the same there as on a disk, and no test waits for one. The figures of --full are
    of the disk. What is logged is logged as a service does it: by default a fault is drawn with all that its frames
    hold, which takes up to a minute.

    What is served keeps its compiled code, as an installation does: a third of each start would be compiling. And it
    writes a line at once, as it does without the setting: unbuffered, two processes' lines can run into each other.
    """
    for setting in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"):
        os.environ.pop(setting, None)
    # A run in the background of a shell script ignores ctrl-C, and so would each program that a test starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Rewriting the asserts of all tests takes longer than importing them: pytest keeps what it has rewritten.
    sys.dont_write_bytecode = False
    sys.addaudithook(refuse_the_outside)
    telemetry.configure()
    if "sniffio" not in sys.modules and find_spec("sniffio") is None:
        # httpx looks for it with every request to an application in the test's own process, in all folders there are.
        sys.modules.update(sniffio=cast("ModuleType", None))
    quick = None if config.getoption("--full") else quick_folder()
    if quick:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(quick))


def pytest_xdist_auto_num_workers() -> int:
    """Two workers more than there are processors, since many tests wait; at most four."""
    return min(4, len(os.sched_getaffinity(0)) + 2)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked `full` unless --full was given, begin with what takes longest, and end what hangs."""
    if config.getoption("--full"):
        return
    late = [item for item in items if item.get_closest_marker("full")]
    if late:
        config.hook.pytest_deselected(items=late)
        items[:] = [item for item in items if not item.get_closest_marker("full")]
    # The longest first: whoever meets one at the end of a run ends it alone.
    items.sort(key=lambda item: item.path.parent.name != "faults")
    for item in items:
        # No judgement of a time: the longest takes a twentieth of it. One that hangs is named, and the rest is run.
        item.add_marker(pytest.mark.timeout(HUNG_S))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Collect no garbage while a failure is reported: a finalizer that parses within a parse ends the whole run on
    Python before 3.11.9 ("AST constructor recursion depth mismatch", CPython issue 106905)."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection() -> None:
    """Collect no garbage until `pytest_collection_finish`: there is little, and looking for it takes a fifth longer."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Have the garbage collector pass over what stays for the whole run: a million objects that no test makes."""
    gc.enable()
    gc.freeze()


def refuse_the_outside(event: str, arguments: tuple[object, ...]) -> None:
    """Raise when Python code is about to reach an address or look up a name outside of this machine.

    An audit hook sees every way to a socket; it cannot be taken away again. uvloop connects without it.
    """
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    if isinstance(host, str | bytes) and not _is_here(host.decode() if isinstance(host, bytes) else host):
        raise PermissionError(f"tests stay on this machine, and this one asked for {host!r}")


def _is_here(host: str) -> bool:
    if host in ("", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database of the test's own: once SQLite, once PostgreSQL."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/test.db"
    else:
        yield request.getfixturevalue("postgres_url")
