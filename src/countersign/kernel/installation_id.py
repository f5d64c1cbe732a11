"""The id of an installation, stored in each of its databases, its data directory and its blob store.

A service that opens its database with the files of another installation would treat those files as unreferenced. So
each location stores the id, and a service does not start if two locations have different ids, or if one location has no
id and its content contradicts the id of the others. The first start on empty locations creates the id; an upgrade adds
it to existing locations.

Concurrent first starts agree on one id: the data directory accepts the first proposal, and the database the first row.
The directory's proposal is valid only after it is marked as settled, which is the last write.
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from countersign.kernel import clock, connection_urls, ids
from countersign.kernel.blobs import disk
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.clock import Instant
from countersign.kernel.database import migration_marker
from countersign.kernel.database.port import Database, Dialect, Reader, Transaction
from countersign.kernel.errors import Refused, Unavailable

FILE_NAME = "installation.json"
LOCK_NAME = "installation.lock"
ADOPT = "countersign installation adopt"
SAMPLE = 20
"""The number of files from the database that are looked up in a blob store without an id."""

STORED = "SELECT id, collected_at FROM installation"
INSERT = "INSERT INTO installation (one, id, collected_at) VALUES (1, $1, 0) ON CONFLICT (one) DO NOTHING"
REPLACE = """
    INSERT INTO installation (one, id, collected_at) VALUES (1, $1, $2)
    ON CONFLICT (one) DO UPDATE SET id = excluded.id, collected_at = excluded.collected_at
"""
FORGET = "DELETE FROM installation"
ADVANCE = "UPDATE installation SET collected_at = $1 WHERE collected_at < $1"
LOCK_ROW = "UPDATE installation SET collected_at = collected_at"
_TABLE_EXISTS: dict[Dialect, str] = {
    "sqlite": "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = $1",
    "postgres": "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = $1",
}
_SIBLING_READABLE = """
    SELECT 1
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = 'installation'
      AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
"""
# Every service of the database takes this lock, and holds it until the transaction ends.
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('countersign.installation'))"


class InstallationMismatch(Refused):
    """The database, the data directory and the blob store do not belong to one installation."""

    status = 409
    code = "installation_mismatch"
    title = "Different installations"
    resolution = (
        "Correct COUNTERSIGN_DATABASE_URL, COUNTERSIGN_DATA (--data) or COUNTERSIGN_BLOBS_URL. `countersign "
        f"installation show` lists the id of each of them. If they belong together on purpose, run: {ADOPT}"
    )


class DatabaseOutdated(Refused):
    """The last garbage collection of the blob store was run by a later state of the database, or by a copy of it."""

    status = 409
    code = "database_outdated"
    title = "Database older than its blob store"
    resolution = (
        "Find out whether another copy of this database is served with the same files, and stop one of them. If this "
        f"database was put back to an earlier state on purpose, run: {ADOPT}"
    )


class Marker(msgspec.Struct, frozen=True):
    """The blob store's marker: the id, and the last garbage collection."""

    id: str
    collected_at: int = 0


class DirectoryId(msgspec.Struct, frozen=True):
    """The content of the id file in the data directory. An id that is not settled was proposed by a start that was
    interrupted; `services` are the schemas whose databases have the id."""

    id: str
    is_settled: bool
    services: tuple[str, ...] = ()


class ServiceTables(NamedTuple):
    """The schemas, tables and statements that are used to check a service's database.

    `used_table` has rows once the service is used, and `is_used` checks for a row. For a service with files, `files`
    reads $1 digests that the blob store must have. `sibling_schema` is the schema of the other service in the same
    PostgreSQL database, and `sibling_id` reads the id in that schema.
    """

    schema: str
    used_table: str
    is_used: str
    files_table: str
    files: str
    sibling_schema: str
    sibling_id: str


