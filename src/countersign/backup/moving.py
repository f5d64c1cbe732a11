"""Moving an installation from SQLite to PostgreSQL in one transaction there, and its blobs into another store before.

Every table is read once, digested while its rows go over, and read again on the other side: the digests must agree
before anything of it can be seen.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import NamedTuple

from countersign.backup import table_checksum
from countersign.backup.databases import SqliteDatabases, Told
from countersign.backup.making import AT_ONCE, BLOBS_AT_ONCE, SMALL_BYTES, Blobs
from countersign.backup.postgres_bulk_load import PostgresBulkLoad
from countersign.backup.restoring import Work
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
    """Something cannot be moved as it is; nothing of it was, and everything is where it was."""

    status = 422
    code = "not_movable"
    title = "Cannot be moved"


class Service(NamedTuple):
    """How a service's tables are made, empty, and what is done when all rows are there and were compared."""

    make: Work
    settle: Work


async def examine(moment: SqliteSnapshotReader, told: Told) -> list[TableChecksum]:
    """Read every table of a service, as for a move: its digests.

    Raises:
        NotMovable: PostgreSQL could not hold a value.
    """
    found: list[TableChecksum] = []
    for table, statement in await table_checksum.table_reads(moment):
        passing = _Passing(moment, table, await _columns(moment, table), told)
        async with aclosing(passing.rows(statement)) as rows:
            async for _ in rows:
                continue
        found.append(passing.digest())
    return found


async def move(
    snapshot: SqliteSnapshot, filling: PostgresBulkLoad, services: Mapping[str, Service], told: Told
) -> dict[str, TableChecksum]:
    """Move the tables of all services into the transaction: the digest of each, by schema and name.

    Raises:
        NotMovable: PostgreSQL cannot hold a value, or holds something else than was sent.
        NotEmpty: another process has just started to use the database.
        StorageFull, Unavailable: it cannot be written.
    """
    digests: dict[str, TableChecksum] = {}
    for schema, service in services.items():
        await service.make(await filling.make(schema))
        references = await filling.open(schema)
        sent = await _send(snapshot.of(schema), filling, schema, told)
        await filling.close(schema, references)
        told(f"comparing {schema}", 0)
        arrived = [each async for each in table_checksum.table_checksums(await filling.of(schema))]
        if sent != arrived:
            names = ", ".join(sorted({each.table for each in {*sent} ^ {*arrived}}))
            raise NotMovable(f"these tables of {schema} are not equal on both sides: {names}", resolution=_UNEQUAL)
        await service.settle(await filling.transaction(schema))
        digests |= {f"{schema}.{each.table}": each for each in sent}
    return digests


_UNEQUAL = "Nothing was moved. Run `countersign verify`, check the memory and disks of both machines, and try again."


async def _send(
    moment: SqliteSnapshotReader, filling: PostgresBulkLoad, schema: str, told: Told
) -> list[TableChecksum]:
    sent: list[TableChecksum] = []
    for table, statement in await table_checksum.table_reads(moment):
        columns = await _columns(moment, table)
        names = [name for name, _ in columns]
        if names != await filling.columns(schema, table):
            text = f"the table {table} of {schema} has other columns than this version gives it"
            raise NotMovable(text, resolution="Run `countersign db upgrade` with this version first.")
        passing = _Passing(moment, table, columns, told)
        async with aclosing(passing.rows(statement)) as rows:
            await filling.add_rows(schema, table, names, rows)
        sent.append(passing.digest())
    return sent


async def _columns(moment: SqliteSnapshotReader, table: str) -> list[tuple[str, bool]]:
    """The columns by name, and whether each is of the primary key."""
    return [(name, bool(place)) for name, place in await moment.fetch(_COLUMNS, table)]


class _Passing:
    """Rows of one table on their way, digested and looked at."""

    def __init__(
        self, moment: SqliteSnapshotReader, table: str, columns: Sequence[tuple[str, bool]], told: Told
    ) -> None:
        self._moment = moment
        self._table = table
        self._columns = columns
        self._told = told
        self._digesting = TableHasher(table)

    async def rows(self, statement: str) -> AsyncGenerator[Row]:
        """The rows that the statement reads.

        Raises:
            NotMovable: PostgreSQL could not hold a value.
        """
        sent = 0
        try:
            async with aclosing(self._moment.stream(statement)) as batches:
                async for batch in batches:
                    self._digesting.add(batch)
                    for row in batch:
                        self._require_fit(row)
                        yield row
                    sent += len(batch)
                    self._told(f"moving {self._table}, rows", sent)
        except UnicodeError as error:
            text = f"a text in the table {self._table} is no UTF-8: {error}"
            raise NotMovable(text, resolution="Correct it where it is, with the tools of SQLite.") from error

    def _require_fit(self, row: Row) -> None:
        for (name, _), value in zip(self._columns, row, strict=True):
            if isinstance(value, str) and "\0" in value:
                keys = zip(self._columns, row, strict=True)
                key = ", ".join(f"{column}={each!r}" for (column, is_key), each in keys if is_key)
                text = f"PostgreSQL holds no text with a NUL, and {self._table}.{name} has one in the row {key}"
                raise NotMovable(text, resolution="Change that text in the present installation, then move it.")

    def digest(self) -> TableChecksum:
        """Of all rows."""
        return self._digesting.digest()


