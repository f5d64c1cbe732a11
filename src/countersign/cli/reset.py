"""`countersign reset`: all that an installation has stored is listed and, once that is confirmed, removed."""

import asyncio
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from countersign.backup import unfinished
from countersign.backup.databases import file_name
from countersign.cli import configuration, installation, lock, output, record_store
from countersign.cli.administration import data_option
from countersign.cli.output import Exit, Failure
from countersign.distribution import opening
from countersign.distribution.jobs import scratch
from countersign.distribution.sandbox import folders
from countersign.kernel import installation_id
from countersign.kernel.blobs import layout
from countersign.kernel.blobs.open import open_blobs
from countersign.kernel.database import address, moved, postgres_removal
from countersign.kernel.http import counters
from countersign.kernel.mail import outbox
from countersign.kernel.security import masterkey
from countersign.settings import Settings

DOING = "cannot reset the installation"
KEPT = "countersign.toml"
_SQLITE_ENDINGS = ("", "-wal", "-shm", "-journal")
# In this order: the databases first, so that no database is left that refers to files that are gone; the key last.
_OWN = (
    *(file_name(schema) + ending for schema in installation.SCHEMAS for ending in _SQLITE_ENDINGS),
    opening.BLOBS_FOLDER,
    scratch.FOLDER,
    folders.FOLDER,
    outbox.FOLDER,
    counters.FILE_NAME,
    "counters.lock",
    layout.MARKER,
    installation_id.LOCK_NAME,
    moved.FILE_NAME,
    masterkey.FILE_NAME,
    lock.FILE_NAME,
)


