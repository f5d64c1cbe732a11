"""Migrates an installation from SQLite to PostgreSQL in one transaction, after its blobs were copied to another store.

Every table is read once, and hashed while its rows are sent. Then it is read back from PostgreSQL. The transaction
commits only if the checksums agree.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import NamedTuple

from countersign.backup import table_checksum
from countersign.backup.creation import BLOBS_PER_PAGE, MAX_CONCURRENT, SMALL_BLOB_BYTES, BlobSource
from countersign.backup.databases import Progress, SqliteDatabases
from countersign.backup.postgres_bulk_load import PostgresBulkLoad
from countersign.backup.restore import TransactionTask
from countersign.backup.snapshot import Snapshot
from countersign.backup.sqlite_snapshot import SqliteSnapshot, SqliteSnapshotReader
from countersign.backup.table_checksum import TableChecksum, TableHasher
from countersign.kernel import ids
from countersign.kernel.blobs import layout
from countersign.kernel.blobs.port import BlobStore, ChecksumMismatch
from countersign.kernel.database.port import Row
from countersign.kernel.errors import NotEmpty, NotFound, Refused

_COLUMNS = "SELECT name, pk FROM pragma_table_info($1) ORDER BY name"


class NotMovable(Refused):
    """A value or blob cannot be migrated. Nothing was migrated."""

    status = 422
    code = "not_movable"
    title = "Cannot be moved"


class ServiceTables(NamedTuple):
    """The tables of a service. `create` creates empty tables. `finish` runs after all rows were sent and compared."""

    create: TransactionTask
    finish: TransactionTask


async def dry_run(snapshot: SqliteSnapshotReader, progress: Progress) -> list[TableChecksum]:
    """Read and check every table of a service as a migration would, but write nothing. Return the checksums of the
    tables.

    Raises:
        NotMovable: PostgreSQL cannot store a value.
    """
    checksums: list[TableChecksum] = []
    for table, statement in await table_checksum.table_reads(snapshot):
        stream = _TableStream(snapshot, table, await _columns(snapshot, table), progress)
        async with aclosing(stream.rows(statement)) as rows:
            async for _ in rows:
                continue
        checksums.append(stream.digest())
    return checksums


async def migrate_tables(
    snapshot: SqliteSnapshot, bulk_load: PostgresBulkLoad, services: Mapping[str, ServiceTables], progress: Progress
) -> dict[str, TableChecksum]:
    """Copy the tables of all services into the transaction. Return their checksums, keyed by schema and name.

    Raises:
        NotMovable: PostgreSQL cannot store a value, or stored a different value.
        NotEmpty: another process has just started to use the database.
        StorageFull, Unavailable: the database cannot be written.
    """
    digests: dict[str, TableChecksum] = {}
    for schema, service in services.items():
        await service.create(await bulk_load.make(schema))
        foreign_key_statements = await bulk_load.open(schema)
        sent_checksums = await _send(snapshot.of(schema), bulk_load, schema, progress)
        await bulk_load.close(schema, foreign_key_statements)
        progress(f"comparing {schema}", 0)
        received_checksums = [checksum async for checksum in table_checksum.table_checksums(await bulk_load.of(schema))]
        if sent_checksums != received_checksums:
            names = ", ".join(sorted({checksum.table for checksum in {*sent_checksums} ^ {*received_checksums}}))
            raise NotMovable(f"these tables of {schema} are not equal on both sides: {names}", resolution=_UNEQUAL)
        await service.finish(await bulk_load.transaction(schema))
        digests |= {f"{schema}.{sent_checksum.table}": sent_checksum for sent_checksum in sent_checksums}
    return digests


_UNEQUAL = "Nothing was moved. Run `countersign verify`, check the memory and disks of both machines, and try again."


async def _send(
    snapshot: SqliteSnapshotReader, bulk_load: PostgresBulkLoad, schema: str, progress: Progress
) -> list[TableChecksum]:
    sent_checksums: list[TableChecksum] = []
    for table, statement in await table_checksum.table_reads(snapshot):
        columns = await _columns(snapshot, table)
        names = [name for name, _ in columns]
        if names != await bulk_load.columns(schema, table):
            text = f"the columns of the table {table} of {schema} differ from those that this version creates"
            raise NotMovable(text, resolution="Run `countersign db upgrade` with this version first.")
        stream = _TableStream(snapshot, table, columns, progress)
        async with aclosing(stream.rows(statement)) as rows:
            await bulk_load.add_rows(schema, table, names, rows)
        sent_checksums.append(stream.digest())
    return sent_checksums


async def _columns(snapshot: SqliteSnapshotReader, table: str) -> list[tuple[str, bool]]:
    """The names of the columns in alphabetical order, and whether each column belongs to the primary key."""
    return [(name, bool(position)) for name, position in await snapshot.fetch(_COLUMNS, table)]


class _TableStream:
    """The rows of one table, hashed and validated while they are read."""

    def __init__(
        self, snapshot: SqliteSnapshotReader, table: str, columns: Sequence[tuple[str, bool]], progress: Progress
    ) -> None:
        self._snapshot = snapshot
        self._table = table
        self._columns = columns
        self._progress = progress
        self._hasher = TableHasher(table)

    async def rows(self, statement: str) -> AsyncGenerator[Row]:
        """Yield the rows that the statement reads.

        Raises:
            NotMovable: PostgreSQL cannot store a value.
        """
        sent_rows = 0
        try:
            async with aclosing(self._snapshot.stream(statement)) as batches:
                async for batch in batches:
                    self._hasher.add(batch)
                    for row in batch:
                        self._require_storable(row)
                        yield row
                    sent_rows += len(batch)
                    self._progress(f"moving {self._table}, rows", sent_rows)
        except UnicodeError as error:
            text = f"a text in the table {self._table} is not UTF-8: {error}"
            remedy = "Correct the text in the SQLite file, with the tools of SQLite."
            raise NotMovable(text, resolution=remedy) from error

    def _require_storable(self, row: Row) -> None:
        for (name, _), value in zip(self._columns, row, strict=True):
            if isinstance(value, str) and "\0" in value:
                keys = zip(self._columns, row, strict=True)
                key = ", ".join(f"{column}={item!r}" for (column, is_key), item in keys if is_key)
                text = f"PostgreSQL cannot store the NUL character that {self._table}.{name} has in the row {key}"
                raise NotMovable(text, resolution="Remove the NUL from that text in SQLite, then try again.")

    def digest(self) -> TableChecksum:
        """The checksum of all rows."""
        return self._hasher.digest()


class BlobMigration:
    """Copies blobs to another store, and reads each blob back from that store.

    Blobs that an earlier run has copied are not copied again, but they are read back as well."""

    def __init__(self, databases: SqliteDatabases, blobs: BlobSource, target: BlobStore, progress: Progress) -> None:
        self._databases = databases
        self._blobs = blobs
        self._target = target
        self._progress = progress
        self._copied: set[bytes] = set()
        self.bytes = 0

    @property
    def count(self) -> int:
        """The number of blobs that were copied and compared."""
        return len(self._copied)

    async def require_own(self, known_statement: str) -> None:
        """Check that the target contains only blobs of this installation: garbage collection would delete others.

        The statement `known_statement` finds a blob in the SQLite databases by its digest, $1.

        Raises:
            NotEmpty: the target contains an unknown blob.
        """
        await self._target.check()
        async with self._databases.snapshot() as snapshot:
            async for sha256, *_ in self._target.sealed_blobs():
                if not await snapshot.fetch(self._blobs.schema, known_statement, sha256):
                    remedy = "If an interrupted move left it, empty the blob store. Otherwise name another prefix."
                    raise NotEmpty(f"the blob store contains an unknown blob, {sha256}", resolution=remedy)

    async def begin(self) -> None:
        """Copy all blobs in use, while other processes may write. Blobs that are removed meanwhile are skipped.

        Raises:
            NotMovable: the target has a blob with other bytes.
            StorageFull, Unavailable: a blob cannot be read or written.
        """
        last_sha256 = ""
        while True:
            async with self._databases.snapshot() as snapshot:
                rows = await self._page(snapshot, last_sha256)
            await self._copy_all([row[0] for row in rows])
            if len(rows) < BLOBS_PER_PAGE:
                return
            last_sha256 = rows[-1][0]

    async def end(self, snapshot: SqliteSnapshot) -> None:
        """Copy the blobs of the snapshot that `begin` has not copied. The caller must block writes, so that no blob is
        removed meanwhile.

        Raises:
            NotMovable: a blob is missing or damaged, or the target has a blob with other bytes.
            StorageFull, Unavailable: see `begin`.
        """
        last_sha256 = ""
        while rows := await self._page(snapshot, last_sha256):
            bad_blobs = await self._copy_all([row[0] for row in rows if bytes.fromhex(row[0]) not in self._copied])
            if bad_blobs:
                text = f"{len(bad_blobs)} blobs of this installation are missing or damaged: {', '.join(bad_blobs)}"
                remedy = "Restore them from a backup (`countersign verify` names them all); nothing was moved."
                raise NotMovable(text, resolution=remedy)
            last_sha256 = rows[-1][0]

    async def _page(self, snapshot: Snapshot, last_sha256: str) -> list[Row]:
        return await snapshot.fetch(self._blobs.schema, self._blobs.statement, last_sha256, BLOBS_PER_PAGE)

    async def _copy_all(self, digests: Sequence[str]) -> list[str]:
        bad_blobs: list[str] = []
        for start in range(0, len(digests), MAX_CONCURRENT):
            batch = digests[start : start + MAX_CONCURRENT]
            sizes = await asyncio.gather(*map(self._copy, batch))
            for sha256, size in zip(batch, sizes, strict=True):
                if size is None:
                    bad_blobs.append(sha256)
                else:
                    self._copied.add(bytes.fromhex(sha256))
                    self.bytes += size
            self._progress("moving files", self.bytes)
        return bad_blobs

    async def _copy(self, sha256: str) -> int | None:
        """Copy a blob and read it back. Return its size, or None if the blob is missing or damaged in the source."""
        source = self._blobs.store
        size = await source.size(sha256)
        if size is None:
            return None
        if await self._target.size(sha256) is None:
            try:
                await self._put(sha256, source.read(sha256, 0, size), size)
            except (ChecksumMismatch, NotFound):
                return None
        received_digest = hashlib.sha256()
        # Read one byte more than the size, so that a longer blob has another digest.
        async for chunk in self._target.read(sha256, 0, size + 1):
            received_digest.update(chunk)
        if received_digest.hexdigest() != sha256:
            remedy = "Remove that blob and run the command again. If this happens again, the blob store damages blobs."
            raise NotMovable(f"the blob {sha256} in the blob store has other bytes", resolution=remedy)
        return size

    async def _put(self, sha256: str, content: AsyncIterator[bytes], size: int) -> None:
        if size <= SMALL_BLOB_BYTES:
            data = b"".join([chunk async for chunk in content])
            layout.check_digest(hashlib.sha256(data).hexdigest(), sha256)
            await self._target.put(data)
            return
        upload = f"move-{ids.new_uuid()}"
        try:
            part = await self._target.stage(upload, 0, content)
            await self._target.seal(upload, [part], size, sha256)
        finally:
            await self._target.discard(upload)


async def blob_totals(snapshot: Snapshot, blobs: BlobSource) -> tuple[int, int]:
    """The number of blobs that the snapshot refers to, and the total size of those that exist."""
    count, total, last_sha256 = 0, 0, ""
    page = partial(snapshot.fetch, blobs.schema, blobs.statement)
    while rows := await page(last_sha256, BLOBS_PER_PAGE):
        for (sha256,) in rows:
            total += await blobs.store.size(sha256) or 0
        count += len(rows)
        last_sha256 = rows[-1][0]
    return count, total
