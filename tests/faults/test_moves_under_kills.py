"""A move to PostgreSQL that is killed at any time can be repeated: no reader sees a partial move, and only one side is
served."""

import random
import shutil
import time
from pathlib import Path

import pytest

from countersign.cli.output import Exit
from countersign.kernel.database import migration_marker
from countersign.kernel.database.migration_marker import MigrationMarker
from tests.faults.drill import DataDirectory
from tests.faults.test_backups_under_kills import run_and_kill
from tests.figures import Figures
from tests.servers.postgres import PostgresFactory

KILLS, KILLS_FULL = 2, 50
BY_ENGINE = ("records.audit_lane", "records.module_state")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with both services' databases and one organisation, which tests copy."""
    data_directory = DataDirectory.create(tmp_path_factory.mktemp("template") / "data")
    data_directory.run("org", "create", "acme", "--name", "Acme", "--data", data_directory.data)
    data_directory.run("modules", "apply", "--data", data_directory.data)
    return data_directory.data


def move_target(data: Path, url: str) -> DataDirectory:
    """Return the place that the data directory moves to."""
    return DataDirectory(
        data, {"COUNTERSIGN_DATABASE_URL": url, "COUNTERSIGN_MASTER_KEY_FILE": str(data / "master.key")}
    )


def tables(data_directory: DataDirectory) -> dict[str, object]:
    """Return the count of rows and the SHA-256 of each table, except tables that differ by engine."""
    checksums = data_directory.command_output("verify", data_directory.data, "--tables")["tables"]
    assert isinstance(checksums, dict)
    return {name: checksum for name, checksum in checksums.items() if name not in BY_ENGINE}


def moving_s(data_directory: DataDirectory, url: str) -> float:
    """Move it, and return the duration in seconds."""
    began_s = time.monotonic()
    data_directory.run("db", "migrate", "--to", url, "--data", data_directory.data)
    return time.monotonic() - began_s


def test_a_killed_move_is_made_again(
    template: Path, tmp_path: Path, new_postgres_url: PostgresFactory, is_full: bool, figures: Figures
) -> None:
    rng = random.Random(12)
    tables_before = tables(DataDirectory.create(template))
    killed_count, marked = 0, 0
    undisturbed = DataDirectory.create(shutil.copytree(template, tmp_path / "undisturbed"))
    move_s = moving_s(undisturbed, new_postgres_url())

    for number in range(KILLS_FULL if is_full else KILLS):
        data_directory = DataDirectory.create(shutil.copytree(template, tmp_path / f"data-{number}"))
        url = new_postgres_url()
        move: list[str | Path] = ["db", "migrate", "--to", url, "--data", data_directory.data]
        killed_count += run_and_kill(data_directory, move, rng.uniform(0.3, 1.05) * move_s)
        mark = migration_marker.read_marker(data_directory.data)
        marked += mark is not None
        if mark is None or not mark.is_complete:
            move_s = moving_s(data_directory, url)

        write_result = data_directory.run(
            "org", "create", "b", "--name", "B", "--data", data_directory.data, check=False
        )
        assert write_result.returncode == Exit.CONFLICT
        assert tables(move_target(data_directory.data, url)) == tables_before
    figures |= {"killed_moves": killed_count, "killed_after_the_mark": marked, "half": 0}


def test_whether_a_move_that_was_cut_off_had_ended_is_found_out(
    template: Path, tmp_path: Path, new_postgres_url: PostgresFactory
) -> None:
    data_directory = DataDirectory.create(shutil.copytree(template, tmp_path / "data"))
    url, other_url = new_postgres_url(), new_postgres_url()
    target_place = url.partition("@")[2]
    move: list[str | Path] = ["db", "migrate", "--to", url, "--data", data_directory.data]
    serve: list[str | Path] = ["serve", "distribution", "--port", "0", "--data", data_directory.data]

    # Killed before the target was complete.
    migration_marker.write_marker(
        data_directory.data, MigrationMarker("one", target_place, "2026-11-22T10:00:00Z", is_complete=False)
    )
    unserved_result = data_directory.run(*serve, check=False)
    other_result = data_directory.run("db", "migrate", "--to", other_url, "--data", data_directory.data, check=False)
    move_report = data_directory.command_output(*move)
    mark = migration_marker.read_marker(data_directory.data)
    assert mark is not None
    # Killed when it was complete, before that was recorded.
    migration_marker.write_marker(data_directory.data, MigrationMarker(mark.id, mark.to, mark.at, is_complete=False))
    repeated_move = data_directory.command_output(*move)
    repeated_result = data_directory.run(*move, check=False)

    assert unserved_result.returncode == other_result.returncode == repeated_result.returncode == Exit.CONFLICT
    assert "db migrate" in unserved_result.stderr
    assert mark.id != "one"
    assert move_report["tables"]
    assert repeated_move["tables"] == {}
    assert migration_marker.read_marker(data_directory.data) == mark
    # The way back.
    migration_marker.remove_marker(data_directory.data)
    data_directory.run("org", "create", "b", "--name", "B", "--data", data_directory.data)
