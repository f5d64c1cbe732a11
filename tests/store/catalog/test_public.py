"""Publishing and the migration write the same rows to the table of public products."""

from pathlib import Path

from countersign.store import app as store_app
from countersign.store.catalog import projection
from countersign.store.context import Store
from tests.store.ask.shelf import PUBLIC, stock_store

SELECT_ALL = """
    SELECT product_id, slug, title, name_key, org_slug, kind, platforms, channels, is_free, license, license_key,
           first_at, last_at, tags
    FROM catalog_public
    ORDER BY title, product_id
"""
MIGRATIONS_FOLDER = Path(store_app.__file__).parent / "migrations"


def backfill_statement() -> str:
    """Return the statement with which the migration writes rows for existing products."""
    (file,) = MIGRATIONS_FOLDER.glob("*_ask.sql")
    text = file.read_text()
    return text[text.index("INSERT INTO catalog_public") :].rstrip().rstrip(";")


async def test_the_migration_writes_the_same_rows_as_publishing(store: Store) -> None:
    await stock_store(store)
    published_rows = await store.database.fetch(SELECT_ALL)
    async with store.database.transaction() as transaction:
        await transaction.run("DELETE FROM catalog_public")
        await transaction.run(backfill_statement())

    await projection.complete_public(store.database)

    assert [row[1] for row in published_rows] == [item.slug for item in PUBLIC]
    expected_rows = [(*row[:13], row[13].split()) for row in published_rows]
    assert [(*row[:13], row[13].split()) for row in await store.database.fetch(SELECT_ALL)] == expected_rows
