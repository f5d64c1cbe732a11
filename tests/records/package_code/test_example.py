"""The example package has tests of its own, which pass."""

import os
import subprocess
import sys

from tests import docs
from tests.servers.countersign import SOURCE, environment

EXAMPLE = docs.ROOT / "examples/fleet"


def test_the_tests_of_the_example_pass() -> None:
    options = ("-q", "-c", os.devnull, "-p", "no:cacheprovider")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, EXAMPLE / "test_fleet.py"],
        env=environment(PYTHONPATH=f"{EXAMPLE}{os.pathsep}{SOURCE}"),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert "6 passed" in result.stdout, result.stdout + result.stderr
