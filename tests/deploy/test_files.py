"""The files in deploy/ name only existing settings, and are well formed as far as the programs on this machine can
check."""

import re
import shutil
import socket
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import yaml

from countersign.cli.passphrase import BACKUP_VARIABLE, MIN_LENGTH
from countersign.cli.server.listen_address import PORTS
from countersign.kernel.http.workers import STOPPING_S
from countersign.kernel.security.masterkey import parse_master_key
from countersign.settings import PREFIX, Settings, file_variables, load
from tests.servers.process import answers, free_port, installed_program, run_until_ready

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = DEPLOY / "compose"
NOT_SETTINGS = {"COUNTERSIGN_IMAGE", BACKUP_VARIABLE}
PLACES = sorted(path for path in DEPLOY.rglob("*") if path.is_file() and "secrets" not in path.parent.parts)


def compose() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load((COMPOSE / "compose.yaml").read_text())
    return parsed


@pytest.mark.parametrize("path", PLACES, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_every_setting_that_is_named_exists(path: Path) -> None:
    known_variables = {PREFIX + item.name.upper() for item in fields(Settings)} | file_variables() | NOT_SETTINGS

    assert set(re.findall(r"\bCOUNTERSIGN_[A-Z0-9_]*[A-Z0-9]\b", path.read_text())) <= known_variables


def test_the_ports_are_the_ports_on_which_serve_listens() -> None:
    exposed_match = re.search(r"^EXPOSE (.+)$", (DEPLOY / "container/Containerfile").read_text(), re.MULTILINE)
    caddy = (COMPOSE / "Caddyfile").read_text()

    assert exposed_match is not None
    assert exposed_match[1].split() == [str(PORTS["distribution"]), str(PORTS["records"])]
    assert re.findall(r"store-\d:(\d+)", caddy) == [str(PORTS["distribution"])] * 2
    assert re.findall(r"records-\d:(\d+)", caddy) == [str(PORTS["records"])] * 2


def test_the_documented_proxies_accept_only_https() -> None:
    caddy = (COMPOSE / "Caddyfile").read_text()
    guide = (DEPLOY.parent / "docs/how-to/behind-a-proxy.md").read_text()

    assert "header Strict-Transport-Security max-age=31536000\n" in caddy
    assert 'add_header Strict-Transport-Security "max-age=31536000" always;' in guide


def test_compose_has_two_nodes_of_each_service_with_workers_and_their_dependencies() -> None:
    services = compose()["services"]

    assert set(services) == {
        "store-1", "store-2", "records-1", "records-2", "worker", "backup", "proxy", "database", "counters",
        "objects", "bucket",
    }  # fmt: skip
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services), name


@pytest.mark.parametrize("name", ["store-1", "store-2", "records-1", "records-2", "worker", "backup"])
def test_a_node_has_only_the_rights_that_it_needs(name: str) -> None:
    node = compose()["services"][name]

    assert node["read_only"] is True
    assert node["cap_drop"] == ["ALL"]
    assert node["security_opt"] == ["no-new-privileges:true"]
    assert "ports" not in node


def test_only_the_proxy_is_reachable_from_outside_and_trusted() -> None:
    parsed = compose()
    services = parsed["services"]

    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    address = services["proxy"]["networks"]["default"]["ipv4_address"]
    assert services["store-1"]["environment"]["COUNTERSIGN_TRUSTED_PROXIES"] == address


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("deploy/systemd/countersign.service", "TimeoutStopSec="),
        ("deploy/systemd/countersign-worker@.service", "TimeoutStopSec="),
        ("deploy/compose/compose.yaml", "stop_grace_period: "),
        ("deploy/helm/countersign/templates/_pod.tpl", "terminationGracePeriodSeconds: "),
        ("docs/how-to/deploy-with-containers.md", "--stop-timeout "),
    ],
)
def test_every_deployment_waits_for_the_end_of_a_stop(path: str, name: str) -> None:
    waits_s = re.findall(rf"{re.escape(name)}(\d+)s?\b", (DEPLOY.parent / path).read_text())

    assert len(waits_s) == 1
    assert int(waits_s[0]) > Settings().grace_s + STOPPING_S


