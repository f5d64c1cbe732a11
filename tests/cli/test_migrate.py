"""`db migrate` moves a complete installation from SQLite to PostgreSQL, which continues there; the old place is no
longer served."""

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import httpx
import pytest

from countersign.cli.output import Exit
from countersign.kernel.database import migration_marker
from tests.cli.conftest import Run
from tests.servers.countersign import COMMAND, Running, environment, served
from tests.servers.postgres import Cluster, PostgresFactory
from tests.servers.s3 import Bucket

Settings = dict[str, str]
FILE = b"what was uploaded" * 1000
# Tokens contain the address that they are valid for.
PUBLIC = {
    "COUNTERSIGN_DISTRIBUTION_URL": "http://127.0.0.1:8480",
    "COUNTERSIGN_RECORDS_URL": "http://127.0.0.1:8080",
}


class FilledInstallation(NamedTuple):
    """A data directory with both demonstrations, an upload, a waiting job and a pending plan, and the tokens that were
    issued."""

    data: Path
    publisher: str
    alice: str
    agent: str
    lead: str
    plan: str
    job: str


def fetch_json(url: str, token: str = "", body: object = None) -> Any:
    """Return the answer of the address, as JSON."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    verb = "GET" if body is None else "POST"
    answer = httpx.request(verb, url, headers=headers, json=body, timeout=30)
    assert answer.is_success, answer.text
    return answer.json()


def api(server: Running) -> str:
    """Return a client of the records API."""
    return f"http://127.0.0.1:{server.records_port}/api"


def upload(server: Running, token: str, file: Path) -> str:
    """Upload the file to a new release of the publisher, and return the artifact."""
    product = fetch_json(f"{server.url}/api/v1/products?org=northwind-games&limit=1")["items"][0]["slug"]
    command: list[str | Path] = ["push", file, f"northwind-games/{product}", "--version", "9.9.9", "--no-build"]
    command += ["--json", "--platform", "linux", "--server", server.url]
    variables = environment(COUNTERSIGN_TOKEN=token)
    pushed_result = subprocess.run([*COMMAND, *command], env=variables, capture_output=True, check=True)
    return str(json.loads(pushed_result.stdout)["artifact_id"])


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> FilledInstallation:
    """A complete installation, which tests copy."""
    data = tmp_path_factory.mktemp("template") / "data"
    file = data.parent / "tool.bin"
    file.write_bytes(FILE)
    with served(data, "--demo", service="both", settings=PUBLIC) as server:
        issue_command = [*COMMAND, "token", "issue", "publisher@example.com", "--data", data]
        publisher = subprocess.run(issue_command, env=environment(**PUBLIC), capture_output=True, text=True, check=True)
        token = publisher.stdout.strip()
        artifact = upload(server, token, file)
        job = fetch_json(
            f"{server.url}/api/v1/jobs", token, {"type": "build.process", "payload": {"artifact_id": artifact}}
        )
        who = {"username": "alice", "password": "countersign-demo"}
        alice = fetch_json(f"{api(server)}/auth/login", body=who)["token"]
        token_request = {"scopes": ["lead.*"], "label": "assistant"}
        agent = fetch_json(f"{api(server)}/auth/agent-token", alice, token_request)["token"]
        lead = fetch_json(f"{api(server)}/lead/create", alice, {"title": "To be deleted"})["value"]["id"]
        plan = fetch_json(f"{api(server)}/lead/delete", agent, {"id": lead})["plan_id"]
    return FilledInstallation(data, token, alice, agent, lead, plan, job["job_id"])


@pytest.fixture
def installation_copy(template: FilledInstallation, tmp_path: Path) -> FilledInstallation:
    """A copy of the complete installation for one test."""
    return template._replace(data=shutil.copytree(template.data, tmp_path / "data"))


def json_output(result: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    """Return the JSON that a command printed."""
    answer: Any = json.loads(result.stdout)
    assert isinstance(answer, dict)
    return answer


def moved_settings(data: Path, database_url: str, blobs: str = "") -> Settings:
    """Return the settings that serve the new place."""
    key = {"COUNTERSIGN_MASTER_KEY_FILE": str(data / "master.key")}
    return {"COUNTERSIGN_DATABASE_URL": database_url, "COUNTERSIGN_BLOBS_URL": blobs, **key, **PUBLIC, **KEYS}


KEYS = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}


def in_bucket(bucket: Bucket) -> str:
    """Return the address of a place in the bucket."""
    return f"s3://{bucket.name}/here?endpoint={bucket.endpoint}&region=us-east-1&allow_http=true"


def require_a_day(server: Running, installation: FilledInstallation) -> None:
    """Require that work which began in the old place can be finished in the new place with the old tokens."""
    records = api(server)
    waiting_plan = fetch_json(f"{records}/plan/get", installation.alice, {"id": installation.plan})["value"]
    assert waiting_plan["state"] == "pending"
    executed = fetch_json(
        f"{records}/approve/{installation.plan}", installation.alice, {"digest": waiting_plan["digest"]}
    )
    assert executed["value"]["state"] == "executed"
    assert (
        fetch_json(f"{records}/lead/create", installation.agent, {"title": "Another"})["value"]["id"]
        != installation.lead
    )
    store = f"{server.url}/api/v1"
    for _ in range(600):
        job = fetch_json(f"{store}/jobs/{installation.job}", installation.publisher)
        if job["status"] in ("completed", "failed"):
            break
        time.sleep(0.1)
    assert job["status"] == "completed", job


def test_an_installation_moves_and_continues(
    run: Run, installation_copy: FilledInstallation, new_postgres_url: PostgresFactory, s3_url: Bucket
) -> None:
    target_url, blobs = new_postgres_url(), in_bucket(s3_url)
    target: list[str | Path] = ["--to", target_url, "--blobs-to", blobs]
    command: list[str | Path] = ["db", "migrate", *target, "--data", installation_copy.data, "--json"]
    tables_before = json_output(run("verify", installation_copy.data, "--tables", "--json"))["tables"]
    names = {path.name for path in installation_copy.data.iterdir()}

    planned_result = run(*command, "--dry-run", **KEYS)
    with served(installation_copy.data, service="both", settings=PUBLIC):
        refused_result = run(*command, **KEYS)
    result = run(*command, **KEYS)
    second_result = run(*command, **KEYS)
    old = run("serve", "distribution", "--port", "0", "--data", installation_copy.data)
    secret = {"COUNTERSIGN_BACKUP_PASSPHRASE": "correct horse battery staple"}
    backups = installation_copy.data.parent / "backups"
    refused_results = [
        run("backup", installation_copy.data.parent / "old.backup", "--data", installation_copy.data, **secret),
        run("backup", "--into", backups, "--keep", "1", "--data", installation_copy.data, **secret),
        run("verify", installation_copy.data),
        run("verify", installation_copy.data, "--tables"),
    ]
    verify_result = run(
        "verify",
        installation_copy.data,
        "--tables",
        "--json",
        **moved_settings(installation_copy.data, target_url, blobs),
    )

    assert planned_result.returncode == result.returncode == Exit.OK, planned_result.stderr + result.stderr
    assert refused_result.returncode == second_result.returncode == old.returncode == Exit.CONFLICT, (
        refused_result.stderr + old.stderr
    )
    assert "Stop the server" in refused_result.stderr
    for cli_result in refused_results:
        assert cli_result.returncode == Exit.CONFLICT, cli_result.stdout + cli_result.stderr
        assert f"the databases of {installation_copy.data} are in" in cli_result.stderr
    assert not (installation_copy.data.parent / "old.backup").exists()
    assert not backups.exists()
    assert "files are copied already" in refused_result.stderr
    assert json_output(planned_result)["blobs"] == json_output(result)["blobs"] > 0
    moved_tables = json_output(result)["tables"]
    assert json_output(planned_result)["rows"].keys() == moved_tables.keys() == tables_before.keys()
    assert verify_result.returncode == Exit.OK, verify_result.stdout
    tables_after = json_output(verify_result)["tables"]
    # The audit there has lanes that SQLite does not have, the modules have indexes, and the staging tables are empty.
    different = {name for name in tables_after if tables_after[name] != moved_tables[name]}
    assert different <= {"records.audit_lane", "records.module_state", "distribution.upload_part"}
    assert {path.name for path in installation_copy.data.iterdir()} - names <= {
        migration_marker.FILE_NAME,
        "serve.lock",
    }
    with served(
        installation_copy.data,
        service="both",
        settings={**moved_settings(installation_copy.data, target_url, blobs), "COUNTERSIGN_JOB_WORKERS": "1"},
    ) as server:
        require_a_day(server, installation_copy)
    assert (
        run(
            "audit",
            "verify",
            "--data",
            installation_copy.data,
            **moved_settings(installation_copy.data, target_url, blobs),
        ).returncode
        == Exit.OK
    )


def test_an_obstacle_is_named_and_nothing_is_moved(
    run: Run, installation_copy: FilledInstallation, new_postgres_url: PostgresFactory
) -> None:
    target_url, other_url = new_postgres_url(), new_postgres_url()
    command: list[str | Path] = ["db", "migrate", "--data", installation_copy.data, "--to"]
    run(
        "org",
        "create",
        "acme",
        "--name",
        "Acme",
        "--data",
        installation_copy.data.parent / "other",
        **moved_settings(installation_copy.data, other_url),
    )
    text = "UPDATE product SET description = 'a' || char(0) || 'b' WHERE id = (SELECT min(id) FROM product)"
    database = apsw.Connection(str(installation_copy.data / "distribution.sqlite"))
    first_id = database.execute("SELECT min(id) FROM product").fetchall()[0][0]
    database.execute(text)
    database.close()

    taken_result = run(*command, other_url)
    planned_result = run(*command, target_url, "--dry-run")
    result = run(*command, target_url)
    later_result = run("org", "create", "acme", "--name", "Acme", "--data", installation_copy.data)

    assert taken_result.returncode == Exit.CONFLICT
    assert planned_result.returncode == result.returncode == Exit.FAILED
    for error_text in (planned_result.stderr, result.stderr):
        assert "product.description" in error_text
        assert f"id='{first_id}'" in error_text
    assert later_result.returncode == Exit.OK
    assert not (installation_copy.data / migration_marker.FILE_NAME).exists()


def test_a_row_that_arrives_changed_undoes_the_move(
    run: Run, installation_copy: FilledInstallation, new_postgres_url: PostgresFactory, postgres_cluster: Cluster
) -> None:
    target_url = new_postgres_url()
    flip = (
        "CREATE FUNCTION flip() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT 1 FROM "
        "pg_event_trigger_ddl_commands() WHERE object_identity = 'distribution.organisation') AND NOT EXISTS "
        "(SELECT 1 FROM pg_trigger WHERE tgname = 'flips') THEN EXECUTE 'CREATE TRIGGER flips BEFORE INSERT ON "
        "distribution.organisation FOR EACH ROW EXECUTE FUNCTION public.flipped()'; END IF; END $$"
    )
    flipped = (
        "CREATE FUNCTION flipped() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.name := chr(ascii(NEW.name) # 1) "
        "|| substr(NEW.name, 2); RETURN NEW; END $$"
    )
    name = target_url.rpartition("/")[2]
    psql = [postgres_cluster.programs / "psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-d", postgres_cluster.url(name)]
    trigger = "CREATE EVENT TRIGGER flip ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION flip()"
    subprocess.run([*psql, "-c", flipped, "-c", flip, "-c", trigger], check=True)

    result = run("db", "migrate", "--to", target_url, "--data", installation_copy.data)
    seen_result = subprocess.run(
        [*psql, "-At", "-c", "SELECT count(*) FROM pg_namespace WHERE nspname IN ('distribution', 'records')"],
        capture_output=True,
        check=True,
    )

    assert result.returncode == Exit.FAILED
    assert "not equal on both sides: organisation" in result.stderr
    assert seen_result.stdout.strip() == b"0"
    assert not (installation_copy.data / migration_marker.FILE_NAME).exists()
