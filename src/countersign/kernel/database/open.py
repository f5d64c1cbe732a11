"""Opens the database at a URL. Only this module chooses the engine.

The modules for PostgreSQL are imported when they are used, since they load a driver that an installation on SQLite does
not need.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from countersign.kernel import connection_urls
from countersign.kernel.database import sqlite, sqlite_read_only
from countersign.kernel.database.instrumentation import InstrumentedDatabase
from countersign.kernel.database.port import Database
from countersign.kernel.database.read_only import ExistingDatabase
from countersign.kernel.database.row_spool import NewCipher
from countersign.kernel.database.sqlite_outside_tables import ConnectedFile, TextFunction

SQLITE = "sqlite:///"


def file_name(schema: str) -> str:
    """Return the name of the SQLite file of a schema, in a data directory and in a backup."""
    return f"{schema}.sqlite"


async def open_database(
    url: str,
    *,
    schema: str,
    pool: int = 10,
    read_deadline_s: float = 5.0,
    reserve_bytes: int = sqlite.RESERVE_BYTES,
    max_bytes: int = 0,
    name: str = "",
    connected: ConnectedFile | None = None,
) -> Database:
    """Open the database at the URL: `sqlite:////absolute/file.db` or `postgresql://…`.

    On PostgreSQL the service's tables are in `schema`, which is created if missing, and `pool` is the number of
    connections. A SQLite file belongs to one service, so that it needs no schema; `reserve_bytes` is the free space
    that writes leave on the volume of the file, and `max_bytes` is the maximum size of the file (0: unlimited). `name`
    is the label of the database in metrics (default: the schema). Transactions of a SQLite file can also change the
    tables of `connected`, the SQLite file of another application.

    Raises:
        Unavailable: the file cannot be opened, or the server cannot be reached.
        ValueError: the URL has another scheme, or cannot be parsed. The message quotes no part of the URL.
    """
    name = name or schema
    if url.startswith(SQLITE):
        database = await sqlite.open_sqlite(
            Path(url.removeprefix(SQLITE)),
            read_deadline_s=read_deadline_s,
            reserve_bytes=reserve_bytes,
            max_bytes=max_bytes,
            name=name,
            connected=connected,
        )
        return InstrumentedDatabase(database, name)
    if url.startswith(connection_urls.POSTGRES_SCHEMES):
        connection_urls.require_postgres(url)
        from countersign.kernel.database import postgres

        reached = await postgres.open_postgres(
            url, schema=schema, pool=pool, read_deadline_s=read_deadline_s, name=name
        )
        return InstrumentedDatabase(reached, name)
    raise ValueError("a database URL begins with sqlite:/// or postgresql://")


async def open_existing(
    url: str,
    *,
    pool: int,
    read_deadline_s: float,
    search_path: Sequence[str] = (),
    functions: Mapping[str, TextFunction] | None = None,
    new_cipher: NewCipher,
    recovers: bool = False,
) -> ExistingDatabase:
    """Open the database at the URL for reading: `sqlite:////absolute/file.db` or `postgresql://…`.

    `search_path` are the schemas in which its views and functions find their names. `functions` are additional
    functions of statements on SQLite, which take a text. `new_cipher` returns a cipher for the rows of a stream. With
    `recovers`, a transaction that a crash has left in a SQLite file is rolled back first.

    Raises:
        Unavailable: the file cannot be opened, or the server cannot be reached.
        ValueError: the URL has another scheme, or cannot be parsed.
    """
    if url.startswith(SQLITE):
        path = Path(url.removeprefix(SQLITE))
        opened = partial(sqlite_read_only.ExistingSqlite, path, pool, read_deadline_s, functions or {}, new_cipher)
        return await asyncio.to_thread(opened, recovers=recovers)
    if not url.startswith(connection_urls.POSTGRES_SCHEMES):
        raise ValueError("a database URL begins with sqlite:/// or postgresql://")
    from countersign.kernel.database import postgres_read_only

    return await postgres_read_only.open_postgres(
        url, pool=pool, read_deadline_s=read_deadline_s, search_path=search_path, new_cipher=new_cipher
    )
