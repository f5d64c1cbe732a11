"""Restores a backup: writes and verifies everything under a temporary name, and renames it at the end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from countersign.backup import atomic_files, schema_validation, sqlite_snapshot
from countersign.backup.archive import (
    BLOBS,
    KEY,
    SETTINGS,
    ArchiveMember,
    ArchiveReader,
    Manifest,
    blob_digest,
    invalid_archive,
)
from countersign.backup.creation import MAX_CONCURRENT, SMALL_BLOB_BYTES
from countersign.backup.databases import POSTGRES, SQLITE, Progress, Tables, segment_name, tables_name
from countersign.backup.postgres_bulk_load import PostgresBulkLoad
from countersign.backup.schema_validation import OwnTables, require_plain
from countersign.kernel import ids
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.database import migrate
from countersign.kernel.database.open import SQLITE as SQLITE_ADDRESS
from countersign.kernel.database.open import file_name, open_database
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import NotEmpty, Refused, Unavailable

MAX_PENDING = 1000
"""The maximum number of uploads whose results have not been read yet."""
RESTORED_SETTINGS = f"{SETTINGS}.restored"

TransactionTask = Callable[[Transaction], Awaitable[None]]


class DamagedDatabase(Refused):
    """A database file matches its digest in the archive, but is damaged: it was already damaged when it was copied."""

    status = 422
    code = "database_damaged"
    title = "Damaged database"
    resolution = "Restore an earlier backup, and check the disk of the machine that made this backup."


class OtherEngine(Refused):
    """The backup was made from a different database engine than the one to restore into."""

    status = 409
    code = "other_engine"
    title = "Other kind of database"
    resolution = "For a backup of PostgreSQL, set COUNTERSIGN_DATABASE_URL. For a backup of SQLite, leave it empty."


class SchemaCompletion(NamedTuple):
    """The last steps for a restored schema before it is used.

    First the tables of the schema are compared with the tables that `migrations` and the modules (`own_tables`) create.
    Then later migrations are applied, and `task` is run."""

    migrations: str
    own_tables: OwnTables
    task: TransactionTask


class RestoreTarget(Protocol):
    """The databases to restore into."""

    async def add(self, member: ArchiveMember) -> None:
        """Store a member that belongs to a database.

        Raises:
            Damaged: the member does not belong to a database.
        """
        ...

    async def finish(self, manifest: Manifest, completions: Mapping[str, SchemaCompletion]) -> None:
        """Verify the databases after the last member, and run the last steps of each schema."""
        ...


class Restore:
    """A restore into a new folder. With `store`, the blobs are written to this store, and their digests are appended
    to `sealed_blobs`."""

    def __init__(
        self,
        folder: Path,
        target: RestoreTarget,
        store: BlobStore | None,
        sealed_blobs: list[str],
        *,
        progress: Progress,
    ) -> None:
        self._folder = folder
        self._target = target
        self._store = store
        self._progress = progress
        self._sealed = sealed_blobs
        self._blobs_bytes = 0
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self._uploads: list[asyncio.Task[None]] = []

    async def read(self, archive: ArchiveReader) -> Manifest:
        """Write every member. Each byte is authenticated, and each blob is compared with its digest.

        Raises:
            Damaged: the archive is not valid. The caller must discard everything that was written.
            StorageFull, Unavailable: a member cannot be written.
        """
        try:
            for member in archive.members():
                await self._add(member)
        finally:
            await self._finish_uploads()
        if archive.manifest is None:
            raise invalid_archive("it has no manifest")
        return archive.manifest

    async def _add(self, member: ArchiveMember) -> None:
        if member.name.startswith(BLOBS):
            await (self._write_blob(member) if self._store is None else self._upload_blob(member, self._store))
            self._blobs_bytes += member.size
            self._progress("restoring files", self._blobs_bytes)
        elif member.name == KEY:
            write_member(self._folder / KEY, member)
        elif member.name == SETTINGS:
            # Use another name, so that the settings are not loaded: a copy must not send mail, or write to the stores
            # of the original.
            write_member(self._folder / RESTORED_SETTINGS, member)
        else:
            await self._target.add(member)
            self._progress(f"restoring {member.name}", member.size)

    async def _write_blob(self, member: ArchiveMember) -> None:
        sha256 = blob_digest(member)
        path = self._folder / member.name
        with atomic_files.disk_errors(self._folder):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Remove an earlier copy: if it was damaged, the archive may contain a second copy of the blob.
            path.unlink(missing_ok=True)
            write_member(path, member)
            if member.digest != sha256:
                path.unlink()
            else:
                path.chmod(0o440)

    async def _upload_blob(self, member: ArchiveMember, store: BlobStore) -> None:
        """Upload a blob.

        Small blobs are uploaded concurrently, because the latency of a remote store exceeds the time of a transfer."""
        sha256 = blob_digest(member)
        if member.size > SMALL_BLOB_BYTES:
            await self._upload_large(store, sha256, member)
            return
        content = b"".join(member.chunks())
        if member.digest == sha256:
            await self._slots.acquire()
            upload = asyncio.create_task(self._put(store, sha256, content))
            upload.add_done_callback(lambda _: self._slots.release())
            self._uploads.append(upload)
            if len(self._uploads) > MAX_PENDING:
                await self._finish_uploads()

    async def _finish_uploads(self) -> None:
        """Wait for all pending uploads, then raise the first error."""
        uploads, self._uploads = self._uploads, []
        for error in await asyncio.gather(*uploads, return_exceptions=True):
            if error is not None:
                raise error

    async def _put(self, store: BlobStore, sha256: str, content: bytes) -> None:
        self._sealed.append(sha256)
        await store.put(content)

    async def _upload_large(self, store: BlobStore, sha256: str, member: ArchiveMember) -> None:
        upload = f"restore-{ids.new_uuid()}"
        try:
            part = await store.stage(upload, 0, _stream(member))
            if part.sha256 == sha256:
                self._sealed.append(sha256)
                await store.seal(upload, [part], part.length, sha256)
        finally:
            await store.discard(upload)


def write_member(path: Path, member: ArchiveMember) -> None:
    """Write the member to a new file. The caller must flush the volume to make the file durable.

    Raises:
        StorageFull, Unavailable: the file cannot be written.
    """
    with atomic_files.disk_errors(path.parent), path.open("xb") as file:
        path.chmod(0o600)
        for chunk in member.chunks():
            file.write(chunk)


async def _stream(member: ArchiveMember) -> AsyncIterator[bytes]:
    for chunk in member.chunks():
        yield chunk


class SqliteTarget:
    """SQLite files in the folder."""

    def __init__(self, folder: Path, schemas: tuple[str, ...]) -> None:
        self._folder = folder
        self._schemas = schemas

    async def add(self, member: ArchiveMember) -> None:
        """See RestoreTarget."""
        if member.name not in {file_name(schema) for schema in self._schemas}:
            raise invalid_archive(f"unexpected member {member.name!r}")
        write_member(self._folder / member.name, member)

    async def finish(self, manifest: Manifest, completions: Mapping[str, SchemaCompletion]) -> None:
        """See RestoreTarget.

        Raises:
            DamagedDatabase: a file is damaged.
            UnknownSchemaObjects: a file has objects that Countersign does not create.
            SchemaMismatch: a newer version created a file.
        """
        for schema in self._schemas:
            path = self._folder / file_name(schema)
            if not path.exists():
                raise invalid_archive(f"{path.name} is missing")
            # Validate the schema first, because the integrity check evaluates constraints and index expressions.
            await self._validate_schema(path, completions[schema])
            errors = sqlite_snapshot.check_integrity(path)
            if errors:
                raise DamagedDatabase(f"{path.name} is damaged: {errors[0]}")
            await self._complete(path, completions[schema])

    async def _validate_schema(self, path: Path, completion: SchemaCompletion) -> None:
        try:
            database = await open_database(f"{SQLITE_ADDRESS}{path}", schema="", reserve_bytes=0)
            try:
                await schema_validation.require_own(
                    database, completion.migrations, completion.own_tables, scratch_folder=self._folder
                )
            finally:
                await database.close()
        except Unavailable as error:
            raise DamagedDatabase(f"{path.name} cannot be read: {error.detail}") from error

    async def _complete(self, path: Path, completion: SchemaCompletion) -> None:
        database = await open_database(f"{SQLITE_ADDRESS}{path}", schema="", reserve_bytes=0)
        try:
            await migrate.upgrade(database, completion.migrations)
            async with database.transaction() as transaction:
                await completion.task(transaction)
        finally:
            await database.close()


class PostgresTarget:
    """PostgreSQL schemas that are created in one transaction."""

    def __init__(self, bulk_load: PostgresBulkLoad, schemas: tuple[str, ...]) -> None:
        self._bulk_load = bulk_load
        self._schemas = schemas
        self._tables: dict[str, Tables] = {}
        self._rows: dict[str, int] = {}
        self._position = ("", 0, 0)

    async def add(self, member: ArchiveMember) -> None:
        """See RestoreTarget."""
        for schema in self._schemas:
            if member.name == tables_name(schema) and schema not in self._tables:
                self._tables[schema] = member.document(Tables)
                for table in self._tables[schema].tables:
                    require_plain(table)
                await self._bulk_load.begin(schema, self._tables[schema].tables)
                self._rows |= {f"{schema}.{table.name}": 0 for table in self._tables[schema].tables}
                self._position = (schema, 0, 0)
                return
        await self._add_rows(member)

    async def _add_rows(self, member: ArchiveMember) -> None:
        schema, index, number = self._position
        tables = self._tables[schema].tables if schema else ()
        # Rows come in the order of the tables. Skip the tables without rows.
        while index < len(tables) and member.name != segment_name(schema, index, number):
            index, number = index + 1, 0
        if index == len(tables):
            raise invalid_archive(f"unexpected member {member.name!r}")
        table = tables[index]
        self._rows[f"{schema}.{table.name}"] += await self._bulk_load.add(schema, table, _stream(member))
        self._position = (schema, index, number + 1)

    async def finish(self, manifest: Manifest, completions: Mapping[str, SchemaCompletion]) -> None:
        """See RestoreTarget.

        Raises:
            UnknownSchemaObjects: a schema has objects that Countersign does not create.
            SchemaMismatch: a newer version created a schema.
        """
        if self._rows != manifest.rows:
            raise invalid_archive("the numbers of its rows differ from its manifest")
        for schema, restored_rows in self._tables.items():
            await self._bulk_load.finish(schema, restored_rows.tables)
            completion = completions[schema]
            await schema_validation.require_own_within(
                self._bulk_load, schema, completion.migrations, completion.own_tables
            )
            transaction = await self._bulk_load.transaction(schema)
            await migrate.upgrade_within(transaction, completion.migrations, "postgres")
            await completion.task(transaction)


def require_engine(archive: ArchiveReader, *, is_postgres: bool) -> None:
    """Check that the archive was made from the same engine as the database to restore into.

    Raises:
        OtherEngine: the engines differ.
    """
    if archive.about.engine != (POSTGRES if is_postgres else SQLITE):
        raise OtherEngine(f"the backup contains a database of {archive.about.engine}")


async def require_empty(store: BlobStore) -> None:
    """Check that a blob store is empty. Otherwise garbage collection would later delete the blobs that it contains.

    Raises:
        NotEmpty: the store contains a blob.
        Unavailable: the store cannot be reached.
    """
    await store.check()
    async for sha256, *_ in store.sealed_blobs():
        remedy = (
            "If an interrupted restore left this blob, empty the blob store. "
            "Otherwise set COUNTERSIGN_BLOBS_URL to another prefix."
        )
        raise NotEmpty(f"the blob store is not empty: it contains {sha256}", resolution=remedy)