@dataclass(frozen=True, slots=True)
class InstallationLocations:
    """The locations of one service: the data directory, the database (its URL is empty for SQLite in the directory),
    and the blob store with its display name. A service without files has no blob store. `database` is missing while the
    service has no database yet; `sibling` is then the id in the other service's database."""

    folder: Path
    database_url: str
    service: ServiceTables
    database: Database | None
    blobs: BlobStore | None = None
    blobs_name: str = ""
    sibling: str | None = None

    @property
    def database_name(self) -> str:
        """The display name of the database, without user and password."""
        if self.database_url:
            return f"the {self.service.schema} database in {connection_urls.postgres_location(self.database_url)}"
        return f"the database {self.folder / self.service.schema}.sqlite"

    @property
    def folder_name(self) -> str:
        """The display name of the data directory."""
        return f"the data directory {self.folder}"


class InstallationState(NamedTuple):
    """The id that each location has, or None. `sibling` is the id of the other service in the same database. `own` is
    the id in the directory's file, whether it is settled or not."""

    own: DirectoryId | None
    blobs: str | None
    are_blobs_read: bool
    sibling: str | None
    database: str | None

    @property
    def directory(self) -> str | None:
        """The directory's id, or None if it is not settled."""
        return self.own.id if self.own and self.own.is_settled else None

    @property
    def known(self) -> str | None:
        """The id of the installation, if any location has one."""
        return self.database or self.sibling or self.directory or self.blobs


async def read(places: InstallationLocations) -> InstallationState:
    """Read the id of each location.

    The database is read last. It gets its id before the other locations do, so that a concurrent start does not look
    like a mismatch.

    Raises:
        InstallationMismatch: the file or the marker with the id cannot be read.
        Unavailable: the database cannot be reached.
    """
    own_id = await asyncio.to_thread(directory_id, places.folder)
    are_blobs_read, marker = True, None
    if places.blobs is not None:
        try:
            marker = await blobs_marker(places.blobs, places.blobs_name)
        except Unavailable:
            are_blobs_read = False
    return InstallationState(
        own=own_id,
        blobs=marker and marker.id,
        are_blobs_read=are_blobs_read,
        sibling=await _sibling_id(places, places.database) if places.database else places.sibling,
        database=await database_id(places.database) if places.database else None,
    )


async def examine(places: InstallationLocations) -> InstallationState:
    """Read the id of each location, and check that they belong together.

    Raises:
        InstallationMismatch: the locations do not belong together; the message names two of the locations with their
            ids.
        DatabaseMoved: the directory's migration marker cannot be read.
        Unavailable: the database cannot be reached.
    """
    installation_state = await read(places)
    _require_equal(places, installation_state)
    if installation_state.database is None:
        await _require_fit(places, installation_state)
    if installation_state.directory is None:
        await asyncio.to_thread(_require_marked, places)
    if places.blobs is not None and installation_state.are_blobs_read and installation_state.blobs is None:
        await _require_own_files(places, places.blobs)
    return installation_state


async def register(places: InstallationLocations, installation_state: InstallationState) -> str | None:
    """Write the id to the locations that have none according to `examine`; returns the id.

    Returns None and writes nothing if no location has an id and the blob store cannot be reached.

    Raises:
        InstallationMismatch: another process has concurrently written a different id to a location.
        OSError: the directory cannot be written.
        Unavailable, StorageFull: the database or the blob store cannot be written.
    """
    if installation_state.known is None and not installation_state.are_blobs_read:
        return None
    own_id = installation_state.database
    if own_id is None:
        proposed_id = installation_state.known or await asyncio.to_thread(_propose, places.folder)
        own_id = await _store_id(places, _require_database(places), proposed_id)
    if places.blobs is not None and installation_state.are_blobs_read and installation_state.blobs is None:
        await claim(places.blobs, own_id, places.blobs_name)
    if not _lists_service(places, installation_state.own):
        await asyncio.to_thread(_settle_directory, places, own_id)
    return own_id


async def claim(blobs: BlobStore, own_id: str, name: str) -> None:
    """Mark the blob store as owned by the installation, unless it belongs to another installation.

    Raises:
        InstallationMismatch: the blob store belongs to another installation.
        Unavailable, StorageFull: the blob store cannot be written.
    """
    if await blobs.mark(msgspec.json.encode(Marker(own_id)), is_new=True):
        return
    marker = await blobs_marker(blobs, name)
    if marker is None or marker.id != own_id:
        raise _mismatch(name, marker.id if marker else None, "this installation", own_id)


