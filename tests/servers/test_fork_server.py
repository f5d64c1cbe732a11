"""A forked process behaves like a process that is started as usual."""

import asyncio
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest

from countersign.cli.main import COMMANDS
from tests.faults.volumes import mount_memory, unmount
from tests.servers.countersign import COMMAND, environment
from tests.servers.fork_server import ForkedProcess, without_forking

PRINTS_ITS_SETUP = """
import os, sys
print(os.getcwd(), sys.argv[1:], os.environ["SAID"], sys.stdin.read(), "countersign.cli.server.serve" in sys.modules)
print("failed", file=sys.stderr)
sys.exit(int(os.environ["CODE"]))
"""
IS_FORKED = "import sys\nprint('countersign.cli.server.serve' in sys.modules)\n"
PRINTS_ITS_FILES = """
import os, sys
end = int(sys.argv[1])
opened = sorted(int(number) for number in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{number}"))
with open("/proc/self/cmdline") as file:
    command = file.read().rstrip("\\0").split("\\0")
os.write(end, f"{os.getppid()} {'countersign.cli.server.serve' in sys.modules} {opened} {command}".encode())
os.close(end)
sys.stdin.read()
"""
SLEEPS = "import time\nprint('ready', flush=True)\ntime.sleep(600)\n"
FIRST_OF_MODULE = {entry.import_path.partition(":")[0]: name for name, entry in reversed(COMMANDS.items())}
"""Maps each module to its first command. The other commands of the module import the same modules."""

pytestmark = pytest.mark.skipif(not issubclass(subprocess.Popen, ForkedProcess), reason="processes are not forked")


def module(folder: Path, source: str) -> tuple[list[str], dict[str, str]]:
    """Write the source into a module. Return the command that runs the module, and its environment."""
    (folder / "module_under_test.py").write_text(source)
    variables = environment(PYTHONPATH=f"{environment()['PYTHONPATH']}:{folder}")
    return [sys.executable, "-m", "module_under_test"], variables


@pytest.mark.parametrize("code", [0, 3])
def test_a_forked_process_has_its_arguments_and_environment(tmp_path: Path, code: int) -> None:
    command, variables = module(tmp_path, PRINTS_ITS_SETUP)
    environment = {**variables, "SAID": "so", "CODE": str(code)}

    def run() -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            [*command, "a", "ü"], env=environment, cwd=tmp_path, input=b"in", capture_output=True, check=False
        )

    forked_result = run()
    with without_forking():
        usual_result = run()

    for process, loaded in ((forked_result, True), (usual_result, False)):
        output = f"{tmp_path} ['a', 'ü'] so in {loaded}\n".encode()
        assert (process.returncode, process.stdout, process.stderr) == (code, output, b"failed\n")


def test_a_forked_process_can_be_killed_and_waited_for(tmp_path: Path) -> None:
    command, variables = module(tmp_path, SLEEPS)

    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        status_before_kill = process.poll()
        leads = os.getsid(process.pid) == process.pid
        process.kill()
        exit_status = process.wait(timeout=60)

    assert status_before_kill is None
    assert leads
    assert exit_status == process.poll() == -signal.SIGKILL


async def test_a_process_started_by_asyncio_is_a_child_with_the_passed_files(tmp_path: Path) -> None:
    command, variables = module(tmp_path, PRINTS_ITS_FILES)
    reading, writing = os.pipe()
    with os.fdopen(reading) as pipe:
        process = await asyncio.create_subprocess_exec(
            *command, str(writing), env=variables, pass_fds=[writing], stdin=subprocess.PIPE
        )
        os.close(writing)
        output = await asyncio.to_thread(pipe.read)
        process.kill()
        exit_status = await process.wait()

    assert output == f"{os.getpid()} True {[0, 1, 2, writing]} {[*command, str(writing)]}"
    assert exit_status == -signal.SIGKILL


def test_a_forked_process_sees_the_mounts_of_its_starter(tmp_path: Path) -> None:
    command, variables = module(tmp_path, "import os\nprint(os.path.exists('volume/file'))\n")
    unmounted_result = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, check=True)
    mount_memory(tmp_path / "volume", 1)
    (tmp_path / "volume" / "file").touch()

    mounted_result = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, check=True)

    unmount(tmp_path / "volume")
    assert (unmounted_result.stdout, mounted_result.stdout) == ("False\n", "True\n")


def test_a_thread_with_other_mounts_gets_another_forking_process(tmp_path: Path) -> None:
    command, variables = module(tmp_path, "import os\nprint(os.path.exists('volume/file'))\n")

    def run() -> str:
        return subprocess.run(
            command, env=variables, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    # This thread starts before the mount below, and mount_memory changes the mounts of its own thread only, so this
    # thread keeps the old mounts.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(run).result()
        mount_memory(tmp_path / "volume", 1)
        (tmp_path / "volume" / "file").touch()
        thread.submit(run).result()

        output = run()

    unmount(tmp_path / "volume")
    assert output == "True\n"


def test_an_error_that_no_code_handles_is_shown(tmp_path: Path) -> None:
    command, variables = module(tmp_path, "1 / 0\n")

    result = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)

    assert result.returncode == 1
    assert "ZeroDivisionError" in result.stderr


def test_output_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    command, variables = module(tmp_path, "print('lost')\n")

    with open("/dev/full", "w") as full:
        result = subprocess.run(command, env=variables, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert result.returncode == 120
    assert "No space left" in result.stderr


@pytest.mark.parametrize(
    "options",
    [{}, {"umask": 0o077}, {"process_group": 0}, {"close_fds": False}, {"restore_signals": False}],
    ids=lambda options: next(iter(options), "none"),
)
def test_a_process_with_an_unsupported_option_is_not_forked(tmp_path: Path, options: dict[str, int]) -> None:
    command, variables = module(tmp_path, IS_FORKED)

    result = subprocess.run(command, env=variables, capture_output=True, text=True, check=True, **options)

    assert result.stdout == f"{not options}\n"


def test_a_process_with_settings_read_at_the_start_of_python_is_not_forked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, variables = module(tmp_path, IS_FORKED)

    def forked(**changes: str) -> bool:
        result = subprocess.run(command, env={**variables, **changes}, capture_output=True, text=True, check=True)
        return result.stdout == "True\n"

    # Start the forking process now, so that it has the environment of before the change.
    assert forked()
    monkeypatch.setenv("PYTHONWARNINGS", "error")

    assert not forked(PYTHONWARNINGS="error")
    assert forked()


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_starts_without_modules_that_others_import(name: str) -> None:
    with without_forking() if name in FIRST_OF_MODULE.values() else nullcontext():
        result = subprocess.run(
            [*COMMAND, name, "--help"], env=environment(), capture_output=True, text=True, check=False
        )

    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"Usage: countersign {name} ")
