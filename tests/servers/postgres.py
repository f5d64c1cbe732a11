"""A private PostgreSQL for the run, with an empty database for each test that asks."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import NamedTuple, Protocol

import psycopg
import pytest

from tests.servers.memory import quick_folder
from tests.servers.process import free_port, installed, plain_user, serving, user_group


class PostgresFactory(Protocol):
    """Makes one more database, empty or like the template, and gives its address."""

    def __call__(self, template: str = "template0") -> str: ...


class Cluster(NamedTuple):
    """A running server: where its programs are, its port, its data directory."""

    programs: Path
    port: int
    data: Path

    def sql(self, *statements: str, database: str = "postgres") -> str:
        """Run the statements, each in its own transaction, as the superuser; what they print.

        Raises:
            RuntimeError: one was refused.
        """
        command = [self.programs / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.url(database)]
        for statement in statements:
            command += ["-c", statement]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout

    def create(self, name: str, template: str = "template0") -> str:
        """Make a database, empty or like the template, which nobody may be connected to; its address."""
        # Copying a folder in memory costs a third of copying it through the log.
        way = "file_copy" if quick_folder() in self.data.parents else "wal_log"
        statement = f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY {way}"
        _administrator(self.url("postgres")).execute(statement.encode())
        return self.url(name)

    def drop(self, *names: str) -> None:
        """Remove the databases that are there, whoever is connected to them."""
        for name in names:
            _administrator(self.url("postgres")).execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())

    def url(self, database: str) -> str:
        """The address of one of its databases."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"


@cache
def _administrator(url: str) -> psycopg.Connection[tuple[object, ...]]:
    """The connection that makes and drops databases, held: a psql for each takes longer than the work."""
    return psycopg.connect(url, autocommit=True)


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


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[Cluster]:
    """A PostgreSQL 15 or newer of this run alone, on a loopback port, durable as in production (fsync)."""
    programs = _programs()
    user = plain_user()
    folder = Path(tempfile.mkdtemp(prefix="countersign-postgres-", dir=quick_folder()))
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
            _administrator(cluster.url("postgres")).close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_numbers = count(1)


@pytest.fixture
def new_postgres_url(postgres_cluster: Cluster) -> Iterator[PostgresFactory]:
    """A function that makes one more database and gives its address; all are gone after the test."""
    made: list[str] = []

    def create(template: str = "template0") -> str:
        name = f"test_{os.getpid()}_{next(_numbers)}"
        made.append(name)
        return postgres_cluster.create(name, template)

    yield create
    postgres_cluster.drop(*made)


@pytest.fixture
def postgres_url(new_postgres_url: PostgresFactory) -> str:
    """The address of an empty PostgreSQL database of the test's own."""
    return new_postgres_url()
