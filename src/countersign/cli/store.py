"""The store of a data directory, opened for one piece of administration."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from countersign.cli import configuration, lock, output
from countersign.cli.output import Exit, Failure
from countersign.cli.target import DEFAULT_SERVER
from countersign.distribution import opening, sealed
from countersign.distribution.context import Store
from countersign.distribution.identity import keys
from countersign.kernel import sealing
from countersign.kernel.clock import Instant
from countersign.kernel.database import migrate, moved, versions
from countersign.kernel.database.migrate import SchemaMismatch
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Database
from countersign.kernel.database.postgres_session import rights_at
from countersign.kernel.errors import Refused, StorageFull
from countersign.kernel.security.masterkey import MasterKey, master_key
from countersign.kernel.webhooks import holding
from countersign.reach import denied
from countersign.settings import BadSetting, Settings

ResultT = TypeVar("ResultT")

DATABASE_FILE = "distribution.sqlite"
MOST_LOOKS, LOOKED_S = 100, 0.1
"""How often, and after which pause, tables are looked at that are being made."""


def run(
    data: str | None,
    doing: str,
    work: Callable[[Store], Awaitable[ResultT]],
    *,
    new: Callable[[], None] | None = None,
    upgrades: bool = False,
) -> ResultT:
    """What the work makes of the store in the data directory (None: the configured one), beside a running server.

    Where there is none, one is made if `new` is given and refuses nothing of what the work will be refused. The tables
    of one that is there are altered only if it `upgrades`.

    Raises:
        Failure: there is no store, it is not up to date, a setting cannot be used, the store cannot be opened, or the
            work was refused.
    """
    settings = configuration.load(data=data)

    async def open_and_work() -> ResultT:
        # PostgreSQL may have no tables yet where several nodes start at once, of which this is one.
        is_there = has_database(settings) if upgrades else await is_kept(settings)
        if not is_there:
            if new is None:
                remedy = "Say --data with the directory that is served; `org create` and `serve` make a new one."
                raise missing(settings, doing, remedy)
            new()
        elif new is not None:
            await others_done(lambda: pending(settings))
        alters = upgrades or not is_there
        async with opening.opened(settings, root_url(settings), is_loopback=True, upgrades=alters) as store:
            return await work(store)

    return settled(open_and_work(), doing)


async def others_done(pending: Callable[[], Awaitable[list[str]]]) -> None:
    """Wait a while for another process that makes the tables at this moment, which takes it a second or two."""
    for _ in range(MOST_LOOKS):
        if not await pending():
            return
        await asyncio.sleep(LOOKED_S)


def missing(settings: Settings, doing: str, remedy: str, of: str = "") -> Failure:
    """Why there is no database in the data directory (`of` a service, where one is meant): it is in PostgreSQL, or was
    never made, which has the remedy."""
    if settings.database_url:
        why = f"the database of COUNTERSIGN_DATABASE_URL holds no tables{of or ' of the store'}"
        return Failure(doing, why=why, remedy=f"Correct the setting. {remedy}", exit_code=Exit.NOT_FOUND)
    try:
        moved.require_in_use(Path(settings.data), settings.database_url)
    except moved.Moved as refused:
        return Failure(doing, why=refused.detail, remedy=refused.remedy, exit_code=Exit.CONFLICT)
    return Failure(doing, why=f"{settings.data} holds no database{of}", remedy=remedy, exit_code=Exit.NOT_FOUND)


def settled(work: Coroutine[Any, Any, ResultT], doing: str) -> ResultT:
    """The result of the work; refusals become the failure of a command.

    Raises:
        Failure: the work was refused, or a setting, file or folder cannot be used.
    """
    try:
        return asyncio.run(work)
    except Refused as refused:
        raise output.refusal(doing, refused) from refused
    except SchemaMismatch as error:
        raise Failure(doing, why=str(error), remedy=error.remedy, exit_code=Exit.CONFLICT) from error
    except (BadSetting, ValueError) as error:
        remedy = "Correct it; `countersign config` explains every setting."
        raise Failure(doing, why=str(error), remedy=remedy, exit_code=Exit.USAGE) from error
    except OSError as error:
        raise _unusable(error, doing) from error


def _unusable(error: OSError, doing: str) -> Failure:
    """What a file or folder that cannot be used means to whoever runs the command."""
    reason = error.strerror or type(error).__name__
    why = denied(Path(error.filename), error, "used") if isinstance(error.filename, str) else reason
    if error.errno in output.NO_ROOM:
        return Failure(doing, why=why, remedy=StorageFull.resolution, exit_code=Exit.STORAGE_FULL)
    return Failure(doing, why=why, remedy="Let that user read and write there, or choose another with --data.")


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


async def is_kept(settings: Settings) -> bool:
    """Whether the store's tables were ever begun here; nothing is made by asking.

    Raises:
        Moved: they are in PostgreSQL, and the setting for it is missing.
        Unavailable, ValueError: as `database`.
    """
    moved.require_in_use(Path(settings.data), settings.database_url)
    if not settings.database_url:
        return has_database(settings)
    (there,) = await rights_at(settings.database_url, (opening.SCHEMA,))
    return there.has_tables


async def pending(settings: Settings) -> list[str]:
    """The migrations that are to come; neither a SQLite file nor a schema is made for that.

    Raises:
        Unavailable, ValueError: as `database`.
        SchemaMismatch: the database belongs to another version.
    """
    if not await is_kept(settings):
        return _called(migration.name for migration in migrate.migrations(opening.MIGRATIONS))
    async with database(settings) as opened:
        return _called(await migrate.pending(opened, opening.MIGRATIONS))


async def held_since(settings: Settings) -> Instant | None:
    """Since when a restored store sends nothing to webhooks; None: it sends, or is not there, or is to be upgraded.

    Raises:
        Unavailable, ValueError, SchemaMismatch: as `pending`.
    """
    if not await is_kept(settings):
        return None
    async with database(settings) as opened:
        return None if await migrate.pending(opened, opening.MIGRATIONS) else await holding.since(opened)


async def upgrade(settings: Settings) -> list[str]:
    """Apply the migrations that are to come; their names.

    Raises:
        Unavailable, ValueError, SchemaMismatch: as `pending`.
        RightMissing: PostgreSQL's role may not make or alter tables.
        MasterKeyRefused: there are databases without the key that sealed them, or it cannot be made.
        Moved: as `is_kept`.
    """
    moved.require_in_use(Path(settings.data), settings.database_url)
    await asyncio.to_thread(Path(settings.data).mkdir, mode=0o700, parents=True, exist_ok=True)
    if not settings.database_url:
        # Beside a database without one, no key would ever be made.
        await asyncio.to_thread(master_key, settings)
    async with database(settings) as opened:
        return _called(await migrate.upgrade(opened, opening.MIGRATIONS))


def _called(names: Iterable[str]) -> list[str]:
    return [f"{opening.SCHEMA}: {name}" for name in names]


async def require_keys(settings: Settings, master: MasterKey) -> None:
    """Insist that every master key which sealed anything in the database is present, and opens the store's own keys.

    Raises:
        CannotUnseal: keys are missing; it names each. Or the store's own keys do not open.
        Unavailable: the database cannot be opened or reached.
    """
    async with database(settings) as opened:
        await sealing.require_keys(opened, sealed.COLUMNS, master)
        await keys.stored_keys(opened, master)


async def require_writable(settings: Settings) -> None:
    """Write to the database without changing anything in it.

    Raises:
        Unavailable, StorageFull: it cannot be written.
    """
    async with database(settings) as opened, opened.transaction() as transaction:
        await versions.check_writable(transaction)
