"""In a shell, a forked `countersign` behaves like a `countersign` that is started as usual."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from countersign import __version__
from tests.servers.countersign import environment
from tests.servers.shell_command import fork_countersign

pytestmark = pytest.mark.process


@pytest.fixture
def variables() -> Iterator[dict[str, str]]:
    """Return the environment of a shell that finds the forked command."""
    with fork_countersign() as folder:
        yield environment(PATH=f"{folder}{os.pathsep}{os.environ['PATH']}")


def shell(script: str, folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=variables, capture_output=True, text=True, timeout=60, check=False
    )


def test_output_exit_code_folder_and_settings_are_the_commands(tmp_path: Path, variables: dict[str, str]) -> None:
    result = shell("countersign --version | cat; countersign nothing; echo $?", tmp_path, variables)
    assert __version__ in result.stdout
    assert result.stdout.splitlines()[-1] == "2"
    assert "nothing" in result.stderr

    create = "countersign org create north --name North --data here"
    result = shell(f"COUNTERSIGN_MASTER_KEY=x {create}; echo $?; {create}; echo $?; ls", tmp_path, variables)
    failed_code, *command_output = result.stdout.splitlines()
    assert failed_code != "0"
    assert command_output[-2:] == ["0", "here"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_to_the_command_ends_it(number: int, tmp_path: Path, variables: dict[str, str]) -> None:
    command = ["countersign", "serve", "distribution", "--data", "data", "--port", "0"]
    program = [str(Path(variables["PATH"].split(os.pathsep)[0], command[0])), *command[1:]]
    with subprocess.Popen(program, cwd=tmp_path, env=variables, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        while "Stop with ctrl-C" not in running.stdout.readline():
            pass
        running.send_signal(number)
        assert running.wait(120) == (-number if number == signal.SIGKILL else 0)

    for _ in range(1200):
        if not any(str(tmp_path).encode() in folder for folder in _folders()):
            return
        time.sleep(0.1)
    pytest.fail("the command has not ended")


def _folders() -> Iterator[bytes]:
    """Yield the working directories of all processes."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            yield os.readlink(os.fsencode(process / "cwd"))
        except OSError:
            continue