async def advance(database: Database, blobs: BlobStore, name: str) -> None:
    """Record the time of a garbage collection in the database, and then in the blob store.

    If the database is later restored to an earlier state, or a copy of it remains in use, the blob store's time is
    later than the database's, which `require_latest` detects.

    Several nodes may call this concurrently. The marker is read before the row: if another node advances in between,
    the row is later than the marker, which is valid. The time is copied from the row to the marker while the row is
    locked, so that a slower node cannot set the marker back.

    Raises:
        InstallationMismatch: the database and the blob store have different ids, or one of them has no id.
        DatabaseOutdated: a later state of the database has run garbage collection on the blob store.
        Unavailable, StorageFull: the database or the blob store cannot be read or written.
    """
    row = await _row_of_latest(database, blobs, name)
    now = max(clock.now(), Instant(row.collected_at + 1))
    async with database.transaction() as transaction:
        await transaction.run(ADVANCE, now)
    # Use another transaction, since the row must be durable before the marker is written.
    async with database.transaction() as transaction:
        await transaction.run(LOCK_ROW)
        row = await _row_of_latest(transaction, blobs, name)
        await blobs.mark(msgspec.json.encode(row), is_new=False)


async def require_latest(database: Database, blobs: BlobStore, name: str) -> None:
    """Check that no later state of the database has run garbage collection on the blob store.

    Raises:
        DatabaseOutdated: a later state of the database has run garbage collection on the blob store.
        Unavailable: the database or the blob store cannot be read.
    """
    # The marker must be read before the row: see `advance`.
    marker = await blobs_marker(blobs, name)
    row = await database.fetch_one(STORED)
    if row is not None and marker is not None and row[0] == marker.id:
        _require_latest(Instant(row[1]), marker, name)


async def adopt(places: InstallationLocations, own_id: str, adopted_at: Instant) -> None:
    """Write the id to all locations, replacing any other. The directory is written last, so that an interruption is
    detected.

    Raises:
        OSError, Unavailable, StorageFull: a location cannot be written.
    """
    if places.blobs is not None:
        await places.blobs.mark(msgspec.json.encode(Marker(own_id, adopted_at)), is_new=False)
    async with _require_database(places).transaction() as transaction:
        await transaction.run(REPLACE, own_id, adopted_at)
    await asyncio.to_thread(_replace_in_directory, places, own_id)
    mark = await asyncio.to_thread(migration_marker.read_marker, places.folder)
    if mark is not None and places.database_url:
        named_mark = msgspec.structs.replace(mark, to=connection_urls.postgres_location(places.database_url))
        await asyncio.to_thread(migration_marker.write_marker, places.folder, named_mark)


async def replace(transaction: Transaction, own_id: str) -> None:
    """Write the id to the database of the transaction, replacing any other."""
    await transaction.run(REPLACE, own_id, 0)


async def forget(transaction: Transaction) -> None:
    """Remove the id: the next start creates a new one."""
    await transaction.run(FORGET)


async def database_id(reader: Database) -> str | None:
    """Return the id in the database, or None if the database has no id, or no table for it yet."""
    if await reader.fetch_one(_TABLE_EXISTS[reader.dialect], "installation") is None:
        return None
    row = await reader.fetch_one(STORED)
    return None if row is None else row[0]


def directory_id(folder: Path) -> DirectoryId | None:
    """Read the data directory's file.

    Raises:
        InstallationMismatch: the file cannot be read.
    """
    path = folder / FILE_NAME
    try:
        return msgspec.json.decode(path.read_bytes(), type=DirectoryId)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise InstallationMismatch(f"{path}, which has the id of the installation, cannot be read") from error


async def blobs_marker(blobs: BlobStore, name: str) -> Marker | None:
    """Read the blob store's marker.

    Raises:
        InstallationMismatch: the marker is damaged.
        Unavailable: the store cannot be reached.
    """
    content = await blobs.marker()
    try:
        return None if content is None else msgspec.json.decode(content, type=Marker)
    except msgspec.MsgspecError as error:
        raise InstallationMismatch(f"the marker of {name}, which has the id of its installation, is damaged") from error


def write_directory(folder: Path, own_id: str, services: Iterable[str]) -> None:
    """Write the id, which the databases of these services have, to the data directory. The id is durable on return.

    Raises:
        OSError: the file cannot be written.
    """
    content = DirectoryId(own_id, is_settled=True, services=tuple(sorted(services)))
    disk.write_atomically(folder / FILE_NAME, msgspec.json.encode(content), is_new=False)


