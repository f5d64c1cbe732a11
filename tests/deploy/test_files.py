"""What is in deploy/ names settings that exist, and is well formed as far as this machine's programs can tell."""

import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from countersign.cli.serve import PORTS
from countersign.kernel.security.masterkey import parse_master_key
from countersign.settings import PREFIX, Settings, file_variables, load

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = DEPLOY / "compose"
NOT_SETTINGS = {"COUNTERSIGN_IMAGE"}
PLACES = sorted(path for path in DEPLOY.rglob("*") if path.is_file() and "secrets" not in path.parent.parts)


def compose() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load((COMPOSE / "compose.yaml").read_text())
    return parsed


@pytest.mark.parametrize("path", PLACES, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_every_setting_that_is_named_exists(path: Path) -> None:
    known = {PREFIX + item.name.upper() for item in fields(Settings)} | file_variables() | NOT_SETTINGS

    assert set(re.findall(r"\bCOUNTERSIGN_[A-Z0-9_]*[A-Z0-9]\b", path.read_text())) <= known


def test_the_ports_are_those_that_serve_listens_on() -> None:
    exposed = re.search(r"^EXPOSE (.+)$", (DEPLOY / "container/Containerfile").read_text(), re.MULTILINE)
    caddy = (COMPOSE / "Caddyfile").read_text()

    assert exposed is not None
    assert exposed[1].split() == [str(PORTS["distribution"]), str(PORTS["records"])]
    assert re.findall(r"store-\d:(\d+)", caddy) == [str(PORTS["distribution"])] * 2
    assert re.findall(r"records-\d:(\d+)", caddy) == [str(PORTS["records"])] * 2


def test_the_proxies_that_are_shown_ask_for_https_alone() -> None:
    caddy = (COMPOSE / "Caddyfile").read_text()
    guide = (DEPLOY.parent / "docs/how-to/behind-a-proxy.md").read_text()

    assert "header Strict-Transport-Security max-age=31536000\n" in caddy
    assert 'add_header Strict-Transport-Security "max-age=31536000" always;' in guide


def test_compose_has_two_nodes_of_each_service_workers_and_what_they_need() -> None:
    services = compose()["services"]

    assert set(services) == {
        "store-1", "store-2", "records-1", "records-2", "worker", "proxy", "database", "counters", "objects", "bucket",
    }  # fmt: skip
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services), name


@pytest.mark.parametrize("name", ["store-1", "store-2", "records-1", "records-2", "worker"])
def test_a_node_has_no_right_it_does_not_need(name: str) -> None:
    node = compose()["services"][name]

    assert node["read_only"] is True
    assert node["cap_drop"] == ["ALL"]
    assert node["security_opt"] == ["no-new-privileges:true"]
    assert "ports" not in node


def test_the_proxy_alone_is_reached_from_outside_and_believed() -> None:
    parsed = compose()
    services = parsed["services"]

    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    address = services["proxy"]["networks"]["default"]["ipv4_address"]
    assert services["store-1"]["environment"]["COUNTERSIGN_TRUSTED_PROXIES"] == address


def test_the_secrets_that_are_made_open_the_store_and_are_never_replaced(tmp_path: Path) -> None:
    script = shutil.copy(COMPOSE / "secrets.sh", tmp_path)
    first = subprocess.run([script], capture_output=True, text=True, check=False, timeout=30)
    made = tmp_path / "secrets/countersign.env"
    before = made.read_bytes()
    again = subprocess.run([script], capture_output=True, text=True, check=False, timeout=30)

    environment = dict(line.split("=", 1) for line in before.decode().splitlines())
    settings = load(environment, data=str(tmp_path))
    password = (tmp_path / "secrets/database.env").read_text().strip().partition("=")[2]
    assert first.returncode == 0, first.stderr
    assert len(parse_master_key(settings.master_key, "it").keys) == 1
    assert settings.database_url == f"postgresql://countersign:{password}@database/countersign"
    assert made.stat().st_mode & 0o077 == 0
    assert again.returncode == 1
    assert made.read_bytes() == before


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
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 0, done.stdout + done.stderr
