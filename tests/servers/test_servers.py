"""The servers for tests work, and connections to other machines are blocked."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import asyncpg
import pytest
from obstore.store import S3Store

from tests.servers.postgres import Cluster, PostgresFactory
from tests.servers.process import answers
from tests.servers.s3 import Bucket

OUTSIDE = "192.0.2.1"  # RFC 5737: an address for documentation


def test_a_connection_out_of_this_machine_is_refused() -> None:
    with socket.socket() as way_out, pytest.raises(PermissionError, match="stay on this machine"):
        way_out.connect((OUTSIDE, 80))


def test_a_name_out_of_this_machine_is_not_looked_up() -> None:
    with pytest.raises(PermissionError, match="stay on this machine"):
        socket.getaddrinfo("www.example.com", 80)


async def test_each_postgres_database_is_empty_and_separate(new_postgres_url: PostgresFactory) -> None:
    first_connection = await asyncpg.connect(new_postgres_url())
    second_connection = await asyncpg.connect(new_postgres_url())
    try:
        await first_connection.execute("CREATE TABLE mark (here int)")

        assert await second_connection.fetchval("SELECT to_regclass('mark')") is None
    finally:
        await first_connection.close()
        await second_connection.close()


def test_postgres_is_durable_as_in_production(postgres_cluster: Cluster) -> None:
    assert postgres_cluster.sql("SHOW fsync", "SHOW synchronous_commit").split() == ["on", "on"]


def test_a_database_url_names_its_engine(database_url: str) -> None:
    assert database_url.startswith(("sqlite:///", "postgresql://"))


async def test_an_s3_bucket_takes_and_gives_bytes(s3_url: Bucket) -> None:
    store = S3Store(
        s3_url.name,
        endpoint=s3_url.endpoint,
        access_key_id="key",
        secret_access_key="secret",
        region="us-east-1",
        client_options={"allow_http": True},
    )

    await store.put_async("place", b"bytes")

    assert bytes(await (await store.get_async("place")).bytes_async()) == b"bytes"


def test_redis_starts_empty(redis_url: str, redis_port: int) -> None:
    with socket.create_connection(("127.0.0.1", redis_port), timeout=10) as connection:
        connection.sendall(b"DBSIZE\r\n")

        assert connection.recv(64) == b":0\r\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the signal at the parent's death is Linux's")
def test_a_server_ends_when_the_run_is_killed(tmp_path: Path) -> None:
    run = (
        "import sys, time, pathlib\n"
        "from tests.servers.process import answers, free_port, run_until_ready\n"
        "port = free_port()\n"
        "server = [sys.executable, '-m', 'http.server', '-b', '127.0.0.1', str(port)]\n"
        "with run_until_ready(server, is_ready=lambda: answers(port), log=pathlib.Path(sys.argv[1])):\n"
        "    print(port, flush=True)\n"
        "    time.sleep(60)\n"
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", run, tmp_path / "log"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None
        port = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)

    deadline = time.monotonic() + 60
    while answers(port) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not answers(port)
