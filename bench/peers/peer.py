"""The common parts of all peers: their location, the same leads as rows, the command of their server, and their
requests."""

import csv
import http.client
import socket
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import records_seed
from processes import Cluster, Cores, Worker, pin_prefix

STAGE, ORDER, LIMIT = "new", "expected_revenue_minor", 100
COLUMNS = ("id", *records_seed.values_of(0, ""))
# What ours shows to the agent that asks it; nobody shows more.
SHOWN = [
    "id", "title", "stage", "expected_revenue_minor", "contact_name", "contact_email", "expected_close", "notes",
]  # fmt: skip

# Measured with 1, 4 and 32 threads, with the sync worker and under uvicorn: no other setting does more.
THREADS = 4

Row = Sequence[str | int | None]


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a peer: `database` is sqlite or postgres, and `leads` the number of its leads."""

    database: str
    folder: Path
    cluster: Cluster | None
    cores: Cores
    leads: int


@dataclass(frozen=True, slots=True)
class Page:
    """The titles of a page in their order, and how many match in all."""

    titles: list[str]
    total: int


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer that serves: its requests as raw HTTP, and how its answers are read."""

    worker: Worker
    page: bytes
    gets: list[bytes]
    page_of: Callable[[bytes], Page]
    title_of: Callable[[bytes], str]


Serving = Callable[[Place, Sequence[int]], AbstractContextManager[Peer]]
"""Installs, fills and serves a peer. The numbers are those of the leads to get. Raises RuntimeError if the peer cannot
be served."""


def gunicorn_command(python: str | Path, location: Place, port: int) -> list[str | Path]:
    """Return the command that serves the WSGI application in its next argument, with one worker on the worker's
    core."""
    command: list[str | Path] = [*pin_prefix(location.cores.worker), python, "-m", "gunicorn"]
    command += ["--bind", f"127.0.0.1:{port}", "--workers", "1", "--worker-class", "gthread"]
    return [*command, "--threads", str(THREADS), "--keep-alive", "60", "--log-level", "warning"]


def lead_id(number: int) -> int:
    """Return the id of a lead at the peers, by its number."""
    return number + 1


def rows(leads: int, owner: str | int) -> Iterator[list[str | int | None]]:
    """Yield the leads by COLUMNS, each of this owner, by the id that the peer knows them by."""
    for number in range(leads):
        yield [lead_id(number), *records_seed.values_of(number, str(owner)).values()]


def database_of(location: Place, name: str) -> str:
    """Return the URL of a new empty database, or of a file that does not exist yet."""
    if location.database == "sqlite":
        return f"sqlite:///{location.folder}/{name}.sqlite"
    assert location.cluster is not None
    location.cluster.sql(f"CREATE DATABASE {name} TEMPLATE template0")
    return location.cluster.url(name)


def fill_table(location: Place, url: str, table: str, columns: Sequence[str], filling: Iterator[Row]) -> None:
    """Put the rows into a peer's table, and have the database gather its statistics."""
    column_list = ", ".join(columns)
    if location.database == "sqlite":
        marks = ", ".join("?" * len(columns))
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.executemany(f"INSERT INTO {table} ({column_list}) VALUES ({marks})", filling)
        connection.commit()
        connection.execute("ANALYZE")
        connection.close()
        return
    assert location.cluster is not None
    file = location.folder / f"{table}.csv"
    with file.open("w", newline="", encoding="utf-8") as output:
        csv.writer(output).writerows(filling)
    location.cluster.sql(f"\\copy {table} ({column_list}) FROM '{file}' WITH (FORMAT csv)", url)
    location.cluster.sql("VACUUM ANALYZE", url)
    file.unlink()


def send_raw(worker: Worker, request: bytes) -> bytes:
    """Return the body that the worker answers a raw request with.

    Raises:
        ValueError: the peer answers with another status than 200.
    """
    with socket.create_connection(("127.0.0.1", worker.port), timeout=60) as connection:
        connection.sendall(request)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        body = answer.read()
    if answer.status != 200:
        raise ValueError(f"{answer.status} {body[:2000]!r} to {request[:200]!r}")
    return body
