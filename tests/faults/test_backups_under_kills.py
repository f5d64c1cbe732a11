"""Backups and restores that are killed at any time leave no partial result under a final name, and can be repeated."""

import random
import shutil
import subprocess
import time
from pathlib import Path

from countersign.cli.output import Exit
from tests.faults.drill import DataDirectory
from tests.figures import Figures
from tests.servers.countersign import COMMAND

KILLS, KILLS_FULL = 2, 50


def run_and_kill(data_directory: DataDirectory, command: list[str | Path], after_s: float) -> bool:
    """Run the command, kill it after `after_s` seconds, and return whether it was still running."""
    process = subprocess.Popen(
        [*COMMAND, *command], env=data_directory.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(after_s)
    process.kill()
    return process.wait() != Exit.OK


def test_a_killed_backup_or_restore_leaves_no_partial_result(tmp_path: Path, is_full: bool, figures: Figures) -> None:
    rng = random.Random(11)
    data_directory = DataDirectory.create(tmp_path / "data")
    data_directory.run("org", "create", "acme", "--name", "Acme", "--data", data_directory.data)
    data_directory.run("modules", "apply", "--data", data_directory.data)
    archive, copy = tmp_path / "one.backup", tmp_path / "copy"
    began_s = time.monotonic()
    data_directory.run("backup", archive, "--data", data_directory.data)
    backup_s = time.monotonic() - began_s
    data_directory.run("restore", archive, "--to", copy)
    restore_s = time.monotonic() - began_s - backup_s
    killed_counts = {"backup": 0, "restore": 0}

    for _ in range(KILLS_FULL if is_full else KILLS):
        archive.unlink()
        killed_counts["backup"] += run_and_kill(
            data_directory, ["backup", archive, "--data", data_directory.data], rng.uniform(0.3, 1.1) * backup_s
        )
        if not archive.exists():
            data_directory.run("backup", archive, "--data", data_directory.data)
        data_directory.run("verify", archive)

        shutil.rmtree(copy)
        killed_counts["restore"] += run_and_kill(
            data_directory, ["restore", archive, "--to", copy], rng.uniform(0.3, 1.1) * restore_s
        )
        if not copy.exists():
            data_directory.run("restore", archive, "--to", copy)
        data_directory.run("verify", copy)

    # The next run removes the remains of the killed ones.
    data_directory.run("backup", tmp_path / "two.backup", "--data", data_directory.data)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "data", "one.backup", "two.backup"]
    assert not list(data_directory.data.glob(".countersign-*"))
    figures |= {"killed_backups": killed_counts["backup"], "killed_restores": killed_counts["restore"], "half": 0}
