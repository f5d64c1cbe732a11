"""The tables of a service, and the store of a data directory, opened for an administrative command.

Modules that few commands need are imported where they are used, since every command waits for the imports.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from countersign.cli import configuration, output
from countersign.cli.admin import lock
from countersign.cli.options import DEFAULT_SERVER
from countersign.cli.output import Exit, Failure
from countersign.file_access import explain_permission_error
from countersign.kernel import reencryption
from countersign.kernel.clock import Instant
from countersign.kernel.database import migrate, migration_marker, versions
from countersign.kernel.database.migrate import SchemaMismatch
from countersign.kernel.database.open import file_name, open_database
from countersign.kernel.database.port import Database, Reader
from countersign.kernel.errors import Refused, StorageFull, is_disk_full
from countersign.kernel.reencryption import EncryptedColumn
from countersign.kernel.security.masterkey import MasterKey, master_key
from countersign.kernel.webhooks import outbox
from countersign.settings import BadSetting, Settings
from countersign.store import encrypted_columns, lifespan
from countersign.store.auth import tokens
from countersign.store.context import Store

if TYPE_CHECKING:
    from countersign.backup.schema_validation import OwnTables

MAX_UNCHANGED_POLLS, POLL_S = 100, 0.1
"""The number of polls in a row that may find no new tables before waiting ends, and the pause between two polls."""

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a service.

    `schema` is the name of the schema, and `migrations` the package of the migrations. `own_tables` reads the names of
    the tables that modules create. `columns` are the encrypted columns. `check_own_keys` decrypts the service's own
    keys, if it has any. `pending_setup` returns what is still missing from a new installation.

    Every method that reads or opens the tables raises Moved if the tables are in PostgreSQL and the setting for
    PostgreSQL is missing, Unavailable if the database cannot be reached, and ValueError if the setting is not a
    database address.
    """

    schema: str
    migrations: str
    own_tables: "OwnTables"
    columns: Sequence[EncryptedColumn]
    check_own_keys: Callable[[Database, MasterKey], Awaitable[object]]
    pending_setup: Callable[[Database], Awaitable[Sequence[str]]]

    def file(self, settings: Settings) -> Path:
        """Return the path of the SQLite database, which is not used with PostgreSQL."""
        return Path(settings.data).absolute() / file_name(self.schema)

    def may_exist(self, settings: Settings) -> bool:
        """Return whether the tables may exist: with PostgreSQL always, with SQLite if the file exists."""
        return bool(settings.database_url) or self.file(settings).exists()

    async def exist(self, settings: Settings) -> bool:
        """Return whether the creation of the tables has at least begun: the schema has tables, or the SQLite file
        exists."""
        require_in_use(settings)
        if not settings.database_url:
            return self.file(settings).exists()
        from countersign.kernel.database.postgres_admin import privileges_at

        (privileges,) = await privileges_at(settings.database_url, (self.schema,))
        return privileges.has_tables

    @asynccontextmanager
    async def open(self, settings: Settings) -> AsyncGenerator[Database]:
        """Open the database while the block lasts. A missing file or schema is created; no migration is applied."""
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
    async def open_existing(self, settings: Settings) -> AsyncGenerator[Database | None]:
        """Like `open`, but yield None if the tables do not exist, and create nothing."""
        if not await self.exist(settings):
            yield None
            return
        async with self.open(settings) as database:
            yield database

    async def wait_until_created(self, settings: Settings) -> None:
        """Wait while another process creates the tables, as long as that process makes progress."""
        async with self.open(settings) as database:
            pending, unchanged_count = await self.pending_setup(database), 0
            while pending and unchanged_count < MAX_UNCHANGED_POLLS:
                await asyncio.sleep(POLL_S)
                pending_before, pending = pending, await self.pending_setup(database)
                unchanged_count = unchanged_count + 1 if pending == pending_before else 0

    async def paused_since(self, settings: Settings) -> Instant | None:
        """Return the time at which a restore paused the sending of webhooks and e-mails.

        None means that sending is not paused, that the tables do not exist, or that they have pending migrations.

        Raises:
            SchemaMismatch: the tables belong to another version.
        """
        async with self.open_existing(settings) as database:
            if database is None or await migrate.pending(database, self.migrations):
                return None
            return await outbox.paused_since(database)

    async def require_keys(self, settings: Settings, master: MasterKey) -> None:
        """Check that every master key that encrypted a value in these tables is given.

        Also check that the service's own keys can be decrypted.

        Raises:
            DecryptionFailed: master keys are missing (the error names each), or the service's own keys cannot be
                decrypted.
        """
        async with self.open(settings) as database:
            await reencryption.require_keys(database, self.columns, master)
            await self.check_own_keys(database, master)

    async def require_restorable(self, settings: Settings) -> None:
        """Check that the tables contain only what the migrations create, so that a backup of them can be restored.

        On PostgreSQL the check creates the same tables again, in a transaction that is rolled back.

        Raises:
            UnknownSchemaObjects: the tables contain something else.
            PrivilegeMissing: the role may not create a schema.
            SchemaMismatch: the tables belong to another version.
        """
        from countersign.backup import schema_validation

        if not settings.database_url:
            async with self.open(settings) as database:
                await schema_validation.require_own(
                    database, self.migrations, self.own_tables, scratch_folder=Path(settings.data)
                )
            return
        from countersign.backup.postgres_bulk_load import bulk_load
        from countersign.kernel.database.postgres_admin import privileges_at

        (privileges,) = await privileges_at(settings.database_url, (self.schema,))
        privileges.require_schema_creation()
        async with bulk_load(settings.database_url, (), keeps=False) as trial:
            await schema_validation.require_own_within(
                trial, self.schema, self.migrations, self.own_tables, is_served=True
            )

    async def require_writable(self, settings: Settings) -> None:
        """Check that the database can be written, with a write that changes nothing.

        Raises:
            Unavailable, StorageFull: the database cannot be written.
        """
        async with self.open(settings) as database, database.transaction() as transaction:
            await versions.check_writable(transaction)


