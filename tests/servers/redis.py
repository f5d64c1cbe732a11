"""Starts a Redis server for the test run, and empties it for each test that uses it."""

import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.process import answers, free_port, installed_program, run_until_ready


@pytest.fixture(scope="session")
def redis_port() -> Iterator[int]:
    """Run a Redis server that stores nothing on disk, and return its loopback port."""
    program = installed_program("redis-server", "redis-server")
    folder = Path(tempfile.mkdtemp(prefix="countersign-redis-"))
    port = free_port()
    settings = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    try:
        with run_until_ready(
            [program, *settings, "--dir", folder],
            is_ready=lambda: answers(port),
            log=folder / "log",
        ):
            yield port
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def redis_url(redis_port: int) -> str:
    """Return the address of the Redis server after all its data is deleted."""
    with socket.create_connection(("127.0.0.1", redis_port), timeout=10) as connection:
        connection.sendall(b"FLUSHALL\r\n")
        assert connection.recv(64) == b"+OK\r\n"
    return f"redis://127.0.0.1:{redis_port}/0"
