"""For a folder that is not writable, the error names the folder and the user, and no traceback is shown."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from countersign.cli.output import Exit
from tests.servers.countersign import COMMAND, environment

POWERS = "--bounding-set=-dac_override,-dac_read_search"
"""The capabilities that let root write despite the mode of a file."""


@pytest.fixture
def run_plain() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Run the command line as a user who is subject to file modes."""
    setpriv = shutil.which("setpriv")
    if os.geteuid() == 0 and setpriv is None:
        pytest.skip("root needs setpriv to be refused anything (Debian: apt install util-linux)")
    powerless = [str(setpriv), POWERS] if os.geteuid() == 0 else []

    def run(*arguments: str | Path, **variables: str) -> "subprocess.CompletedProcess[str]":
        command = [*powerless, *COMMAND, *arguments]
        env = environment(**variables)
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)

    return run


@pytest.fixture
def readonly_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in which no file can be created."""
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o555)
    yield folder
    folder.chmod(0o755)


@pytest.mark.parametrize(
    "command",
    [("org", "create", "acme", "--name", "Acme"), ("user", "create", "bob"), ("db", "upgrade"), ("serve",)],
    ids=" ".join,
)
def test_a_command_names_the_folder_that_may_not_be_created(
    run_plain: Callable[..., "subprocess.CompletedProcess[str]"], readonly_folder: Path, command: tuple[str, ...]
) -> None:
    below_result = run_plain(*command, "--data", readonly_folder / "data")
    inside_result = run_plain(*command, "--data", readonly_folder)

    for result in (below_result, inside_result):
        assert result.returncode == Exit.FAILED
        assert "Traceback" not in result.stderr
        assert str(readonly_folder) in result.stderr
        assert "Permission denied" in result.stderr
        assert "--data" in result.stderr or "COUNTERSIGN_MASTER_KEY" in result.stderr


@pytest.mark.parametrize("mode", [0o000, 0o555], ids=oct)
def test_the_doctor_names_the_folder_and_continues(
    run_plain: Callable[..., "subprocess.CompletedProcess[str]"], readonly_folder: Path, tmp_path: Path, mode: int
) -> None:
    (tmp_path / "settings.toml").touch()
    readonly_folder.chmod(mode)

    result = run_plain(
        *("doctor", "--distribution-port", "0", "--records-port", "0", "--json", "--data", readonly_folder),
        COUNTERSIGN_CONFIG=str(tmp_path / "settings.toml"),
    )

    failed_checks = [check for check in json.loads(result.stdout)["checks"] if check["standing"] == "fail"]
    assert result.returncode == Exit.FAILED, result.stderr
    assert [check["check"] for check in failed_checks] == ["data"]
    assert str(readonly_folder) in failed_checks[0]["detail"]
    assert "--data" in failed_checks[0]["remedy"]