def _require_equal(places: InstallationLocations, installation_state: InstallationState) -> None:
    ids_by_place = [
        (places.database_name, installation_state.database),
        (f"the {places.service.sibling_schema} database there", installation_state.sibling),
        (places.folder_name, installation_state.directory),
        (places.blobs_name, installation_state.blobs),
    ]
    first_place, *other_places = [(name, own_id) for name, own_id in ids_by_place if own_id is not None] or [("", None)]
    for name, own_id in other_places:
        if own_id != first_place[1]:
            raise _mismatch(*first_place, name, own_id)


async def _require_fit(places: InstallationLocations, installation_state: InstallationState) -> None:
    """Check that a database without an id may be given the id of the other locations, or a new id."""
    if installation_state.blobs is not None:
        raise _mismatch(places.database_name, None, places.blobs_name, installation_state.blobs)
    has_sibling = installation_state.sibling is not None or await asyncio.to_thread(_has_sibling_file, places)
    had_own = installation_state.own is not None and places.service.schema in installation_state.own.services
    if installation_state.directory is not None and (had_own or not has_sibling):
        raise _mismatch(places.database_name, None, places.folder_name, installation_state.directory)
    is_used = await _is_used(places)
    if places.database_url and not is_used and await asyncio.to_thread(migration_marker.is_ambiguous, places.folder):
        text = f"{places.folder_name} contains SQLite databases, and {places.database_name} is empty"
        remedy = "Move them with `countersign db migrate`, or name another data directory with --data."
        raise InstallationMismatch(text, resolution=remedy)


def _has_sibling_file(places: InstallationLocations) -> bool:
    """Return whether the directory has the SQLite database of the other service."""
    return not places.database_url and (places.folder / f"{places.service.sibling_schema}.sqlite").exists()


def _require_marked(places: InstallationLocations) -> None:
    """Check that a directory without an id has no marker of another database."""
    mark = migration_marker.read_marker(places.folder) if places.database_url else None
    if mark is not None and mark.to != connection_urls.postgres_location(places.database_url):
        text = f"{places.folder_name} belongs to the database {mark.to} ({migration_marker.FILE_NAME} in it says so)"
        raise InstallationMismatch(f"{text}, and {places.database_name} was named")


async def _require_own_files(places: InstallationLocations, blobs: BlobStore) -> None:
    """Check that a blob store without an id has files that the database refers to, or that neither of the two has
    files."""
    expected_digests = await _expected_digests(places)
    for sha256 in expected_digests:
        if await blobs.size(sha256) is not None:
            return
    if expected_digests:
        text = (
            f"{places.database_name} refers to files, and {places.blobs_name} has none of the first "
            f"{len(expected_digests)}"
        )
        raise InstallationMismatch(text)
    is_empty = await _is_empty(blobs.sealed_blobs())
    if is_empty and not await _is_used(places):
        is_empty = await _is_empty(blobs.staged_uploads())
    if not is_empty:
        raise InstallationMismatch(f"{places.blobs_name} has files, and {places.database_name} refers to none")


async def _is_empty(entries: AsyncIterator[object]) -> bool:
    async for _ in entries:
        return False
    return True


async def _is_used(places: InstallationLocations) -> bool:
    """Return whether the service has users."""
    service, database = places.service, places.database
    table, statement = service.used_table, service.is_used
    if database is None or await database.fetch_one(_TABLE_EXISTS[database.dialect], table) is None:
        return False
    return await database.fetch_one(statement) is not None


async def _expected_digests(places: InstallationLocations) -> list[str]:
    """Return some digests that the blob store must have."""
    service, database = places.service, places.database
    if database is None:
        return []
    if await database.fetch_one(_TABLE_EXISTS[database.dialect], service.files_table) is None:
        return []
    return [sha256 for (sha256,) in await database.fetch(service.files, SAMPLE)]


