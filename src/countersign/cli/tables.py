"""A service's tables in a data directory, or in PostgreSQL, as they are: looking makes nothing, and alters nothing."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from countersign.backup import schema_validation
from countersign.backup.databases import file_name
from countersign.backup.postgres_bulk_load import bulk_load
from countersign.backup.schema_validation import OwnTables
from countersign.kernel import reencryption
from countersign.kernel.clock import Instant
from countersign.kernel.database import migrate, migration_marker, versions
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Database
from countersign.kernel.database.postgres_admin import privileges_at
from countersign.kernel.reencryption import EncryptedColumn
from countersign.kernel.security.masterkey import MasterKey, master_key
from countersign.kernel.webhooks import outbox
from countersign.settings import Settings

MAX_UNCHANGED, LOOKED_S = 100, 0.1
"""How often in a row tables that are being made may be found as they were, and the pause between two looks."""


@dataclass(frozen=True, slots=True)
class Tables:
    """What a service keeps: its schema's name, the package of its migrations, the tables that it has besides, its
    sealed columns, what opens its own keys if there are any, and what a first installation still has to make.

    Whatever reads or opens them raises Moved when they are in PostgreSQL and the setting for it is missing, Unavailable
    when they cannot be reached, and ValueError when the setting is no database address.
    """

    schema: str
    migrations: str
    own: OwnTables
    columns: Sequence[EncryptedColumn]
    open_keys: Callable[[Database, MasterKey], Awaitable[object]]
    unmade: Callable[[Database], Awaitable[Sequence[str]]]

    def file(self, settings: Settings) -> Path:
        """Where the database is, unless it is PostgreSQL's."""
        return Path(settings.data).absolute() / file_name(self.schema)

    def may_be_there(self, settings: Settings) -> bool:
        """Whether there may be tables: always with PostgreSQL; with SQLite once the file was made."""
        return bool(settings.database_url) or self.file(settings).exists()

    async def are_kept(self, settings: Settings) -> bool:
        """Whether the tables were ever begun here."""
        require_in_use(settings)
        if not settings.database_url:
            return self.file(settings).exists()
        (there,) = await privileges_at(settings.database_url, (self.schema,))
        return there.has_tables

    @asynccontextmanager
    async def opened(self, settings: Settings) -> AsyncGenerator[Database]:
        """The database, not upgraded, until the block is left; file and schema are made when missing."""
        require_in_use(settings)
        database = await open_database(
            settings.database_url or f"sqlite:///{self.file(settings)}",
            schema=self.schema,
            pool=settings.database_pool,
            read_deadline_s=settings.read_deadline_s,
            reserve_bytes=settings.reserve_mib << 20,
        )
        try:
            yield database
        finally:
            await database.close()

    @asynccontextmanager
    async def kept(self, settings: Settings) -> AsyncGenerator[Database | None]:
        """The same where the tables were begun, else None; nothing is made."""
        if not await self.are_kept(settings):
            yield None
            return
        async with self.opened(settings) as database:
            yield database

    async def others_done(self, settings: Settings) -> None:
        """Wait for another process that makes the tables at this moment, as long as it gets on."""
        async with self.opened(settings) as database:
            left, unchanged = await self.unmade(database), 0
            while left and unchanged < MAX_UNCHANGED:
                await asyncio.sleep(LOOKED_S)
                before, left = left, await self.unmade(database)
                unchanged = unchanged + 1 if left == before else 0

    async def held_since(self, settings: Settings) -> Instant | None:
        """Since when restored tables send no webhooks and letters; None: they do, or are not there, or to be upgraded.

        Raises:
            SchemaMismatch: they belong to another version.
        """
        async with self.kept(settings) as database:
            if database is None or await migrate.pending(database, self.migrations):
                return None
            return await outbox.paused_since(database)

    async def require_keys(self, settings: Settings, master: MasterKey) -> None:
        """Insist that every master key which sealed anything here is present, and opens the service's own keys.

        Raises:
            DecryptionFailed: keys are missing; it names each. Or the service's own keys do not open.
        """
        async with self.opened(settings) as database:
            await reencryption.require_keys(database, self.columns, master)
            await self.open_keys(database, master)

    async def require_restorable(self, settings: Settings) -> None:
        """Insist that the tables consist of what is made here, so that a backup of them can be restored.

        PostgreSQL tells that by making the same once more, in a transaction that is undone.

        Raises:
            UnknownSchemaObjects: they do not.
            PrivilegeMissing: the role may not make a schema.
            SchemaMismatch: they belong to another version.
        """
        if not settings.database_url:
            async with self.opened(settings) as database:
                await schema_validation.require_own(
                    database, self.migrations, self.own, scratch_folder=Path(settings.data)
                )
            return
        (there,) = await privileges_at(settings.database_url, (self.schema,))
        there.require_making()
        async with bulk_load(settings.database_url, (), keeps=False) as trial:
            await schema_validation.require_own_within(trial, self.schema, self.migrations, self.own, is_served=True)

    async def require_writable(self, settings: Settings) -> None:
        """Write without changing anything.

        Raises:
            Unavailable, StorageFull: it cannot be written.
        """
        async with self.opened(settings) as database, database.transaction() as transaction:
            await versions.check_writable(transaction)


def require_in_use(settings: Settings) -> None:
    """Insist that the settings name the databases that are in use.

    Raises:
        Moved: they are in PostgreSQL, and the setting for it is missing.
    """
    migration_marker.require_in_use(Path(settings.data), settings.database_url)


async def made_ready(settings: Settings) -> None:
    """Make the data directory that tables are to be made for; with SQLite its master key, too, since beside a database
    without one no key is ever made.

    Raises:
        Moved: as `require_in_use`.
        MasterKeyRefused: there are databases without the key that sealed them, or it cannot be made.
    """
    require_in_use(settings)
    await asyncio.to_thread(Path(settings.data).mkdir, mode=0o700, parents=True, exist_ok=True)
    if not settings.database_url:
        await asyncio.to_thread(master_key, settings)