class Contents(NamedTuple):
    """What would be removed, and what is left in the data directory: the settings, and what is not the product's."""

    database: str
    schemas: dict[str, int]
    bucket: str
    blobs: int
    uploads: int
    files: list[Path]
    left: list[Path]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to remove; a lock file alone is nothing."""
        files = [path for path in self.files if path.name != lock.FILE_NAME]
        return not (self.schemas or self.blobs or self.uploads or files)

    @property
    def lines(self) -> list[str]:
        """The contents in words."""
        found = [f"{self.database}: the schema {name} with {count} tables" for name, count in self.schemas.items()]
        if self.blobs or self.uploads:
            found.append(f"{self.bucket}: {self.blobs} files, {self.uploads} uploads in progress")
        return found + [str(path) + ("/" if path.is_dir() else "") for path in self.files]

    @property
    def members(self) -> dict[str, object]:
        """The contents as JSON."""
        return {
            "database": self.database,
            "schemas": self.schemas,
            "bucket": self.bucket,
            "blobs": self.blobs,
            "uploads": self.uploads,
            "files": [str(path) for path in self.files],
            "left": [str(path) for path in self.left],
        }


@click.command()
@click.option("--yes", is_flag=True, help="Remove it without asking.")
@click.option("--dry-run", is_flag=True, help="List what would be removed, and change nothing.")
@data_option
@output.json_option
def reset(*, yes: bool, dry_run: bool, data: str | None) -> None:
    """Remove all that the installation has stored: databases, files, letters, counters and the master key.

    It is listed first and has to be confirmed. Refused while the installation is served. The settings
    (countersign.toml), backups and whatever else is in the data directory stay. A start afterwards makes a new one.
    """
    settings = configuration.load(data=data)
    folder = Path(settings.data).absolute()
    contents = record_store.settled(_contents(settings, folder), DOING)
    if contents.is_empty:
        output.answer({"removed": False, **contents.members}, f"There is nothing to remove in {_places(settings)}.")
        return
    if dry_run:
        output.answer({"removed": False, **contents.members}, "\n".join(["Would be removed:", *_indented(contents)]))
        return
    if lock.is_held(folder):
        remedy = "Stop `countersign serve` and run it again."
        raise Failure(DOING, why=f"{folder} is served", remedy=remedy, exit_code=Exit.CONFLICT)
    _confirm(contents, is_confirmed=yes)
    with lock.held(folder, DOING):
        record_store.settled(_remove(settings, folder, contents), DOING)
    output.answer({"removed": True, **contents.members}, f"Removed all of the installation in {_places(settings)}.")
    for path in contents.left:
        output.note(f"Left in place: {path}")


def _confirm(contents: Contents, *, is_confirmed: bool) -> None:
    """List what is removed, and ask on a terminal.

    Raises:
        Failure: it was not confirmed.
    """
    output.note("This removes for good:")
    for line in _indented(contents):
        output.note(line)
    if any(path.name == masterkey.FILE_NAME for path in contents.files):
        output.note("Copies of the databases that `countersign backup` did not make open with this master.key alone.")
    if is_confirmed:
        return
    if not sys.stdin.isatty():
        remedy = "Run it again with --yes."
        raise Failure(DOING, why="the removal is not confirmed", remedy=remedy, exit_code=Exit.USAGE)
    if not click.confirm("Remove all of it?", err=True):
        raise Failure(DOING, why="the removal was not confirmed; nothing is removed", exit_code=Exit.USAGE)


def _indented(contents: Contents) -> list[str]:
    return [f"  {line}" for line in contents.lines]


def _places(settings: Settings) -> str:
    places = [settings.data]
    if settings.database_url:
        places.append(address.shown(settings.database_url))
    if settings.blobs_url:
        places.append(settings.blobs_url)
    return ", ".join(places)


async def _contents(settings: Settings, folder: Path) -> Contents:
    """What is there.

    Raises:
        Failure: the places belong to different installations.
        Moved: the databases are in PostgreSQL, and the setting for it is missing.
        Unavailable: a place cannot be read.
    """
    moved.require_in_use(folder, settings.database_url)
    schemas = postgres_removal.Schemas({}, set())
    if settings.database_url:
        schemas = await postgres_removal.examine(settings.database_url, installation.SCHEMAS)
    blobs = uploads = 0
    store = open_blobs(settings.blobs_url, folder, reserve_bytes=0) if settings.blobs_url else None
    marker = await store.marker() if store else None
    _require_one(settings, folder, {"database": schemas.ids, "blob store": _id_in(marker)})
    if store:
        blobs = len([None async for _ in store.sealed()])
        uploads = len([None async for _ in store.staged()])
    own, left = await asyncio.to_thread(_files, folder)
    database = address.shown(settings.database_url) if settings.database_url else ""
    return Contents(database, schemas.tables, settings.blobs_url, blobs, uploads, own, left)


def _id_in(marker: bytes | None) -> set[str]:
    """The installation's id in a blob store's marker; none where there is no marker that can be read."""
    try:
        return {msgspec.json.decode(marker or b"", type=_Marker).id}
    except msgspec.MsgspecError:
        return set()


def _require_one(settings: Settings, folder: Path, ids: Mapping[str, set[str]]) -> None:
    """Insist that the database and the blob store of the settings are the data directory's; `ids` are theirs, by place.

    Raises:
        Failure: it is another installation's.
    """
    mark = moved.read(folder) if settings.database_url else None
    remedy = (
        "Correct COUNTERSIGN_DATABASE_URL, COUNTERSIGN_BLOBS_URL or --data: each installation is removed with its own "
        "settings."
    )
    if mark is not None and mark.to != address.place(settings.database_url):
        why = f"{folder} belongs to the database {mark.to}, and COUNTERSIGN_DATABASE_URL names another"
        raise Failure(DOING, why=why, remedy=remedy, exit_code=Exit.CONFLICT)
    try:
        own = next(iter(_id_in((folder / layout.MARKER).read_bytes())), None)
    except OSError:
        own = None
    if own is None:
        return
    for place, found in ids.items():
        if others := ", ".join(sorted(found - {own})):
            why = f"{folder} is of the installation {own}, and the {place} of {others}"
            raise Failure(DOING, why=why, remedy=remedy, exit_code=Exit.CONFLICT)


class _Marker(msgspec.Struct):
    id: str


def _files(folder: Path) -> tuple[list[Path], list[Path]]:
    """The product's own files and folders in the data directory, in the order of their removal; and all others."""
    own = [folder / name for name in _OWN if (folder / name).exists() or (folder / name).is_symlink()]
    own = [*folder.glob(f"{unfinished.PREFIX}*{unfinished.ENDING}"), *own]
    left = [path for path in sorted(folder.iterdir()) if path not in own] if folder.is_dir() else []
    return own, left


async def _remove(settings: Settings, folder: Path, contents: Contents) -> None:
    """Remove it: PostgreSQL's schemas, the bucket's files, then the data directory's own. Interrupted at any moment,
    the same command removes what is left.

    Raises:
        DatabaseInUse: another node serves the database.
        Unavailable: a place cannot be written.
    """
    if contents.schemas:
        await postgres_removal.drop(settings.database_url, list(contents.schemas))
    if settings.blobs_url:
        await open_blobs(settings.blobs_url, folder, reserve_bytes=0).clear()
    for path in contents.files:
        with unfinished.refusals(path):
            if path.name == opening.BLOBS_FOLDER:
                await open_blobs(None, path, reserve_bytes=0).clear()
            await asyncio.to_thread(_remove_path, path)
    await asyncio.to_thread(unfinished.sync_folder, folder)


def _remove_path(path: Path) -> None:
    """Remove the file or folder; of a link, the link, and a folder of files that has more than these stays."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    elif path.name == opening.BLOBS_FOLDER:
        if not any(path.iterdir()):
            path.rmdir()
    else:
        shutil.rmtree(path)
