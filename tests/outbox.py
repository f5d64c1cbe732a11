"""Creates the tables of webhooks without the other tables of a service."""

from importlib import resources

from countersign.kernel.database.migrate import in_dialect
from countersign.kernel.database.port import Database

MIGRATIONS = ("0007_webhooks.sql", "0009_delivery_hold.sql")
"""The migrations of the store that create the tables of an outbox."""


async def begin(database: Database, *migrations_sql: str) -> None:
    """Create the tables of an outbox in an empty database, and run the statements in `more`."""
    folder = resources.files("countersign.store.migrations")
    async with database.transaction() as transaction:
        for text in (*(folder.joinpath(name).read_text() for name in MIGRATIONS), *migrations_sql):
            await transaction.run(in_dialect(text, database.dialect))
