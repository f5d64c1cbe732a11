"""The installation that the places of a `countersign reset` belong to, and whether the bucket may be cleared for it.

A copy of a data directory has the id of its original, and an empty place has none. So a bucket is cleared only where
its marker, the database and the data directory have one id, and no later state of the database has collected it.
"""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from countersign.backup.databases import file_name
from countersign.cli import installation
from countersign.cli.output import Exit, Failure
from countersign.kernel import installation_id
from countersign.kernel.blobs import disk, layout
from countersign.kernel.blobs.open import read_address
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.database.postgres_admin import Schemas
from countersign.kernel.errors import Refused
from countersign.kernel.installation_id import Marker

DOING = "cannot reset the installation"
PROGRESS = "reset.json"
"""The id and state of a database that a reset drops, until the bucket is cleared: an interrupted reset goes on."""
_REMEDY = (
    "Correct COUNTERSIGN_DATABASE_URL, COUNTERSIGN_BLOBS_URL or --data: each installation is removed with its own "
    "settings."
)
_BUCKET_REMEDY = (
    "Configure the database and the data directory of the installation that owns the bucket, or remove its objects "
    "with the tools of the S3 service."
)


class Owner(NamedTuple):
    """The id of each place, None or empty where it has none, and when the database last collected the files."""

    directory: str | None
    databases: set[str]
    collected_at: int
    marker: Marker | None

    def ids(self, folder: Path) -> Mapping[str, set[str]]:
        """The ids by place."""
        own = {self.directory} if self.directory else set[str]()
        blobs = {self.marker.id} if self.marker else set[str]()
        return {str(folder): own, "the database": self.databases, "the blob store": blobs}


async def read(folder: Path, schemas: Schemas | None, store: BlobStore | None) -> Owner:
    """The ids of the data directory, its databases (`schemas` where they are in PostgreSQL), and the blob store.

    Raises:
        Unavailable: the blob store cannot be reached.
    """
    directory = await asyncio.to_thread(_directory, folder)
    if schemas is None:
        found = await asyncio.to_thread(_sqlite_ids, folder)
    else:
        found = schemas.ids
    marker = _decoded(await store.marker()) if store else None
    if not found and (dropped := await asyncio.to_thread(_dropped, folder)):
        found = {dropped.id: dropped.collected_at}
    return Owner(directory, set(found), max(found.values(), default=0), marker)


def require_one(owner: Owner, folder: Path) -> None:
    """Insist that no two places have different ids, and that the blob store is of no later state of the database.

    Raises:
        Failure: they have, or it is.
    """
    named = [(place, own) for place, ids in owner.ids(folder).items() for own in sorted(ids)]
    for place, own in named[1:]:
        if own != named[0][1]:
            why = f"{named[0][0]} is of the installation {named[0][1]}, and {place} of {own}"
            raise Failure(DOING, why=why, remedy=_REMEDY, exit_code=Exit.CONFLICT)


def require_latest(owner: Owner) -> None:
    """Insist that no later state of the database, or copy of it, has collected the blob store.

    Raises:
        Failure: one has.
    """
    if owner.marker and owner.databases and owner.marker.collected_at > owner.collected_at:
        why = "the blob store was last collected by a later state of this database, or by another copy of it"
        remedy = f"Reset that one. If this is the one to go on with, run: {installation_id.ADOPT}"
        raise Failure(DOING, why=why, remedy=remedy, exit_code=Exit.CONFLICT)


def require_bucket(owner: Owner, *, has_files: bool) -> None:
    """Insist that the bucket is the installation's of the database and the data directory.

    Raises:
        Failure: it is not, or that is not certain.
    """
    if owner.marker is None:
        if has_files:
            why = "the bucket has files, and no id of an installation that can be read"
            raise Failure(DOING, why=why, remedy=_BUCKET_REMEDY, exit_code=Exit.CONFLICT)
        return
    own = owner.marker.id
    for place, ids in (("database", owner.databases), ("data directory", {owner.directory})):
        if own not in ids:
            why = f"the bucket is of the installation {own}, and the {place} does not have this id"
            raise Failure(DOING, why=why, remedy=_BUCKET_REMEDY, exit_code=Exit.CONFLICT)
    require_latest(owner)


def bucket_name(blobs_url: str) -> str:
    """The bucket with its prefix, as `--blobs` names it.

    Raises:
        ValueError: the URL cannot be used.
    """
    address = read_address(blobs_url)
    return f"{address.bucket}/{address.prefix}".rstrip("/")


def require_name(named: str | None, blobs_url: str | None) -> None:
    """Insist that `--blobs`, where it is given, names the configured bucket.

    Raises:
        Failure: it names another one, or none is configured.
    """
    if named is None:
        return
    remedy = "Leave --blobs out, or correct COUNTERSIGN_BLOBS_URL."
    if not blobs_url:
        raise Failure(DOING, why="--blobs is given, and no bucket is configured", remedy=remedy, exit_code=Exit.USAGE)
    if named.removeprefix("s3://").rstrip("/") != bucket_name(blobs_url):
        why = f"--blobs names {named}, and the configured bucket is {bucket_name(blobs_url)}"
        raise Failure(DOING, why=why, remedy=remedy, exit_code=Exit.USAGE)


def note_drop(folder: Path, owner: Owner) -> None:
    """Note durably which database is about to be dropped.

    Raises:
        OSError: it cannot be written.
    """
    for own in owner.databases:
        disk.write_atomically(folder / PROGRESS, msgspec.json.encode(Marker(own, owner.collected_at)), is_new=False)


def _directory(folder: Path) -> str | None:
    try:
        found = installation_id.directory_id(folder)
    except Refused:
        return None
    return found.id if found and found.is_settled else None


def _dropped(folder: Path) -> Marker | None:
    try:
        return _decoded((folder / PROGRESS).read_bytes())
    except OSError:
        return None


def _decoded(content: bytes | None) -> Marker | None:
    try:
        return None if content is None else msgspec.json.decode(content[: layout.MAX_MARKER_BYTES], type=Marker)
    except msgspec.MsgspecError:
        return None


def _sqlite_ids(folder: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for schema in installation.SCHEMAS:
        path = folder / file_name(schema)
        if not path.is_file():
            continue
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as connection:
                rows: list[tuple[str, int]] = connection.execute(installation_id.STORED).fetchall()
        except sqlite3.Error:
            # A damaged database, or one of a version without ids, identifies no installation.
            continue
        for own, at in rows:
            found[own] = max(at, found.get(own, 0))
    return found
