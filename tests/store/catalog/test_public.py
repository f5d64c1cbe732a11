"""The table of public products follows its sources, and the migration fills it."""

from pathlib import Path

from countersign.store import app as distribution
from countersign.store.catalog import projection
from countersign.store.context import Store
from tests.store.ask.shelf import PUBLIC, stock_store

EVERY = """
    SELECT product_id, slug, title, name_key, org_slug, kind, platforms, channels, is_free, license, license_key,
           first_at, last_at, tags
    FROM catalog_public
    ORDER BY title, product_id
"""
MIGRATION = Path(distribution.__file__).parent / "migrations"


def backfill() -> str:
    """Return the statement with which the migration writes rows for existing products."""
    (file,) = MIGRATION.glob("*_ask.sql")
    text = file.read_text()
    return text[text.index("INSERT INTO catalog_public") :].rstrip().rstrip(";")


async def test_the_migration_writes_what_publishing_writes(store: Store) -> None:
    await stock_store(store)
    published_rows = await store.database.fetch(EVERY)
    async with store.database.transaction() as transaction:
        await transaction.run("DELETE FROM catalog_public")
        await transaction.run(backfill())

    await projection.complete_public(store.database)

    assert [row[1] for row in published_rows] == [item.slug for item in PUBLIC]
    normal = [(*row[:13], row[13].split()) for row in published_rows]
    assert [(*row[:13], row[13].split()) for row in await store.database.fetch(EVERY)] == normal
