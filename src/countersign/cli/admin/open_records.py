"""Opens the records of a data directory for an administrative command."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from countersign.cli import configuration
from countersign.cli.admin import open_store
from countersign.cli.admin.open_store import Tables, prepare_data_directory
from countersign.cli.output import Exit, Failure
from countersign.declare import DeclarationError
from countersign.declare.registry import Registry
from countersign.kernel.database import migrate
from countersign.kernel.database.port import Database, Dialect
from countersign.kernel.security.masterkey import master_key
from countersign.records import app, encrypted_columns, modules, root_secret
from countersign.records.schema import install
from countersign.settings import Settings

ResultT = TypeVar("ResultT")

DEFAULT_URL = "http://127.0.0.1:8080"


async def _pending_setup(database: Database) -> list[str]:
    names = await migrate.pending(database, install.MIGRATIONS)
    # A new installation has no list of installed modules until all tables of the modules exist.
    return names or ([] if (await install.installed(database)).versions else ["modules"])


TABLES = Tables(
    app.SCHEMA,
    install.MIGRATIONS,
    install.tables,
    encrypted_columns.COLUMNS,
    root_secret.require_readable,
    _pending_setup,
)


def run(
    data: str | None,
    failure: str,
    work: Callable[[app.RecordsService], Awaitable[ResultT]],
    *,
    validate_new: Callable[[Registry], None] | None = None,
) -> ResultT:
    """Run the work on the service in the data directory, and return the result of the work.

    Without `data`, the configured data directory is used. A server may be running.
    If the service does not exist, it is created, provided that `validate_new` is given and accepts what the work needs.
    The tables of an existing service are never altered.

    Raises: Failure: the service does not exist, its tables differ from the declarations, a setting or module cannot be
    used, the service cannot be opened, or the work was refused.
    """
    settings = configuration.load(data=data)

    async def open_and_work() -> ResultT:
        is_there = await TABLES.exist(settings)
        if not is_there:
            if validate_new is None:
                remedy = "Pass --data with the directory that is served; `user create` and `serve` make a new one."
                raise open_store.missing_database(settings, failure, remedy, " of the records service")
            validate_new(_registry(settings))
        elif validate_new is not None:
            await TABLES.wait_until_created(settings)
        async with app.open_records(settings, root_url(settings), is_loopback=True, upgrades=not is_there) as service:
            return await work(service)

    return run_coroutine(open_and_work(), failure)


def run_coroutine(work: Coroutine[Any, Any, ResultT], failure: str) -> ResultT:
    """Return the result of the work; refusals become the failure of a command.

    Raises:
        Failure: the work was refused, or a setting or module cannot be used.
    """
    try:
        return open_store.run_coroutine(work, failure)
    except DeclarationError as error:
        remedy = "Correct the module, or leave it out of COUNTERSIGN_MODULES."
        raise Failure(failure, why=str(error), remedy=remedy, exit_code=Exit.USAGE) from error


async def pending(settings: Settings) -> list[str]:
    """Return the pending migrations and steps of modules as text, without creating a SQLite file or a schema.

    Raises:
        Moved, Unavailable, ValueError: see Tables.
        WouldDestroy, DataInTheWay, SchemaMismatch: see `install.upgrade`.
    """
    async with TABLES.open_existing(settings) as database:
        if database is None:
            names = [migration.name for migration in migrate.migrations(install.MIGRATIONS)]
            return _prefixed(names, install.from_empty(_registry(settings), dialect_of(settings)))
        return await _pending(settings, database)


async def upgrade(settings: Settings) -> list[str]:
    """Apply the pending migrations and module steps, and return them. If the process is killed, the next call
    continues.

    Raises:
        Moved, Unavailable, ValueError, WouldDestroy, DataInTheWay, SchemaMismatch: as `pending`.
        PrivilegeMissing: the PostgreSQL role may not create or alter tables. BadSetting, MasterKeyRefused: no master
            key was given, or it cannot be read or created.
        DecryptionFailed: the master key does not belong to the database.
    """
    await prepare_data_directory(settings)
    async with TABLES.open(settings) as database:
        names = await _pending(settings, database)
        if names:
            await install.upgrade(database, _registry(settings), await asyncio.to_thread(master_key, settings))
        return names


def dialect_of(settings: Settings) -> Dialect:
    """Return the dialect of the configured database."""
    return "postgres" if settings.database_url else "sqlite"


async def _pending(settings: Settings, database: Database) -> list[str]:
    names = await migrate.pending(database, install.MIGRATIONS)
    upgrade_plan = await install.plan_upgrade(database, _registry(settings))
    upgrade_plan.require(destroy=False)
    return _prefixed(names, upgrade_plan)


def _prefixed(names: Iterable[str], plan: install.UpgradePlan) -> list[str]:
    return [f"{app.SCHEMA}: {name}" for name in (*names, *(step.sentence for step in plan.steps))]


def _registry(settings: Settings) -> Registry:
    return modules.found(modules.module_names(settings.modules))


def root_url(settings: Settings) -> str:
    """Return the service's public address: the configured address, else that of the last server, else the default."""
    return configured_url(settings) or DEFAULT_URL


def configured_url(settings: Settings) -> str | None:
    """Return the service's public address: the configured address, else that of the last server, else None."""
    return open_store.public_url(settings, settings.records_url, "records")