def require_in_use(settings: Settings) -> None:
    """Check that the settings name the databases that are in use.

    Raises:
        Moved: the databases are in PostgreSQL, and the setting for PostgreSQL is missing.
    """
    migration_marker.require_in_use(Path(settings.data), settings.database_url)


async def prepare_data_directory(settings: Settings) -> None:
    """Create the data directory before tables are created in it.

    With SQLite, also create the master key: once a database exists, a missing key is an error and is never created.

    Raises:
        Moved: the databases are in PostgreSQL, and the setting for PostgreSQL is missing.
        MasterKeyRefused: databases exist without the master key that encrypted them, or the key cannot be created.
    """
    require_in_use(settings)
    await asyncio.to_thread(Path(settings.data).mkdir, mode=0o700, parents=True, exist_ok=True)
    if not settings.database_url:
        await asyncio.to_thread(master_key, settings)


async def _no_own_tables(_: Reader) -> frozenset[str]:
    """Return no names: the migrations create all tables of the store."""
    return frozenset()


async def _pending_setup(database: Database) -> list[str]:
    return await migrate.pending(database, lifespan.MIGRATIONS)


TABLES = Tables(
    lifespan.SCHEMA, lifespan.MIGRATIONS, _no_own_tables, encrypted_columns.COLUMNS, tokens.stored_keys, _pending_setup
)


def run(
    data: str | None,
    failure: str,
    work: Callable[[Store], Awaitable[ResultT]],
    *,
    validate_new: Callable[[], None] | None = None,
    upgrades: bool = False,
) -> ResultT:
    """Open the store in the data directory, run `work` on it, and return the result.

    Without `data`, the configured data directory is used. A server may be running. If the store does not exist and
    `validate_new` is given, `validate_new` is called and the store is created, unless `validate_new` raises an
    exception. The tables of an existing store are upgraded only if `upgrades` is true.

    Raises:
        Failure: the store does not exist, is not up to date or cannot be opened, a setting cannot be used, or the work
            was refused.
    """
    settings = configuration.load(data=data)

    async def open_and_work() -> ResultT:
        # With PostgreSQL, the tables may not exist yet if several nodes start at once. So do not require them here.
        is_there = TABLES.may_exist(settings) if upgrades else await TABLES.exist(settings)
        if not is_there:
            if validate_new is None:
                remedy = "Pass --data with the directory that is served; `org create` and `serve` make a new one."
                raise missing_database(settings, failure, remedy)
            validate_new()
        elif validate_new is not None:
            await TABLES.wait_until_created(settings)
        alters = upgrades or not is_there
        async with lifespan.open_store(settings, root_url(settings), is_loopback=True, upgrades=alters) as store:
            return await work(store)

    return run_coroutine(open_and_work(), failure)


