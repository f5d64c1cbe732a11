"""`countersign reset`: list everything that an installation has stored and, after a confirmation, remove it."""

import asyncio
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import click

from countersign.backup import atomic_files
from countersign.cli import configuration, output
from countersign.cli.admin import installation, lock, open_records
from countersign.cli.admin.reset_owner import (
    FAILURE,
    PROGRESS,
    ResetOwner,
    bucket_name,
    note_drop,
    read_owner,
    require_bucket,
    require_bucket_name,
    require_consistent,
    require_latest,
)
from countersign.cli.options import data_option
from countersign.cli.output import Exit, Failure
from countersign.file_sync import sync_folder
from countersign.kernel import connection_urls, installation_id
from countersign.kernel.blobs import layout
from countersign.kernel.blobs.open import open_blobs
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.database import migration_marker, postgres_admin, sqlite_redo_log
from countersign.kernel.database.open import file_name
from countersign.kernel.http import rate_limit
from countersign.kernel.mail import transports
from countersign.kernel.security import masterkey
from countersign.settings import Settings
from countersign.store import lifespan
from countersign.store.jobs import runner
from countersign.store.sandbox import folders

SETTINGS_FILE = "countersign.toml"
PINS_NOTE = "Clients still trust the old signing keys: run `countersign unpin ORG` on each client before its next pull."
_SQLITE_ENDINGS = ("", "-wal", "-shm", "-journal", sqlite_redo_log.ENDING, f"{sqlite_redo_log.ENDING}-journal")
# Files are removed in this order. Databases are removed first, so that none is left that refers to removed files. The
# master key and the lock file are removed last.
_OWN_NAMES = (
    *(file_name(schema) + ending for schema in installation.SCHEMAS for ending in _SQLITE_ENDINGS),
    lifespan.BLOBS_FOLDER,
    runner.FOLDER,
    folders.FOLDER,
    transports.OUTBOX_FOLDER,
    rate_limit.COUNTERS_FILE,
    "counters.lock",
    layout.MARKER,
    installation_id.LOCK_NAME,
    PROGRESS,
    migration_marker.FILE_NAME,
    masterkey.FILE_NAME,
    lock.FILE_NAME,
)


