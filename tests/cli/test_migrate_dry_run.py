"""`db migrate --dry-run` checks everything that a move needs, including the rights in the target and the bucket, and
changes nothing."""

import subprocess
import urllib.request
from itertools import count
from pathlib import Path

import pytest

from countersign.backup.databases import SqliteDatabases
from countersign.cli import configuration
from countersign.cli.admin import databases
from countersign.cli.admin.databases import Migration
from countersign.cli.output import Exit
from tests.cli.conftest import Run
from tests.servers.postgres import Cluster
from tests.servers.s3 import Bucket

KEYS = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
SCHEMAS = "SELECT count(*) FROM pg_namespace WHERE nspname IN ('distribution', 'records')"
PASSWORD = "not-to-be-seen"
_numbers = count(1)


@pytest.fixture
def source_directory(run: Run, tmp_path: Path) -> Path:
    """A data directory with both services."""
    data = tmp_path / "data"
    assert run("db", "upgrade", "--data", data).returncode == Exit.OK
    return data


class MigrationTarget:
    """A database, and a role that has no rights in it yet."""

    def __init__(self, cluster: Cluster, url: str) -> None:
        self._cluster = cluster
        self.name = url.rpartition("/")[2]
        self.role, self.other = f"mover_{next(_numbers)}", f"owner_{next(_numbers)}"
        cluster.sql(f"CREATE ROLE {self.role} LOGIN", f"CREATE ROLE {self.other}")
        self.url = url.replace("postgres@", f"{self.role}:{PASSWORD}@", 1)

    def sql(self, *statements: str) -> str:
        """Run the statements in the database as the superuser."""
        return self._cluster.sql(*statements, database=self.name)


@pytest.fixture
def target(postgres_cluster: Cluster, postgres_url: str) -> MigrationTarget:
    """A target for the move in which the role has no rights."""
    return MigrationTarget(postgres_cluster, postgres_url)


def require_refused(result: "subprocess.CompletedProcess[str]", *expected_words: str) -> None:
    """Require an error that contains the words and no password."""
    assert result.returncode in (Exit.FAILED, Exit.CONFLICT, Exit.UNREACHABLE), result.stdout
    assert "Traceback" not in result.stderr
    assert PASSWORD not in result.stdout + result.stderr
    for word in expected_words:
        assert word in result.stderr


def test_rights_are_tested_without_leaving_objects_behind(
    run: Run, source_directory: Path, target: MigrationTarget
) -> None:
    command: list[str | Path] = ["db", "migrate", "--to", target.url, "--data", source_directory]

    refused_result = run(*command, "--dry-run")
    create_schemas = [f"CREATE SCHEMA {name} AUTHORIZATION {target.role}" for name in ("distribution", "records")]
    target.sql(*create_schemas)
    beforehand = run(*command, "--dry-run")
    target.sql("DROP SCHEMA distribution; DROP SCHEMA records")
    target.sql(f"GRANT CREATE ON DATABASE {target.name} TO {target.role}")
    planned_result = run(*command, "--dry-run")
    schema_count = target.sql(SCHEMAS)
    result = run(*command)

    for cli_result in (refused_result, beforehand):
        require_refused(cli_result, f"GRANT CREATE ON DATABASE {target.name} TO {target.role};")
    assert planned_result.returncode == result.returncode == Exit.OK, planned_result.stderr + result.stderr
    assert schema_count == "0\n"
    for cli_result in (planned_result, result):
        assert f"to {target.role}@127.0.0.1:" in cli_result.stdout
        assert PASSWORD not in cli_result.stdout + cli_result.stderr
    assert f"COUNTERSIGN_DATABASE_URL=postgresql://{target.role}:…@127.0.0.1:" in result.stderr
    assert f"COUNTERSIGN_MASTER_KEY_FILE={source_directory / 'master.key'}\n" in result.stderr
    assert "To serve on another machine, copy the master key to it" in result.stderr


