"""`countersign backup`: write the whole installation into one encrypted archive, while servers run."""

import asyncio
import os
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Protocol

import click

from countersign.backup import atomic_files, backup_folder
from countersign.backup.archive import KEY, SETTINGS, ArchiveWriter, Manifest
from countersign.backup.creation import MAX_ATTEMPTS, Backup
from countersign.backup.databases import Databases, SnapshotT, SqliteDatabases
from countersign.backup.schema_validation import UnknownSchemaObjects
from countersign.cli import configuration, output, progress
from countersign.cli.admin import installation, open_store
from countersign.cli.admin.databases import SERVICES
from countersign.cli.options import data_option
from countersign.cli.output import Exit, Failure
from countersign.cli.passphrase import passphrase_option, read_passphrase
from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.kernel.database.migrate import SchemaMismatch
from countersign.kernel.database.postgres_privileges import PrivilegeMissing
from countersign.kernel.errors import Refused, Unavailable, disk_full, is_disk_full
from countersign.kernel.security import masterkey
from countersign.kernel.security.age import AgeEncryptor
from countersign.settings import Settings
from countersign.store import lifespan

FAILURE = "cannot make the backup"
STDOUT = "-"
STDOUT_FILENO = 1


class Sink(Protocol):
    """A file or stream that the archive is written to."""

    @property
    def size(self) -> int:
        """The number of bytes written so far."""
        ...

    def write(self, data: bytes) -> None:
        """Append the bytes."""
        ...

    def flush(self) -> None:
        """Flush the written bytes to the disk."""
        ...


Finish = Callable[[Manifest], str]
"""Gives the archive its final name and returns that name."""
OpenSink = Callable[[], AbstractContextManager[tuple[Sink, Finish]]]


@click.command()
@click.argument("file", metavar="FILE", required=False)
@click.option("--into", "folder", metavar="FOLDER", help="Make a backup in the folder, with its time as its name.")
@click.option("--keep", type=click.IntRange(1), help="With --into: keep only this number of the newest backups.")
@click.option(
    "--every", "every_s", type=click.IntRange(1), metavar="SECONDS", help="With --into: make a backup at this interval."
)
@click.option("--hold-writes", is_flag=True, help="Block writes while the databases are copied.")
@passphrase_option
@data_option
@output.json_option
def backup(
    *,
    file: str | None,
    folder: str | None,
    keep: int | None,
    every_s: int | None,
    hold_writes: bool,
    passphrase_file: str | None,
    data: str | None,
) -> None:
    """Write databases, files and keys into FILE (`-`: stdout), encrypted under a passphrase; servers keep running.

    The backup contains every write that was acknowledged before the printed time.

    The exit code is 1 if files are missing in the backup, or if a restore will refuse the backup. With --every, the
    command prints a message on stderr instead, and continues.
    """
    if (file is None) == (folder is None) or (folder is None and (keep or every_s)):
        raise click.UsageError("name either FILE or --into FOLDER; --keep and --every need --into")
    settings = configuration.load(data=data)
    secret = read_passphrase(passphrase_file, FAILURE, is_new=True)
    if folder is None:
        is_whole = _back_up_and_report(settings, secret, hold_writes, lambda: _open_file(Path(file or STDOUT)))
    else:
        while True:
            is_whole = _back_up_and_report(settings, secret, hold_writes, lambda: _open_in_series(Path(folder)), keep)
            if every_s is None:
                break
            clock.sleep(every_s)
    if not is_whole:
        sys.exit(Exit.FAILED)


