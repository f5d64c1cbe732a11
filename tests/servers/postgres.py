"""A private PostgreSQL for the run, with an empty database for each test that asks."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from tests.servers.process import free_port, installed, plain_user, serving, user_group

MEMORY_BYTES = 4 << 30


class PostgresFactory(Protocol):
    """Makes one more database, empty or like the template, and gives its address."""

    def __call__(self, template: str = "template0") -> str: ...


class Cluster(NamedTuple):
    """A running server: where its programs are, its port, its data directory."""

    programs: Path
    port: int
    data: Path

    def sql(self, *statements: str) -> str:
        """Run the statements, each in its own transaction, as the superuser; what they print.

        Raises:
            RuntimeError: one was refused.
        """
        command = [self.programs / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.url("postgres")]
        for statement in statements:
            command += ["-c", statement]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout

    def url(self, database: str) -> str:
        """The address of one of its databases."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"


def _folders() -> list[Path]:
    found = Path("/usr/lib/postgresql").glob("[0-9]*/bin")
    return sorted(found, key=lambda folder: int(folder.parent.name), reverse=True)


def _programs() -> Path:
    folder = installed("initdb", "postgresql", _folders()).resolve().parent
    asked = [folder / "postgres", "--version"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    version = re.search(r"(\d+)", said)
    if version is None or int(version[1]) < 15:
        pytest.skip(f"PostgreSQL 15 or newer is needed, and {said.strip()!r} was found")
    return folder


def _quick_folder() -> Path | None:
    """A folder in memory where there is room: thousands of databases are made and dropped in half the time, and
    nothing of the settings is another."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < MEMORY_BYTES:
        return None
    return memory


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[Cluster]:
    """A PostgreSQL 15 or newer of this run alone, on a loopback port, durable as in production (fsync)."""
    programs = _programs()
    user = plain_user()
    folder = Path(tempfile.mkdtemp(prefix="countersign-postgres-", dir=_quick_folder()))
    try:
        if user:
            shutil.chown(folder, user, user_group(user))
        data = folder / "data"
        choices = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run(
            [programs / "initdb", "-D", data, *choices],
            user=user,
            group=user_group(user) if user else None,
            extra_groups=[] if user else None,
            cwd=folder,
            check=True,
            capture_output=True,
        )
        cluster = Cluster(programs, free_port(), data)
        settings = {
            "port": cluster.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "on",
            "max_connections": 200,
            "shared_buffers": "32MB",
            "dynamic_shared_memory_type": "mmap",
            "shared_memory_type": "mmap",
            "autovacuum": "off",
            "max_wal_size": "256MB",
        }
        command: list[str | Path] = [programs / "postgres", "-D", data]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        ready = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(cluster.port)]
        with serving(
            command,
            is_ready=lambda: subprocess.run(ready, check=False).returncode == 0,
            log=folder / "log",
            user=user,
            stop=signal.SIGINT,
        ):
            yield cluster
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_numbers = count(1)


@pytest.fixture
def new_postgres_url(postgres_cluster: Cluster) -> Iterator[PostgresFactory]:
    """A function that makes one more database and gives its address; all are gone after the test."""
    made: list[str] = []

    def create(template: str = "template0") -> str:
        name = f"test_{os.getpid()}_{next(_numbers)}"
        postgres_cluster.sql(f"CREATE DATABASE {name} TEMPLATE {template}")
        made.append(name)
        return postgres_cluster.url(name)

    yield create
    if made:
        postgres_cluster.sql(*(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)" for name in made))


@pytest.fixture
def postgres_url(new_postgres_url: PostgresFactory) -> str:
    """The address of an empty PostgreSQL database of the test's own."""
    return new_postgres_url()
