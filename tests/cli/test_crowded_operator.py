"""The operator's port answers hundreds of simultaneous requests and never reports a healthy service as dead."""

import socket
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.test_operator import serve_with_operator_port
from tests.cli.test_serve import wait_until

CROWD = 300


def answers(url: str, path: str) -> Counter[str]:
    """Return the statuses of `count` requests that are all sent before the first answer is read."""
    host, _, port = url.removeprefix("http://").partition(":")
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    with ExitStack() as stack:
        crowd = [stack.enter_context(socket.create_connection((host, int(port)), timeout=60)) for _ in range(CROWD)]
        for connection in crowd:
            connection.sendall(request)
        return Counter(connection.makefile("rb").readline().split()[1].decode() for connection in crowd)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_hundreds_who_ask_at_once_all_get_the_status(tmp_path: Path, workers: str) -> None:
    with serve_with_operator_port(tmp_path / "data", "--workers", workers, service="distribution") as server:
        wait_until(lambda: not server.silent())
        statuses_by_path = {path: answers(server.url, path) for path in ("/livez", "/readyz", "/metrics")}

    assert statuses_by_path == {path: Counter({"200": CROWD}) for path in ("/livez", "/readyz", "/metrics")}
