"""Reads of large connected tables without an index end with the deadline, and the answer says what to filter on."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import psycopg
import pytest

from countersign.declare import Grant, Model, Module, Number, Select, Table, Text
from countersign.declare.registry import Registry
from countersign.records import base_models
from countersign.records.commands.errors import BadInput
from tests.adopted.shop import Shop, make_postgres, make_sqlite, open_shop

ROWS = 3_000_000
DEADLINE_S = 0.4
"""Less than a scan of all rows takes on a fast machine, and more than the start takes on a busy one."""
LONG_S = 60
POSTGRES = """
CREATE UNLOGGED TABLE item (id integer PRIMARY KEY NOT NULL, title text, code integer, hidden integer, kind text);
INSERT INTO item SELECT n, 'Thing number ' || n, n, n, 'a' FROM generate_series(1, {rows}) AS n;
CREATE INDEX ON item (code);
CREATE INDEX ON item (hidden);
GRANT SELECT ON item TO {role};
"""
SQLITE = (
    "CREATE TABLE item (id integer PRIMARY KEY NOT NULL, title text, code integer, hidden integer, kind text)",
    "INSERT INTO item WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {rows}) "
    "SELECT n, 'Thing number ' || n, n, n, 'a' FROM s",
    "CREATE INDEX item_by_code ON item (code)",
    "CREATE INDEX item_by_hidden ON item (hidden)",
)


class Item(Model, table=Table("item", key="id", rows_about=ROWS)):
    """An item."""

    title = Text(sortable=False)
    code = Number()
    hidden = Number()
    kind = Select("a", "b", unknown="other")


REGISTRY = Registry(
    [base_models.MODULE, Module("large", version="1.0.0", models=(Item,), search_path=("public",))]
)


@asynccontextmanager
async def opened_shop(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, rows: int, deadline_s: float
) -> AsyncIterator[Shop]:
    """Open the service over a table with this number of rows."""
    if database == "sqlite":
        url = make_sqlite(tmp_path / "theirs.sqlite")
        with closing(sqlite3.connect(tmp_path / "theirs.sqlite", isolation_level=None)) as connection:
            for statement in SQLITE:
                connection.execute(statement.format(rows=rows))
    else:
        address = request.getfixturevalue("postgres_url")
        url = make_postgres(request.getfixturevalue("postgres_cluster"), address)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(POSTGRES.format(role=f"reader_{url.rpartition('/')[2]}", rows=rows).encode())
    async with open_shop(url, tmp_path, REGISTRY, read_deadline_s=deadline_s) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgres"])
async def slow_shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a table that takes longer to read than a read may take."""
    async with opened_shop(request, tmp_path, request.param, ROWS, DEADLINE_S) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgres"])
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a table with 1,000 rows."""
    async with opened_shop(request, tmp_path, request.param, 1_000, LONG_S) as opened:
        yield opened


async def test_a_read_without_an_index_ends_with_the_deadline_and_names_indexed_fields(slow_shop: Shop) -> None:
    grant = Grant(model="item", commands="*", clear=("title", "code", "kind"))
    person = await slow_shop.inside.person(grant)
    condition = {"field": "title", "op": "contains", "value": "no such thing"}

    for command, body in (
        ("list", {}),
        ("list", {"limit": 5}),
        ("search", {"limit": 5}),
        ("count_by", {"field": "kind"}),
        ("export", {}),
    ):
        with pytest.raises(BadInput) as refused:
            await slow_shop.inside.value(person, "item", command, filter=[condition], **body)
        assert refused.value.detail == "this filter takes too long on item: filter on code as well", command


async def test_a_filter_on_an_indexed_field_as_well_answers(shop: Shop) -> None:
    person = await shop.inside.person(Grant(model="item", commands="*", clear=("title", "code")))
    conditions = [
        {"field": "title", "op": "contains", "value": "NUMBER 77"},
        {"field": "code", "op": "eq", "value": 777},
    ]

    found = await shop.inside.value(person, "item", "search", filter=conditions)

    assert [each["code"] for each in found["rows"]] == [777]
