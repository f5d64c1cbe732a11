"""Databases with the schemas of this folder, and the drafts of module texts for them."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from countersign.connect import draft, fit, postgres, schema_changes, sqlite
from countersign.connect.draft import Draft
from countersign.connect.schema import Database, Samples
from countersign.connect.schema_changes import ModelChange
from countersign.declare import Declared, text
from countersign.declare.registry import Registry
from countersign.declare.text import ModuleText
from countersign.records import base_models
from tests.servers.postgres import Cluster, PostgresFactory

SCHEMAS = Path(__file__).parent / "schemas"
RESERVED = tuple(model.declared.name for model in base_models.MODULE.models)
ORIGIN = "postgresql://db.example.com/shop"
TABLES = """
CREATE TABLE person (
    id INTEGER PRIMARY KEY, name VARCHAR(45) NOT NULL, email VARCHAR(50), quantity INTEGER, due DATE, notes TEXT
);
CREATE TABLE visit (
    number INTEGER PRIMARY KEY, guest INTEGER REFERENCES person (id), title VARCHAR(20), password VARCHAR(20)
);
CREATE TABLE shelf (id INTEGER PRIMARY KEY, title VARCHAR(20));
CREATE TABLE log (message TEXT);
"""
EDITS = (
    ('email = Text(max_length=50, personal="EMAIL")', 'mail = Text(column="email", label="Mail", personal="EMAIL")'),
    ("# quantity: left out: look: a value in a table about people", "quantity = Number()"),
    ("class Visit(Model, ", 'class Call(Model, name="call", '),
    ("(Person, Shelf, Visit)", "(Person, Shelf, Call)"),
    ('Grant(model="visit"', 'Grant(model="call"'),
    ("module = Module(", "# The module of the shop.\nmodule = Module("),
)

UNKNOWN = "no column has this name now, and its column may have another name"

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
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((SCHEMAS.parent / "sqlite_shop.sql").read_text())
    return path


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


def models_of(module: ModuleText) -> dict[str, Declared]:
    """Return the models of a module text, which is written and read again."""
    assert text.read(text.write(module)) == module
    registry = Registry((base_models.MODULE, text.build(module, "shop.py")))
    return {name: each for name, each in registry.models.items() if each.table is not None}


class Shop:
    """A database, and the module text for it that a person has edited."""

    def __init__(self, database: ChangingDatabase) -> None:
        self.database = database
        database.change(TABLES)
        drafted = draft.draft(database.read(), {}, name="shop", origin="a test")
        self.written = text.write(drafted.text)
        self.edit(*EDITS)

    def edit(self, *edits: tuple[str, str]) -> None:
        """Replace texts of the module text, each of which it must contain."""
        for old, new in edits:
            assert old in self.written, self.written
            self.written = self.written.replace(old, new)

    def changes(self) -> list[ModelChange]:
        """Return the changes since the text was written."""
        module = text.read(self.written)
        return schema_changes.changes(module, models_of(module), self.database.read(), {})

    def lines(self) -> list[str]:
        """Return the changes in words."""
        return [f"{each.model}: {line}" for each in self.changes() for line in each.lines]

    def accept(self) -> None:
        """Take all changes over, after which the module text fits its database and shows no change."""
        module = schema_changes.accepted(text.read(self.written), self.changes())
        models = models_of(module)
        self.written = text.write(module)
        assert fit.misfits(models, self.database.read()) == []
        assert self.lines() == []

    def field(self, model: str, name: str) -> str:
        """Return the line of a field, with its comment."""
        lines = [line.strip() for line in self.written.splitlines()]
        return next(line for line in lines[lines.index(f'"""A row of {model}."""') :] if line.startswith(f"{name} = "))


@pytest.fixture
def shop(changing_database: ChangingDatabase) -> Shop:
    """Return a shop, in each engine."""
    return Shop(changing_database)
