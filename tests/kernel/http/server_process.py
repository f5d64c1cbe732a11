"""Starts the small server, and sends it raw bytes."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
PATIENCE_S = 60
"""How long anything may take on a busy machine."""
LONG_S = 300
"""A limit that no test reaches."""


class ServedProcess(NamedTuple):
    """A running server: its process, its ports and its standard error."""

    process: subprocess.Popen[str]
    ports: list[int]
    log: Path

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return self.ports[0]

    def connect(self, listener: int = 0) -> socket.socket:
        """Open a new connection."""
        return socket.create_connection(("127.0.0.1", self.ports[listener]), timeout=PATIENCE_S)

    def get(self, path: str = "/") -> tuple[int, bytes]:
        """Send a request on a new connection, and return the status and the body."""
        with self.connect() as connection:
            connection.sendall(request("GET", path, "Connection: close"))
            return parse_response(receive_all(connection))

    def worker(self) -> int:
        """Return the process that responds on a new connection."""
        return int(self.get()[1])

    def wait(self) -> int:
        """Wait until the process has ended, and return the exit code."""
        return self.process.wait(timeout=PATIENCE_S)


def start(log: Path, **options: object) -> "subprocess.Popen[str]":
    """Start a server process, which is killed if this process dies (Linux)."""
    setpriv = shutil.which("setpriv")
    command = [sys.executable, "-m", "tests.kernel.http.server_program", json.dumps(options)]
    with log.open("ab") as file:
        return subprocess.Popen(
            [setpriv, "--pdeathsig=KILL", "--", *command] if setpriv else command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )


@contextmanager
def run_server(folder: Path, **options: object) -> Iterator[ServedProcess]:
    """Run a server with these options until the block ends."""
    log = folder / "log"
    with start(log, **options) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line, log.read_text()
            yield ServedProcess(process, [int(port) for port in line.split()], log)
        finally:
            process.terminate()
            try:
                process.wait(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()


def request(method: str, path: str, *headers: str) -> bytes:
    """Return the head of a request."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: test", *headers, "", ""]).encode()


def receive_all(connection: socket.socket) -> bytes:
    """Return everything that is received until the other end closes the connection. A reset counts as its end."""
    received = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(1 << 16):
            received += piece
    return received


def parse_response(answer: bytes) -> tuple[int, bytes]:
    """Return the status and the body of a response."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def one_answer(connection: socket.socket) -> tuple[int, bytes]:
    """Return the status and the body of the next response on a connection that stays open. Its length must be declared.

    Raises:
        ConnectionError: the connection ended before the response was complete.
    """
    return parse_response(whole_answer(connection))


def whole_answer(connection: socket.socket) -> bytes:
    """Return the bytes of the next response, like `one_answer`.

    Raises:
        ConnectionError: the connection ended before the response was complete.
    """
    received = b""
    while True:
        head, end, body = received.partition(b"\r\n\r\n")
        if end:
            length = int(head.lower().partition(b"content-length:")[2].split()[0])
            if len(body) >= length:
                return received
        piece = connection.recv(1 << 16)
        if not piece:
            raise ConnectionError(f"ended after {len(received)} bytes")
        received += piece


def wait_for_close(connection: socket.socket) -> tuple[float, bytes]:
    """Return the seconds until the other end closes the connection, and the bytes that it sends before."""
    began_s = time.monotonic()
    received = receive_all(connection)
    return time.monotonic() - began_s, received


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for a condition that becomes true by itself.

    Raises:
        AssertionError: the condition did not become true within PATIENCE_S.
    """
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline_s, "it never came true"
        time.sleep(0.02)


def is_refused(server: ServedProcess) -> bool:
    """Return whether the system refuses a new connection at once.

    A connection that was made in the moment in which the port was closed is reset. The next connection may still be
    accepted.
    """
    try:
        with server.connect():
            return False
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        return False
