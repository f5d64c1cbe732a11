"""Starts a PostgreSQL server for the test run, and creates an empty database for each test that uses it."""

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

from tests.servers.memory import memory_folder
from tests.servers.process import free_port, installed_program, plain_user, run_until_ready, user_group


class PostgresFactory(Protocol):
    """Creates a database, empty or as a copy of the template, and returns its address."""

    def __call__(self, template: str = "template0") -> str: ...


SERVER_FOLDER = "COUNTERSIGN_TEST_POSTGRES"
"""The variable with the folder of `initdb` and `postgres` of another version (`tools/newest_postgres.py`)."""


class Cluster(NamedTuple):
    """A running server: the folder of its clients, its port and its data directory."""

    programs: Path
    port: int
    data: Path

    def sql(self, *statements: str, database: str = "postgres") -> str:
        """Run the statements as the superuser, each in its own transaction, and return their output.

        Raises:
            RuntimeError: a statement failed.
        """
        command = [self.programs / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.url(database)]
        for statement in statements:
            command += ["-c", statement]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise RuntimeError(result.stderr)
        return result.stdout

    def create(self, name: str, template: str = "template0") -> str:
        """Create a database, empty or as a copy of the template, and return its address. The template must have no
        connections."""
        # In memory, copying the files takes a third of the time of a copy through the log.
        strategy = "file_copy" if memory_folder() in self.data.parents else "wal_log"
        statement = f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY {strategy}"
        _administrator(self.url("postgres")).execute(statement.encode())
        return self.url(name)

    def drop(self, *names: str) -> None:
        """Delete these databases if they exist, and end their connections."""
        for name in names:
            _administrator(self.url("postgres")).execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())

    def url(self, database: str) -> str:
        """Return the address of a database of the server."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"


@cache
def _administrator(url: str) -> psycopg.Connection[tuple[object, ...]]:
    """Return the connection that creates and deletes databases. It is reused, because starting psql each time takes
    longer than the statement."""
    return psycopg.connect(url, autocommit=True)


def _folders() -> list[Path]:
    program_folders = Path("/usr/lib/postgresql").glob("[0-9]*/bin")
    return sorted(program_folders, key=lambda folder: int(folder.parent.name), reverse=True)


def _programs() -> Path:
    folder = installed_program("initdb", "postgresql", _folders()).resolve().parent
    command = [folder / "postgres", "--version"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    version = re.search(r"(\d+)", output)
    if version is None or int(version[1]) < 15:
        pytest.skip(f"PostgreSQL 15 or newer is needed, but {output.strip()!r} is installed")
    return folder


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[Cluster]:
    """Run PostgreSQL 15 or newer on a loopback port, with fsync as in production."""
    programs = _programs()
    server_programs = Path(os.environ.get(SERVER_FOLDER) or programs)
    user = plain_user()
    folder = Path(tempfile.mkdtemp(prefix="countersign-postgres-", dir=memory_folder()))
    try:
        if user:
            shutil.chown(folder, user, user_group(user))
        data = folder / "data"
        options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run(
            [server_programs / "initdb", "-D", data, *options],
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
        command: list[str | Path] = [server_programs / "postgres", "-D", data]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        ready_command = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(cluster.port)]
        with run_until_ready(
            command,
            is_ready=lambda: subprocess.run(ready_command, check=False).returncode == 0,
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
    """Return a function that creates a database and returns its address. The databases are deleted after the test."""
    names: list[str] = []

    def create(template: str = "template0") -> str:
        name = f"test_{os.getpid()}_{next(_numbers)}"
        names.append(name)
        return postgres_cluster.create(name, template)

    yield create
    postgres_cluster.drop(*names)


@pytest.fixture
def postgres_url(new_postgres_url: PostgresFactory) -> str:
    """Return the address of an empty PostgreSQL database for this test."""
    return new_postgres_url()
