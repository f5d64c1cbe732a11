"""Databases that were not known when this was written: agents see no personal text in clear, tables with a key work
without an edit of the module text, and no answer is an error of the service.

COUNTERSIGN_TEST_SCHEMAS names a folder with SQL dumps of PostgreSQL (`*.sql`) and SQLite files (`*.sqlite`, `*.db`).
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from countersign.connect import draft, postgres, sqlite
from countersign.declare import Declared, Text, text
from countersign.declare.registry import Registry
from countersign.records import base_models
from tests.adopted.shop import Shop, open_shop
from tests.servers.postgres import Cluster, PostgresFactory

FOLDER = os.environ.get("COUNTERSIGN_TEST_SCHEMAS", "")
OWN = Path(__file__).parents[1] / "connect/schemas"
RESERVED = tuple(model.declared.name for model in base_models.MODULE.models)
ROWS = 50
WIDE = 150


def given_files() -> list[Path]:
    """Return the dumps and files of the folder that the environment names."""
    if not FOLDER:
        return []
    return sorted(each for each in Path(FOLDER).iterdir() if each.suffix in (".sql", ".sqlite", ".db"))


FILES = [*sorted(OWN.glob("*.sql")), *given_files()]


@dataclass
class Drafted:
    """The registry with the module text that `countersign connect` writes for a database. `keyed` is the number of
    tables with a key."""

    registry: Registry
    keyed: int

    @property
    def models(self) -> Mapping[str, Declared]:
        """Return the models of the tables."""
        return {name: model for name, model in self.registry.models.items() if model.table is not None}


async def drafted(url: str) -> Drafted:
    """Read the schema of a database, and draft its module text."""
    if url.startswith("sqlite"):
        database = await sqlite.read(url)
        samples = await sqlite.samples(url, database.relations, 200)
    else:
        database = await postgres.read(url, [])
        samples = await postgres.samples(url, database.relations, 200)
    made = draft.draft(database, samples, name="trial", origin="db.example.com", tables=(), reserved=RESERVED)
    registry = Registry([base_models.MODULE, text.build(text.read(text.write(made.text)), "trial.py")])
    return Drafted(registry, sum(1 for each in draft.adopted(database) if each.keys))


def texts_in_clear(models: Mapping[str, Declared]) -> list[str]:
    """Return the text fields that agents would read in clear."""
    return [
        f"{name}.{field.name}"
        for name, model in models.items()
        for field in model.fields.values()
        if isinstance(field, Text) and not field.personal
    ]


async def statuses_of(shop: Shop, models: Mapping[str, Declared]) -> dict[str, list[int]]:
    """Map each model to the statuses of the answers to an agent that reads it."""
    headers = {"Authorization": f"Bearer {await shop.token_of(await shop.inside.member())}"}

    async def status(model: str, command: str, body: object) -> int:
        return (await shop.http.post(f"/api/{model}/{command}", json=body, headers=headers)).status_code

    statuses: dict[str, list[int]] = {}
    for name in models:
        listed = await shop.http.post(f"/api/{name}/list", json={"limit": ROWS}, headers=headers)
        statuses[name] = [listed.status_code, await status(name, "search", {"limit": 3})]
        statuses[name].append(await status(name, "export", {"limit": ROWS}))
        for record in listed.json().get("value", [])[:2]:
            statuses[name].append(await status(name, "get", {"id": record["id"]}))
            statuses[name].append(await status(name, "related", {"id": record["id"]}))
    return statuses


def created(file: Path, cluster: Cluster, new_url: PostgresFactory, folder: Path) -> str:
    """Return the address of a new database with the content of a dump or file."""
    if file.suffix != ".sql":
        return f"sqlite:///{shutil.copyfile(file, folder / file.name)}"
    url = new_url()
    # A dump may grant rights to roles that do not exist here, so an error does not end it.
    subprocess.run([cluster.programs / "psql", "-Xq", "-d", url, "-f", file], capture_output=True, check=True)
    return url


@pytest.mark.parametrize("file", FILES, ids=[f"{each.parent.name}/{each.name}" for each in FILES])
def test_a_database_is_served_without_an_edit_and_without_personal_text_in_clear(
    file: Path, postgres_cluster: Cluster, new_postgres_url: PostgresFactory, tmp_path: Path
) -> None:
    url = created(file, postgres_cluster, new_postgres_url, tmp_path)
    module_draft = asyncio.run(drafted(url))

    async def served() -> dict[str, list[int]]:
        async with open_shop(url, tmp_path, module_draft.registry) as shop:
            return await statuses_of(shop, module_draft.models)

    statuses = asyncio.run(served()) if module_draft.models else {}

    assert texts_in_clear(module_draft.models) == []
    assert {name: each for name, each in statuses.items() if set(each) != {200}} == {}
    assert len(module_draft.models) >= 0.9 * module_draft.keyed


def test_the_schemas_of_others_are_examined() -> None:
    if not FOLDER:
        pytest.skip("set COUNTERSIGN_TEST_SCHEMAS to a folder of SQL dumps of PostgreSQL and SQLite files")
    assert given_files(), f"{FOLDER} has no file that ends in .sql, .sqlite or .db"


def test_a_generated_database_of_many_tables_is_served(postgres_url: str, tmp_path: Path) -> None:
    kinds = ("varchar(40)", "text", "integer", "numeric(10, 2)", "date", "timestamptz", "boolean", "jsonb", "uuid")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for number in range(WIDE):
            columns = [f"field_{place} {kinds[(number + place) % len(kinds)]}" for place in range(number % 12)]
            parents = [f"parent_id bigint REFERENCES thing_{number // 2}"] if number else []
            listed = ", ".join(["id bigint PRIMARY KEY", *parents, *columns])
            connection.execute(f"CREATE TABLE thing_{number} ({listed})".encode())
            connection.execute(f"INSERT INTO thing_{number} (id) VALUES ({number})".encode())
    module_draft = asyncio.run(drafted(postgres_url))

    async def served() -> dict[str, list[int]]:
        async with open_shop(postgres_url, tmp_path, module_draft.registry) as shop:
            return await statuses_of(shop, dict(list(module_draft.models.items())[::10]))

    statuses = asyncio.run(served())

    # A table whose columns are all keys or refs has no field of its own, so it may be left out.
    assert len(module_draft.models) >= 0.9 * WIDE
    assert {status for each in statuses.values() for status in each} == {200}
