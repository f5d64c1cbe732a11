"""The operator's port of a served directory: liveness, readiness and metrics; and the notifications to systemd."""

import json
import os
import re
import signal
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from countersign.cli.server.listen_address import local_url
from tests.cli.conftest import Run
from tests.cli.test_serve import wait_until
from tests.servers.countersign import Running, served
from tests.servers.process import children, free_port

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="[^"]*",?)*)\})? (\S+)')
CHECKS = (
    *("workers", "disk", "distribution database", "distribution migrations", "distribution master key"),
    *("distribution deliveries", "blob store", "installation"),
    *("records database", "records migrations", "records master key", "records deliveries"),
)


class ObservedServer(NamedTuple):
    """A server and its operator's port."""

    server: Running
    url: str

    def ask(self, path: str) -> httpx.Response:
        """Send one request to the operator's port."""
        return httpx.get(f"{self.url}{path}", timeout=20)

    def failing(self) -> list[str]:
        """Return the failing checks in the answer of /readyz, with its status."""
        answer = self.ask("/readyz")
        failing: list[str] = answer.json()["failing"]
        assert answer.status_code == (503 if failing else 200)
        return failing

    def silent(self) -> list[int]:
        """Return the workers that do not respond according to /livez, with its status."""
        answer = self.ask("/livez")
        silent: list[int] = answer.json()["silent"]
        assert answer.status_code == (503 if silent else 200)
        return silent

    def is_stalled(self, restarts: int = 0) -> bool:
        """Return whether the second worker does not respond or was already replaced. On a busy machine, this check may
        run late."""
        return self.silent() == [1] or self.ask("/livez").json()["processes"][1]["restarts"] > restarts

    def numbers(self) -> dict[str, float]:
        """Return all samples by name with labels."""
        answer = self.ask("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
        assert all(SAMPLE.fullmatch(line) for line in lines)
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def sum(self, name: str, *labels: str) -> float:
        """Return the sum of the samples with this name and all these labels."""
        samples = {key: value for key, value in self.numbers().items() if key.partition("{")[0] == name}
        return sum(value for key, value in samples.items() if all(label in key for label in labels))

    def parent(self) -> int:
        """Return the process that was started."""
        process: int = json.loads((self.server.data / "serve.lock").read_text())["process"]
        return process

    def children(self) -> list[int]:
        """Return the child processes, the oldest first."""
        return children(self.parent())

    def workers(self) -> list[int]:
        """Return the services' worker processes by their numbers."""
        return [process["process"] for process in self.ask("/livez").json()["processes"]]


@contextmanager
def serve_with_operator_port(
    data: Path, *options: str, service: str = "both", **settings: str
) -> Iterator[ObservedServer]:
    """Serve the directory with an operator's port until the block ends."""
    port = free_port()
    settings = {"COUNTERSIGN_OPERATOR_PORT": str(port), **settings}
    with served(data, *options, service=service, settings=settings) as server:
        yield ObservedServer(server, f"http://127.0.0.1:{port}")


@pytest.fixture(scope="module")
def both_services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservedServer]:
    """A data directory with both services and the demonstration."""
    with serve_with_operator_port(tmp_path_factory.mktemp("operator") / "data", "--demo") as server:
        yield server


def test_one_management_port_answers_for_both_services(both_services: ObservedServer) -> None:
    readiness = both_services.ask("/readyz")
    live = both_services.ask("/livez").json()

    assert readiness.status_code == 200
    assert tuple(check["name"] for check in readiness.json()["checks"]) == CHECKS
    assert {name: live[name] for name in ("status", "workers", "silent")} == {
        "status": "alive",
        "workers": 2,
        "silent": [],
    }
    assert [process["service"] for process in live["processes"]] == ["distribution", "records"]
    assert [(process["state"], process["restarts"], process["stalls"]) for process in live["processes"]] == [
        ("alive", 0, 0)
    ] * 2
    assert len({process["process"] for process in live["processes"]}) == 2
    assert {
        both_services.sum("countersign_measured", f'of="{name}"') for name in ("distribution", "records", "machine")
    } == {1}


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_the_public_ports_do_not_serve_the_management_paths(both_services: ObservedServer, path: str) -> None:
    for port in (both_services.server.port, both_services.server.records_port):
        assert httpx.get(f"http://127.0.0.1:{port}{path}").status_code == 404