async def _sibling_id(places: InstallationLocations, reader: Reader) -> str | None:
    """Return the id in the other service's schema of the same PostgreSQL database."""
    service = places.service
    if not places.database_url or await reader.fetch_one(_SIBLING_READABLE, service.sibling_schema) is None:
        return None
    row = await reader.fetch_one(service.sibling_id)
    return None if row is None else row[0]


def _require_database(places: InstallationLocations) -> Database:
    if places.database is None:
        raise LookupError(f"{places.database_name} was not made yet")
    return places.database


async def _store_id(places: InstallationLocations, database: Database, proposed_id: str) -> str:
    """Write the id to the database, unless another process has written one first; returns the stored id."""
    async with database.transaction() as transaction:
        if database.dialect == "postgres":
            await transaction.fetch(_ONE_AT_A_TIME)
        await transaction.run(INSERT, await _sibling_id(places, transaction) or proposed_id)
        row = await transaction.fetch_one(STORED)
    if row is None:
        raise LookupError("the id of the installation was removed while it was recorded")
    return row[0]


def _propose(folder: Path) -> str:
    """Propose an id in the data directory; concurrent processes get the same id.

    Raises:
        OSError: the file cannot be written.
    """
    new_directory_id = DirectoryId(ids.new_uuid(), is_settled=False)
    disk.write_atomically(folder / FILE_NAME, msgspec.json.encode(new_directory_id), is_new=True)
    existing_id = directory_id(folder)
    return new_directory_id.id if existing_id is None else existing_id.id


def _lists_service(places: InstallationLocations, directory_id: DirectoryId | None) -> bool:
    """Return whether the directory has the id and lists the service."""
    return directory_id is not None and directory_id.is_settled and places.service.schema in directory_id.services


def _settle_directory(places: InstallationLocations, own_id: str) -> None:
    with _locked(places.folder):
        existing_id = directory_id(places.folder)
        if existing_id is not None and existing_id.is_settled and existing_id.id != own_id:
            raise _mismatch(places.folder_name, existing_id.id, places.database_name, own_id)
        _add_service(places, own_id, existing_id)


def _replace_in_directory(places: InstallationLocations, own_id: str) -> None:
    """Write the id to the directory, replacing any other."""
    with _locked(places.folder):
        _add_service(places, own_id, directory_id(places.folder))


def _add_service(places: InstallationLocations, own_id: str, directory_id: DirectoryId | None) -> None:
    """Write the id, and add the service to the services that have the id already. The caller holds the lock of the
    file, since both services may start concurrently."""
    other_services = directory_id.services if directory_id is not None and directory_id.id == own_id else ()
    write_directory(places.folder, own_id, {*other_services, places.service.schema})


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Hold the lock of the directory's file during the block.

    Raises:
        OSError: the lock cannot be acquired.
    """
    # Lock a separate file, since every write replaces the file that contains the id.
    lock_file = disk.Descriptor(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock_file.fd, fcntl.LOCK_EX)
        yield
    finally:
        lock_file.close()


async def _row_of_latest(reader: Reader, blobs: BlobStore, name: str) -> Marker:
    """Return the database's id and time, after checking that no later state of the database has run garbage collection.

    Raises:
        InstallationMismatch, DatabaseOutdated, Unavailable: see `advance`.
    """
    marker = await blobs_marker(blobs, name)
    row = await reader.fetch_one(STORED)
    if row is None or marker is None or row[0] != marker.id:
        raise _mismatch("the database", row[0] if row else None, name, marker.id if marker else None)
    _require_latest(Instant(row[1]), marker, name)
    return Marker(*row)


def _require_latest(collected_at: Instant, marker: Marker, name: str) -> None:
    if marker.collected_at > collected_at:
        own_time = clock.rfc3339(collected_at) if collected_at else "never"
        raise DatabaseOutdated(
            f"the collector last ran on {name} at {clock.rfc3339(Instant(marker.collected_at))}, and by the database "
            f"{own_time}: the database is an older state, or another copy of it is served with the same files"
        )


def _mismatch(first_name: str, one_id: str | None, second_name: str, other_id: str | None) -> InstallationMismatch:
    def describe(name: str, own_id: str | None) -> str:
        return f"{name} belongs to the installation {own_id}" if own_id else f"{name} has no id of an installation"

    return InstallationMismatch(f"{describe(first_name, one_id)}, and {describe(second_name, other_id)}")