class Contents(NamedTuple):
    """What a reset removes, and what it leaves in the data directory: the settings, and files of other programs."""

    database: str
    schemas: dict[str, int]
    bucket: str
    blobs: int
    uploads: int
    files: list[Path]
    left: list[Path]
    takes_bucket: bool
    links: Mapping[Path, Path]
    owner: ResetOwner

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to remove; a lock file alone does not count."""
        files = [path for path in self.files if path.name != lock.FILE_NAME]
        return not (self.schemas or files or (self.takes_bucket and (self.blobs or self.uploads or self.owner.marker)))

    @property
    def lines(self) -> list[str]:
        """The contents as lines of text."""
        schema_lines = [
            f"{self.database}: the schema {name} with {count} tables" for name, count in self.schemas.items()
        ]
        if self.takes_bucket:
            schema_lines.append(f"{self.bucket}: {self.blobs} files, {self.uploads} uploads in progress")
        return schema_lines + [self._file_line(path) for path in self.files]

    def _file_line(self, path: Path) -> str:
        if path in self.links:
            return f"{path} (the link only)"
        return str(path) + ("/" if path.is_dir() else "")

    @property
    def notes(self) -> list[str]:
        """Lines of text that name what a reset leaves in place."""
        path_notes = [f"Left in place: {path}" for path in self.left]
        for link, target in self.links.items():
            if target.exists():
                remedy = f"To remove the target as well, run: rm -r -- {shlex.quote(str(target))}"
                path_notes.append(f"Left in place: {target}, to which the link {link} leads. {remedy}")
        if not self.takes_bucket and (self.blobs or self.uploads):
            path_notes.append(
                f"Left in place: {self.blobs} files and {self.uploads} uploads in progress in {self.bucket}. "
                f"`reset --blobs {bucket_name(self.bucket)}` removes them as well. Once the database "
                "and the data directory are removed, only the tools of the S3 service can remove them."
            )
        return path_notes

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
            "links": {str(link): str(target) for link, target in self.links.items()},
            "takes_bucket": self.takes_bucket,
        }


@click.command()
@click.option("--yes", is_flag=True, help="Remove without asking for confirmation.")
@click.option("--dry-run", is_flag=True, help="List what would be removed, and change nothing.")
@click.option(
    "--blobs",
    metavar="BUCKET/PREFIX",
    help="Also remove the uploaded files in this bucket, which must be the configured one. Default: keep them.",
)
@data_option
@output.json_option
def reset(*, yes: bool, dry_run: bool, blobs: str | None, data: str | None) -> None:
    """Remove everything that the installation has stored: databases, files, e-mails, counters and the master key.

    The command lists what it removes and asks for confirmation. It fails while the installation is served. The
    settings (countersign.toml), backups and other files in the data directory are not removed, nor are the targets of
    symbolic links. The next start makes a new installation.
    """
    settings = configuration.load(data=data)
    folder = Path(settings.data).absolute()
    require_bucket_name(blobs, settings.blobs_url)
    contents = open_records.run_coroutine(_contents(settings, folder, takes_bucket=blobs is not None), FAILURE)
    if contents.is_empty:
        _note_left(contents)
        output.print_result(
            {"removed": False, **contents.members}, f"There is nothing to remove in {_place_names(settings)}."
        )
        return
    if dry_run:
        _note_left(contents)
        lines = ["Would be removed:", *_indented(contents)]
        output.print_result({"removed": False, **contents.members}, "\n".join(lines))
        return
    if lock.is_locked(folder):
        remedy = "Stop `countersign serve`, then run `countersign reset` again."
        raise Failure(FAILURE, why=f"{folder} is served", remedy=remedy, exit_code=Exit.CONFLICT)
    _confirm(contents, is_confirmed=yes)
    with lock.acquire(folder, FAILURE):
        # Other processes may have changed the directory, the database or the bucket while the confirmation was pending.
        contents = open_records.run_coroutine(_contents(settings, folder, takes_bucket=contents.takes_bucket), FAILURE)
        open_records.run_coroutine(_remove(settings, folder, contents), FAILURE)
    output.print_result(
        {"removed": True, **contents.members}, f"Removed all of the installation in {_place_names(settings)}."
    )
    _note_left(contents)
    output.note(PINS_NOTE)


def _note_left(contents: Contents) -> None:
    for line in contents.notes:
        output.note(line)


def _confirm(contents: Contents, *, is_confirmed: bool) -> None:
    """List what is removed, and ask for confirmation on a terminal unless `is_confirmed`.

    Raises:
        Failure: the removal was not confirmed.
    """
    output.note("This is removed permanently:")
    for line in _indented(contents):
        output.note(line)
    if not is_confirmed:
        _note_left(contents)
    if any(path.name == masterkey.FILE_NAME for path in contents.files):
        output.note("Database copies not made by `countersign backup` can be decrypted only with this master.key.")
    if is_confirmed:
        return
    if not sys.stdin.isatty():
        remedy = "Run it again with --yes."
        raise Failure(FAILURE, why="the removal is not confirmed", remedy=remedy, exit_code=Exit.USAGE)
    if not click.confirm("Remove everything listed?", err=True):
        raise Failure(FAILURE, why="the removal was not confirmed; nothing is removed", exit_code=Exit.USAGE)


def _indented(contents: Contents) -> list[str]:
    return [f"  {line}" for line in contents.lines]


def _place_names(settings: Settings) -> str:
    places = [settings.data]
    if settings.database_url:
        places.append(connection_urls.describe_postgres(settings.database_url))
    if settings.blobs_url:
        places.append(settings.blobs_url)
    return ", ".join(places)


async def _contents(settings: Settings, folder: Path, *, takes_bucket: bool) -> Contents:
    """Find what a reset of the installation removes.

    Raises:
        Failure: the data directory, the databases and the blob store belong to different installations, or the bucket
            is to be cleared and may belong to another installation.
        Moved: the databases are in PostgreSQL, and the setting for PostgreSQL is missing.
        Unavailable: the database or the blob store cannot be read.
    """
    migration_marker.require_in_use(folder, settings.database_url)
    _require_own_database(settings, folder)
    url, schemas = settings.database_url, None
    if url:
        schemas = await postgres_admin.examine_schemas(url, installation.SCHEMAS)
    own_paths, left_paths = await asyncio.to_thread(_own_files, folder)
    links = await asyncio.to_thread(_links, folder, own_paths)
    blobs = uploads = 0
    store = _files_store(settings, folder, links)
    owner = await read_owner(folder, schemas, store)
    require_consistent(owner, folder)
    if settings.blobs_url and store:
        blobs = len([None async for _ in store.sealed_blobs()])
        uploads = len([None async for _ in store.staged_uploads()])
        if takes_bucket:
            require_bucket(owner, has_files=bool(blobs or uploads))
    else:
        require_latest(owner)
    database = connection_urls.describe_postgres(url) if url else ""
    tables = schemas.tables if schemas else {}
    return Contents(
        database, tables, settings.blobs_url, blobs, uploads, own_paths, left_paths, takes_bucket, links, owner
    )


def _files_store(settings: Settings, folder: Path, links: Mapping[Path, Path]) -> BlobStore | None:
    """Return the bucket, or the folder of files in the data directory; None if the folder is missing or is a link."""
    if settings.blobs_url:
        return open_blobs(settings.blobs_url, folder, reserve_bytes=0)
    path = folder / lifespan.BLOBS_FOLDER
    return open_blobs(None, path, reserve_bytes=0) if path.is_dir() and path not in links else None


def _require_own_database(settings: Settings, folder: Path) -> None:
    """Check that the databases of the directory were not moved to a database other than the configured one.

    Raises:
        Failure: the databases were moved to a different database.
    """
    mark = migration_marker.read_marker(folder) if settings.database_url else None
    if mark is not None and mark.to != connection_urls.postgres_location(settings.database_url):
        reason = f"{folder} belongs to the database {mark.to}, but COUNTERSIGN_DATABASE_URL names a different database"
        remedy = "Correct COUNTERSIGN_DATABASE_URL or --data: an installation is reset with its own settings."
        raise Failure(FAILURE, why=reason, remedy=remedy, exit_code=Exit.CONFLICT)


def _links(folder: Path, own_paths: list[Path]) -> dict[Path, Path]:
    """Return the symbolic links that a reset removes, with their targets, which it does not remove.

    A blobs folder that is a link to another folder of the data directory is not among them: that folder is emptied."""
    blobs = folder / lifespan.BLOBS_FOLDER
    targets = {path: path.resolve() for path in own_paths if path.is_symlink()}
    if targets.get(blobs, Path("/")).is_relative_to(folder.resolve()):
        del targets[blobs]
    if blobs not in targets:
        targets |= {path: path.resolve() for name in layout.FOLDERS if (path := blobs / name).is_symlink()}
    return targets


def _own_files(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the product's files and folders in the data directory, in the order of removal, and all other files."""
    own_paths = [folder / name for name in _OWN_NAMES if (folder / name).exists() or (folder / name).is_symlink()]
    own_paths = [*folder.glob(f"{atomic_files.PREFIX}*{atomic_files.ENDING}"), *own_paths]
    left_paths = [path for path in sorted(folder.iterdir()) if path not in own_paths] if folder.is_dir() else []
    return own_paths, left_paths