def test_the_operator_port_answers_no_other_path(both_services: ObservedServer) -> None:
    assert both_services.ask("/api/v1/products").status_code == 404
    assert httpx.post(f"{both_services.url}/readyz").status_code == 405
    assert both_services.ask("/metrics").headers["cache-control"] == "no-store"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "[", ""])
def test_on_loopback_the_management_port_answers_only_to_its_own_host_name(
    both_services: ObservedServer, host: str
) -> None:
    assert httpx.get(f"{both_services.url}/metrics", headers={"Host": host}, timeout=20).status_code in (400, 404)
    assert httpx.get(f"{both_services.url}/livez", headers={"Host": "localhost:9"}, timeout=20).status_code == 200


def test_the_operators_port_is_closed_without_the_setting(demo_store: Running) -> None:
    assert "Operator:" not in demo_store.log.read_text()


def test_requests_are_counted_by_template_for_any_path(both_services: ObservedServer) -> None:
    marker = "Zq7w"
    count = "countersign_http_request_seconds_count"
    count_before = both_services.sum(count, 'service="distribution"')
    with httpx.Client(base_url=both_services.server.url) as http:
        http.get("/api/v1/products/nothing")
        series = len(both_services.numbers())
        for number in range(50):
            http.get(f"/api/v1/products/{marker}{number}")
            http.get(f"/{marker}/{number}", params={marker: number})
            http.request("PROPFIND", "/api/v1/products", headers={marker: str(number)})

    assert both_services.sum(count, 'service="distribution"') == count_before + 151
    assert both_services.sum(count, 'route="/products/{id}"', 'method="GET"', 'status="4xx"') >= 51
    assert both_services.sum(count, 'route="unmatched"', 'method="GET"', 'status="4xx"') >= 50
    assert both_services.sum(count, 'method="other"') == 50
    assert len(both_services.numbers()) - series <= 2 * 14
    assert marker not in both_services.ask("/metrics").text


def test_failed_sign_ins_are_counted_on_both_services(both_services: ObservedServer) -> None:
    name = "countersign_sign_in_failures_total"
    wrong_sign_in = {"email": "nobody@example.com", "password": "wrong password"}
    headers = {"Origin": both_services.server.url}
    assert httpx.post(f"{both_services.server.url}/auth/signin", data=wrong_sign_in, headers=headers).status_code == 401
    login = f"http://127.0.0.1:{both_services.server.records_port}/api/auth/login"
    assert httpx.post(login, json={"username": "nobody", "password": "wrong password"}).status_code == 401

    assert both_services.sum(name, 'service="distribution"') == 1
    assert both_services.sum(name, 'service="records"') == 1


def _forget_a_migration(data: Path, service: str) -> Callable[[], None]:
    """Remove the last migration from the ledger, and return a function that restores it."""
    with sqlite3.connect(data / f"{service}.sqlite") as database:
        row = database.execute(
            "SELECT number, name, sha256, applied_at FROM schema_migration ORDER BY number DESC LIMIT 1"
        ).fetchone()
        database.execute("DELETE FROM schema_migration WHERE number = ?", row[:1])

    def undo() -> None:
        with sqlite3.connect(data / f"{service}.sqlite") as database:
            database.execute("INSERT INTO schema_migration VALUES (?, ?, ?, ?)", row)

    return undo


def _come_from_a_newer_version(data: Path, service: str) -> Callable[[], None]:
    """Add a migration that only a newer version has, and return a function that removes it."""
    file = data / f"{service}.sqlite"
    with sqlite3.connect(file) as database:
        database.execute("INSERT INTO schema_migration VALUES (9999, '9999_newer', '', 0)")

    def undo() -> None:
        with sqlite3.connect(file) as database:
            database.execute("DELETE FROM schema_migration WHERE number = 9999")

    return undo


def _spoil_the_key(data: Path, service: str) -> Callable[[], None]:
    """Store a value that another master key encrypted, and return a function that restores the old value."""
    file = data / f"{service}.sqlite"
    with sqlite3.connect(file) as database:
        rows = database.execute("SELECT sealed, name FROM service_key").fetchall()
        database.execute("UPDATE service_key SET sealed = x'00'")

    def undo() -> None:
        with sqlite3.connect(file) as database:
            database.executemany("UPDATE service_key SET sealed = ? WHERE name = ?", rows)

    return undo