class MovingBlobs:
    """Copies blobs into another store, and reads each again there. What an earlier run has brought stays, and is read
    again as well."""

    def __init__(self, databases: SqliteDatabases, blobs: Blobs, target: BlobStore, told: Told) -> None:
        self._databases = databases
        self._blobs = blobs
        self._target = target
        self._told = told
        self._moved: set[bytes] = set()
        self.bytes = 0

    @property
    def count(self) -> int:
        """How many were copied and compared."""
        return len(self._moved)

    async def require_own(self, known: str) -> None:
        """Insist that the target holds nothing but blobs that `known` finds by $1 in the databases here: others would
        be collected as unused.

        Raises:
            NotEmpty: it does.
        """
        await self._target.check()
        async with self._databases.taken() as snapshot:
            async for sha256, *_ in self._target.sealed():
                if not await snapshot.fetch(self._blobs.schema, known, sha256):
                    remedy = "Empty it, if an interrupted move left that; else name another prefix."
                    raise NotEmpty(f"the blob store holds {sha256}, which is none of these", resolution=remedy)

    async def begin(self) -> None:
        """Copy all that are in use, while others write; one that is removed meanwhile is left out.

        Raises:
            NotMovable: the target has other bytes of one.
            StorageFull, Unavailable: one cannot be read or written.
        """
        last = ""
        while True:
            async with self._databases.taken() as snapshot:
                rows = await self._page(snapshot, last)
            await self._copy_all([row[0] for row in rows])
            if len(rows) < BLOBS_AT_ONCE:
                return
            last = rows[-1][0]

    async def end(self, snapshot: SqliteSnapshot) -> None:
        """Copy the rest of those that this moment refers to, of which nothing is removed any more.

        Raises:
            NotMovable: one is missing or damaged.
            StorageFull, Unavailable: as `begin`.
        """
        last = ""
        while rows := await self._page(snapshot, last):
            bad = await self._copy_all([row[0] for row in rows if bytes.fromhex(row[0]) not in self._moved])
            if bad:
                text = f"{len(bad)} files are missing or damaged here: {', '.join(bad)}"
                remedy = "Restore them from a backup (`countersign verify` names them all); nothing was moved."
                raise NotMovable(text, resolution=remedy)
            last = rows[-1][0]

    async def _page(self, snapshot: Snapshot, last: str) -> list[Row]:
        return await snapshot.fetch(self._blobs.schema, self._blobs.statement, last, BLOBS_AT_ONCE)

    async def _copy_all(self, digests: Sequence[str]) -> list[str]:
        bad: list[str] = []
        for start in range(0, len(digests), AT_ONCE):
            some = digests[start : start + AT_ONCE]
            sizes = await asyncio.gather(*map(self._copy, some))
            for sha256, size in zip(some, sizes, strict=True):
                if size is None:
                    bad.append(sha256)
                else:
                    self._moved.add(bytes.fromhex(sha256))
                    self.bytes += size
            self._told("moving files", self.bytes)
        return bad

    async def _copy(self, sha256: str) -> int | None:
        """Copy one and read it again: its size; None when it is not to be had here."""
        source = self._blobs.store
        size = await source.size(sha256)
        if size is None:
            return None
        if await self._target.size(sha256) is None:
            try:
                await self._seal(sha256, source.read(sha256, 0, size), size)
            except (ChecksumMismatch, NotFound):
                return None
        arrived = hashlib.sha256()
        # With one byte more, if there is one: it has another digest then.
        async for piece in self._target.read(sha256, 0, size + 1):
            arrived.update(piece)
        if arrived.hexdigest() != sha256:
            remedy = "Remove it there and run the command again; if it happens again, the store damages what it holds."
            raise NotMovable(f"the blob store has other bytes under {sha256}", resolution=remedy)
        return size

    async def _seal(self, sha256: str, content: AsyncIterator[bytes], size: int) -> None:
        if size <= SMALL_BYTES:
            data = b"".join([piece async for piece in content])
            layout.check_digest(hashlib.sha256(data).hexdigest(), sha256)
            await self._target.put(data)
            return
        upload = f"move-{ids.new_uuid()}"
        try:
            part = await self._target.stage(upload, 0, content)
            await self._target.seal(upload, [part], size, sha256)
        finally:
            await self._target.discard(upload)


async def sizes(store: BlobStore, snapshot: Snapshot, blobs: Blobs) -> tuple[int, int]:
    """How many blobs a moment refers to, and their bytes, as far as they are there."""
    count, total, last = 0, 0, ""
    page = partial(snapshot.fetch, blobs.schema, blobs.statement)
    while rows := await page(last, BLOBS_AT_ONCE):
        for (sha256,) in rows:
            total += await store.size(sha256) or 0
        count += len(rows)
        last = rows[-1][0]
    return count, total
