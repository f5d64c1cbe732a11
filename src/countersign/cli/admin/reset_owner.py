"""Which installation owns the database, the data directory and the bucket that a reset would remove.

A copy of a data directory has the same installation id as its original, and an empty database or directory has none.
A bucket is therefore cleared only if its marker, the database and the data directory have the same id, and the marker
records no later garbage collection than the database does.
"""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from countersign.cli.admin import installation
from countersign.cli.output import Exit, Failure
from countersign.kernel import installation_id
from countersign.kernel.blobs import disk, layout
from countersign.kernel.blobs.open import read_address
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.database.open import file_name
from countersign.kernel.database.postgres_admin import Schemas
from countersign.kernel.errors import Refused
from countersign.kernel.installation_id import Marker

FAILURE = "cannot reset the installation"
PROGRESS = "reset.json"
"""The file that records the id and the last garbage collection of a database that a reset drops. It exists until the
bucket is cleared, so that an interrupted reset can be continued."""
_REMEDY = (
    "Correct COUNTERSIGN_DATABASE_URL, COUNTERSIGN_BLOBS_URL or --data: an installation is reset with its own settings."
)
_BUCKET_REMEDY = (
    "Configure the database and the data directory of the installation that owns the bucket, or remove its objects "
    "with the tools of the S3 service."
)


class ResetOwner(NamedTuple):
    """The installation ids of the data directory, the databases and the blob store (None or empty without an id), and
    the time of the last garbage collection that the database records."""

    directory: str | None
    databases: set[str]
    collected_at: int
    marker: Marker | None

    def ids(self, folder: Path) -> Mapping[str, set[str]]:
        """Return the ids, keyed by the name of the directory, database or blob store that has them."""
        own_ids = {self.directory} if self.directory else set[str]()
        blobs = {self.marker.id} if self.marker else set[str]()
        return {str(folder): own_ids, "the database": self.databases, "the blob store": blobs}


async def read_owner(folder: Path, schemas: Schemas | None, store: BlobStore | None) -> ResetOwner:
    """Read the ids of the data directory, its databases and the blob store.

    `schemas` describes the databases if they are in PostgreSQL; without it, the SQLite files are read.

    Raises:
        Unavailable: the blob store cannot be reached.
    """
    directory = await asyncio.to_thread(_directory_id, folder)
    if schemas is None:
        sqlite_ids = await asyncio.to_thread(_sqlite_ids, folder)
    else:
        sqlite_ids = schemas.ids
    marker = _decode_marker(await store.marker()) if store else None
    if not sqlite_ids and (dropped_id := await asyncio.to_thread(_dropped_database, folder)):
        sqlite_ids = {dropped_id.id: dropped_id.collected_at}
    return ResetOwner(directory, set(sqlite_ids), max(sqlite_ids.values(), default=0), marker)


def require_consistent(owner: ResetOwner, folder: Path) -> None:
    """Check that the data directory, the databases and the blob store do not have different installation ids.

    Raises:
        Failure: two of them have different ids.
    """
    id_by_place = [(place, own_id) for place, ids in owner.ids(folder).items() for own_id in sorted(ids)]
    for place, own_id in id_by_place[1:]:
        if own_id != id_by_place[0][1]:
            reason = (
                f"{id_by_place[0][0]} belongs to the installation {id_by_place[0][1]}, but {place} belongs to {own_id}"
            )
            raise Failure(FAILURE, why=reason, remedy=_REMEDY, exit_code=Exit.CONFLICT)


def require_latest(owner: ResetOwner) -> None:
    """Check that the blob store records no later garbage collection than the database.

    Raises:
        Failure: a later state of the database, or a copy of it, has run garbage collection on the blob store.
    """
    if owner.marker and owner.databases and owner.marker.collected_at > owner.collected_at:
        reason = (
            "garbage collection of the blob store was last run by a later state of this database, or by another copy "
            "of it"
        )
        remedy = f"Run `reset` with that database. To continue with this database, run: {installation_id.ADOPT}"
        raise Failure(FAILURE, why=reason, remedy=remedy, exit_code=Exit.CONFLICT)


def require_bucket(owner: ResetOwner, *, has_files: bool) -> None:
    """Check that the bucket belongs to the same installation as the database and the data directory.

    Raises:
        Failure: the bucket belongs to another installation, it has files but no readable id, or it records a later
            garbage collection than the database.
    """
    if owner.marker is None:
        if has_files:
            reason = "the bucket has files but no readable installation id"
            raise Failure(FAILURE, why=reason, remedy=_BUCKET_REMEDY, exit_code=Exit.CONFLICT)
        return
    own_id = owner.marker.id
    for place, ids in (("database", owner.databases), ("data directory", {owner.directory})):
        if own_id not in ids:
            reason = f"the bucket belongs to the installation {own_id}, and the {place} does not have this id"
            raise Failure(FAILURE, why=reason, remedy=_BUCKET_REMEDY, exit_code=Exit.CONFLICT)
    require_latest(owner)


def bucket_name(blobs_url: str) -> str:
    """Return the bucket and its prefix in the form that `--blobs` expects.

    Raises:
        ValueError: the URL is not a valid address of a bucket.
    """
    address = read_address(blobs_url)
    return f"{address.bucket}/{address.prefix}".rstrip("/")


def require_bucket_name(given_name: str | None, blobs_url: str | None) -> None:
    """Check that `--blobs`, if given, names the configured bucket.

    Raises:
        Failure: `--blobs` names a different bucket, or no bucket is configured.
    """
    if given_name is None:
        return
    remedy = "Leave --blobs out, or correct COUNTERSIGN_BLOBS_URL."
    if not blobs_url:
        raise Failure(FAILURE, why="--blobs is given, but no bucket is configured", remedy=remedy, exit_code=Exit.USAGE)
    if given_name.removeprefix("s3://").rstrip("/") != bucket_name(blobs_url):
        reason = f"--blobs names {given_name}, but the configured bucket is {bucket_name(blobs_url)}"
        raise Failure(FAILURE, why=reason, remedy=remedy, exit_code=Exit.USAGE)


def note_drop(folder: Path, owner: ResetOwner) -> None:
    """Record durably which database is about to be dropped.

    Raises:
        OSError: the file cannot be written.
    """
    for own_id in owner.databases:
        disk.write_atomically(folder / PROGRESS, msgspec.json.encode(Marker(own_id, owner.collected_at)), is_new=False)


def _directory_id(folder: Path) -> str | None:
    try:
        existing_id = installation_id.directory_id(folder)
    except Refused:
        return None
    return existing_id.id if existing_id and existing_id.is_settled else None


def _dropped_database(folder: Path) -> Marker | None:
    try:
        return _decode_marker((folder / PROGRESS).read_bytes())
    except OSError:
        return None


def _decode_marker(content: bytes | None) -> Marker | None:
    try:
        return None if content is None else msgspec.json.decode(content[: layout.MAX_MARKER_BYTES], type=Marker)
    except msgspec.MsgspecError:
        return None


def _sqlite_ids(folder: Path) -> dict[str, int]:
    time_by_id: dict[str, int] = {}
    for schema in installation.SCHEMAS:
        path = folder / file_name(schema)
        if not path.is_file():
            continue
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as connection:
                rows: list[tuple[str, int]] = connection.execute(installation_id.STORED).fetchall()
        except sqlite3.Error:
            # A database that is damaged, or was made by a version without ids, identifies no installation.
            continue
        for own_id, created_at in rows:
            time_by_id[own_id] = max(created_at, time_by_id.get(own_id, 0))
    return time_by_id