def _lose_the_blobs(data: Path, _: str) -> Callable[[], None]:
    """Replace the blob folder by a file, and return a function that restores the folder."""
    folder = data / "blobs"
    folder.rename(data / "away")
    folder.touch()

    def undo() -> None:
        folder.unlink()
        (data / "away").rename(folder)

    return undo


def _hold_the_database(data: Path, service: str) -> Callable[[], None]:
    """Block all other writers of the database, and return a function that unblocks them."""
    holding = sqlite3.connect(data / f"{service}.sqlite", isolation_level=None)
    holding.execute("BEGIN IMMEDIATE")
    return holding.close


@pytest.mark.parametrize(
    ("spoil", "service", "check"),
    [
        (_forget_a_migration, "distribution", "distribution migrations"),
        (_forget_a_migration, "records", "records migrations"),
        (_come_from_a_newer_version, "distribution", "distribution migrations"),
        (_come_from_a_newer_version, "records", "records migrations"),
        (_spoil_the_key, "distribution", "distribution master key"),
        (_spoil_the_key, "records", "records master key"),
        (_lose_the_blobs, "distribution", "blob store"),
        (_hold_the_database, "distribution", "distribution database"),
    ],
)
def test_a_broken_dependency_is_named_until_it_recovers(
    both_services: ObservedServer, spoil: Callable[[Path, str], Callable[[], None]], service: str, check: str
) -> None:
    undo = spoil(both_services.server.data, service)
    try:
        assert both_services.failing() == [check]
        assert both_services.silent() == []
    finally:
        undo()

    assert both_services.failing() == []


def test_a_node_reports_that_the_database_has_a_newer_schema(both_services: ObservedServer) -> None:
    undo = _come_from_a_newer_version(both_services.server.data, "distribution")
    try:
        (failed_check,) = [
            check for check in both_services.ask("/readyz").json()["checks"] if check["state"] == "failed"
        ]
    finally:
        undo()

    assert "(9999_newer)" in failed_check["detail"]


def test_below_the_reserve_the_disk_is_named(tmp_path: Path) -> None:
    with serve_with_operator_port(tmp_path / "data", "--demo", service="distribution"):
        pass
    with serve_with_operator_port(
        tmp_path / "data", service="distribution", COUNTERSIGN_RESERVE_MIB=str(1 << 40)
    ) as server:
        assert server.failing() == ["disk", "distribution database", "blob store"]
        assert server.silent() == []


def test_a_service_that_hangs_is_named_and_stops_no_other(tmp_path: Path) -> None:
    with serve_with_operator_port(tmp_path / "data") as server:
        workers_before = server.workers()
        os.kill(workers_before[0], signal.SIGSTOP)
        try:
            assert server.silent() == [0]
            records = httpx.get(f"http://127.0.0.1:{server.server.records_port}/healthz", timeout=20)
        finally:
            os.kill(workers_before[0], signal.SIGCONT)
        wait_until(lambda: server.silent() == [])

        assert records.json() == {"status": "ok"}
        assert server.workers() == workers_before


def test_a_worker_with_a_blocked_event_loop_is_named(tmp_path: Path) -> None:
    with serve_with_operator_port(tmp_path / "data", "--workers", "2", service="distribution") as server:
        wait_until(lambda: server.silent() == [])
        stopped = server.workers()[1]

        os.kill(stopped, signal.SIGSTOP)
        try:
            assert server.silent() == [1]
            assert server.failing() == ["workers"]
            assert server.sum("countersign_build_info") == 1
        finally:
            os.kill(stopped, signal.SIGCONT)

        wait_until(lambda: server.silent() == [])
        assert server.sum("countersign_build_info") == 2


def test_of_a_worker_that_died_no_number_is_left(tmp_path: Path) -> None:
    count = "countersign_http_request_seconds_count"
    with serve_with_operator_port(tmp_path / "data", "--workers", "2", service="store") as server:
        wait_until(lambda: server.silent() == [])
        while not server.sum(count, 'worker="1"'):
            httpx.get(f"{server.server.url}/api/v1/info")

        os.kill(server.workers()[1], signal.SIGKILL)
        wait_until(lambda: "replaced" in server.server.log.read_text() and server.silent() == [])

        assert server.sum(count, 'worker="1"') == 0
        assert server.sum("countersign_build_info", 'worker="1"') == 1