def _back_up_and_report(
    settings: Settings, secret: str, block_writes: bool, open_sink: OpenSink, keep: int | None = None
) -> bool:
    """Make a backup and report on it. Return whether it has every file and can be restored.

    Older backups of the series are removed only if no file is missing and no database would be refused."""
    backup_result = open_store.run_coroutine(_back_up(settings, secret, block_writes, open_sink), FAILURE)
    (manifest, name, ended_at, size), outlook = backup_result
    value = {
        "file": name,
        "moment": manifest.at,
        "ended": clock.rfc3339(ended_at),
        "bytes": size,
        "blobs": manifest.blobs,
        "blobs_bytes": manifest.blobs_bytes,
        "unreadable": list(manifest.unreadable),
        "restorable": outlook.is_restorable,
    }
    blob_text = f"{progress.size(manifest.blobs_bytes)} in {manifest.blobs} files"
    summary = f"{name}: {progress.size(size)}, with {blob_text}. Every write acknowledged before {manifest.at}."
    if name == STDOUT:
        output.note(summary)
    else:
        output.print_result(value, summary)
    if manifest.unreadable:
        output.note("These files are missing or damaged in the blob store; everything else is in the backup:")
        for sha256 in manifest.unreadable:
            output.note(f"  {sha256}")
    outlook.print_reasons()
    if manifest.unreadable or outlook.refusals:
        return False
    if keep is not None:
        _remove_expired(Path(name), keep)
    return True


class Restorability(NamedTuple):
    """The reasons why a restore will refuse databases that were changed by other programs, and why some databases could
    not be checked."""

    refusals: list[Refused]
    unchecked: list[str]

    @property
    def is_restorable(self) -> bool | None:
        """Whether a restore will accept all databases; None: some could not be checked."""
        if self.refusals:
            return False
        return None if self.unchecked else True

    def print_reasons(self) -> None:
        """Print the reasons."""
        for refusal in self.refusals:
            output.note(f"A restore will refuse this backup: {refusal.detail}. {refusal.remedy}")
        for reason in self.unchecked:
            output.note(f"It is unknown whether a restore will accept this backup: {reason}")


async def _restorability(settings: Settings) -> Restorability:
    restorability = Restorability([], [])
    for service in SERVICES.values():
        try:
            if await service.tables.exist(settings):
                await service.tables.require_restorable(settings)
        except UnknownSchemaObjects as refused:
            restorability.refusals.append(refused)
        except PrivilegeMissing as missing:
            restorability.unchecked.append(f"{missing.detail}. {missing.remedy}")
        except SchemaMismatch as mismatch:
            restorability.unchecked.append(str(mismatch))
    return restorability


def _remove_expired(backup_path: Path, keep: int) -> None:
    """Remove the old backups of the series that the new backup belongs to."""
    removed_paths, skipped_paths = open_store.run_coroutine(
        _expire(backup_path, keep), f"cannot remove old backups of {backup_path.parent}"
    )
    for path in removed_paths:
        output.note(f"Removed {path.name}: there are {keep} newer backups.")
    for path in skipped_paths:
        output.note(f"Skipped {path.name}: its name is not a time in the past.")


class BackupResult(NamedTuple):
    """The manifest of an archive, its name, the time at which the archive got its name, and its size in bytes."""

    manifest: Manifest
    name: str
    ended: Instant
    size: int


async def _back_up(
    settings: Settings, secret: str, block_writes: bool, open_sink: OpenSink
) -> tuple[BackupResult, Restorability]:
    """Make the archive. Return the result, and whether a restore will accept the archive."""
    databases = installation.databases(settings)
    if databases is None:
        remedy = "Pass --data with the directory that is served."
        raise open_store.missing_database(settings, FAILURE, remedy)
    await installation.require_one_installation(settings)
    files = await asyncio.to_thread(_files, settings)
    outlook = await _restorability(settings)
    with open_sink() as (sink, finish):
        encryptor = await asyncio.to_thread(AgeEncryptor, sink.write, secret)
        archive = ArchiveWriter(encryptor)
        options = BackupOptions(settings, sink, finish, block_writes)
        if isinstance(databases, SqliteDatabases):
            return await _write(databases, archive, files, options), outlook
        return await _write(databases, archive, files, options), outlook


class BackupOptions(NamedTuple):
    """The settings, the target and the options of one backup."""

    settings: Settings
    sink: Sink
    finish: Finish
    block_writes: bool


