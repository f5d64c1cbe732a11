"""schema.sql, which people read, is equal to the result of the migrations."""

from pathlib import Path

from countersign.backup.schema_description import describe_schema
from countersign.kernel.database.migrate import in_dialect, upgrade
from countersign.kernel.database.open import open_database
from countersign.store.lifespan import MIGRATIONS
from tools import schema

SCHEMA = Path(__file__).parents[2] / "src/countersign/store/schema.sql"
LEDGER = "schema_migration "


def test_the_schema_file_is_fresh() -> None:
    assert SCHEMA.read_text() == schema.schema(), "run `make schema`"


async def test_the_schema_file_creates_the_same_schema_as_the_migrations(database_url: str) -> None:
    migrated_database = await open_database(database_url, schema="migrated", reserve_bytes=0)
    await upgrade(migrated_database, MIGRATIONS)
    expected_schema = await describe_schema(migrated_database)
    await migrated_database.close()
    database_read = await open_database(database_url.replace("test.db", "read.db"), schema="read", reserve_bytes=0)
    async with database_read.transaction() as transaction:
        await transaction.run(in_dialect(SCHEMA.read_text(), database_read.dialect))

    described_schema = await describe_schema(database_read)

    await database_read.close()
    lines = [line for line in expected_schema.splitlines() if not line.startswith(LEDGER)]
    assert [line.replace("read.", "migrated.") for line in described_schema.splitlines()] == lines
