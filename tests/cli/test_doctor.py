"""`countersign doctor` checks everything that both services need, and reports each missing thing with its remedy."""

import json
import re
import shutil
import socket
import sqlite3
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from countersign.cli.output import Exit
from tests.cli.conftest import Run
from tests.servers.countersign import MASTER_KEY
from tests.servers.postgres import Cluster
from tests.servers.process import answers, free_port, installed_program, run_until_ready
from tests.servers.s3 import Bucket

FREE = ("--distribution-port", "0", "--records-port", "0")
PASSWORD = "not-to-be-seen"
KEYS = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
CLASS_NAME = re.compile(r"\b(?:[A-Z][a-z]+){2,}\b|\b\w+(?:Error|Exception)\b|\bUnavailable\b")
_numbers = count(1)


class CheckResults(NamedTuple):
    """The results of the doctor by the name of the check."""

    standing: dict[str, str]
    detail: dict[str, str]
    remedy: dict[str, str]

    @property
    def failed(self) -> list[str]:
        """The failed checks."""
        return [name for name, state in self.standing.items() if state == "fail"]


@pytest.fixture
def data(run: Run, tmp_path: Path) -> Path:
    """A data directory with both services."""
    folder = tmp_path / "data"
    assert run("db", "upgrade", "--data", folder).returncode == Exit.OK
    return folder


def run_doctor(run: Run, data: Path, *options: str, **settings: str) -> CheckResults:
    """Run the doctor and return its results. Its exit code must agree with them, and its output must not contain a
    password."""
    result = run("doctor", *options, "--json", "--data", data, **settings)
    assert PASSWORD not in result.stdout + result.stderr
    checks = json.loads(result.stdout)["checks"]
    check_results = CheckResults(
        *({check["check"]: check[member] for check in checks} for member in ("standing", "detail", "remedy"))
    )
    assert result.returncode == (Exit.FAILED if check_results.failed else Exit.OK), result.stderr
    assert all(check_results.remedy[name] for name in check_results.failed)
    assert not CLASS_NAME.findall(result.stdout + result.stderr), "names of classes say nothing to an operator"
    return check_results


def test_both_services_or_the_named_service_are_checked(run: Run, data: Path) -> None:
    (data / "records.sqlite").write_bytes(b"no database at all" * 1000)

    both_results = run_doctor(run, data, *FREE)
    store = run_doctor(run, data, "distribution", *FREE)
    records = run_doctor(run, data, "records", *FREE)

    ports = {"distribution port", "records port"}
    assert (
        ports | {"distribution database", "records database", "blob store", "counters"} <= both_results.standing.keys()
    )
    assert both_results.failed == records.failed == ["records database"]
    assert store.failed == []
    assert "decrypted with the master key" in store.detail["distribution database"]
    assert store.detail["master key"].endswith(" encrypts new values")
    assert not {"records database", "records port"} & store.standing.keys()
    assert not {"distribution database", "distribution port", "blob store"} & records.standing.keys()


def test_proxy_settings_that_the_services_refuse_are_reported(run: Run, data: Path) -> None:
    wrong_results = run_doctor(run, data, *FREE, COUNTERSIGN_TRUSTED_PROXIES="10.0.0.0/8, 10.0.0.1/33")
    right = run_doctor(run, data, *FREE, COUNTERSIGN_TRUSTED_PROXIES="10.0.0.1/8")

    assert wrong_results.failed == ["settings"]
    assert "COUNTERSIGN_TRUSTED_PROXIES: '10.0.0.1/33'" in wrong_results.detail["settings"]
    assert right.failed == []


def test_a_master_key_that_is_not_the_databases_opens_neither(run: Run, data: Path) -> None:
    created_result = run("org", "create", "acme", "--name", "Acme", "--data", data)

    results = run_doctor(run, data, *FREE, COUNTERSIGN_MASTER_KEY=MASTER_KEY)

    assert created_result.returncode == Exit.OK
    assert results.failed == ["distribution database", "records database"]


