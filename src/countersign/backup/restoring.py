"""Restoring a backup: everything is written and compared beside its place, and takes its place at the very end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from countersign.backup import foreign, sqlite_snapshot, unfinished
from countersign.backup.archive import BLOBS, KEY, SETTINGS, Manifest, Member
from countersign.backup.databases import POSTGRES, SQLITE, Tables, Told, file_name, segment_name, tables_name
from countersign.backup.foreign import OwnTables
from countersign.backup.making import AT_ONCE, SMALL_BYTES
from countersign.backup.postgres_bulk_load import PostgresBulkLoad
from countersign.backup.reading import Reading, blob_of, disagrees
from countersign.backup.statements import require_plain
from countersign.kernel import ids
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.database import migrate
from countersign.kernel.database.open import SQLITE as SQLITE_ADDRESS
from countersign.kernel.database.open import open_database
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import NotEmpty, Refused, Unavailable

MAX_SENT = 1000
"""Blobs under way whose errors nobody has looked at."""
RESTORED_SETTINGS = f"{SETTINGS}.restored"

Work = Callable[[Transaction], Awaitable[None]]


class DamagedDatabase(Refused):
    """A database file came out of the archive as it went in, and is not whole: it was damaged where it was copied."""

    status = 422
    code = "database_damaged"
    title = "Damaged database"
    resolution = "Restore an earlier backup, and check the disk of the machine that this one was made on."


class OtherEngine(Refused):
    """The backup is of another kind of database than the one to restore into."""

    status = 409
    code = "other_engine"
    title = "Other kind of database"
    resolution = "Set COUNTERSIGN_DATABASE_URL for a backup of PostgreSQL, and leave it empty for one of SQLite."


class Ending(NamedTuple):
    """What is done to a service's tables before anybody may use them: they are compared with what its migrations make
    and with its own, the later migrations are applied, then the work is done."""

    migrations: str
    own_tables: OwnTables
    work: Work


class Target(Protocol):
    """Where databases are restored into."""

    async def take(self, member: Member) -> None:
        """Store a member that is of a database.

        Raises:
            Damaged: it is of none.
        """
        ...

    async def finish(self, manifest: Manifest, endings: Mapping[str, Ending]) -> None:
        """Everything came: check it, and do what is to be done before it is used."""
        ...


class Restore:
    """One restore into a folder that nobody uses yet, or, where one is given, into a blob store: what is put there is
    noted in `sealed`."""

    def __init__(
        self, folder: Path, target: Target, store: BlobStore | None, sealed: list[str], *, told: Told
    ) -> None:
        self._folder = folder
        self._target = target
        self._store = store
        self._told = told
        self._sealed = sealed
        self._blobs_bytes = 0
        self._room = asyncio.Semaphore(AT_ONCE)
        self._sending: list[asyncio.Task[None]] = []

    async def read(self, reading: Reading) -> Manifest:
        """Write down everything; each byte was authenticated, and each blob is compared with its digest.

        Raises:
            Damaged: the archive is not whole; what was written is to be thrown away.
            StorageFull, Unavailable: it cannot be written.
        """
        try:
            for member in reading.members():
                await self._take(member)
        finally:
            await self._settle()
        if reading.manifest is None:
            raise disagrees("it has no manifest")
        return reading.manifest

    async def _take(self, member: Member) -> None:
        if member.name.startswith(BLOBS):
            await (self._keep_file(member) if self._store is None else self._keep_blob(member, self._store))
            self._blobs_bytes += member.size
            self._told("restoring files", self._blobs_bytes)
        elif member.name == KEY:
            write(self._folder / KEY, member)
        elif member.name == SETTINGS:
            # Not under its name: a copy must not send letters or write to the places of the original unasked.
            write(self._folder / RESTORED_SETTINGS, member)
        else:
            await self._target.take(member)
            self._told(f"restoring {member.name}", member.size)

    async def _keep_file(self, member: Member) -> None:
        sha256 = blob_of(member)
        path = self._folder / member.name
        with unfinished.refusals(self._folder):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # One that could not be read whole may have been copied again later.
            path.unlink(missing_ok=True)
            write(path, member)
            if member.digest != sha256:
                path.unlink()
            else:
                path.chmod(0o440)

    async def _keep_blob(self, member: Member, store: BlobStore) -> None:
        """Small ones are sent several at a time, since a store elsewhere takes longer to answer than to receive."""
        sha256 = blob_of(member)
        if member.size > SMALL_BYTES:
            await self._seal(store, sha256, member)
            return
        content = b"".join(member.pieces())
        if member.digest == sha256:
            await self._room.acquire()
            sending = asyncio.create_task(self._put(store, sha256, content))
            sending.add_done_callback(lambda _: self._room.release())
            self._sending.append(sending)
            if len(self._sending) > MAX_SENT:
                await self._settle()

    async def _settle(self) -> None:
        """Wait for what is being sent; raises what one of them did, when all have ended."""
        sending, self._sending = self._sending, []
        for failed in await asyncio.gather(*sending, return_exceptions=True):
            if failed is not None:
                raise failed

    async def _put(self, store: BlobStore, sha256: str, content: bytes) -> None:
        self._sealed.append(sha256)
        await store.put(content)

    async def _seal(self, store: BlobStore, sha256: str, member: Member) -> None:
        upload = f"restore-{ids.new_uuid()}"
        try:
            part = await store.stage(upload, 0, _arriving(member))
            if part.sha256 == sha256:
                self._sealed.append(sha256)
                await store.seal(upload, [part], part.length, sha256)
        finally:
            await store.discard(upload)


def write(path: Path, member: Member) -> None:
    """Write the member into a new file; it is durable when the folder's volume was flushed.

    Raises:
        StorageFull, Unavailable: it cannot be written.
    """
    with unfinished.refusals(path.parent), path.open("xb") as file:
        path.chmod(0o600)
        for piece in member.pieces():
            file.write(piece)


async def _arriving(member: Member) -> AsyncIterator[bytes]:
    for piece in member.pieces():
        yield piece


class SqliteTarget:
    """Files in the folder."""

    def __init__(self, folder: Path, schemas: tuple[str, ...]) -> None:
        self._folder = folder
        self._schemas = schemas

    async def take(self, member: Member) -> None:
        """See Target."""
        if member.name not in {file_name(schema) for schema in self._schemas}:
            raise disagrees(f"{member.name!r} is nothing that it could hold")
        write(self._folder / member.name, member)

    async def finish(self, manifest: Manifest, endings: Mapping[str, Ending]) -> None:
        """See Target.

        Raises:
            DamagedDatabase: a file is not whole.
            ForeignParts: it holds what nobody of ours has made.
            SchemaMismatch: it was made by a newer version.
        """
        for schema in self._schemas:
            path = self._folder / file_name(schema)
            if not path.exists():
                raise disagrees(f"{path.name} is missing")
            # First, since a check for damage evaluates rules and indexes as well.
            await self._compare(path, endings[schema])
            found = sqlite_snapshot.check_integrity(path)
            if found:
                raise DamagedDatabase(f"{path.name} is damaged: {found[0]}")
            await self._end(path, endings[schema])

    async def _compare(self, path: Path, ending: Ending) -> None:
        try:
            database = await open_database(f"{SQLITE_ADDRESS}{path}", schema="", reserve_bytes=0)
            try:
                await foreign.require_own(database, ending.migrations, ending.own_tables, beside=self._folder)
            finally:
                await database.close()
        except Unavailable as error:
            raise DamagedDatabase(f"{path.name} cannot be read: {error.detail}") from error

    async def _end(self, path: Path, ending: Ending) -> None:
        database = await open_database(f"{SQLITE_ADDRESS}{path}", schema="", reserve_bytes=0)
        try:
            await migrate.upgrade(database, ending.migrations)
            async with database.transaction() as transaction:
                await ending.work(transaction)
        finally:
            await database.close()


class PostgresTarget:
    """Schemas that are made in one transaction."""

    def __init__(self, filling: PostgresBulkLoad, schemas: tuple[str, ...]) -> None:
        self._filling = filling
        self._schemas = schemas
        self._tables: dict[str, Tables] = {}
        self._rows: dict[str, int] = {}
        self._at = ("", 0, 0)

    async def take(self, member: Member) -> None:
        """See Target."""
        for schema in self._schemas:
            if member.name == tables_name(schema) and schema not in self._tables:
                self._tables[schema] = member.document(Tables)
                for table in self._tables[schema].tables:
                    require_plain(table)
                await self._filling.begin(schema, self._tables[schema].tables)
                self._rows |= {f"{schema}.{table.name}": 0 for table in self._tables[schema].tables}
                self._at = (schema, 0, 0)
                return
        await self._take_rows(member)

    async def _take_rows(self, member: Member) -> None:
        schema, place, number = self._at
        tables = self._tables[schema].tables if schema else ()
        # Rows come in the order of the tables, of which some have none.
        while place < len(tables) and member.name != segment_name(schema, place, number):
            place, number = place + 1, 0
        if place == len(tables):
            raise disagrees(f"{member.name!r} is nothing that it could hold")
        table = tables[place]
        self._rows[f"{schema}.{table.name}"] += await self._filling.add(schema, table, _arriving(member))
        self._at = (schema, place, number + 1)

    async def finish(self, manifest: Manifest, endings: Mapping[str, Ending]) -> None:
        """See Target.

        Raises:
            ForeignParts: it holds what nobody of ours has made.
            SchemaMismatch: it was made by a newer version.
        """
        if self._rows != manifest.rows:
            raise disagrees("its rows are others than its manifest counts")
        for schema, made in self._tables.items():
            await self._filling.finish(schema, made.tables)
            ending = endings[schema]
            await foreign.require_own_within(self._filling, schema, ending.migrations, ending.own_tables)
            transaction = await self._filling.transaction(schema)
            await migrate.upgrade_within(transaction, ending.migrations, "postgres")
            await ending.work(transaction)


def require_engine(reading: Reading, *, is_postgres: bool) -> None:
    """Insist that the archive fits the database to restore into.

    Raises:
        OtherEngine: it does not.
    """
    if reading.about.engine != (POSTGRES if is_postgres else SQLITE):
        raise OtherEngine(f"the backup is of {reading.about.engine}")


async def require_empty(store: BlobStore) -> None:
    """Insist that a blob store holds nothing: what it held besides would be removed later, as unused.

    Raises:
        NotEmpty: it holds something.
        Unavailable: it cannot be reached.
    """
    await store.check()
    async for sha256, *_ in store.sealed():
        remedy = "Empty it, if an interrupted restore left that; else set COUNTERSIGN_BLOBS_URL to another prefix."
        raise NotEmpty(f"the blob store is not empty: it holds {sha256}", resolution=remedy)
