"""A private Redis for the run, emptied for each test that asks."""

import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.process import answers, free_port, installed, serving


@pytest.fixture(scope="session")
def redis_port() -> Iterator[int]:
    """The loopback port of a Redis of this run alone, which keeps nothing on disk."""
    program = installed("redis-server", "redis-server")
    folder = Path(tempfile.mkdtemp(prefix="countersign-redis-"))
    port = free_port()
    settings = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    try:
        with serving(
            [program, *settings, "--dir", folder],
            is_ready=lambda: answers(port),
            log=folder / "log",
        ):
            yield port
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def redis_url(redis_port: int) -> str:
    """The address of a Redis that holds nothing yet."""
    with socket.create_connection(("127.0.0.1", redis_port), timeout=10) as connection:
        connection.sendall(b"FLUSHALL\r\n")
        assert connection.recv(64) == b"+OK\r\n"
    return f"redis://127.0.0.1:{redis_port}/0"
