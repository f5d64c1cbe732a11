"""A command that may not read or write a file reports the file and the user it runs as."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from countersign.cli.output import Exit
from tests.servers.countersign import COMMAND, environment

Bound = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_unprivileged(tmp_path: Path) -> Bound:
    """Run the command line as a user who is subject to file modes: root without its override capabilities."""
    setpriv = shutil.which("setpriv")
    if os.geteuid() == 0 and setpriv is None:
        pytest.skip("root is bound by modes with setpriv alone (Debian: apt install util-linux)")
    less = [str(setpriv), "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []

    def run(*arguments: str | Path, **variables: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*less, *COMMAND, *arguments],
            env=environment(**variables),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def close_path(path: Path, mode: int) -> Path:
    """Set the mode of the path, and return the path."""
    path.chmod(mode)
    return path


ME = pwd.getpwuid(os.geteuid()).pw_name


def test_the_error_names_the_unreadable_data_directory_and_no_missing_file(
    run_unprivileged: Bound, tmp_path: Path
) -> None:
    (tmp_path / "closed").mkdir()
    folder = close_path(tmp_path / "closed", 0)

    result = run_unprivileged("serve", "--data", folder / "data")

    assert result.returncode == Exit.USAGE
    assert f"the directory {folder} cannot be entered as the user {ME}: Permission denied" in result.stderr
    assert "countersign.toml" not in result.stderr


def test_a_data_directory_that_cannot_be_written_is_reported(run_unprivileged: Bound, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    folder = close_path(tmp_path / "kept", 0o500)

    result = run_unprivileged("serve", "--data", folder)

    assert result.returncode == Exit.FAILED
    assert f"{folder}/serve.lock cannot be written as the user {ME}: Permission denied" in result.stderr


@pytest.mark.parametrize("variable", ["COUNTERSIGN_CONFIG", "COUNTERSIGN_SMTP_URL_FILE"])
def test_a_file_of_settings_that_cannot_be_read_is_reported(
    run_unprivileged: Bound, tmp_path: Path, variable: str
) -> None:
    (tmp_path / "file").write_text("")
    file = close_path(tmp_path / "file", 0)

    result = run_unprivileged("config", **{variable: str(file)})

    assert result.returncode == Exit.USAGE
    assert f"{file} cannot be read as the user {ME}: Permission denied" in result.stderr
    assert "TOML" not in result.stderr
