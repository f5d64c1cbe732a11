"""Writes the databases of an installation into an archive: SQLite as files, PostgreSQL as statements and rows."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from countersign.backup import atomic_files, postgres_snapshot, sqlite_snapshot
from countersign.backup.archive import CHUNK_BYTES, ArchiveWriter
from countersign.backup.postgres_snapshot import PostgresSnapshot
from countersign.backup.snapshot import Snapshot, Table
from countersign.backup.sqlite_snapshot import SqliteSnapshot
from countersign.kernel.database.open import file_name
from countersign.kernel.errors import StorageFull

SQLITE, POSTGRES = "sqlite", "postgres"
SEGMENT_BYTES = 4 * 1024 * 1024

SnapshotT = TypeVar("SnapshotT", bound=Snapshot)
Progress = Callable[[str, int], None]
"""Called with the current step and the number of bytes or rows done."""


class Tables(msgspec.Struct, frozen=True):
    """The tables of a schema, in the order in which the archive contains their rows."""

    tables: tuple[Table, ...]


def tables_name(schema: str) -> str:
    """The name of the archive member that lists the tables of a schema."""
    return f"postgresql/{schema}/tables.json"


def segment_name(schema: str, table: int, number: int) -> str:
    """The name of an archive member with rows of a table. `table` is the table's index in the list of tables."""
    return f"postgresql/{schema}/{table:04d}/{number:08d}.copy"


class Databases(Protocol[SnapshotT]):
    """The databases of an installation: takes snapshots of them, and writes a snapshot into an archive."""

    @property
    def engine(self) -> str:
        """`SQLITE` or `POSTGRES`."""
        ...

    @property
    def schemas(self) -> tuple[str, ...]:
        """The schemas that exist."""
        ...

    def snapshot(self, *, block_writes: bool = False) -> AbstractAsyncContextManager[SnapshotT]:
        """Yield a snapshot of all databases. With `block_writes`, writers wait while the block runs."""
        ...

    async def write(self, snapshot: SnapshotT, archive: ArchiveWriter, progress: Progress) -> dict[str, int]:
        """Write the databases of the snapshot, and return the number of rows of each table, if it is known."""
        ...


class SqliteDatabases:
    """SQLite databases, with one file for each schema.

    `scratch` is a folder for a copy of one file at a time. At least `reserve_bytes` of its volume stay free."""

    engine = SQLITE

    def __init__(self, paths: Mapping[str, Path], scratch: Path, reserve_bytes: int = 0) -> None:
        self._paths = paths
        self._scratch = scratch
        self._reserve_bytes = reserve_bytes

    @property
    def schemas(self) -> tuple[str, ...]:
        """See Databases."""
        return tuple(self._paths)

    def snapshot(self, *, block_writes: bool = False) -> AbstractAsyncContextManager[SqliteSnapshot]:
        """See Databases."""
        return sqlite_snapshot.open_snapshot(self._paths, block_writes=block_writes)

    async def write(self, snapshot: SqliteSnapshot, archive: ArchiveWriter, progress: Progress) -> dict[str, int]:
        """See Databases.

        SQLite can only copy into a file. Each copy is made in the scratch folder, and removed once it is in the
        archive.

        Raises:
            StorageFull: there is not enough space for the copy of a file.
        """
        for schema in snapshot.schemas:
            self._require_space(schema, await snapshot.size(schema))
            with atomic_files.new_file(self._scratch) as copy:
                await snapshot.copy(schema, copy.path, partial(progress, f"copying {schema}"))
                _add_file(archive, file_name(schema), copy.path, partial(progress, f"writing {schema}"))
        return {}

    def _require_space(self, schema: str, size: int) -> None:
        volume = os.statvfs(self._scratch)
        free_bytes = volume.f_bavail * volume.f_frsize - self._reserve_bytes
        if free_bytes < size:
            text = (
                f"{self._scratch} has {max(free_bytes, 0)} bytes to spare, and a copy of {file_name(schema)} "
                f"takes {size}."
            )
            remedy = "Delete files on the volume of the data directory. The backup copies each database to this volume."
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

    def snapshot(self, *, block_writes: bool = False) -> AbstractAsyncContextManager[PostgresSnapshot]:
        """See Databases."""
        return postgres_snapshot.open_snapshot(self._url, self._schemas, block_writes=block_writes)

    async def write(self, snapshot: PostgresSnapshot, archive: ArchiveWriter, progress: Progress) -> dict[str, int]:
        """See Databases."""
        counts: dict[str, int] = {}
        for schema in snapshot.schemas:
            tables = await snapshot.tables(schema)
            archive.add(tables_name(schema), msgspec.json.encode(Tables(tuple(tables))))
            written_bytes = 0
            for index, table in enumerate(tables):
                segments = _Segments(archive, schema, index)
                counts[f"{schema}.{table.name}"] = await snapshot.rows(schema, table, segments.add)
                segments.finish()
                written_bytes += segments.size
                progress(f"writing {schema}", written_bytes)
        return counts


class _Segments:
    """Splits the lines of one table into members."""

    def __init__(self, archive: ArchiveWriter, schema: str, table: int) -> None:
        self._archive = archive
        self._name = partial(segment_name, schema, table)
        self._number = 0
        self._buffer = bytearray()
        self.size = 0

    async def add(self, data: bytes) -> None:
        """Add the next bytes."""
        self._buffer += data
        if len(self._buffer) >= SEGMENT_BYTES:
            self._write(self._buffer.rfind(b"\n") + 1)

    def finish(self) -> None:
        """Write the rest."""
        self._write(len(self._buffer))

    def _write(self, length: int) -> None:
        if not length:
            return
        self._archive.add(self._name(self._number), bytes(self._buffer[:length]))
        del self._buffer[:length]
        self._number += 1
        self.size += length


def _add_file(archive: ArchiveWriter, name: str, path: Path, progress: Callable[[int], None]) -> None:
    with atomic_files.disk_errors(path.parent), path.open("rb") as content:
        archive.begin(name, path.stat().st_size)
        while chunk := content.read(CHUNK_BYTES):
            archive.write(chunk)
            progress(content.tell())
        archive.digests[name] = archive.end()
