"""The records of a data directory, opened for one piece of administration."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from countersign.cli import configuration, lock, store
from countersign.cli.output import Exit, Failure
from countersign.declare import DeclarationError
from countersign.kernel.clock import Instant
from countersign.kernel.database import migrate, postgres_snapshot
from countersign.kernel.database.port import Database
from countersign.kernel.security.masterkey import master_key
from countersign.kernel.webhooks import holding
from countersign.records import app, modules
from countersign.records.schema import install
from countersign.settings import Settings

ResultT = TypeVar("ResultT")

DEFAULT_URL = "http://127.0.0.1:8080"


def run(data: str | None, doing: str, work: Callable[[app.Service], Awaitable[ResultT]]) -> ResultT:
    """What the work makes of the service in the data directory (None: the configured one), beside a running server.

    Raises:
        Failure: a setting or module cannot be used, the records cannot be opened, or the work was refused.
    """
    settings = configuration.load(data=data)

    async def open_and_work() -> ResultT:
        async with app.opened(settings, root_url(settings), is_loopback=True) as service:
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
        Unavailable: it cannot be opened or reached.
        ValueError: the setting is no database address.
    """
    if not has_database(settings):
        yield None
        return
    database = await app.open_tables(settings)
    try:
        yield database
    finally:
        await database.close()


async def pending(settings: Settings) -> list[str]:
    """Migrations and steps of modules that are to come in records that are there, in words; changes nothing.

    Raises:
        Unavailable, ValueError: as `tables`.
        WouldDestroy, DataInTheWay, SchemaMismatch: see `install.upgrade`.
    """
    async with _there(settings) as database:
        return [] if database is None else await _pending(settings, database)


async def held_since(settings: Settings) -> Instant | None:
    """Since when restored records send no webhooks and letters; None: they do, or are not there, or to be upgraded.

    Raises:
        Unavailable, ValueError, SchemaMismatch: as `pending`.
    """
    async with _there(settings) as database:
        if database is None or await migrate.pending(database, install.MIGRATIONS):
            return None
        return await holding.since(database)


async def upgrade(settings: Settings) -> list[str]:
    """Apply them; what was applied. Killed at any moment, the next call goes on from there.

    Raises:
        Unavailable, ValueError, WouldDestroy, DataInTheWay, SchemaMismatch: as `pending`.
        CannotUnseal: the master key is not the one of the database.
    """
    async with _there(settings) as database:
        names = [] if database is None else await _pending(settings, database)
        if database is not None and names:
            registry = modules.found(modules.names(settings.modules))
            await install.upgrade(database, registry, await asyncio.to_thread(master_key, settings))
        return names


async def _pending(settings: Settings, database: Database) -> list[str]:
    names = await migrate.pending(database, install.MIGRATIONS)
    planned = await install.plan(database, modules.found(modules.names(settings.modules)))
    planned.require(destroy=False)
    return [f"records: {name}" for name in (*names, *(step.sentence for step in planned.steps))]


@asynccontextmanager
async def _there(settings: Settings) -> AsyncGenerator[Database | None]:
    """The database if records were ever kept in it; PostgreSQL gets no schema by being asked."""
    if settings.database_url:
        async with postgres_snapshot.held(settings.database_url, (app.SCHEMA,)) as snapshot:
            is_there = bool(snapshot.schemas)
        if not is_there:
            yield None
            return
    async with tables(settings) as database:
        yield database


def root_url(settings: Settings) -> str:
    """The service's public address: the configured one, else where it was last served, else the default."""
    if settings.records_url:
        return settings.records_url.rstrip("/")
    try:
        served: object = json.loads((Path(settings.data) / lock.FILE_NAME).read_text())["records"]
    except (OSError, ValueError, KeyError, TypeError):
        return DEFAULT_URL
    return served if isinstance(served, str) and urlsplit(served).hostname else DEFAULT_URL
