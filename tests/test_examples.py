"""The examples work against a real store, run twice as a build machine would after a failure."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import docs
from tests.servers.countersign import Running, environment, served

PUSH = docs.ROOT / "examples/ci/push.sh"
TARGET = ("northwind-games/harbour-of-small-lights", "9.1.0", "stable", "linux")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Running]:
    """A demonstration store."""
    with served(tmp_path / "data", "--demo", settings={"COUNTERSIGN_JOB_WORKERS": "1"}) as running:
        yield running


def push(store: Running, folder: Path, secret: str = "demo-publisher-secret") -> "subprocess.CompletedProcess[str]":
    """Run the script as a build machine does."""
    variables = environment(
        COUNTERSIGN_SERVER=store.url,
        COUNTERSIGN_CLIENT_ID="demo-publisher",
        COUNTERSIGN_CLIENT_SECRET=secret,
        HOME=str(folder.parent),
    )
    variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{variables['PATH']}"
    return subprocess.run([PUSH, folder, *TARGET], env=variables, capture_output=True, text=True, check=False)


def test_the_script_for_build_machines_publishes_and_may_be_run_again(store: Running, tmp_path: Path) -> None:
    build = tmp_path / "build"
    build.mkdir()
    (build / "run.sh").write_text("echo sailing\n")

    first, second = push(store, build), push(store, build)

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    digests = [json.loads(done.stdout.splitlines()[0])["sha256"] for done in (first, second)]
    assert digests[0] == digests[1]
    (build / "run.sh").write_text("echo another\n")
    assert push(store, build).returncode == 5


def test_the_script_for_build_machines_ends_with_the_exit_code_of_what_failed(store: Running, tmp_path: Path) -> None:
    build = tmp_path / "build"
    build.mkdir()
    (build / "run.sh").write_text("echo sailing\n")

    assert push(store, build, secret="wrong").returncode == 4
    assert push(store, build, secret="").returncode == 2
