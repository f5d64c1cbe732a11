"""`serve` prints how to sign in, uses a data directory exclusively, and stops gracefully."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from countersign.cli.output import Exit
from tests.cli.conftest import Run
from tests.servers.countersign import Running, served


def test_the_demonstration_prints_its_addresses_and_sign_in_data(demo_store: Running) -> None:
    log_text = demo_store.log.read_text()

    assert demo_store.url in log_text
    for text in ("player@example.com", "publisher@example.com", "countersign-demo", "demo-publisher", "ctrl-C"):
        assert text in log_text


def test_an_empty_store_prints_a_set_up_link_that_works(tmp_path: Path) -> None:
    with served(tmp_path / "data") as server:
        link = re.search(r"http://\S+/auth/setup\S+", server.log.read_text())

        assert link is not None
        assert httpx.get(link[0]).status_code == 200


@pytest.mark.parametrize("service", ["store_service", "records_service"])
def test_a_service_on_sqlite_imports_neither_the_postgresql_driver_nor_backups(service: str) -> None:
    code = f"import sys, countersign.cli.server.{service}; print(*sorted(sys.modules))"

    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    modules = set(imported.stdout.split())
    assert f"countersign.cli.server.{service}" in modules
    assert not modules & {"asyncpg", "countersign.backup"}


def test_a_second_serve_of_a_data_directory_is_refused(run: Run, tmp_path: Path) -> None:
    with served(tmp_path / "data") as server:
        second_serve = run("serve", "distribution", "--data", server.data, "--port", "0")
        health_status = httpx.get(f"{server.url}/api/v1/health").status_code

    assert second_serve.returncode == Exit.CONFLICT
    assert "another `countersign serve`" in second_serve.stderr
    assert health_status == 200


def test_a_data_directory_is_free_again_after_a_stop(tmp_path: Path) -> None:
    for _ in range(2):
        with served(tmp_path / "data", "--demo") as server:
            body = httpx.get(f"{server.url}/api/v1/products", params={"limit": 100}).json()

            assert len(body["items"]) == 60


def test_several_workers_share_one_store(tmp_path: Path) -> None:
    with (
        served(tmp_path / "data", "--demo", "--workers", "2") as server,
        httpx.Client(base_url=f"{server.url}/api/v1") as client,
    ):
        codes = [client.get("/products").status_code for _ in range(20)]

    assert codes == [200] * 20


@pytest.mark.parametrize("arguments", [["--host", "192.0.2.1", "--demo"], ["--port", "1"], ["--workers", "0"]])
def test_invalid_serve_options_are_a_usage_error(run: Run, tmp_path: Path, arguments: list[str]) -> None:
    result = run("serve", "--data", tmp_path / "data", *arguments)

    assert result.returncode == Exit.USAGE
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("subcommand", "owner_text", "option"),
    [
        (["distribution", "--port"], "the service distribution: ", "--port"),
        (["records", "--port"], "the service records: ", "--port"),
        (["--records-port", "0", "--distribution-port"], "the service distribution: ", "--distribution-port"),
        (["--distribution-port", "0", "--records-port"], "the service records: ", "--records-port"),
    ],
)
def test_a_port_in_use_is_reported_with_its_service_and_option(
    run: Run, tmp_path: Path, subcommand: list[str], owner_text: str, option: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken_socket:
        port = taken_socket.getsockname()[1]
        result = run("serve", *subcommand, str(port), "--data", tmp_path / "data")

    assert result.returncode == Exit.CONFLICT
    assert f"{owner_text}127.0.0.1:{port} cannot be listened on: Address already in use" in result.stderr
    assert f"another port with {option}.\n" in result.stderr


def test_an_operator_port_in_use_is_reported_with_its_setting(run: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken_socket:
        operator_settings = {"COUNTERSIGN_OPERATOR_PORT": str(taken_socket.getsockname()[1])}
        result = run("serve", "records", "--port", "0", "--data", tmp_path / "data", **operator_settings)

    assert result.returncode == Exit.CONFLICT
    assert "another port with COUNTERSIGN_OPERATOR_PORT." in result.stderr


def test_a_host_that_is_not_this_machines_is_reported_with_its_option(run: Run, tmp_path: Path) -> None:
    result = run("serve", "records", "--port", "0", "--host", "192.0.2.1", "--data", tmp_path / "data")

    assert result.returncode == Exit.USAGE
    assert "an address of this machine with --host" in result.stderr


def test_the_lock_shows_the_address_that_is_served(demo_store: Running) -> None:
    content = json.loads((demo_store.data / "serve.lock").read_text())

    assert content["distribution"] == demo_store.url


def test_a_worker_that_dies_is_replaced_without_another_set_up_link(tmp_path: Path) -> None:
    with served(tmp_path / "data", "--workers", "2") as server:
        (link,) = re.findall(r"http://\S+/auth/setup\S+", server.log.read_text())
        killed_worker = min(_workers(server), key=int)

        os.kill(int(killed_worker), signal.SIGKILL)
        wait_until(lambda: "replaced" in server.log.read_text())
        wait_until(lambda: len(_workers(server)) == 2 and killed_worker not in _workers(server))

        assert httpx.get(link).status_code == 200
        assert server.log.read_text().count("/auth/setup") == 1


def _workers(server: Running) -> list[str]:
    parent = json.loads((server.data / "serve.lock").read_text())["process"]
    return Path(f"/proc/{parent}/task/{parent}/children").read_text().split()


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for a condition of another process, for at most three minutes, because the machine may be busy."""
    deadline = time.monotonic() + 180
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
