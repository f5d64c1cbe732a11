"""An installation that an earlier version made serves its users after the upgrade, on both databases."""

import json
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.servers.countersign import MASTER_KEY, SOURCE, Running, served
from tests.servers.postgres import Cluster, PostgresFactory
from tests.upgrade.make_installation import (
    BUILD,
    INSTALLATIONS,
    PLAYER,
    PRODUCT,
    RecordsApi,
    RequestRefused,
    leads,
    products,
    run,
    sign_in,
    unpack,
)

CASES = [
    ("1.0.0", "sqlite"),
    ("1.0.0-last", "sqlite"),
    ("1.0.0-last", "postgres"),
]


class UpgradedInstallation:
    """A served installation of an earlier version."""

    def __init__(self, version: str, running: Running, settings: dict[str, str], expected: dict[str, Any]) -> None:
        self.version = version
        self.running = running
        self.settings = settings
        self.expected = expected
        self.store = running.url
        self.records = f"http://127.0.0.1:{running.records_port}"

    def run(self, *arguments: str | Path, **settings: str) -> str:
        """Run a command of the current version."""
        return run(SOURCE, *arguments, **self.settings, **settings)


@pytest.fixture(params=CASES, ids="-".join)
def upgraded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[UpgradedInstallation]:
    """The unpacked installation of an earlier version, served by the current version."""
    version, database = request.param
    unpack((INSTALLATIONS / f"{version}.tar.zst").read_bytes(), tmp_path)
    expected_json = json.loads((tmp_path / "expected.json").read_text())
    # `push` waits for a worker to process the build.
    settings = {"COUNTERSIGN_JOB_WORKERS": "1"}
    if database == "postgres":
        cluster: Cluster = request.getfixturevalue("postgres_cluster")
        create: PostgresFactory = request.getfixturevalue("new_postgres_url")
        settings |= {"COUNTERSIGN_DATABASE_URL": create(), "COUNTERSIGN_MASTER_KEY": MASTER_KEY}
        load(cluster, settings["COUNTERSIGN_DATABASE_URL"], tmp_path / "postgres.sql")
    with served(tmp_path / "data", service="both", settings=settings) as running:
        yield UpgradedInstallation(version, running, settings, expected_json)


def load(cluster: Cluster, url: str, dump: Path) -> None:
    """Fill the database from the dump."""
    command = [cluster.programs / "psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-d", url, "-f", dump]
    subprocess.run(command, check=True, capture_output=True)


def test_users_find_their_data_after_an_upgrade(upgraded: UpgradedInstallation, tmp_path: Path) -> None:
    expected, data = upgraded.expected, upgraded.running.data

    assert products(upgraded.store) == expected["products"]
    token = upgraded.run("token", "issue", PLAYER, "--scope", "read:library read:products", "--data", data).strip()
    printed_output = upgraded.run("--server", upgraded.store, "library", COUNTERSIGN_TOKEN=token)
    assert all(slug in printed_output for slug in expected["library"])

    copy = tmp_path / "copy"
    options = ("--version", "9.0.0", "--output", copy)
    upgraded.run("--server", upgraded.store, "download", PRODUCT, *options, COUNTERSIGN_TOKEN=token)
    assert sha256(copy.read_bytes()).digest() == sha256(BUILD).digest()


def test_records_and_tokens_exist_after_an_upgrade(upgraded: UpgradedInstallation) -> None:
    expected = upgraded.expected
    agent = RecordsApi(upgraded.records, expected["agent"])

    assert leads(upgraded.records) == expected["leads"]
    assert agent("lead/get", id=expected["qualified"])["value"]["stage"] == "qualified"


def test_old_plans_are_executed_or_must_be_proposed_again(upgraded: UpgradedInstallation) -> None:
    """The changelog says to decide plans before an upgrade from 1.0.0, because the values that bind a plan have changed
    since."""
    expected, alice = upgraded.expected, sign_in(upgraded.records)

    if upgraded.version == "1.0.0":
        with pytest.raises(RequestRefused, match="plan is stale"):
            alice(f"approve/{expected['plan']}")
        assert leads(upgraded.records) == expected["leads"]
    else:
        assert alice(f"approve/{expected['plan']}")["value"]["state"] == "executed"
        assert expected["doomed"] not in [row[0] for row in leads(upgraded.records)]


def test_an_upgraded_installation_accepts_new_work(upgraded: UpgradedInstallation, tmp_path: Path) -> None:
    build = tmp_path / "new.txt"
    build.write_bytes(BUILD[::-1])
    client = {"COUNTERSIGN_CLIENT_ID": "demo-publisher", "COUNTERSIGN_CLIENT_SECRET": "demo-publisher-secret"}
    options = ("--version", "9.1.0", "--channel", "stable", "--platform", "linux")
    upgraded.run("--server", upgraded.store, "push", build, PRODUCT, *options, **client)
    printed_output = upgraded.run("--server", upgraded.store, "publish", PRODUCT, "9.1.0", **client)

    assert "9.1.0" in printed_output
    lead = sign_in(upgraded.records)("lead/create", title="After the upgrade")["value"]
    assert lead["id"] in [row[0] for row in leads(upgraded.records)]


def test_the_audit_is_complete_after_an_upgrade(upgraded: UpgradedInstallation) -> None:
    printed_output = upgraded.run("audit", "verify", "--data", upgraded.running.data)

    assert printed_output
