"""What backups, the doctor and restores report about databases with foreign objects in them."""

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from countersign.cli.output import Exit
from tests.cli.conftest import Run, Settings
from tests.cli.test_backup import PASSPHRASE, prepare
from tests.cli.test_doctor import UnprivilegedRole
from tests.cli.test_serve import wait_until
from tests.servers.countersign import COMMAND, MASTER_KEY, environment
from tests.servers.postgres import Cluster, PostgresFactory

PREPARED = f"prepared_{os.getpid()}"
EVERYTHING = """
    SELECT 'schema', nspname FROM pg_namespace UNION ALL SELECT 'relation', oid::regclass::text FROM pg_class
    UNION ALL SELECT 'function', oid::regprocedure::text FROM pg_proc
    UNION ALL SELECT 'type', oid::regtype::text FROM pg_type
    ORDER BY 1, 2
"""
FOREVER = "n IS NULL OR " + " OR ".join(["n * length(hex(zeroblob(400000000))) < 0"] * 200)
"""An expression that takes hours and gigabytes to evaluate."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with both services' databases and one organisation."""
    prepare(tmp_path / "data", {})
    return tmp_path / "data"


@pytest.fixture(scope="module")
def prepared_directory(postgres_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data directory, to be copied, whose databases are the PostgreSQL database PREPARED."""
    data = tmp_path_factory.mktemp("prepared") / "data"
    url = postgres_cluster.create(PREPARED)
    prepare(data, {"COUNTERSIGN_DATABASE_URL": url, "COUNTERSIGN_MASTER_KEY": MASTER_KEY})
    yield data
    postgres_cluster.drop(PREPARED)


@pytest.fixture
def source_settings(prepared_directory: Path, new_postgres_url: PostgresFactory, tmp_path: Path) -> Settings:
    """The settings of the databases of tmp_path / "data", which are a copy of the prepared ones."""
    shutil.copytree(prepared_directory, tmp_path / "data")
    url = new_postgres_url(PREPARED)
    return {"COUNTERSIGN_DATABASE_URL": url, "COUNTERSIGN_MASTER_KEY": MASTER_KEY, **PASSPHRASE}


@pytest.fixture
def target_settings(new_postgres_url: PostgresFactory) -> Settings:
    """The settings of an empty PostgreSQL database."""
    return {"COUNTERSIGN_DATABASE_URL": new_postgres_url(), "COUNTERSIGN_MASTER_KEY": MASTER_KEY, **PASSPHRASE}


def test_a_database_with_foreign_parts_is_not_restored(run: Run, data: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(data / "records.sqlite")) as connection:
        connection.execute(f"CREATE TABLE other (n INTEGER CHECK ({FOREVER}))")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("INSERT INTO other VALUES (1)")
        connection.commit()

    created_result = run("backup", "one.backup", "--data", data, **PASSPHRASE)
    restored_result = run("restore", "one.backup", "--to", "copy", **PASSPHRASE)

    assert created_result.returncode == Exit.FAILED
    assert "A restore will refuse this backup: the table 'other'" in created_result.stderr
    assert restored_result.returncode == Exit.FAILED
    assert "was not created by Countersign or a module" in restored_result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "one.backup"]


def test_a_series_continues_and_loses_nothing_when_a_restore_will_refuse_it(data: Path, tmp_path: Path) -> None:
    command = [*COMMAND, "backup", "--into", "kept", "--keep", "1", "--every", "1", "--data", data]
    with closing(sqlite3.connect(data / "records.sqlite")) as connection:
        connection.execute("CREATE TABLE other (n INTEGER)")

    with subprocess.Popen(command, env=environment(**PASSPHRASE), cwd=tmp_path, stderr=subprocess.PIPE) as series:
        try:
            # While one object is replaced by the next, two exist for a moment.
            wait_until(lambda: series.poll() is not None or len(list((tmp_path / "kept").glob("*.backup"))) > 2)
            still_runs = series.poll() is None
        finally:
            series.terminate()
        error_output = series.communicate()[1].decode()

    assert still_runs, error_output
    assert "A restore will refuse this backup: the table 'other'" in error_output
    assert len(list((tmp_path / "kept").glob("*.backup"))) > 2


def test_postgresql_with_an_index_that_was_added_is_restored(
    run: Run, source_settings: Settings, target_settings: Settings, postgres_cluster: Cluster
) -> None:
    added_index = "CREATE INDEX slow ON distribution.organisation (created_at DESC, name)"
    postgres_cluster.sql(f"\\connect {source_settings['COUNTERSIGN_DATABASE_URL'].rpartition('/')[2]}", added_index)

    created_result = run("backup", "one.backup", "--json", "--data", "data", **source_settings)
    restored_result = run("restore", "one.backup", "--to", "copy", **target_settings)

    assert created_result.returncode == Exit.OK, created_result.stderr
    assert json.loads(created_result.stdout)["restorable"] is True
    assert restored_result.returncode == Exit.OK, restored_result.stderr


def test_a_role_without_the_right_to_create_a_schema_backs_up_and_is_shown_the_unchecked_parts(
    run: Run, postgres_url: str, postgres_cluster: Cluster, tmp_path: Path
) -> None:
    poor = UnprivilegedRole(postgres_cluster, postgres_url)
    grant = f"GRANT CREATE ON DATABASE {poor.name} TO {poor.role};"
    poor.sql(grant)
    prepare(tmp_path / "data", poor.settings)
    poor.sql(grant.replace("GRANT", "REVOKE").replace(" TO ", " FROM "))

    created_result = run("backup", "one.backup", "--json", "--data", "data", **poor.settings, **PASSPHRASE)

    assert created_result.returncode == Exit.OK, created_result.stderr
    assert json.loads(created_result.stdout)["restorable"] is None
    assert grant in created_result.stderr


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE records.other (n bigint)",
        "ALTER TABLE distribution.delivery_hold ADD CHECK (since < 5)",
        "CREATE UNIQUE INDEX slow ON distribution.organisation (lower(name))",
        "DROP TABLE records.plan_notice",
    ],
)
def test_postgresql_with_foreign_parts_is_not_restored(
    run: Run,
    source_settings: Settings,
    target_settings: Settings,
    postgres_cluster: Cluster,
    tmp_path: Path,
    statement: str,
) -> None:
    postgres_cluster.sql(f"\\connect {source_settings['COUNTERSIGN_DATABASE_URL'].rpartition('/')[2]}", statement)

    result = run("doctor", "--data", "data", **source_settings)
    created_result = run("backup", "one.backup", "--json", "--data", "data", **source_settings)
    restored_result = run("restore", "one.backup", "--to", "copy", **target_settings)

    assert "but a restore will refuse every backup of it: the table " in result.stdout
    assert created_result.returncode == Exit.FAILED
    assert json.loads(created_result.stdout)["restorable"] is False
    assert restored_result.returncode == Exit.FAILED, restored_result.stderr
    assert "from what Countersign creates" in restored_result.stderr or "was not created by" in restored_result.stderr
    assert not (tmp_path / "copy").exists()
    # The target is still empty.
    target = target_settings["COUNTERSIGN_DATABASE_URL"].rpartition("/")[2]
    assert postgres_cluster.sql(EVERYTHING, database=target) == postgres_cluster.sql(EVERYTHING, database="template1")
