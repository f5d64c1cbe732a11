"""`countersign connect check` names the tables that are not connected and can prevent deletions."""

import asyncio

import psycopg

from countersign.cli.admin import connect_deletions
from countersign.connect import postgres
from countersign.declare import Model, Ref, Table, Text
from countersign.declare.registry import Registry
from tests.declare.sample_modules import BASE, nursery

TABLES = """
CREATE TABLE plant (id int PRIMARY KEY, title text);
CREATE TABLE label (id int PRIMARY KEY, title text, plant int REFERENCES plant ON DELETE CASCADE);
CREATE TABLE visit (id int PRIMARY KEY, title text, plant int REFERENCES plant);
CREATE TABLE photo (plant int REFERENCES plant ON DELETE SET NULL, other int REFERENCES plant);
CREATE TABLE bed (id int PRIMARY KEY, title text);
CREATE TABLE tree () INHERITS (bed);
"""


class Plant(Model, table=Table("plant", key="id", writable=True, deletes=True)):
    """A plant."""

    title = Text()


class Label(Model, table=Table("label", key="id", writable=True, deletes=True)):
    """A label of a plant, which goes with it."""

    title = Text()
    plant = Ref("plant", columns="plant")


class Bed(Model, table=Table("bed", key="id", writable=True, deletes=True)):
    """A bed, of which other tables inherit."""

    title = Text()


class Marked(Model, name="marked", table=Table("plant", key="id", writable=True, deletes=True, deleted="gone")):
    """A plant that stays in the table."""

    title = Text()


def found(url: str, *models: type[Model]) -> list[tuple[str, str]]:
    """Return what can prevent deletions of these models, and the remedies."""
    declared = Registry([BASE, nursery(*models)]).models

    async def read() -> list[tuple[str, str]]:
        tables = {name: each for name, each in declared.items() if each.table is not None}
        database = await postgres.read(url, [])
        return [(each.text, each.remedy) for each in await connect_deletions.obstacles(url, tables, database)]

    return asyncio.run(read())


def test_tables_that_are_not_connected_and_prevent_deletions_are_named(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(TABLES.encode())

    other = "or delete such records with another application"
    assert found(postgres_url, Plant, Label) == [
        (
            "public.photo is not connected, and could lose rows or values with a record, so all deletions are refused",
            f"declare public.photo with a ref to plant, {other}",
        ),
        (
            "public.visit is not connected, and its rows prevent the deletion of a record that they refer to",
            f"declare public.visit with a ref to plant, {other}",
        ),
    ]
    assert [text for text, _ in found(postgres_url, Bed)] == [
        "bed.delete is refused: it is a view, or other tables inherit from its table"
    ]
    assert found(postgres_url, Marked) == []
