"""`countersign restore`: create a data directory, and fill a blob store and a database, from a backup."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import click

from countersign.backup import atomic_files, backup_folder, postgres_bulk_load
from countersign.backup.archive import KEY, ArchiveReader, Manifest
from countersign.backup.restore import (
    PostgresTarget,
    Restore,
    RestoreTarget,
    SchemaCompletion,
    SqliteTarget,
    require_empty,
    require_engine,
)
from countersign.cli import configuration, output
from countersign.cli.admin import installation, open_records, open_store
from countersign.cli.output import Exit, Failure
from countersign.cli.passphrase import passphrase_option, read_passphrase
from countersign.kernel import ids, installation_id
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Transaction
from countersign.kernel.database.postgres_admin import privileges_at
from countersign.kernel.errors import NotEmpty, Refused
from countersign.kernel.security import masterkey
from countersign.kernel.security.age import AgeDecryptor, Damaged, WrongPassphrase
from countersign.kernel.security.masterkey import MasterKey
from countersign.kernel.webhooks import outbox
from countersign.records.access import sessions as revoke
from countersign.settings import Settings
from countersign.store import app, lifespan
from countersign.store.releases import uploads

FAILURE = "cannot restore the backup"
STDIN = "-"

REVIEW_NOTICE = (
    "Changes after that time are undone. Codes that were redeemed since can be redeemed again. Code batches that were "
    "revoked since are valid again. Members, clients, trusted issuers and webhooks that were removed since are back, "
    "and so are old passwords and plans that wait for approval. Check all of these before you serve."
)


class RestoreOptions(NamedTuple):
    """The data directory to create, the settings that name the database and the blob store, and what to keep."""

    folder: Path
    settings: Settings
    keeps_sessions: bool
    keeps_sending: bool


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--to", "to", metavar="DIR", required=True, help="The data directory to create; it must be new or empty.")
@click.option(
    "--at",
    "at",
    metavar="TIME",
    help="If FILE is a folder: restore its newest backup that is not newer than this time.",
)
@click.option("--keep-sessions", is_flag=True, help="Keep sessions, tokens, agents and consents valid.")
@click.option("--keep-sending", is_flag=True, help="Send webhooks and e-mails about plans after the first start.")
@passphrase_option
@output.json_option
def restore(
    *, file: str, to: str, at: str | None, keep_sessions: bool, keep_sending: bool, passphrase_file: str | None
) -> None:
    """Create the data directory --to from the backup FILE. FILE may also be a folder of backups, or `-` for stdin.

    If COUNTERSIGN_DATABASE_URL or COUNTERSIGN_BLOBS_URL is set, the databases or the files are restored to that
    address, which must be empty.
    """
    settings = configuration.load(data=to)
    path = open_records.run_coroutine(_select_archive(file, _parse_time(at)), FAILURE)
    secret = read_passphrase(passphrase_file, FAILURE)
    options = RestoreOptions(Path(to).absolute(), settings, keep_sessions, keep_sending)
    manifest = open_records.run_coroutine(_restore(path, secret, options), FAILURE)
    value = {
        "data": to,
        "file": str(path),
        "moment": manifest.at,
        "blobs": manifest.blobs,
        "blobs_bytes": manifest.blobs_bytes,
        "unreadable": list(manifest.unreadable),
        "sessions_ended": not keep_sessions,
        "deliveries_held": not keep_sending,
    }
    output.print_result(value, f"{to} is as it was at {manifest.at}, with {manifest.blobs} files.")
    if not keep_sessions:
        output.note("Every session, token, agent and consent has ended: people sign in, and agents register again.")
    output.note(REVIEW_NOTICE)
    if not keep_sending:
        output.note(
            f"Webhooks and e-mails about plans are paused: check them, then run `{outbox.RESUME_COMMAND}`."
        )
    for sha256 in manifest.unreadable:
        output.note(f"Missing, as it was when the backup was made: {sha256}")


def _parse_time(text: str | None) -> Instant | None:
    try:
        return None if text is None else backup_folder.parse_moment(text)
    except ValueError as error:
        raise click.UsageError(f"--at {text}: write it like 2026-11-20T22:13:00Z") from error


async def _select_archive(file: str, instant: Instant | None) -> Path:
    """Return the path of the archive: the file itself, or the newest backup in the folder that is not after `instant`.

    Raises:
        NoBackup: the folder has no backup that is old enough.
        Failure: the file does not exist.
    """
    path = Path(file)
    if await asyncio.to_thread(path.is_dir):
        backups = backup_folder.read_folder(path)
        for skipped_file in backups.skipped:
            output.note(f"Skipped {skipped_file.name}: its name is not a time in the past.")
        return backup_folder.newest(backups, instant).path
    if instant is not None:
        raise click.UsageError("--at selects a backup of a folder, and FILE is not a folder")
    if file != STDIN and not await asyncio.to_thread(path.exists):
        raise Failure(FAILURE, why=f"there is no file {file}", remedy="Correct its name.", exit_code=Exit.NOT_FOUND)
    return path


async def _restore(path: Path, secret: str, options: RestoreOptions) -> Manifest:
    try:
        if str(path) == STDIN:
            return await _restore_from(sys.stdin.buffer.read, secret, options)
        with atomic_files.disk_errors(path), path.open("rb") as file:
            return await _restore_from(file.read, secret, options)
    except Damaged as error:
        remedy = f"{error.remedy} `countersign verify` lists every damaged part."
        raise Failure(FAILURE, why=error.detail, remedy=remedy, exit_code=Exit.CHECKSUM) from error
    except WrongPassphrase as error:
        raise Failure(FAILURE, why=error.detail, remedy=error.remedy, exit_code=Exit.REFUSED) from error


async def _restore_from(read_bytes: Callable[[int], bytes], secret: str, options: RestoreOptions) -> Manifest:
    with atomic_files.new_folder(options.folder) as folder:
        archive_reader = ArchiveReader(await asyncio.to_thread(AgeDecryptor, read_bytes, secret), installation.SCHEMAS)
        require_engine(archive_reader, is_postgres=bool(options.settings.database_url))
        is_placed = False
        # A restored copy must not be mistaken for the original installation, which may still be served.
        new_id = ids.new_uuid()
        try:
            async with (
                _blobs(options.settings) as blobs,
                _target(options.settings, folder.path, archive_reader) as target,
            ):
                under_way = Restore(
                    folder.path, target, blobs.store, blobs.sealed, progress=installation.progress_reporter()
                )
                manifest = await under_way.read(archive_reader)
                master = _master_key(folder.path, options.settings)
                await target.finish(manifest, _finishing_steps(master, options, new_id))
                if blobs.store is not None:
                    await installation_id.claim(blobs.store, new_id, lifespan.blob_store_name(options.settings))
                installation_id.write_directory(folder.path, new_id, archive_reader.about.schemas)
                if options.settings.master_key or options.settings.master_key_file:
                    (folder.path / KEY).unlink()
                # Flush everything at once, because that takes less time than flushing each file.
                await asyncio.to_thread(os.sync)
                # The key is written before PostgreSQL commits the rows: their secrets are encrypted with it.
                folder.finish(last_name=KEY)
                is_placed = True
                # From here on the commit may have happened even if it reports an error. So keep the blobs, because
                # committed rows may refer to them.
                blobs.sealed.clear()
        except Refused as error:
            if is_placed:
                raise _uncertain_commit(options, error) from error
            raise
    return manifest


def _uncertain_commit(options: RestoreOptions, error: Refused) -> Failure:
    reason = f"PostgreSQL did not confirm the commit: {error.detail} {options.folder} has the files and the key"
    remedy = (
        f"Run `countersign verify {options.folder}`. If it finds no damage, the restore is complete. Otherwise empty "
        "the directory and the blob store that COUNTERSIGN_BLOBS_URL names, and restore again."
    )
    return Failure(FAILURE, why=reason, remedy=remedy)


def _master_key(folder: Path, settings: Settings) -> MasterKey:
    """Return the master keys that the secrets in the backup are encrypted with.

    Raises:
        Failure: the settings name master keys, but not all of the keys in the backup.
    """
    own_key = masterkey.load_master_key(None, folder / KEY, None)
    if settings.master_key or settings.master_key_file:
        configured_key = masterkey.master_key(settings)
        missing_keys = [key.id for key in own_key.keys if configured_key.named(key.id) != key]
        if missing_keys:
            reason = f"the configured master keys do not include these keys of the backup: {', '.join(missing_keys)}"
            remedy = "Unset COUNTERSIGN_MASTER_KEY and _FILE: the backup contains its keys."
            raise Failure(FAILURE, why=reason, remedy=remedy, exit_code=Exit.CONFLICT)
    return own_key


def _finishing_steps(master: MasterKey, options: RestoreOptions, new_id: str) -> dict[str, SchemaCompletion]:
    async def end_store(transaction: Transaction) -> None:
        await installation_id.replace(transaction, new_id)
        await uploads.forget_all_parts(transaction)
        await pause_sending(transaction)
        if not options.keeps_sessions:
            await app.end_all_access(transaction, master)

    async def end_records(transaction: Transaction) -> None:
        await installation_id.replace(transaction, new_id)
        await pause_sending(transaction)
        if not options.keeps_sessions:
            await revoke.end_every(transaction)

    async def pause_sending(transaction: Transaction) -> None:
        if not options.keeps_sending:
            await outbox.pause(transaction)

    return {
        tables.schema: SchemaCompletion(tables.migrations, tables.own_tables, end)
        for tables, end in ((open_store.TABLES, end_store), (open_records.TABLES, end_records))
    }


@asynccontextmanager
async def _target(settings: Settings, folder: Path, reader: ArchiveReader) -> AsyncGenerator[RestoreTarget]:
    """Yield the databases to restore into. PostgreSQL tables become visible to others when the block ends."""
    if not settings.database_url:
        yield SqliteTarget(folder, reader.about.schemas)
        return
    for privileges in await privileges_at(settings.database_url, installation.SCHEMAS):
        privileges.require_schema_creation()
    async with postgres_bulk_load.bulk_load(settings.database_url, installation.SCHEMAS) as bulk_load:
        yield PostgresTarget(bulk_load, reader.about.schemas)


class BlobDestination(NamedTuple):
    """The blob store to fill, and the digests of the blobs written to it. None means a folder in the data directory."""

    store: BlobStore | None
    sealed: list[str]


@asynccontextmanager
async def _blobs(settings: Settings) -> AsyncGenerator[BlobDestination]:
    """Yield the blob store to restore into. If the block raises an exception, remove the blobs that it added."""
    if not settings.blobs_url:
        yield BlobDestination(None, [])
        return
    store = installation.blob_store(settings)
    await require_empty(store)
    name = lifespan.blob_store_name(settings)
    marker = await installation_id.blobs_marker(store, name)
    if marker is not None:
        remedy = "Set COUNTERSIGN_BLOBS_URL to another prefix, or remove the object installation.json from this one."
        raise NotEmpty(f"{name} belongs to the installation {marker.id}", resolution=remedy)
    sealed_blobs: list[str] = []
    try:
        yield BlobDestination(store, sealed_blobs)
    except BaseException:
        for sha256 in sealed_blobs:
            await store.delete(sha256)
        raise
