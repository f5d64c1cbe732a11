"""When the event loop of one service is blocked, the other service still answers, the blocked service is reported and
replaced, and a stop ends both."""

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cli.test_operator import ObservedServer
from tests.cli.test_serve import wait_until
from tests.servers.countersign import served
from tests.servers.process import children, free_port, is_running

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "tests.cli.stalling")
GRACE_S = 1


@pytest.fixture
def stalling_server(tmp_path: Path) -> Iterator[ObservedServer]:
    """Both services, of which one has the fault."""
    port = str(free_port())
    settings = {
        "COUNTERSIGN_OPERATOR_PORT": port,
        "COUNTERSIGN_WATCHDOG_S": "2",
        "COUNTERSIGN_GRACE_S": str(GRACE_S),
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
    }
    with served(tmp_path / "data", service="both", settings=settings, program=PROGRAM) as server:
        yield ObservedServer(server, f"http://127.0.0.1:{port}")


def stall(server: ObservedServer) -> socket.socket:
    """Block the event loop of the records service."""
    connection = socket.create_connection(("127.0.0.1", server.server.records_port), timeout=30)
    head = "POST /api/auth/login HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\nContent-Length: 2"
    connection.sendall(f"{head}\r\n\r\n{{}}".encode())
    return connection


def test_one_service_answers_while_the_other_is_replaced_and_a_stop_ends_both_services(
    stalling_server: ObservedServer,
) -> None:
    server = stalling_server.server
    everyone = children(stalling_server.parent())
    with stall(stalling_server), httpx.Client(base_url=server.url) as store:
        wait_until(stalling_server.is_stalled)
        statuses = [store.get("/api/v1/health").status_code for _ in range(20)]
        wait_until(lambda: stalling_server.ask("/livez").json()["processes"][1]["restarts"] == 1)
        wait_until(lambda: stalling_server.silent() == [])

    assert statuses == [200] * 20
    assert httpx.get(f"http://127.0.0.1:{server.records_port}/healthz").json() == {"status": "ok"}
    processes = stalling_server.ask("/livez").json()["processes"]
    assert [(process["stalls"], process["restarts"]) for process in processes] == [(0, 0), (1, 1)]
    assert "stalled_at" in processes[1]
    assert stalling_server.sum("countersign_worker_stalls_total", 'service="records"') == 1
    (line,) = [json.loads(line) for line in server.log.read_text().splitlines() if "a worker stalled" in line]
    assert " in spin" in str(line["stack"])

    everyone += children(stalling_server.parent())
    with stall(stalling_server):
        wait_until(lambda: stalling_server.is_stalled(restarts=1))
        began_s = time.monotonic()
        os.kill(stalling_server.parent(), signal.SIGTERM)
        wait_until(lambda: not any(is_running(pid) for pid in everyone))
    # Much longer than any other timeout that could end it.
    assert time.monotonic() - began_s < GRACE_S + 10