def test_the_settings_of_the_new_place_include_all_set_values_and_the_source_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "countersign.toml").write_text('modules = "party,crm"\n')
    monkeypatch.setenv("COUNTERSIGN_SMTP_URL", "smtp://me:hush@mail.example")
    monkeypatch.setenv("COUNTERSIGN_RECORDS_URL", "https://records.example")
    monkeypatch.setenv("COUNTERSIGN_CDN_URL", "")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")

    def lines(blobs_to: str = "", **options: str) -> list[str]:
        settings = configuration.load(data=str(tmp_path), **options)
        files = SqliteDatabases({}, tmp_path, 0)
        return list(databases.target_settings(Migration(settings, "postgresql://me:hush@db/store", blobs_to, files)))

    target_lines = lines("s3://bucket/here")
    key_file, key = lines(master_key_file=str(tmp_path / "other.key")), lines(master_key="hush")

    assert set(target_lines) == {
        "COUNTERSIGN_DATABASE_URL=postgresql://me:…@db:5432/store",
        f"COUNTERSIGN_MASTER_KEY_FILE={tmp_path / 'master.key'}",
        "COUNTERSIGN_BLOBS_URL=s3://bucket/here",
        "AWS_SECRET_ACCESS_KEY=…",
        f"COUNTERSIGN_DATA={tmp_path}",
        "COUNTERSIGN_MODULES=party,crm",
        "COUNTERSIGN_RECORDS_URL=https://records.example",
        "COUNTERSIGN_SMTP_URL=…",
    }
    assert f"COUNTERSIGN_MASTER_KEY_FILE={tmp_path / 'other.key'}" in key_file
    assert "COUNTERSIGN_MASTER_KEY=…" in key
    assert "hush" not in " ".join((*target_lines, *key_file, *key))


@pytest.mark.parametrize("option", [["--dry-run"], []], ids=["planned", "done"])
def test_a_table_of_another_role_is_refused(
    run: Run, source_directory: Path, target: MigrationTarget, option: list[str]
) -> None:
    command: list[str | Path] = ["db", "migrate", "--to", target.url, "--data", source_directory, *option]
    target.sql(
        f"CREATE SCHEMA records AUTHORIZATION {target.other}",
        f"GRANT CREATE ON DATABASE {target.name} TO {target.role}",
        f"GRANT USAGE, CREATE ON SCHEMA records TO {target.role}",
    )

    schema = run(*command)
    target.sql(f"SET ROLE {target.other}; CREATE TABLE records.lead (id text); GRANT ALL ON records.lead TO PUBLIC")
    table = run(*command)

    require_refused(schema, f"belongs to the role {target.other}", f"ALTER SCHEMA records OWNER TO {target.role};")
    require_refused(table, "the schema records of the database", f"to the role {target.other}", "drop the schema")


def test_the_bucket_is_tested_without_leaving_objects_behind(
    run: Run, source_directory: Path, target: MigrationTarget, s3_url: Bucket
) -> None:
    target.sql(f"GRANT CREATE ON DATABASE {target.name} TO {target.role}")
    command: list[str | Path] = [
        "db",
        "migrate",
        "--to",
        target.url,
        "--data",
        source_directory,
        "--dry-run",
        "--blobs-to",
    ]
    query = f"endpoint={s3_url.endpoint}&region=us-east-1&allow_http=true"

    missing_result = run(*command, f"s3://{s3_url.name}-missing/here?{query}", **KEYS)
    existing_result = run(*command, f"s3://{s3_url.name}/here?{query}", **KEYS)
    with urllib.request.urlopen(f"{s3_url.endpoint}/{s3_url.name}?list-type=2", timeout=30) as answer:
        listing = answer.read()

    require_refused(missing_result, "bucket")
    assert existing_result.returncode == Exit.OK, existing_result.stderr
    assert b"<Key>" not in listing
    assert target.sql(SCHEMAS) == "0\n"
