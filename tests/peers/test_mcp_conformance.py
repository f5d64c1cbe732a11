"""The official conformance suite: every scenario passes except those with a documented reason in the baseline."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.peers.node import PROJECT, Node
from tests.records.conftest import SeededOffice
from tests.servers.countersign import SOURCE
from tests.servers.process import answers, free_port, run_until_ready

STABLE = ("node_modules/@modelcontextprotocol/conformance/dist/index.js", "server")
OF_2026 = ("node_modules/conformance-2026/dist/index.js", "server")
PASSED = "Baseline check passed"


@contextmanager
def start_server(log: Path, *arguments: str) -> Iterator[str]:
    """Run one of the suite's servers, and provide its address."""
    port = free_port()
    kind, *script_arguments = arguments
    script = str(PROJECT / "conformance_server.py")
    path = f"PYTHONPATH={SOURCE}:{SOURCE.parent}"
    with run_until_ready(
        ["env", path, sys.executable, script, kind, str(port), *script_arguments],
        is_ready=lambda: answers(port),
        log=log,
    ):
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The protocol with tools that the suite calls by name."""
    with start_server(tmp_path_factory.mktemp("tools") / "log", "tools") as url:
        yield url


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory, sqlite_office: SeededOffice) -> Iterator[str]:
    """The records service; every request gets a token."""
    folder = tmp_path_factory.mktemp("records")
    data = folder / "data"
    shutil.copytree(sqlite_office.place, data)
    with start_server(folder / "log", "records", str(data), sqlite_office.tokens["alice"]) as url:
        yield url


def test_the_suite_passes(node: Node, tools: str) -> None:
    process = node.run(
        *STABLE, "--url", tools, "--suite", "all", "--expected-failures", "conformance.yaml", timeout_s=300
    )

    assert process.returncode == 0, process.stdout[-3000:]
    assert PASSED in process.stdout


def test_the_suite_of_revision_2026_07_28_passes(node: Node, tools: str) -> None:
    baseline = ("--expected-failures", "conformance-2026.yaml")
    process = node.run(*OF_2026, "--url", tools, "--requirements", "2026-07-28", *baseline, timeout_s=300)

    assert process.returncode == 0, process.stdout[-3000:]
    assert PASSED in process.stdout


@pytest.mark.parametrize("scenario", ["server-initialize", "ping", "tools-list", "dns-rebinding-protection"])
def test_the_records_service_passes_the_scenarios_without_tools_of_the_suite(
    node: Node, records: str, scenario: str
) -> None:
    process = node.run(*STABLE, "--url", records, "--scenario", scenario)

    assert process.returncode == 0, process.stdout[-3000:]


@pytest.mark.parametrize("scenario", ["http-header-validation", "tools-list", "dns-rebinding-protection"])
def test_the_records_service_passes_the_scenarios_that_2026_07_28_requires_of_every_server(
    node: Node, records: str, scenario: str
) -> None:
    process = node.run(*OF_2026, "--url", records, "--scenario", scenario, "--spec-version", "2026-07-28")

    assert process.returncode == 0, process.stdout[-3000:]
