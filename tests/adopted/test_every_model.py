"""Every command on every model of the module texts that `countersign connect` writes: each answer is a result or names
what cannot be, and equals the rows of the database."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from countersign.connect import draft, postgres
from countersign.declare import RANGES, Declared, Field, text
from countersign.declare.registry import Registry
from countersign.records import base_models
from countersign.records.commands.errors import BadInput
from tests.adopted.shop import Shop, open_shop
from tests.servers.postgres import Cluster

SCHEMAS = Path(__file__).parents[1] / "connect/schemas"
RESERVED = tuple(model.declared.name for model in base_models.MODULE.models)

_REQUIRED = """
SELECT format('%I.%I', n.nspname, c.relname), a.attname, t.typname
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname NOT IN ('pg_catalog', 'information_schema')
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND a.attnotnull AND NOT a.atthasdef
    AND a.attidentity = '' AND a.attgenerated = ''
JOIN pg_type AS d ON d.oid = a.atttypid
JOIN pg_type AS t ON t.oid = CASE WHEN d.typtype = 'd' THEN d.typbasetype ELSE d.oid END
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
"""
_VALUES: Mapping[str, str] = {
    "uuid": "'00000000-0000-0000-0000-00000000000a'", "date": "'2026-05-05'", "timestamptz": "'2026-05-05T10:00:00Z'",
    "bytea": "'\\x0a'", "bool": "true", "mood": "'good'", "order_state": "'new'",
}  # fmt: skip


def fill(url: str) -> None:
    """Add a row to each table that takes one."""
    with psycopg.connect(url, autocommit=True) as connection:
        required: dict[str, dict[str, str]] = {}
        for table, column, type_name in connection.execute(_REQUIRED.encode()).fetchall():
            number = "1" if type_name.startswith(("int", "numeric", "float")) else "'1'"
            name = '"' + str(column).replace('"', '""') + '"'
            required.setdefault(str(table), {})[name] = _VALUES.get(str(type_name), number)
        # A row may need a row of another table, so try twice.
        for table, values in [*required.items(), *required.items()]:
            statement = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(values.values())})"
            try:
                connection.execute(statement.encode())
            except psycopg.Error:
                continue


def connected(url: str) -> Registry:
    """Return the registry with the module that `countersign connect` writes for the database."""

    async def written() -> str:
        database = await postgres.read(url, [])
        samples = await postgres.samples(url, database.relations, 200)
        made = draft.draft(
            database, samples, name="trial", origin="postgresql://db.example.com/x", tables=(), reserved=RESERVED
        )
        return text.write(made.text)

    module = text.build(text.read(asyncio.run(written())), "trial.py")
    return Registry([base_models.MODULE, module])


def queries(field: Field, value: object) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield bodies of searches about a field: the name of what is asked, and the body."""
    for operator in sorted(field.operators):
        asked = operator == "is_null" or ([value] if operator == "in" else value)
        condition = {"field": field.name, "op": operator, "value": asked}
        if operator == "is_null" or value is not None:
            yield operator, {"filter": [condition]}
    for direction in ("asc", "desc"):
        yield direction, {"order": [{"field": field.name, "dir": direction}]}


@dataclass
class Examination:
    """One model of a shop, with the records that its list has."""

    shop: Shop
    model: Declared
    records: list[dict[str, Any]]

    async def run(self, command: str, **body: object) -> Any:
        """Run a command of an administrator."""
        return await self.shop.inside.value(self.shop.inside.administrator(), self.model.name, command, **body)

    async def examine(self) -> None:
        """Run every reading command."""
        agent = await self.shop.inside.agent("scout")
        masked: list[dict[str, Any]] = await self.shop.inside.value(agent, self.model.name, "list")
        assert [each["id"] for each in masked] == [each["id"] for each in self.records]
        assert (await self.run("search"))["total"] == len(self.records)
        for record in self.records:
            assert await self.run("get", id=record["id"]) == record
        for content_type in ("text/csv", "application/x-ndjson"):
            await self.run("export", content_type=content_type)
        for field in self.model.fields.values():
            await self.examine_field(field)

    async def examine_field(self, field: Field) -> None:
        """Run every filter and order on a field, and count by it."""
        value = next((each[field.name] for each in self.records if each[field.name] is not None), None)
        for asked, body in queries(field, value):
            if not field.sortable and asked in {*RANGES, "asc", "desc"}:
                with pytest.raises(BadInput, match="no index of the connected database"):
                    await self.run("search", **body)
            else:
                rows = (await self.run("search", **body))["rows"]
                self.compare(field, asked, value, [each["id"] for each in rows])
        if field.is_countable:
            groups = await self.run("count_by", field=field.name)
            assert sum(each["count"] for each in groups) == len(self.records)

    def compare(self, field: Field, asked: str, value: object, ids: list[str]) -> None:
        """Compare the rows of a search with the rows of the list."""
        place = (self.model.name, field.name, asked)
        if asked in ("eq", "in", "is_null"):
            wanted = None if asked == "is_null" else value
            assert ids == [each["id"] for each in self.records if each[field.name] == wanted], place
        if asked in ("asc", "desc"):
            assert sorted(ids) == sorted(each["id"] for each in self.records), place


@pytest.mark.parametrize("schema", sorted(each.stem for each in SCHEMAS.glob("*.sql")))
def test_every_command_on_every_model(
    schema: str, postgres_cluster: Cluster, postgres_url: str, tmp_path: Path
) -> None:
    postgres_cluster.sql((SCHEMAS / f"{schema}.sql").read_text(), database=postgres_url.rpartition("/")[2])
    fill(postgres_url)
    registry = connected(postgres_url)
    models = [each for each in registry.models.values() if each.table is not None]

    async def examine() -> int:
        count = 0
        async with open_shop(postgres_url, tmp_path, registry) as shop:
            for model in models:
                records = await shop.inside.value(shop.inside.administrator(), model.name, "list")
                await Examination(shop, model, records).examine()
                count += len(records)
        return count

    assert models
    assert asyncio.run(examine())
