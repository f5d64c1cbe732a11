"""Node and the npm packages of the peers, installed once for each lock file."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

LEAST_NODE = 22
PROJECT = Path(__file__).parent / "mcp_clients"
COPIED = ("package.json", "package-lock.json", ".npmrc")


class Node(NamedTuple):
    """Node's path, and a folder with the installed packages."""

    program: str
    folder: Path

    def run(self, *arguments: object, timeout_s: int = 120) -> "subprocess.CompletedProcess[str]":
        """Run a script of the project, in the folder of its packages."""
        command = [self.program, *(str(argument) for argument in arguments)]
        return subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=timeout_s, check=False, env=environment()
        )


def environment() -> dict[str, str]:
    """Return environment variables in which the node of the test's own Python comes before the machine's node."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}


@pytest.fixture(scope="session")
def node() -> Node:
    """Node with the locked packages of the MCP clients; the test is skipped when they are not available."""
    return prepare_node(PROJECT)


def prepare_node(project: Path) -> Node:
    """Node with a project's locked packages, kept in the cache folder between runs; the test is skipped when they are
    not available."""
    path = environment()["PATH"]
    program, npm = shutil.which("node", path=path), shutil.which("npm", path=path)
    if program is None or npm is None:
        pytest.skip("no node and npm here: install requirements/dev.txt")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.strip().removeprefix("v").partition(".")[0]) < LEAST_NODE:
        pytest.skip(f"node {LEAST_NODE} or newer is needed, here is {version.strip()}: install requirements/dev.txt")
    digest = hashlib.sha256((project / "package-lock.json").read_bytes()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "countersign-tests" / f"{project.name.replace('_', '-')}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        # Tests may run in several processes: one installs, the others wait.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "installed").exists():
            _install(npm, project, folder)
        for script in (*project.glob("*.mjs"), *project.glob("*.yaml")):
            shutil.copy(script, folder)
    return Node(program, folder)


def _install(npm: str, project: Path, folder: Path) -> None:
    for name in COPIED:
        shutil.copy(project / name, folder)
    try:
        result = subprocess.run(
            [npm, "ci"], cwd=folder, capture_output=True, text=True, timeout=600, check=False, env=environment()
        )
    except subprocess.TimeoutExpired:
        pytest.skip("npm did not install the packages within 10 minutes")
    if result.returncode:
        pytest.skip(f"npm cannot install the packages here: {result.stderr.strip()[-300:]}")
    (folder / "installed").touch()