def missing_database(settings: Settings, failure: str, remedy: str, owner_text: str = "") -> Failure:
    """Return the failure of a command that finds no database.

    `owner_text` completes the message with the name of the service. `remedy` applies to a database that was never
    created: a database that was moved to PostgreSQL has a remedy of its own."""
    if settings.database_url:
        reason = f"the database of COUNTERSIGN_DATABASE_URL has no tables{owner_text or ' of the store'}"
        return Failure(failure, why=reason, remedy=f"Correct the setting. {remedy}", exit_code=Exit.NOT_FOUND)
    try:
        require_in_use(settings)
    except migration_marker.DatabaseMoved as refused:
        return Failure(failure, why=refused.detail, remedy=refused.remedy, exit_code=Exit.CONFLICT)
    return Failure(failure, why=f"{settings.data} has no database{owner_text}", remedy=remedy, exit_code=Exit.NOT_FOUND)


def run_coroutine(work: Coroutine[Any, Any, ResultT], failure: str) -> ResultT:
    """Run the coroutine and return its result. Convert a refusal into the failure of a command.

    Raises:
        Failure: the work was refused, or a setting, file or folder cannot be used.
    """
    try:
        return asyncio.run(work)
    except Refused as refused:
        raise output.refusal_failure(failure, refused) from refused
    except SchemaMismatch as error:
        raise Failure(failure, why=str(error), remedy=error.remedy, exit_code=Exit.CONFLICT) from error
    except (BadSetting, ValueError) as error:
        remedy = "Correct the setting; `countersign config` explains every setting."
        raise Failure(failure, why=str(error), remedy=remedy, exit_code=Exit.USAGE) from error
    except OSError as error:
        raise _file_failure(error, failure) from error


def _file_failure(error: OSError, failure: str) -> Failure:
    """Return the failure of the command for a file or folder that cannot be used."""
    reason = error.strerror or type(error).__name__
    message = (
        explain_permission_error(Path(error.filename), error, "used") if isinstance(error.filename, str) else reason
    )
    if is_disk_full(error):
        return Failure(failure, why=message, remedy=StorageFull.resolution, exit_code=Exit.STORAGE_FULL)
    remedy = "Allow this user to read and write that folder, or choose another folder with --data."
    return Failure(failure, why=message, remedy=remedy)


def root_url(settings: Settings) -> str:
    """Return the store's public address: the configured address, else the address of the last server, else the
    default."""
    return public_url(settings, settings.distribution_url, "distribution") or DEFAULT_SERVER


def public_url(settings: Settings, configured: str, service: str) -> str | None:
    """Return the public address of a service: the configured address, else that of the last server, else None."""
    if configured:
        return configured.rstrip("/")
    try:
        last_url: object = json.loads((Path(settings.data) / lock.FILE_NAME).read_text())[service]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return last_url if isinstance(last_url, str) and urlsplit(last_url).hostname else None


async def pending(settings: Settings) -> list[str]:
    """Return the names of the pending migrations, without creating a SQLite file or a schema.

    Raises:
        Moved, Unavailable, ValueError: see Tables.
        SchemaMismatch: the database belongs to another version.
    """
    async with TABLES.open_existing(settings) as database:
        if database is None:
            return _prefixed(migration.name for migration in migrate.migrations(lifespan.MIGRATIONS))
        return _prefixed(await migrate.pending(database, lifespan.MIGRATIONS))


async def upgrade(settings: Settings) -> list[str]:
    """Apply the pending migrations, and return their names.

    Raises:
        Moved, Unavailable, ValueError, SchemaMismatch: see `pending`.
        PrivilegeMissing: the PostgreSQL role may not create or alter tables.
        MasterKeyRefused: see `prepare_data_directory`.
    """
    await prepare_data_directory(settings)
    async with TABLES.open(settings) as database:
        return _prefixed(await migrate.upgrade(database, lifespan.MIGRATIONS))


def _prefixed(names: Iterable[str]) -> list[str]:
    return [f"{lifespan.SCHEMA}: {name}" for name in names]
