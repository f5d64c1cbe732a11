"""The records of a data directory, opened for one piece of administration."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from countersign.cli import configuration, lock, store
from countersign.cli.output import Exit, Failure
from countersign.declare import DeclarationError
from countersign.declare.registry import Registry
from countersign.kernel.clock import Instant
from countersign.kernel.database import migrate, moved, versions
from countersign.kernel.database.port import Database
from countersign.kernel.database.postgres_session import rights_at
from countersign.kernel.security.masterkey import MasterKey, master_key
from countersign.kernel.webhooks import holding
from countersign.records import app, key, modules
from countersign.records.schema import install
from countersign.settings import Settings

ResultT = TypeVar("ResultT")

DEFAULT_URL = "http://127.0.0.1:8080"


def run(
    data: str | None,
    doing: str,
    work: Callable[[app.Service], Awaitable[ResultT]],
    *,
    new: Callable[[Registry], None] | None = None,
) -> ResultT:
    """What the work makes of the service in the data directory (None: the configured one), beside a running server.

    Where there is none, one is made if `new` is given and refuses nothing of what the work will be refused. The tables
    of one that is there are never altered.

    Raises:
        Failure: there are no records, their tables are not what is declared, a setting or module cannot be used, the
            records cannot be opened, or the work was refused.
    """
    settings = configuration.load(data=data)

    async def open_and_work() -> ResultT:
        is_there = await is_kept(settings)
        if not is_there:
            if new is None:
                remedy = "Say --data with the directory that is served; `user create` and `serve` make a new one."
                raise store.missing(settings, doing, remedy, " of the records service")
            new(_registry(settings))
        elif new is not None:
            await store.others_done(lambda: _migrations(settings))
        async with app.opened(settings, root_url(settings), is_loopback=True, upgrades=not is_there) as service:
            return await work(service)

    return settled(open_and_work(), doing)


def settled(work: Coroutine[Any, Any, ResultT], doing: str) -> ResultT:
    """The result of the work; refusals become the failure of a command.

    Raises:
        Failure: the work was refused, or a setting or module cannot be used.
    """
    try:
        return store.settled(work, doing)
    except DeclarationError as error:
        remedy = "Correct it, or leave its module out of COUNTERSIGN_MODULES."
        raise Failure(doing, why=str(error), remedy=remedy, exit_code=Exit.USAGE) from error


def has_database(settings: Settings) -> bool:
    """Whether there may be a database: always with PostgreSQL; with SQLite once its file was made."""
    return bool(settings.database_url) or app.database_file(settings).exists()


@asynccontextmanager
async def tables(settings: Settings) -> AsyncGenerator[Database | None]:
    """The database as it is, not upgraded, until the block is left; None while SQLite's file was not made.

    Raises:
        Moved: as `is_kept`.
        Unavailable: it cannot be opened or reached.
        ValueError: the setting is no database address.
    """
    moved.require_in_use(Path(settings.data), settings.database_url)
    if not has_database(settings):
        yield None
        return
    async with _opened(settings) as database:
        yield database


async def is_kept(settings: Settings) -> bool:
    """Whether records were ever kept here; nothing is made by asking.

    Raises:
        Moved: they are in PostgreSQL, and the setting for it is missing.
        Unavailable, ValueError: as `tables`.
    """
    moved.require_in_use(Path(settings.data), settings.database_url)
    if not settings.database_url:
        return app.database_file(settings).exists()
    (there,) = await rights_at(settings.database_url, (app.SCHEMA,))
    return there.has_tables


async def pending(settings: Settings) -> list[str]:
    """Migrations and steps of modules that are to come, in words; neither a SQLite file nor a schema is made for that.

    Raises:
        Unavailable, ValueError: as `tables`.
        WouldDestroy, DataInTheWay, SchemaMismatch: see `install.upgrade`.
    """
    if not await is_kept(settings):
        names = [migration.name for migration in migrate.migrations(install.MIGRATIONS)]
        dialect = "postgres" if settings.database_url else "sqlite"
        return _called(names, install.from_empty(_registry(settings), dialect))
    async with _opened(settings) as database:
        return await _pending(settings, database)


async def held_since(settings: Settings) -> Instant | None:
    """Since when restored records send no webhooks and letters; None: they do, or are not there, or to be upgraded.

    Raises:
        Unavailable, ValueError, SchemaMismatch: as `pending`.
    """
    if not await is_kept(settings):
        return None
    async with _opened(settings) as database:
        return None if await migrate.pending(database, install.MIGRATIONS) else await holding.since(database)


async def upgrade(settings: Settings) -> list[str]:
    """Apply them; what was applied. Killed at any moment, the next call goes on from there.

    Raises:
        Unavailable, ValueError, WouldDestroy, DataInTheWay, SchemaMismatch: as `pending`.
        RightMissing: PostgreSQL's role may not make or alter tables.
        BadSetting, MasterKeyRefused: no master key was given, or it cannot be read or made.
        CannotUnseal: the master key is not the one of the database.
        Moved: as `is_kept`.
    """
    moved.require_in_use(Path(settings.data), settings.database_url)
    await asyncio.to_thread(Path(settings.data).mkdir, mode=0o700, parents=True, exist_ok=True)
    if not settings.database_url:
        # Beside a database without one, no key would ever be made.
        await asyncio.to_thread(master_key, settings)
    async with _opened(settings) as database:
        names = await _pending(settings, database)
        if names:
            await install.upgrade(database, _registry(settings), await asyncio.to_thread(master_key, settings))
        return names


async def _migrations(settings: Settings) -> list[str]:
    async with _opened(settings) as database:
        return await migrate.pending(database, install.MIGRATIONS)


async def _pending(settings: Settings, database: Database) -> list[str]:
    names = await migrate.pending(database, install.MIGRATIONS)
    planned = await install.plan(database, _registry(settings))
    planned.require(destroy=False)
    return _called(names, planned)


def _called(names: Iterable[str], planned: install.Plan) -> list[str]:
    return [f"{app.SCHEMA}: {name}" for name in (*names, *(step.sentence for step in planned.steps))]


def _registry(settings: Settings) -> Registry:
    return modules.found(modules.names(settings.modules))


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncGenerator[Database]:
    database = await app.open_tables(settings)
    try:
        yield database
    finally:
        await database.close()


async def require_keys(settings: Settings, master: MasterKey) -> None:
    """Open what the database holds sealed.

    Raises:
        CannotUnseal: it was sealed with another master key.
        Unavailable: the database cannot be opened or reached.
    """
    async with _opened(settings) as database:
        await key.require(database, master)


async def require_writable(settings: Settings) -> None:
    """Write to the database without changing anything in it.

    Raises:
        Unavailable, StorageFull: it cannot be written.
    """
    async with _opened(settings) as database, database.transaction() as transaction:
        await versions.check_writable(transaction)


def root_url(settings: Settings) -> str:
    """The service's public address: the configured one, else where it was last served, else the default."""
    return known_url(settings) or DEFAULT_URL


def known_url(settings: Settings) -> str | None:
    """The same without the default."""
    if settings.records_url:
        return settings.records_url.rstrip("/")
    try:
        served: object = json.loads((Path(settings.data) / lock.FILE_NAME).read_text())["records"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return served if isinstance(served, str) and urlsplit(served).hostname else None
