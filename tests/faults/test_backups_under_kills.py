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


def run_and_kill(place: DataDirectory, command: list[str | Path], after_s: float) -> bool:
    """Run the command, kill it after `after_s` seconds, and return whether it was still running."""
    process = subprocess.Popen(
        [*COMMAND, *command], env=place.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(after_s)
    process.kill()
    return process.wait() != Exit.OK


def test_a_killed_backup_or_restore_leaves_nothing_half(tmp_path: Path, is_full: bool, figures: Figures) -> None:
    rng = random.Random(11)
    place = DataDirectory.create(tmp_path / "data")
    place.run("org", "create", "acme", "--name", "Acme", "--data", place.data)
    place.run("modules", "apply", "--data", place.data)
    archive, copy = tmp_path / "one.backup", tmp_path / "copy"
    began_s = time.monotonic()
    place.run("backup", archive, "--data", place.data)
    backup_s = time.monotonic() - began_s
    place.run("restore", archive, "--to", copy)
    restore_s = time.monotonic() - began_s - backup_s
    cut = {"backup": 0, "restore": 0}

    for _ in range(KILLS_FULL if is_full else KILLS):
        archive.unlink()
        cut["backup"] += run_and_kill(
            place, ["backup", archive, "--data", place.data], rng.uniform(0.3, 1.1) * backup_s
        )
        if not archive.exists():
            place.run("backup", archive, "--data", place.data)
        place.run("verify", archive)

        shutil.rmtree(copy)
        cut["restore"] += run_and_kill(place, ["restore", archive, "--to", copy], rng.uniform(0.3, 1.1) * restore_s)
        if not copy.exists():
            place.run("restore", archive, "--to", copy)
        place.run("verify", copy)

    # The next run removes the remains of the killed ones.
    place.run("backup", tmp_path / "two.backup", "--data", place.data)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "data", "one.backup", "two.backup"]
    assert not list(place.data.glob(".countersign-*"))
    figures |= {"killed_backups": cut["backup"], "killed_restores": cut["restore"], "half": 0}
