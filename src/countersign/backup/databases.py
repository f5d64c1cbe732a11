"""The databases of an installation as members of an archive: SQLite as files, PostgreSQL as statements and rows."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from countersign.backup import postgres_snapshot, sqlite_snapshot, unfinished
from countersign.backup.archive import PIECE_BYTES, Writing
from countersign.backup.postgres_snapshot import PostgresSnapshot
from countersign.backup.snapshot import Snapshot, Table
from countersign.backup.sqlite_snapshot import SqliteSnapshot
from countersign.kernel.errors import StorageFull

SQLITE, POSTGRES = "sqlite", "postgres"
SEGMENT_BYTES = 4 * 1024 * 1024

SnapshotT = TypeVar("SnapshotT", bound=Snapshot)
Told = Callable[[str, int], None]
"""Hears what is being done, and how many bytes of it are."""


class Tables(msgspec.Struct, frozen=True):
    """The tables of a schema, in the order in which their rows follow."""

    tables: tuple[Table, ...]


def file_name(schema: str) -> str:
    """A SQLite file's name in the archive, and in a data directory."""
    return f"{schema}.sqlite"


def tables_name(schema: str) -> str:
    """The name of the member with a schema's tables."""
    return f"postgresql/{schema}/tables.json"


def segment_name(schema: str, table: int, number: int) -> str:
    """The name of a member with rows of the table at this place of the list."""
    return f"postgresql/{schema}/{table:04d}/{number:08d}.copy"


class Databases(Protocol[SnapshotT]):
    """Where the databases are, and how one moment of them is written down."""

    @property
    def engine(self) -> str:
        """`SQLITE` or `POSTGRES`."""
        ...

    @property
    def schemas(self) -> tuple[str, ...]:
        """The services whose data there is."""
        ...

    def taken(self, *, holds_writes: bool = False) -> AbstractAsyncContextManager[SnapshotT]:
        """One moment of all of them, until the block is left."""
        ...

    async def write(self, snapshot: SnapshotT, archive: Writing, told: Told) -> dict[str, int]:
        """Write all databases of that moment; how many rows each table has, where that is known."""
        ...


class SqliteDatabases:
    """Files, by the services whose they are; `scratch` is a folder for a copy of one at a time, on whose volume
    `reserve_bytes` stay free."""

    engine = SQLITE

    def __init__(self, paths: Mapping[str, Path], scratch: Path, reserve_bytes: int = 0) -> None:
        self._paths = paths
        self._scratch = scratch
        self._reserve_bytes = reserve_bytes

    @property
    def schemas(self) -> tuple[str, ...]:
        """See Databases."""
        return tuple(self._paths)

    def taken(self, *, holds_writes: bool = False) -> AbstractAsyncContextManager[SqliteSnapshot]:
        """See Databases."""
        return sqlite_snapshot.open_snapshot(self._paths, holds_writes=holds_writes)

    async def write(self, snapshot: SqliteSnapshot, archive: Writing, told: Told) -> dict[str, int]:
        """See Databases.

        SQLite copies a file page by page, and only into a file; so each is copied beside the original first, where
        it is as well guarded, and gone again when it is in the archive.

        Raises:
            StorageFull: there is no room for that copy.
        """
        for schema in snapshot.schemas:
            self._require_room(schema, await snapshot.size(schema))
            with unfinished.file(self._scratch) as copy:
                await snapshot.copy(schema, copy.path, partial(told, f"copying {schema}"))
                _add_file(archive, file_name(schema), copy.path, partial(told, f"writing {schema}"))
        return {}


    def _require_room(self, schema: str, size: int) -> None:
        volume = os.statvfs(self._scratch)
        free = volume.f_bavail * volume.f_frsize - self._reserve_bytes
        if free < size:
            text = f"{self._scratch} has {max(free, 0)} bytes to spare, and a copy of {file_name(schema)} takes {size}."
            remedy = "Free space on the volume of the data directory: each database is copied there for a moment."
            raise StorageFull(text, resolution=remedy)


class PostgresDatabases:
    """Schemas of one PostgreSQL database."""

    engine = POSTGRES

    def __init__(self, url: str, schemas: tuple[str, ...]) -> None:
        self._url = url
        self._schemas = schemas

    @property
    def schemas(self) -> tuple[str, ...]:
        """See Databases."""
        return self._schemas

    def taken(self, *, holds_writes: bool = False) -> AbstractAsyncContextManager[PostgresSnapshot]:
        """See Databases."""
        return postgres_snapshot.open_snapshot(self._url, self._schemas, holds_writes=holds_writes)

    async def write(self, snapshot: PostgresSnapshot, archive: Writing, told: Told) -> dict[str, int]:
        """See Databases."""
        counts: dict[str, int] = {}
        for schema in snapshot.schemas:
            tables = await snapshot.tables(schema)
            archive.add(tables_name(schema), msgspec.json.encode(Tables(tuple(tables))))
            written = 0
            for place, table in enumerate(tables):
                segments = _Segments(archive, schema, place)
                counts[f"{schema}.{table.name}"] = await snapshot.rows(schema, table, segments.take)
                segments.finish()
                written += segments.size
                told(f"writing {schema}", written)
        return counts


class _Segments:
    """Lines of one table, cut into members between two lines."""

    def __init__(self, archive: Writing, schema: str, table: int) -> None:
        self._archive = archive
        self._name = partial(segment_name, schema, table)
        self._number = 0
        self._waiting = bytearray()
        self.size = 0

    async def take(self, data: bytes) -> None:
        """The next bytes."""
        self._waiting += data
        if len(self._waiting) >= SEGMENT_BYTES:
            self._cut(self._waiting.rfind(b"\n") + 1)

    def finish(self) -> None:
        """There are no more."""
        self._cut(len(self._waiting))

    def _cut(self, length: int) -> None:
        if not length:
            return
        self._archive.add(self._name(self._number), bytes(self._waiting[:length]))
        del self._waiting[:length]
        self._number += 1
        self.size += length


def _add_file(archive: Writing, name: str, path: Path, told: Callable[[int], None]) -> None:
    with unfinished.refusals(path.parent), path.open("rb") as content:
        archive.begin(name, path.stat().st_size)
        while piece := content.read(PIECE_BYTES):
            archive.write(piece)
            told(content.tell())
        archive.digests[name] = archive.end()
