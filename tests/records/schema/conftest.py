"""A database of each engine, and functions to declare, install and fill models."""

from collections.abc import AsyncIterator, Mapping
from itertools import count
from types import new_class
from typing import Any

import pytest

from countersign.backup.schema_description import describe_schema
from countersign.declare import Field, Model, Module, Workflow
from countersign.declare.registry import Registry
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Database, Row, Value
from countersign.kernel.security.masterkey import Key, MasterKey
from countersign.records.schema import install

MASTER = MasterKey((Key("test", b"m" * 32),))
_numbers = count(1)


async def open_schema(url: str) -> Database:
    """Open the records schema at the address. The caller must close it."""
    return await open_database(url, schema="records", pool=3, reserve_bytes=0)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An open, empty database."""
    database = await open_schema(database_url)
    yield database
    await database.close()


def model(name: str, /, **fields: Field | Workflow) -> type[Model]:
    """Return a model with this name and these fields."""
    return new_class(name.title(), (Model,), {"name": name}, lambda members: members.update(fields))


def registry(*models: type[Model], version: str = "1") -> Registry:
    """Return a registry with one module that has these models."""
    return Registry([Module("trial", version=version, models=models)])


async def upgrade(database: Database, *models: type[Model], destroy: bool = False) -> list[str]:
    """Upgrade to these models, and return descriptions of the steps."""
    return [step.sentence for step in await install.upgrade(database, registry(*models), MASTER, destroy=destroy)]


async def plan_steps(database: Database, *models: type[Model]) -> install.UpgradePlan:
    """Return the steps of an upgrade to these models."""
    return await install.plan_upgrade(database, registry(*models))


async def put(database: Database, table: str, /, **values: Value) -> str:
    """Insert a row as it is stored in the table, and return its id."""
    record_id = f"{next(_numbers):024x}"
    await put_many(database, table, [{"id": record_id, **values}])
    return record_id


async def put_many(database: Database, table: str, rows: list[Mapping[str, Value]]) -> None:
    """Insert rows with the same columns."""
    columns = ["revision", "changed", *rows[0]]
    names = ", ".join(f'"{name}"' for name in columns)
    placeholders = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    async with database.transaction() as transaction:
        statement = f'INSERT INTO "{table}" ({names}) VALUES ({placeholders})'
        await transaction.run_many(statement, [(1, 0, *row.values()) for row in rows])


async def all_of(database: Database, table: str, *columns: str) -> list[Row]:
    """Return these columns of every row, in the order of the ids."""
    names = ", ".join(f'"{name}"' for name in columns)
    return [tuple(row) for row in await database.fetch(f'SELECT {names} FROM "{table}" ORDER BY id')]


async def column_of(database: Database, table: str, column: str) -> list[Any]:
    """Return one column of every row, in the order of the ids."""
    return [row[0] for row in await all_of(database, table, column)]


async def shape(database: Database) -> str:
    """Return the whole schema as text, so that two schemas can be compared."""
    return await describe_schema(database)