async def _remove(settings: Settings, folder: Path, contents: Contents) -> None:
    """Remove the contents: the schemas in PostgreSQL, the files in the bucket, then those in the data directory.

    If the removal is interrupted at any moment, the same command removes what is left.

    Raises:
        DatabaseInUse: another node serves the database.
        Unavailable: the database, the blob store or the data directory cannot be written.
    """
    if contents.schemas:
        await _drop(settings, folder, contents)
    if contents.takes_bucket:
        await open_blobs(settings.blobs_url, folder, reserve_bytes=0).clear()
    for path in contents.files:
        with atomic_files.disk_errors(path):
            if path.name == lifespan.BLOBS_FOLDER and path not in contents.links:
                for link in (path / name for name in layout.FOLDERS):
                    if link in contents.links:
                        link.unlink(missing_ok=True)
                await open_blobs(None, path, reserve_bytes=0).clear()
            await asyncio.to_thread(_remove_path, path)
    await asyncio.to_thread(sync_folder, folder)


async def _drop(settings: Settings, folder: Path, contents: Contents) -> None:
    """Drop the schemas in PostgreSQL; if the bucket is to be cleared, first record which installation owns it.

    Raises:
        DatabaseInUse: another node serves the database.
        Unavailable: the database or the data directory cannot be written.
    """
    progress = folder / PROGRESS
    if contents.takes_bucket:
        with atomic_files.disk_errors(progress):
            await asyncio.to_thread(note_drop, folder, contents.owner)
    try:
        await postgres_admin.drop_schemas(settings.database_url, list(contents.schemas))
    except postgres_admin.DatabaseInUse:
        progress.unlink(missing_ok=True)
        raise
    if contents.takes_bucket and progress not in contents.files:
        contents.files.append(progress)


def _remove_path(path: Path) -> None:
    """Remove the file or folder. Of a link, only the link is removed. A blobs folder is removed only if it is empty."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    elif path.name == lifespan.BLOBS_FOLDER:
        if not any(path.iterdir()):
            path.rmdir()
    else:
        shutil.rmtree(path)
