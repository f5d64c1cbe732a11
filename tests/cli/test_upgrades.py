"""Databases of every earlier migration are migrated to the current version with all rows."""

import asyncio
import shutil
from pathlib import Path

import apsw
import httpx
import pytest

from countersign.backup import schema_validation, sqlite_snapshot
from countersign.cli.admin import open_records, open_store
from countersign.cli.admin.databases import SERVICES
from countersign.kernel.database import migrate
from countersign.kernel.database.migrate import in_dialect
from countersign.kernel.database.sqlite import open_sqlite
from countersign.records.schema import install
from countersign.settings import Settings
from countersign.store import lifespan
from tests.servers.countersign import served

PACKAGES = {"distribution": lifespan.MIGRATIONS, "records": install.MIGRATIONS}
EARLIER = [
    (service, number) for service, package in PACKAGES.items() for number in range(1, len(migrate.migrations(package)))
]
TABLES = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
INDEXES = "SELECT sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL"
OF_MIGRATIONS = ("schema_migration", "version")
"""The tables whose rows the migrations themselves write."""
MOVED = {"download_count": "daily_count", "seen_value": "pii_value"}
"""Tables that a migration drops, each with the table that has its rows since then."""
EIGHTH = 8
OF_THE_EIGHTH = "DELETE FROM catalog_facet WHERE facet LIKE 'access:%' OR facet LIKE 'channel:%'"

