"""The database of an archive has only what its migrations create and what modules may have."""

import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from countersign.backup import schema_validation
from countersign.backup.schema_validation import UnknownSchemaObjects
from countersign.cli.admin.databases import SERVICES
from countersign.kernel.database import migrate
from countersign.kernel.database.sqlite import open_sqlite
from countersign.kernel.security.masterkey import master_key
from countersign.records import modules
from countersign.records.schema import install
from countersign.settings import Settings
from countersign.store import lifespan
from tests.servers.countersign import MASTER_KEY

OWN = {name: (service.tables.migrations, service.tables.own_tables) for name, service in SERVICES.items()}

AS_A_MODULE = """
CREATE TABLE "other" (id TEXT PRIMARY KEY NOT NULL, revision INTEGER NOT NULL, changed INTEGER NOT NULL) STRICT
"""


@pytest.fixture(scope="module")
def first_databases(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Each service's database as it is after its first start, which tests copy."""
    folder = tmp_path_factory.mktemp("made")
    return {name: folder / f"{name}.sqlite" for name in OWN}


async def prepare(databases: Mapping[str, Path]) -> None:
    """Create the databases once."""
    for name, path in databases.items():
        if path.exists():
            continue
        database = await open_sqlite(path, reserve_bytes=0)
        if name == "distribution":
            await migrate.upgrade(database, lifespan.MIGRATIONS)
        else:
            master = master_key(Settings(master_key=MASTER_KEY))
            await install.upgrade(database, modules.found(["party", "crm"]), master)
        await database.close()


async def require_own(databases: Mapping[str, Path], folder: Path, name: str, statements: str) -> None:
    """Check a database after these statements changed it."""
    await prepare(databases)
    path = Path(shutil.copy(databases[name], folder))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(statements)
    database = await open_sqlite(path, reserve_bytes=0)
    try:
        await schema_validation.require_own(database, *OWN[name], scratch_folder=folder)
    finally:
        await database.close()


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("statements", ["", "ANALYZE"])
async def test_tables_created_by_the_services_are_accepted(
    first_databases: Mapping[str, Path], tmp_path: Path, name: str, statements: str
) -> None:
    await require_own(first_databases, tmp_path, name, statements)

    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == []


@pytest.mark.parametrize(
    ("name", "statements"),
    [
        ("distribution", "CREATE INDEX by_day ON person (created_at DESC, id)"),
        ("distribution", 'CREATE INDEX IF NOT EXISTS "by day" ON "person"("created_at")'),
        ("records", "CREATE INDEX by_title ON lead (title)"),
    ],
)
async def test_an_index_of_columns_may_have_been_added(
    first_databases: Mapping[str, Path], tmp_path: Path, name: str, statements: str
) -> None:
    await require_own(first_databases, tmp_path, name, statements)


@pytest.mark.parametrize(
    ("name", "statements"),
    [
        ("distribution", "CREATE UNIQUE INDEX one ON person (created_at)"),
        ("distribution", "CREATE INDEX part ON person (created_at) WHERE hex(zeroblob(9)) IS NOT NULL"),
        ("distribution", "CREATE INDEX two ON person (created_at, lower(email))"),
        ("distribution", "CREATE INDEX shown ON person (email COLLATE nocase)"),
        ("distribution", "DROP INDEX membership_by_org; CREATE INDEX membership_by_org ON membership (person_id)"),
        ("distribution", "CREATE TABLE other (n INTEGER)"),
        ("distribution", "CREATE INDEX slow ON organisation (hex(zeroblob(900000000)))"),
        ("distribution", "ALTER TABLE delivery_hold ADD COLUMN more TEXT AS (hex(zeroblob(9))) VIRTUAL"),
        ("distribution", "ALTER TABLE schema_migration ADD COLUMN more TEXT"),
        ("distribution", "DROP TABLE schema_migration"),
        ("distribution", "DELETE FROM schema_migration WHERE number > 8"),
        ("distribution", "CREATE TRIGGER undo AFTER DELETE ON person BEGIN SELECT 1; END"),
        ("distribution", "CREATE VIEW schema AS SELECT 1"),
        ("records", "CREATE TABLE other (n INTEGER CHECK (zeroblob(n) IS NOT NULL)) STRICT"),
        ("records", AS_A_MODULE),
        ("records", 'CREATE UNIQUE INDEX "slow" ON "lead" (hex(zeroblob(900000000)))'),
        ("records", 'CREATE INDEX "slow" ON "lead" ("title") WHERE hex(zeroblob(9)) IS NOT NULL'),
        ("records", "ALTER TABLE lead ADD COLUMN more TEXT AS (hex(zeroblob(9))) VIRTUAL"),
        ("records", "ALTER TABLE lead ADD COLUMN more TEXT CHECK (more <> 'a')"),
        ("records", 'ALTER TABLE lead ADD COLUMN "more" TEXT DEFAULT (hex(zeroblob(9)))'),
        ("records", "CREATE TRIGGER undo AFTER DELETE ON lead BEGIN SELECT 1; END"),
        ("records", "DROP TABLE plan_notice"),
        ("records", "UPDATE module_state SET snapshot = '{}'"),
        ("records", "UPDATE module_state SET snapshot = 'none'"),
    ],
)
async def test_a_database_with_foreign_objects_is_refused(
    first_databases: Mapping[str, Path], tmp_path: Path, name: str, statements: str
) -> None:
    with pytest.raises(UnknownSchemaObjects):
        await require_own(first_databases, tmp_path, name, statements)
