"""The same commands on PostgreSQL, where the master key must be set."""

import json
import shutil
from pathlib import Path

from countersign.cli.output import Exit
from tests.cli.conftest import Run
from tests.servers.countersign import MASTER_KEY, served

PORTS = ("--distribution-port", "0", "--records-port", "0")


def test_administration_server_and_doctor_share_one_postgresql(run: Run, postgres_url: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    settings = {"COUNTERSIGN_DATABASE_URL": postgres_url, "COUNTERSIGN_MASTER_KEY": MASTER_KEY}

    planned_result = run("db", "upgrade", "--dry-run", "--json", "--data", data, **settings)
    applied_result = run("db", "upgrade", "--json", "--data", data, **settings)
    org = run("org", "create", "acme", "--name", "Acme", "--data", data, **settings)
    person = run("person", "create", "a@example.com", "--org", "acme", "--role", "owner", "--data", data, **settings)
    with served(data, "--workers", "2", settings=settings) as server:
        token = run("token", "issue", "a@example.com", "--data", data, **settings).stdout.strip()
        me = run("whoami", "--json", "--server", server.url, COUNTERSIGN_TOKEN=token)
        doctor = run("doctor", "--json", "--data", data, **settings)

    assert org.returncode == person.returncode == me.returncode == Exit.OK, org.stderr + person.stderr + me.stderr
    assert json.loads(planned_result.stdout)["pending"] == json.loads(applied_result.stdout)["applied"] != []
    assert json.loads(me.stdout)["orgs"] == ["acme"]
    assert doctor.returncode == Exit.OK, doctor.stdout
    assert not (data / "distribution.sqlite").exists()
    assert not (data / "master.key").exists()


def test_without_a_master_key_postgresql_is_refused(run: Run, postgres_url: str, tmp_path: Path) -> None:
    settings = {"COUNTERSIGN_DATABASE_URL": postgres_url}

    served_without = run("serve", "distribution", "--port", "0", "--data", tmp_path / "data", **settings)
    doctor = run("doctor", "--json", *PORTS, "--data", tmp_path / "data", **settings)

    failed_checks = [check["check"] for check in json.loads(doctor.stdout)["checks"] if check["standing"] == "fail"]
    assert served_without.returncode == Exit.USAGE
    assert "COUNTERSIGN_MASTER_KEY" in served_without.stderr
    assert failed_checks == ["master key"]


def copy_marker(data: Path) -> Path:
    """Copy moved.json of the directory to another directory that is not served."""
    copy = data.with_name("copy")
    copy.mkdir()
    shutil.copy(data / "moved.json", copy)
    return copy


def test_a_directory_that_postgresql_is_used_for_gets_no_database_of_its_own(
    run: Run, postgres_url: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    settings = {"COUNTERSIGN_DATABASE_URL": postgres_url, "COUNTERSIGN_MASTER_KEY": MASTER_KEY}
    with served(data, settings=settings):
        forgotten = [
            run("org", "create", "acme", "--name", "Acme", "--data", data),
            run("token", "issue", "a@example.com", "--data", data),
            run("user", "create", "a@example.com", "--role", "admin", "--data", data),
            run("backup", data / "all.backup", "--data", data, COUNTERSIGN_BACKUP_PASSPHRASE="four words of chance"),
            run("verify", data),
            run("keys", "status", "--data", data),
            run("db", "upgrade", "--dry-run", "--data", data),
            run("db", "upgrade", "--data", data),
            run("modules", "apply", "--data", copy_marker(data)),
            run("webhooks", "resume", "--data", data),
        ]
        doctor = run("doctor", "--json", "--data", data)
    served_without = run("serve", "distribution", "--port", "0", "--data", data)

    for result in (*forgotten, served_without):
        assert result.returncode == Exit.CONFLICT, [*result.args, result.stderr]
        assert "COUNTERSIGN_DATABASE_URL" in result.stderr
        assert MASTER_KEY not in result.stderr
    failed_checks = [check for check in json.loads(doctor.stdout)["checks"] if check["standing"] == "fail"]
    assert {check["check"] for check in failed_checks} >= {"distribution database", "records database"}
    assert "COUNTERSIGN_DATABASE_URL" in failed_checks[0]["remedy"]
    assert not [*data.glob("*.sqlite*"), *data.glob("*.key")]


def test_serve_with_postgresql_reports_unused_sqlite_databases(run: Run, postgres_url: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    settings = {"COUNTERSIGN_DATABASE_URL": postgres_url, "COUNTERSIGN_MASTER_KEY": MASTER_KEY}
    created_before = run("org", "create", "acme", "--name", "Acme", "--data", tmp_path / "first", **settings)
    data.mkdir()
    (data / "distribution.sqlite").touch()
    with served(data, settings=settings) as server:
        log_text = server.log.read_text()

    assert created_before.returncode == Exit.OK, created_before.stderr
    assert "also contains SQLite databases" in log_text


def test_an_empty_postgresql_beside_sqlite_databases_is_refused(run: Run, postgres_url: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    settings = {"COUNTERSIGN_DATABASE_URL": postgres_url, "COUNTERSIGN_MASTER_KEY": MASTER_KEY}
    created_before = run("org", "create", "acme", "--name", "Acme", "--data", data)
    refused_result = run("serve", "--data", data, **settings)
    created_after = run("org", "create", "zenith", "--name", "Zenith", "--data", data)

    assert created_before.returncode == created_after.returncode == Exit.OK, created_after.stderr
    assert refused_result.returncode == Exit.CONFLICT, refused_result.stderr
    assert "belongs to the installation" in refused_result.stderr
