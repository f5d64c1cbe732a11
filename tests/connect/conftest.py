"""Databases with the schemas of this folder, and the drafts of module texts for them."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from countersign.connect import draft, postgres
from countersign.connect.draft import Draft
from countersign.connect.schema import Database
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

    async def read() -> tuple[Database, dict[object, object]]:
        database = await postgres.read(url, [])
        return database, dict(await postgres.samples(url, database.relations, sample) if sample else {})

    database, samples = asyncio.run(read())
    return draft.draft(database, samples, name=name, origin=ORIGIN, tables=tables, reserved=RESERVED)