class ComposeCopy(NamedTuple):
    """A copy of the compose folder in which secrets.sh was run."""

    folder: Path

    def run_again(self) -> subprocess.CompletedProcess[str]:
        """Run it again."""
        return subprocess.run([self.folder / "secrets.sh"], capture_output=True, text=True, check=False, timeout=30)

    def environment(self, service: str) -> dict[str, str]:
        """Return the environment variables from the files that a service names."""
        files = compose()["services"][service]["env_file"]
        lines = [line for name in files for line in (self.folder / name).read_text().splitlines()]
        return dict(line.split("=", 1) for line in lines)

    def contents(self) -> dict[str, bytes]:
        """Return every secret by its file's name."""
        return {path.name: path.read_bytes() for path in (self.folder / "secrets").iterdir()}


@pytest.fixture
def secrets(tmp_path: Path) -> ComposeCopy:
    """A folder after the first run."""
    shutil.copy(COMPOSE / "secrets.sh", tmp_path)
    compose_copy = ComposeCopy(tmp_path)
    first_run = compose_copy.run_again()
    assert first_run.returncode == 0, first_run.stderr
    return compose_copy


def test_the_generated_secrets_open_the_store_and_are_readable_only_by_their_owner(secrets: ComposeCopy) -> None:
    settings = load(secrets.environment("store-1"), data=str(secrets.folder))
    password = secrets.environment("database")["POSTGRES_PASSWORD"]

    assert len(parse_master_key(settings.master_key, "it").keys) == 1
    assert settings.database_url == f"postgresql://countersign:{password}@database/countersign"
    assert len(secrets.environment("backup")[BACKUP_VARIABLE]) >= MIN_LENGTH
    assert BACKUP_VARIABLE not in secrets.environment("store-1")
    assert {path.stat().st_mode & 0o077 for path in (secrets.folder / "secrets").iterdir()} == {0}


def test_secrets_are_never_replaced_and_secrets_of_a_newer_version_are_added(secrets: ComposeCopy) -> None:
    contents_before = secrets.contents()
    unchanged = secrets.run_again()
    for name in ("counters.env", "backup.env"):
        (secrets.folder / "secrets" / name).unlink()
    second_run = secrets.run_again()

    contents_after = secrets.contents()
    assert (unchanged.returncode, second_run.returncode) == (1, 0)
    assert set(contents_after) == set(contents_before)
    assert {name for name in contents_before if contents_before[name] != contents_after[name]} == {
        "counters.env",
        "backup.env",
    }


def test_the_counters_ask_for_the_password_that_the_nodes_have(
    secrets: ComposeCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell, option, script = compose()["services"]["counters"]["command"]
    server = installed_program("redis-server", "redis-server")
    port = free_port()
    script = script.replace("$$", "$").replace("valkey-server -", f"{server} - --port {port} --bind 127.0.0.1")
    monkeypatch.setenv("REDISCLI_AUTH", secrets.environment("counters")["REDISCLI_AUTH"])
    url = load(secrets.environment("store-1"), data=str(secrets.folder)).counters_url

    def valkey_answer(*commands: str) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall("".join(f"{command}\r\n" for command in commands).encode())
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(4096), b""))

    with run_until_ready([shell, option, script], is_ready=lambda: answers(port), log=secrets.folder / "log"):
        assert valkey_answer("PING").startswith(b"-NOAUTH")
        assert valkey_answer(f"AUTH {urlsplit(url).password}", "PING") == b"+OK\r\n+PONG\r\n"


CHECKS = {
    "caddy": (["caddy", "validate", "--adapter", "caddyfile", "--config"], COMPOSE / "Caddyfile"),
    "hadolint": (["hadolint"], DEPLOY / "container/Containerfile"),
    "helm": (["helm", "lint", "--strict"], DEPLOY / "helm/countersign"),
    "sh": (["sh", "-n"], COMPOSE / "secrets.sh"),
}


@pytest.mark.parametrize("program", CHECKS)
def test_the_program_that_reads_it_has_nothing_against_it(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not on this machine")
    command, path = CHECKS[program]
    result = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False, timeout=60)

    assert result.returncode == 0, result.stdout + result.stderr
