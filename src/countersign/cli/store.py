"""The store of a data directory, opened for one piece of administration."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from countersign.cli import configuration, lock, output
from countersign.cli.output import Exit, Failure
from countersign.cli.tables import Tables, made_ready, require_in_use
from countersign.cli.target import DEFAULT_SERVER
from countersign.file_access import explain_permission_error
from countersign.kernel.database import migrate, migration_marker
from countersign.kernel.database.migrate import SchemaMismatch
from countersign.kernel.database.port import Database, Reader
from countersign.kernel.errors import Refused, StorageFull, is_disk_full
from countersign.settings import BadSetting, Settings
from countersign.store import encrypted_columns, lifespan
from countersign.store.auth import tokens
from countersign.store.context import Store

ResultT = TypeVar("ResultT")


async def _no_tables(_: Reader) -> frozenset[str]:
    """The store has those of its migrations alone."""
    return frozenset()


async def _unmade(database: Database) -> list[str]:
    return await migrate.pending(database, lifespan.MIGRATIONS)


TABLES = Tables(
    lifespan.SCHEMA, lifespan.MIGRATIONS, _no_tables, encrypted_columns.COLUMNS, tokens.stored_keys, _unmade
)


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
        is_there = TABLES.may_be_there(settings) if upgrades else await TABLES.are_kept(settings)
        if not is_there:
            if new is None:
                remedy = "Say --data with the directory that is served; `org create` and `serve` make a new one."
                raise missing(settings, doing, remedy)
            new()
        elif new is not None:
            await TABLES.others_done(settings)
        alters = upgrades or not is_there
        async with lifespan.opened(settings, root_url(settings), is_loopback=True, upgrades=alters) as store:
            return await work(store)

    return settled(open_and_work(), doing)


def missing(settings: Settings, doing: str, remedy: str, of: str = "") -> Failure:
    """Why there is no database in the data directory (`of` a service, where one is meant): it is in PostgreSQL, or was
    never made, which has the remedy."""
    if settings.database_url:
        why = f"the database of COUNTERSIGN_DATABASE_URL holds no tables{of or ' of the store'}"
        return Failure(doing, why=why, remedy=f"Correct the setting. {remedy}", exit_code=Exit.NOT_FOUND)
    try:
        require_in_use(settings)
    except migration_marker.DatabaseMoved as refused:
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
    why = explain_permission_error(Path(error.filename), error, "used") if isinstance(error.filename, str) else reason
    if is_disk_full(error):
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


async def pending(settings: Settings) -> list[str]:
    """The migrations that are to come; neither a SQLite file nor a schema is made for that.

    Raises:
        Moved, Unavailable, ValueError: see Tables.
        SchemaMismatch: the database belongs to another version.
    """
    async with TABLES.kept(settings) as database:
        if database is None:
            return _called(migration.name for migration in migrate.migrations(lifespan.MIGRATIONS))
        return _called(await migrate.pending(database, lifespan.MIGRATIONS))


async def upgrade(settings: Settings) -> list[str]:
    """Apply the migrations that are to come; their names.

    Raises:
        Moved, Unavailable, ValueError, SchemaMismatch: as `pending`.
        PrivilegeMissing: PostgreSQL's role may not make or alter tables.
        MasterKeyRefused: see `made_ready`.
    """
    await made_ready(settings)
    async with TABLES.opened(settings) as database:
        return _called(await migrate.upgrade(database, lifespan.MIGRATIONS))


def _called(names: Iterable[str]) -> list[str]:
    return [f"{lifespan.SCHEMA}: {name}" for name in names]
