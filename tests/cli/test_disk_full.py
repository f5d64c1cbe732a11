"""Commands on a full disk report the full disk with one exit code, and report what remains of a partly written file."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from countersign.cli.output import Exit
from tests.cli.conftest import Run
from tests.cli.test_backup import PASSPHRASE, prepare
from tests.faults import volumes
from tests.servers.countersign import COMMAND, environment

FREE = ("--distribution-port", "0", "--records-port", "0")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with both databases, on a disk with free space."""
    folder = tmp_path_factory.mktemp("roomy") / "data"
    prepare(folder, {})
    return folder


@pytest.fixture(scope="module")
def full_volume(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A full volume: `data` on it has both databases, `new` is empty."""
    volume = tmp_path_factory.mktemp("full") / "volume"
    volumes.mount_memory(volume, 64)
    prepare(volume / "data", {"COUNTERSIGN_RESERVE_MIB": "0"})
    (volume / "new").mkdir(mode=0o700)
    volumes.fill_volume(volume)
    yield volume
    volumes.unmount(volume)


def written_to(stdout: int, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run the command line with its standard output sent to this file."""
    command, env = [*COMMAND, *arguments], environment(**PASSPHRASE)
    return subprocess.run(command, env=env, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    "command",
    [
        ("serve", *FREE, "--data", "data"),
        ("serve", *FREE, "--data", "new"),
        ("worker", "--data", "data"),
        ("doctor", *FREE, "--data", "data"),
        ("doctor", *FREE, "--data", "new"),
        ("backup", "one.backup", "--data", "data"),
        ("backup", "-", "--data", "data"),
        ("org", "create", "north", "--name", "North", "--data", "data"),
        ("user", "create", "bob", "--data", "new"),
    ],
    ids=" ".join,
)
def test_a_full_disk_is_named_with_an_exit_code_of_its_own(
    run: Run, full_volume: Path, command: tuple[str, ...]
) -> None:
    at = [str(full_volume / word) if word in ("data", "new", "one.backup") else word for word in command]

    result = run(*at, **PASSPHRASE, COUNTERSIGN_RESERVE_MIB="0")

    assert result.returncode == Exit.STORAGE_FULL, result.stderr
    assert "the disk is full" in (result.stdout + result.stderr).lower()
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in full_volume.iterdir()) == ["ballast", "data", "new"]


def test_a_backup_whose_reader_has_a_full_disk_does_not_blame_the_reader(data: Path) -> None:
    with open("/dev/full", "wb") as nowhere:
        result = written_to(nowhere.fileno(), "backup", "-", "--data", data)

    assert result.returncode == Exit.STORAGE_FULL
    assert "The disk is full: no space is left for stdout." in result.stderr
    assert "The bytes written so far are not a backup." in result.stderr


def test_a_partial_backup_in_a_file_behind_stdout_is_named(data: Path, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volumes.mount_memory(volume, 1)
    volumes.fill_volume(volume)
    with open(volume / "ballast", "r+b") as file:
        file.truncate(volumes.MIB - 65_536)
    try:
        with open(volume / "one.backup", "wb") as file:
            result = written_to(file.fileno(), "backup", "-", "--data", data)
    finally:
        volumes.unmount(volume)

    assert result.returncode == Exit.STORAGE_FULL
    assert f"Remove the partial backup {volume / 'one.backup'}." in result.stderr


def test_a_reader_that_ends_too_early_is_not_a_full_disk(data: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = written_to(writing, "backup", "-", "--data", data)
    finally:
        os.close(writing)

    assert result.returncode == Exit.UNREACHABLE
    assert "The program that reads stdout ended too early." in result.stderr
    assert "full" not in result.stderr


@pytest.mark.parametrize("command", [("config",), ("version",), ("verify",), ("keys", "status")], ids=" ".join)
def test_a_response_too_large_for_the_disk_is_reported(data: Path, command: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as nowhere:
        data_option = () if command == ("version",) else ("--data", data)
        result = written_to(nowhere.fileno(), *command, *data_option)

    assert result.returncode == Exit.STORAGE_FULL
    assert "the disk is full" in result.stderr
    assert "Traceback" not in result.stderr