async def _write(
    databases: Databases[SnapshotT], archive: ArchiveWriter, files: dict[str, bytes], options: BackupOptions
) -> BackupResult:
    has_blobs = lifespan.SCHEMA in databases.schemas
    blobs = installation.referenced_blobs(options.settings) if has_blobs else None
    under_way = Backup(archive, databases, blobs, installation.progress_reporter())
    await under_way.begin(files)
    # Flush now, so that little is left to flush after the snapshot.
    await asyncio.to_thread(options.sink.flush)
    for attempts_left in reversed(range(MAX_ATTEMPTS)):
        async with databases.snapshot(block_writes=options.block_writes) as snapshot:
            manifest = await under_way.end(snapshot, is_last_try=not attempts_left)
            if manifest is not None:
                return BackupResult(manifest, options.finish(manifest), clock.now(), options.sink.size)
    raise AssertionError("the last attempt always returns")


def _files(settings: Settings) -> dict[str, bytes]:
    """Return the master key from any source, and the settings file if it exists."""
    data = Path(settings.data)
    key_path = data / masterkey.FILE_NAME
    if not (settings.master_key or settings.master_key_file or key_path.exists()):
        remedy = "Restore your copy of the key: without the key, the secrets in the backup cannot be decrypted."
        raise Failure(FAILURE, why=f"{key_path}, which encrypted the database, is missing", remedy=remedy)
    files = {KEY: masterkey.encode_master_key(masterkey.master_key(settings)).encode() + b"\n"}
    settings_path = Path(settings.config) if settings.config else data / SETTINGS
    if settings_path.exists():
        with atomic_files.disk_errors(settings_path.parent):
            files[SETTINGS] = settings_path.read_bytes()
    return files


async def _expire(backup_path: Path, keep: int) -> tuple[list[Path], list[Path]]:
    backups = backup_folder.read_folder(backup_path.parent)
    return backup_folder.remove_old(backups, keep, backup_path), backups.skipped


@contextmanager
def _open_file(path: Path) -> Generator[tuple[Sink, Finish]]:
    """Open a new file at the path, which must not exist, or stdout."""
    if str(path) == STDOUT:
        yield _Stdout(), lambda _: STDOUT
        return
    if path.exists():
        remedy = "Name another file, or remove this file first: a backup never replaces a file."
        raise Failure(FAILURE, why=f"{path} exists already", remedy=remedy, exit_code=Exit.CONFLICT)
    with atomic_files.new_file(path.parent) as sink:

        def finish(_: Manifest) -> str:
            sink.finish(path)
            return str(path)

        yield sink, finish


@contextmanager
def _open_in_series(folder: Path) -> Generator[tuple[Sink, Finish]]:
    with atomic_files.disk_errors(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with atomic_files.new_file(folder) as sink:

        def finish(manifest: Manifest) -> str:
            path = folder / backup_folder.backup_name(manifest.moment)
            sink.finish(path)
            return str(path)

        yield sink, finish


class _Stdout:
    """Stdout without a buffer, so that an error is raised by the write that caused it."""

    size = 0

    def write(self, data: bytes) -> None:
        """Append the bytes.

        Raises:
            StorageFull: stdout is a file, and its disk is full.
            Unavailable: the program that reads stdout ended, or stdout cannot be written for another reason.
        """
        unwritten_bytes = memoryview(data)
        try:
            while unwritten_bytes:
                unwritten_bytes = unwritten_bytes[os.write(STDOUT_FILENO, unwritten_bytes) :]
        except BrokenPipeError as error:
            remedy = f"Send the backup to a file, or to a program that reads it completely. {_partial_backup_hint()}"
            raise Unavailable("The program that reads stdout ended too early.", resolution=remedy) from error
        except OSError as error:
            if is_disk_full(error):
                raise disk_full("stdout", error, resolution=f"Make space. {_partial_backup_hint()}") from error
            text = f"Stdout cannot be written: {(error.strerror or type(error).__name__).lower()}."
            raise Unavailable(text, resolution=f"Correct the target of stdout. {_partial_backup_hint()}") from error
        self.size += len(data)

    def flush(self) -> None:
        """Do nothing: this process has no buffered bytes."""


def _partial_backup_hint() -> str:
    """Return a sentence about the partial backup that a failed write to stdout has left."""
    name = ""
    with suppress(OSError):
        stdout_path = Path(os.readlink(f"/proc/self/fd/{STDOUT_FILENO}"))
        name = str(stdout_path) if stdout_path.is_file() else ""
    return f"Remove the partial backup {name}." if name else "The bytes written so far are not a backup."