def test_doctor_asks_the_server_that_runs(both_services: ObservedServer, run: Run) -> None:
    operator_settings = {"COUNTERSIGN_OPERATOR_PORT": both_services.url.rpartition(":")[2]}
    well = run("doctor", "--data", both_services.server.data, "--json", **operator_settings)
    undo = _lose_the_blobs(both_services.server.data, "distribution")
    try:
        ill = run("doctor", "--data", both_services.server.data, "--json", **operator_settings)
    finally:
        undo()
    removed_result = run(
        "doctor", "--data", both_services.server.data, "--json", COUNTERSIGN_OPERATOR_PORT=str(free_port())
    )

    standings = [_running(result.stdout) for result in (well, ill, removed_result)]
    assert [check["standing"] for check in standings] == ["ok", "fail", "fail"]
    assert "blob store" in standings[1]["detail"]


def _running(output: str) -> dict[str, str]:
    (running_check,) = [check for check in json.loads(output)["checks"] if check["check"] == "running"]
    return running_check


def test_a_stopping_server_is_not_ready_and_still_answers_on_the_management_port(tmp_path: Path) -> None:
    with (
        serve_with_operator_port(tmp_path / "data", service="distribution", COUNTERSIGN_GRACE_S="20") as server,
        socket.create_connection(("127.0.0.1", server.server.port)) as slow_connection,
    ):
        head = "POST /api/v1/auth/token HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\n"
        slow_connection.sendall(head.encode())
        wait_until(lambda: server.sum("countersign_http_requests_running") == 1)
        os.kill(json.loads((server.server.data / "serve.lock").read_text())["process"], signal.SIGTERM)

        wait_until(lambda: server.failing() == ["serving"])
        assert server.silent() == []
        with pytest.raises(httpx.ConnectError):
            httpx.get(server.server.url)
        slow_connection.sendall(b"body")
        assert slow_connection.recv(1 << 16).startswith(b"HTTP/1.1 4")


class SystemdSocket:
    """The notifications that a service sends to systemd."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.settimeout(30)

    def next(self) -> str:
        """Return the next notification."""
        return self._socket.recv(256).decode()

    def within(self, seconds: float) -> list[str]:
        """Return all notifications until none came for `seconds` seconds, or twenty of them."""
        heard_messages: list[str] = []
        self._socket.settimeout(seconds)
        try:
            while len(heard_messages) < 20:
                heard_messages.append(self.next())
            self._socket.settimeout(30)
            return heard_messages
        except TimeoutError:
            self._socket.settimeout(30)
            return heard_messages

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[SystemdSocket]:
    """A socket at tmp_path/notify."""
    listening = SystemdSocket(tmp_path / "notify")
    yield listening
    listening.close()


def test_systemd_is_notified_of_ready_watchdog_and_stopping(systemd: SystemdSocket, tmp_path: Path) -> None:
    systemd_settings: dict[str, Any] = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "300000"}
    with served(tmp_path / "data", settings=systemd_settings) as server:
        first_message = _next_but(systemd, "WATCHDOG=1")
        while systemd.next() != "WATCHDOG=1":
            pass
        # The supervisor replaces a single blocked worker, so systemd need not restart the service.
        _stop(systemd, ObservedServer(server, "").children()[0], is_heard=True)
        _stop(systemd, ObservedServer(server, "").parent(), is_heard=False)

    assert first_message == "READY=1"
    assert "STOPPING=1" in systemd.within(0.1)


def _next_but(systemd: SystemdSocket, beat: str) -> str:
    """Return the next notification other than the watchdog's."""
    while (message := systemd.next()) == beat:
        pass
    return message


def _stop(systemd: SystemdSocket, process: int, *, is_heard: bool) -> None:
    """Stop a process for a while. Require that the service keeps sending watchdog notifications, or that it sends
    none."""
    os.kill(process, signal.SIGSTOP)
    try:
        wait_until(lambda: bool(systemd.within(1.0)) is is_heard)
    finally:
        os.kill(process, signal.SIGCONT)
    while systemd.next() != "WATCHDOG=1":
        pass


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:1"),
        ("::1", "http://[::1]:1"),
        ("::", "http://localhost:1"),
        ("", "http://localhost:1"),
        ("operator.internal", "http://operator.internal:1"),
    ],
)
def test_the_reported_address_is_reachable_from_this_machine(host: str, url: str) -> None:
    assert local_url(host, 1) == url
