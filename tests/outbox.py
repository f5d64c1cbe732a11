"""The tables of webhooks without the rest of a service."""

from importlib import resources

from countersign.kernel.database.migrate import in_dialect
from countersign.kernel.database.port import Database

MIGRATIONS = ("0007_webhooks.sql", "0009_delivery_hold.sql")
"""Those of the store that make all that an outbox looks into."""


async def begin(database: Database, *more: str) -> None:
    """Make the tables of an outbox in an empty database, and more by the statements that are given."""
    folder = resources.files("countersign.store.migrations")
    async with database.transaction() as transaction:
        for text in (*(folder.joinpath(name).read_text() for name in MIGRATIONS), *more):
            await transaction.run(in_dialect(text, database.dialect))