def test_a_port_in_use_is_named_for_each_service_and_the_operator(run: Run, data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken_socket:
        port = str(taken_socket.getsockname()[1])
        results = run_doctor(
            run, data, "--distribution-port", port, "--records-port", port, COUNTERSIGN_OPERATOR_PORT=port
        )
    foreign_results = run_doctor(run, data, *FREE, "--host", "192.0.2.1")

    assert results.failed == ["distribution port", "records port", "operator port"]
    assert f"127.0.0.1:{port}: address already in use" in results.detail["records port"]
    assert foreign_results.failed == ["distribution port", "records port"]


@pytest.fixture
def guarded_redis() -> Iterator[int]:
    """The port of a Redis server that requires a password and has a read-only user."""
    program = installed_program("redis-server", "redis-server")
    folder, port = Path(tempfile.mkdtemp(prefix="countersign-redis-")), free_port()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--requirepass", PASSWORD]
    options += ["--user", "reader", "on", f">{PASSWORD}", "~*", "+@read", "+@connection", "--dir", str(folder)]
    try:
        with run_until_ready([program, *options], is_ready=lambda: answers(port), log=folder / "log"):
            yield port
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_the_counters_are_counted_with(run: Run, data: Path, guarded_redis: int) -> None:
    server_address = f"127.0.0.1:{guarded_redis}"

    def counters(url: str) -> tuple[str, str]:
        results = run_doctor(run, data, "distribution", *FREE, COUNTERSIGN_COUNTERS_URL=url)
        return results.standing["counters"], results.detail["counters"]

    assert counters(f"redis://:{PASSWORD}@{server_address}/0") == ("ok", "the rate-limit server works")
    for url in (
        f"redis://{server_address}/0",
        f"redis://:wrong-{PASSWORD}@{server_address}/0",
        f"redis://reader:{PASSWORD}@{server_address}/0",
        f"valkey://:{PASSWORD}@127.0.0.1:{free_port()}/0",
    ):
        state, detail = counters(url)
        assert (state, "this node counts alone" in detail) == ("fail", True), url


def test_the_bucket_is_written_read_and_emptied_again(run: Run, data: Path, s3_url: Bucket) -> None:
    query = f"endpoint={s3_url.endpoint}&region=us-east-1&allow_http=true"

    bucket_results = run_doctor(run, data, *FREE, COUNTERSIGN_BLOBS_URL=f"s3://{s3_url.name}/here?{query}", **KEYS)
    missing_result = run_doctor(
        run, data, *FREE, COUNTERSIGN_BLOBS_URL=f"s3://{s3_url.name}-missing/here?{query}", **KEYS
    )
    with urllib.request.urlopen(f"{s3_url.endpoint}/{s3_url.name}?list-type=2", timeout=30) as answer:
        listing = answer.read()

    assert bucket_results.failed == []
    assert "written, read and removed" in bucket_results.detail["blob store"]
    assert missing_result.failed == ["blob store"]
    assert b"<Key>" not in listing


class UnprivilegedRole:
    """A database, and a role that has no rights in it yet."""

    def __init__(self, cluster: Cluster, url: str) -> None:
        self._cluster = cluster
        self.name, self.role = url.rpartition("/")[2], f"patient_{next(_numbers)}"
        cluster.sql(f"CREATE ROLE {self.role} LOGIN")
        url = url.replace("postgres@", f"{self.role}:{PASSWORD}@", 1)
        self.settings = {"COUNTERSIGN_DATABASE_URL": url, "COUNTERSIGN_MASTER_KEY": MASTER_KEY}

    def sql(self, *statements: str) -> str:
        """Run the statements in the database as the superuser."""
        return self._cluster.sql(*statements, database=self.name)


@pytest.fixture
def unprivileged_role(postgres_cluster: Cluster, postgres_url: str) -> UnprivilegedRole:
    """A role without rights."""
    return UnprivilegedRole(postgres_cluster, postgres_url)


def test_a_missing_right_is_found_before_its_first_use(
    run: Run, tmp_path: Path, unprivileged_role: UnprivilegedRole
) -> None:
    databases = ["distribution database", "records database"]

    results_before = run_doctor(run, tmp_path, *FREE, **unprivileged_role.settings)
    refused_results = [
        run(*command, "--data", tmp_path, **unprivileged_role.settings)
        for command in (("db", "upgrade", "--dry-run"), ("db", "upgrade"), ("serve", *FREE))
    ]
    grant = f"GRANT CREATE ON DATABASE {unprivileged_role.name} TO {unprivileged_role.role};"
    unprivileged_role.sql(grant)
    granted_results = run_doctor(run, tmp_path, *FREE, **unprivileged_role.settings)
    schema_count = unprivileged_role.sql(
        "SELECT count(*) FROM pg_namespace WHERE nspname IN ('distribution', 'records')"
    )
    upgrade_result = run("db", "upgrade", "--data", tmp_path, **unprivileged_role.settings)
    upgraded_results = run_doctor(run, tmp_path, *FREE, **unprivileged_role.settings)
    unprivileged_role.sql(f"REVOKE ALL ON records.lead FROM {unprivileged_role.role}")
    less_result = run_doctor(run, tmp_path, *FREE, **unprivileged_role.settings)

    assert results_before.failed == databases
    assert all(grant in results_before.remedy[name] for name in databases)
    for result in refused_results:
        assert result.returncode == Exit.FAILED
        assert grant in result.stderr
        assert "Traceback" not in result.stderr
    assert granted_results.failed == []
    assert schema_count == "0\n", "nothing is made by asking"
    assert upgrade_result.returncode == Exit.OK, upgrade_result.stderr
    assert upgraded_results.failed == []
    assert less_result.failed == ["records database"]
    assert (
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA records" in less_result.remedy["records database"]
    )


WRITTEN = '''
"""A shop."""

from countersign.declare import Model, Module, Number, Table


class Customer(Model, table=Table("customer", key="id", writable=True)):
    """A customer."""

    visits = Number()


module = Module("shop", version="1.0.0", models=(Customer,))
'''


@pytest.mark.parametrize(
    ("pragma", "standing", "remedy"),
    [
        ("journal_mode = DELETE", "ok", ""),
        ("journal_mode = WAL", "warn", "PRAGMA journal_mode=DELETE"),
        ("encoding = 'UTF-16le'", "fail", "Make a copy in UTF-8"),
    ],
)
def test_the_mode_of_a_connected_sqlite_file_is_checked(
    run: Run, data: Path, tmp_path: Path, pragma: str, standing: str, remedy: str
) -> None:
    with closing(sqlite3.connect(tmp_path / "theirs.db")) as connection:
        connection.executescript(f"PRAGMA {pragma}; CREATE TABLE customer (id INTEGER PRIMARY KEY, visits INTEGER)")
    (tmp_path / "shop.py").write_text(WRITTEN)
    existing = {"COUNTERSIGN_EXISTING_URL": f"sqlite:///{tmp_path / 'theirs.db'}"}

    checked = run_doctor(run, data, *FREE, **existing, COUNTERSIGN_MODULES=str(tmp_path / "shop.py"))

    assert checked.standing["connected database"] == standing
    assert remedy in checked.remedy["connected database"]


def test_a_connected_database_that_cannot_be_reached_is_reported(run: Run, data: Path, tmp_path: Path) -> None:
    checked = run_doctor(run, data, "records", *FREE, COUNTERSIGN_EXISTING_URL=f"sqlite:///{tmp_path / 'away.db'}")

    assert checked.standing["connected database"] == "fail"
    assert "does not exist" in checked.detail["connected database"]
