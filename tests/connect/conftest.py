"""Databases with the schemas of this folder, and the drafts of module texts for them."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from countersign.connect import draft, postgres, sqlite
from countersign.connect.draft import Draft
from countersign.connect.schema import Database, Samples
from countersign.records import base_models
from tests.servers.postgres import Cluster, PostgresFactory

SCHEMAS = Path(__file__).parent / "schemas"
RESERVED = tuple(model.declared.name for model in base_models.MODULE.models)
ORIGIN = "postgresql://db.example.com/shop"

DatabaseFactory = Callable[[str], str]
"""Creates a database with the schema of this name, and returns its address."""


@pytest.fixture
def schema_url(new_postgres_url: PostgresFactory, postgres_cluster: Cluster) -> DatabaseFactory:
    """Return a function that creates a PostgreSQL database with a schema of the folder `schemas`."""

    def create(name: str) -> str:
        url = new_postgres_url()
        text = (SCHEMAS / f"{name}.sql").read_text()
        postgres_cluster.sql(text, database=url.rpartition("/")[2])
        return url

    return create


def drafted(url: str, name: str, *, sample: int = 200, tables: tuple[str, ...] = ()) -> Draft:
    """Return the draft for a PostgreSQL database."""

    async def read() -> tuple[Database, Samples]:
        database = await postgres.read(url, [])
        return database, await postgres.samples(url, database.relations, sample) if sample else {}

    database, samples = asyncio.run(read())
    return draft.draft(database, samples, name=name, origin=ORIGIN, tables=tables, reserved=RESERVED)


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Path:
    """Return the path of a SQLite file with the schema `sqlite_shop.sql`."""
    found = tmp_path / "shop.db"
    with closing(sqlite3.connect(found)) as connection:
        connection.executescript((SCHEMAS.parent / "sqlite_shop.sql").read_text())
    return found


def drafted_sqlite(path: Path, sample: int = 200) -> Draft:
    """Return the draft for a SQLite file."""
    url = f"sqlite:///{path}"

    async def read() -> tuple[Database, Samples]:
        database = await sqlite.read(url)
        return database, await sqlite.samples(url, database.relations, sample) if sample else {}

    database, samples = asyncio.run(read())
    return draft.draft(database, samples, name="shop", origin="the SQLite file shop.db")


class ChangingDatabase:
    """A database in one engine, which a test changes."""

    def __init__(self, url: str, change: Callable[[str], object]) -> None:
        self.url = url
        self.change = change
        self.is_sqlite = url.startswith("sqlite")

    def read(self) -> Database:
        """Return the schema."""
        return asyncio.run(sqlite.read(self.url) if self.is_sqlite else postgres.read(self.url, []))

    def place(self, table: str) -> str:
        """Return the table with its schema, if the engine has schemas."""
        return table if self.is_sqlite else f"public.{table}"


@pytest.fixture(params=["sqlite", "postgres"])
def changing_database(request: pytest.FixtureRequest, tmp_path: Path) -> ChangingDatabase:
    """Return a database without tables, in each engine."""
    if request.param == "sqlite":
        path = tmp_path / "changing.db"

        def run(statement: str) -> None:
            with closing(sqlite3.connect(path)) as connection:
                connection.executescript(statement)

        run("PRAGMA user_version = 1")
        return ChangingDatabase(f"sqlite:///{path}", run)
    cluster: Cluster = request.getfixturevalue("postgres_cluster")
    url: str = request.getfixturevalue("postgres_url")
    return ChangingDatabase(url, lambda statement: cluster.sql(statement, database=url.rpartition("/")[2]))