Held = dict[str, tuple[list[str], list[tuple[object, ...]]]]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory of the current version with both demonstrations."""
    data = tmp_path_factory.mktemp("today") / "data"
    with served(data, "--demo", service="both"):
        pass
    return data


def quoted_columns(names: list[str]) -> str:
    """Return a list of columns in SQL."""
    return ", ".join(f'"{name}"' for name in names)


def columns(database: apsw.Connection, table: str, schema: str = "main") -> list[str]:
    """Return the columns of a table, or an empty list when the table does not exist."""
    return [str(row[0]) for row in database.execute("SELECT name FROM pragma_table_info(?, ?)", (table, schema))]


def all_rows(database: apsw.Connection, known_rows: Held | None = None) -> Held:
    """Return the sorted rows of each table. They have the columns in `known_rows`, or all columns."""
    rows_by_table: Held = {}
    for table in [str(row[0]) for row in database.execute(TABLES)] if known_rows is None else known_rows:
        names = columns(database, table) if known_rows is None else known_rows[table][0]
        rows = database.execute(f'SELECT {quoted_columns(names)} FROM "{table}"').fetchall()
        rows_by_table[table] = names, sorted(rows, key=repr)
    return rows_by_table


async def of_then(service: str, number: int, path: Path) -> None:
    """Create an empty database with the first `number` migrations."""
    database = await open_sqlite(path, reserve_bytes=0)
    await migrate.upgrade(database, PACKAGES[service], leaving=len(migrate.migrations(PACKAGES[service])) - number)
    await database.close()


def copy_rows(path: Path, today: Path, number: int) -> None:
    """Copy the rows of the current database into a database of this earlier migration, for the tables and columns that
    it has. Tables of modules, which no migration creates, are copied whole."""
    database = apsw.Connection(str(path))
    database.execute("ATTACH ? AS today", (f"{today}",))
    table_statements = database.execute(TABLES.replace("sqlite_schema", "today.sqlite_schema")).fetchall()
    of_migrations = _made_by(PACKAGES[path.stem])
    for table, sql in table_statements:
        if table in OF_MIGRATIONS:
            continue
        if not columns(database, table) and table not in of_migrations:
            database.execute(str(sql))
            for (index,) in database.execute(INDEXES.replace("sqlite_schema", "today.sqlite_schema"), (table,)):
                database.execute(str(index))
        names = [name for name in columns(database, table) if name in columns(database, table, "today")]
        if names:
            database.execute(f'DELETE FROM "{table}"')
            database.execute(
                f'INSERT INTO "{table}" ({quoted_columns(names)}) SELECT {quoted_columns(names)} FROM today."{table}"'
            )
    _undo(database, path.stem, number)
    database.close()


def _undo(database: apsw.Connection, service: str, number: int) -> None:
    """Remove the rows that a later migration creates."""
    if service == "distribution" and number < EIGHTH:
        database.execute(OF_THE_EIGHTH)


def _made_by(package: str) -> set[str]:
    database = apsw.Connection(":memory:")
    for migration in migrate.migrations(package):
        database.execute(in_dialect(migration.text, "sqlite"))
    return {str(row[0]) for row in database.execute(TABLES)}


@pytest.fixture
def old_directory(template: Path, tmp_path: Path) -> Path:
    """A data directory with the current keys and files, without a database and without an id, which earlier versions
    did not have."""
    data = tmp_path / "data"
    shutil.copytree(template, data, ignore=shutil.ignore_patterns("*.sqlite*", "serve.lock", "installation.json"))
    return data


async def require_own(path: Path, service: str, folder: Path) -> None:
    """Require that a restore accepts the database."""
    database = await open_sqlite(path, reserve_bytes=0)
    tables = SERVICES[service].tables
    await schema_validation.require_own(database, tables.migrations, tables.own_tables, scratch_folder=folder)
    await database.close()


def require_moved(database: apsw.Connection, tables: list[str]) -> None:
    """Require that the tables no longer exist, and that the tables with their rows are not empty."""
    for table in tables:
        assert columns(database, table) == []
        assert database.execute(f'SELECT count(*) FROM "{MOVED[table]}"').fetchone() > (0,)


def remove_dropped_tables(rows_before: Held) -> list[str]:
    """Remove the tables that a migration drops from `rows_before`, and return those that have rows."""
    return [table for table in MOVED if rows_before.pop(table, ([], []))[1]]


@pytest.mark.parametrize(("service", "number"), EARLIER)
def test_a_database_of_an_earlier_version_is_upgraded_with_its_rows(
    service: str, number: int, template: Path, old_directory: Path, tmp_path: Path
) -> None:
    path = old_directory / f"{service}.sqlite"
    asyncio.run(of_then(service, number, path))
    copy_rows(path, template / path.name, number)
    asyncio.run(require_own(path, service, tmp_path))
    rows_before = all_rows(apsw.Connection(str(path)))
    settings = Settings(data=str(old_directory), reserve_mib=0)
    side = open_store if service == "distribution" else open_records

    pending_names = asyncio.run(side.pending(settings))
    applied = asyncio.run(side.upgrade(settings))
    pending_after = asyncio.run(side.pending(settings))
    database = apsw.Connection(str(path))
    moved_tables = remove_dropped_tables(rows_before)
    updated_rows = all_rows(database, rows_before)

    names = [migration.name for migration in migrate.migrations(PACKAGES[service])[number:]]
    assert [name.removeprefix(f"{service}: ") for name in pending_names[: len(names)]] == names
    assert pending_names == applied
    assert pending_after == []
    require_moved(database, moved_tables)
    assert sqlite_snapshot.check_integrity(path) == []
    assert sum(len(rows) for _, rows in rows_before.values()) > 100
    today = all_rows(apsw.Connection(str(template / path.name)), rows_before)
    assert all(updated_rows[table] == rows for table, rows in today.items() if table == "catalog_facet")
    for table, (_, rows) in rows_before.items():
        rows_after = updated_rows[table][1]
        assert [row for row in rows if row not in rows_after] == [], table


def test_the_oldest_of_both_are_served(template: Path, old_directory: Path, tmp_path: Path) -> None:
    for service in PACKAGES:
        asyncio.run(of_then(service, 1, old_directory / f"{service}.sqlite"))
        copy_rows(old_directory / f"{service}.sqlite", template / f"{service}.sqlite", 1)

    with served(old_directory, service="both") as server:
        response = httpx.get(f"{server.url}/api/v1/products", params={"limit": 1, "q": "a"})
        who = {"username": "alice", "password": "countersign-demo"}
        records = f"http://127.0.0.1:{server.records_port}/api"
        token = httpx.post(f"{records}/auth/login", json=who).json()["token"]
        leads = httpx.post(f"{records}/lead/list", json={}, headers={"Authorization": f"Bearer {token}"})

    assert response.status_code == leads.status_code == 200
    assert response.json()["items"]
    assert leads.json()["value"]
