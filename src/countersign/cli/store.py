"""The store of a data directory, opened for one piece of administration."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from countersign.cli import configuration, lock, output
from countersign.cli.output import Exit, Failure
from countersign.cli.target import DEFAULT_SERVER
from countersign.distribution import opening
from countersign.distribution.context import Store
from countersign.distribution.identity import keys
from countersign.kernel.clock import Instant
from countersign.kernel.database import migrate, versions
from countersign.kernel.database.migrate import SchemaMismatch
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Database
from countersign.kernel.errors import Refused
from countersign.kernel.security.masterkey import MasterKey
from countersign.kernel.webhooks import holding
from countersign.settings import BadSetting, Settings

ResultT = TypeVar("ResultT")

DATABASE_FILE = "distribution.sqlite"


def run(
    data: str | None, doing: str, work: Callable[[Store], Awaitable[ResultT]], *, makes: bool = False
) -> ResultT:
    """What the work makes of the store in the data directory (None: the configured one), beside a running server;
    with `makes`, of a new one where there is none.

    Raises:
        Failure: there is no store, a setting cannot be used, the store cannot be opened, or the work was refused.
    """
    settings = configuration.load(data=data)
    if not makes and not has_database(settings):
        remedy = "Say --data with the directory that is served; `org create` and `serve` make a new one."
        raise Failure(doing, why=f"{settings.data} holds no store", remedy=remedy, exit_code=Exit.NOT_FOUND)

    async def open_and_work() -> ResultT:
        async with opening.opened(settings, root_url(settings), is_loopback=True) as store:
            return await work(store)

    return settled(open_and_work(), doing)


def settled(work: Coroutine[Any, Any, ResultT], doing: str) -> ResultT:
    """The result of the work; refusals become the failure of a command.

    Raises:
        Failure: the work was refused, or a setting cannot be used.
    """
    try:
        return asyncio.run(work)
    except Refused as refused:
        exit_code = output.exit_of(refused.status, refused.code)
        raise Failure(
            doing, why=refused.detail, remedy=refused.remedy, exit_code=exit_code, problem=refused.code
        ) from refused
    except SchemaMismatch as error:
        raise Failure(doing, why=str(error), exit_code=Exit.CONFLICT) from error
    except (BadSetting, ValueError) as error:
        remedy = "Correct it; `countersign config` explains every setting."
        raise Failure(doing, why=str(error), remedy=remedy, exit_code=Exit.USAGE) from error


def root_url(settings: Settings) -> str:
    """The store's public address: the configured one, else where it was last served, else the default."""
    if settings.distribution_url:
        return settings.distribution_url.rstrip("/")
    try:
        served: object = json.loads((Path(settings.data) / lock.FILE_NAME).read_text())["distribution"]
    except (OSError, ValueError, KeyError, TypeError):
        return DEFAULT_SERVER
    return served if isinstance(served, str) and urlsplit(served).hostname else DEFAULT_SERVER


def has_database(settings: Settings) -> bool:
    """Whether there may be a database: always with PostgreSQL; with SQLite once its file was made."""
    return bool(settings.database_url) or (Path(settings.data) / DATABASE_FILE).exists()


@asynccontextmanager
async def database(settings: Settings) -> AsyncGenerator[Database]:
    """The store's database as it is, not upgraded, until the block is left.

    Raises:
        Unavailable: it cannot be opened or reached.
        ValueError: the setting is no database address.
    """
    url = settings.database_url or f"sqlite:///{(Path(settings.data) / DATABASE_FILE).absolute()}"
    opened = await open_database(url, schema=opening.SCHEMA, reserve_bytes=settings.reserve_mib << 20)
    try:
        yield opened
    finally:
        await opened.close()


async def pending(settings: Settings) -> list[str]:
    """The migrations that are to come; a SQLite file is not made for that.

    Raises:
        Unavailable, ValueError: as `database`.
        SchemaMismatch: the database belongs to another version.
    """
    if not has_database(settings):
        return [migration.name for migration in migrate.migrations(opening.MIGRATIONS)]
    async with database(settings) as opened:
        return await migrate.pending(opened, opening.MIGRATIONS)


async def held_since(settings: Settings) -> Instant | None:
    """Since when a restored store sends nothing to webhooks; None: it sends, or is not there, or is to be upgraded.

    Raises:
        Unavailable, ValueError, SchemaMismatch: as `pending`.
    """
    if not has_database(settings):
        return None
    async with database(settings) as opened:
        return None if await migrate.pending(opened, opening.MIGRATIONS) else await holding.since(opened)


async def upgrade(settings: Settings) -> list[str]:
    """Apply the migrations that are to come; their names.

    Raises:
        Unavailable, ValueError, SchemaMismatch: as `pending`.
    """
    await asyncio.to_thread(Path(settings.data).mkdir, mode=0o700, parents=True, exist_ok=True)
    async with database(settings) as opened:
        return await migrate.upgrade(opened, opening.MIGRATIONS)


async def require_keys(settings: Settings, master: MasterKey) -> None:
    """Open what the database holds sealed.

    Raises:
        CannotUnseal: it was sealed with another master key.
        Unavailable: the database cannot be opened or reached.
    """
    async with database(settings) as opened:
        await keys.stored_keys(opened, master)


async def require_writable(settings: Settings) -> None:
    """Write to the database without changing anything in it.

    Raises:
        Unavailable, StorageFull: it cannot be written.
    """
    async with database(settings) as opened, opened.transaction() as transaction:
        await versions.check_writable(transaction)
