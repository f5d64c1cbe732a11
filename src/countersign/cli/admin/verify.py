"""`countersign verify`: check that a backup or a data directory is complete and undamaged."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

import click

from countersign.backup import atomic_files, postgres_snapshot, sqlite_snapshot, table_checksum
from countersign.backup.archive import ArchiveReader
from countersign.backup.table_checksum import TableChecksum
from countersign.cli import configuration, output
from countersign.cli.admin import installation, keys, open_records, open_store, records
from countersign.cli.options import data_option
from countersign.cli.output import Exit, Failure
from countersign.cli.passphrase import passphrase_option, read_passphrase
from countersign.kernel.database import migrate, migration_marker
from countersign.kernel.errors import Refused
from countersign.kernel.reencryption import KeyUsage
from countersign.kernel.security.age import AgeDecryptor, Damaged, WrongPassphrase, find_damage
from countersign.kernel.security.encryption import DecryptionFailed, missing_keys
from countersign.kernel.security.masterkey import master_key
from countersign.records import app, root_secret
from countersign.records.audit import verify as chains
from countersign.records.schema import install
from countersign.settings import Settings
from countersign.store import lifespan
from countersign.store.releases import blobs

FAILURE = "cannot verify"
STDIN = "-"
RESTORE_REMEDY = "Change nothing in it, and restore the newest backup that `countersign verify` accepts."

UNDECRYPTABLE_REMEDY = (
    "If another master key has this id now, pass the key that encrypted the values. Otherwise the values are damaged: "
    "restore the newest backup that `countersign verify` accepts."
)

DamagedRange: TypeAlias = tuple[int, int, str]
"""A damaged range of an archive: the offset of its first byte, the offset after its last byte, and a description."""

MEANINGS: dict[blobs.BlobDefect, str] = {
    "missing": "the database refers to this file, but the blob store does not have it",
    "changed": "the bytes of this file were changed",
    "surplus": "the database does not know this file; garbage collection keeps it",
}


class Discrepancy(NamedTuple):
    """A difference from the expected state: its place, its description, whether data is damaged, and the remedy.

    The remedy is empty if another finding already gives it."""

    place: str
    detail: str
    is_harm: bool = True
    remedy: str = RESTORE_REMEDY

    @property
    def members(self) -> dict[str, object]:
        """The finding as a JSON object."""
        remedy = self.remedy if self.is_harm else ""
        return {"place": self.place, "detail": self.detail, "harm": self.is_harm, "remedy": remedy}


@click.command()
@click.argument("file", metavar="[FILE|DIR]", required=False)
@click.option("--tables", is_flag=True, help="For a data directory, also print the rows and SHA-256 of each table.")
@passphrase_option
@data_option
@output.json_option
def verify(*, file: str | None, tables: bool, passphrase_file: str | None, data: str | None) -> None:
    """Read the whole backup FILE (`-` for stdin) or data directory DIR (default: --data), and list what is damaged.

    The exit code is 7 if anything is damaged. The data directory may be in use by a server.
    """
    if file is not None and (file == STDIN or Path(file).is_file()):
        _verify_archive(file, read_passphrase(passphrase_file, FAILURE))
        return
    if file is not None and not Path(file).is_dir():
        raise Failure(FAILURE, why=f"there is no {file}", remedy="Correct the name.", exit_code=Exit.NOT_FOUND)
    settings = configuration.load(data=file or data)
    if installation.databases(settings) is None:
        remedy = "Name a backup, or the directory that is served."
        raise open_store.missing_database(settings, FAILURE, remedy)
    _verify_directory(settings, open_records.run_coroutine(_table_checksums(settings), FAILURE) if tables else {})


def _verify_archive(file: str, secret: str) -> None:
    archive_reader, places = open_records.run_coroutine(_read_archive(file, secret), FAILURE)
    damage_rows = [{"start": start, "stop": stop, "detail": detail} for start, stop, detail in places]
    manifest = None if archive_reader is None else archive_reader.manifest
    value: dict[str, object] = {"ok": not places, "file": file, "damage": damage_rows}
    name = "stdin" if file == STDIN else file
    damage_text = "\n".join(f"{name}: {detail}" for _, _, detail in places)
    if manifest is not None:
        value |= {"moment": manifest.at, "blobs": manifest.blobs, "unreadable": list(manifest.unreadable)}
        damage_text = f"{name} is intact: {manifest.blobs} files, and every write acknowledged before {manifest.at}."
    output.print_result(value, damage_text)
    if places and file == STDIN:
        output.note("The rest of stdin was not checked: save the backup to a file to see every damaged part.")
    if places:
        sys.exit(Exit.CHECKSUM)


async def _read_archive(file: str, secret: str) -> tuple[ArchiveReader | None, list[DamagedRange]]:
    """Read the archive to its end. If it is damaged, return all damaged ranges; from stdin, return only the first."""

    def read() -> tuple[ArchiveReader | None, list[DamagedRange]]:
        if file == STDIN:
            archive_reader, first_damage = _read_once(sys.stdin.buffer, secret)
            return archive_reader, first_damage
        with atomic_files.disk_errors(Path(file)), Path(file).open("rb") as archive:
            archive_reader, first_damage = _read_once(archive, secret)
            if not first_damage:
                return archive_reader, first_damage
            archive.seek(0)
            try:
                damages = list(find_damage(archive.read, secret))
            except Damaged as error:
                return None, [_damaged_range(error)]
            # Describe each range with the same text that `restore` prints.
            return None, [
                _damaged_range(Damaged(damage.fault, damage.start, damage.stop)) for damage in damages
            ] or first_damage

    try:
        return await asyncio.to_thread(read)
    except WrongPassphrase as error:
        raise Failure(FAILURE, why=error.detail, remedy=error.remedy, exit_code=Exit.REFUSED) from error


def _read_once(archive: BinaryIO, secret: str) -> tuple[ArchiveReader | None, list[DamagedRange]]:
    """Read the archive to its end, or return its first damaged range."""
    try:
        archive_reader = ArchiveReader(AgeDecryptor(archive.read, secret), installation.SCHEMAS)
        for _ in archive_reader.members():
            continue
    except Damaged as error:
        return None, [_damaged_range(error)]
    return archive_reader, []


def _damaged_range(error: Damaged) -> DamagedRange:
    return error.start, error.stop, error.detail


def _verify_directory(settings: Settings, tables: dict[str, TableChecksum]) -> None:
    findings = open_records.run_coroutine(_check_directory(settings), FAILURE)
    is_whole = not any(finding.is_harm for finding in findings)
    lines = [f"{name}\t{table.rows}\t{table.sha256}" for name, table in tables.items()]
    lines += [f"{finding.place}: {finding.detail}" for finding in findings]
    if is_whole:
        lines.append(f"{settings.data} is intact: databases, files, keys and audit.")
    value: dict[str, object] = {
        "ok": is_whole,
        "data": settings.data,
        "findings": [finding.members for finding in findings],
    }
    if tables:
        value["tables"] = {name: {"rows": table.rows, "sha256": table.sha256} for name, table in tables.items()}
    output.print_result(value, "\n".join(lines))
    if not is_whole:
        _note_remedies(findings)
        sys.exit(Exit.CHECKSUM)


def _note_remedies(findings: list[Discrepancy]) -> None:
    """Print each remedy once."""
    for remedy in dict.fromkeys(finding.remedy for finding in findings if finding.is_harm and finding.remedy):
        output.note(remedy)


async def _table_checksums(settings: Settings) -> dict[str, TableChecksum]:
    """Map the name of each table of both services to its checksum."""
    checksum_by_table: dict[str, TableChecksum] = {}
    async with open_store.TABLES.open_existing(settings) as database:
        if database is not None:
            checksum_by_table |= {
                f"{lifespan.SCHEMA}.{checksum.table}": checksum
                async for checksum in table_checksum.table_checksums(database)
            }
    async with open_records.TABLES.open_existing(settings) as database:
        if database is not None:
            checksum_by_table |= {
                f"{app.SCHEMA}.{checksum.table}": checksum
                async for checksum in table_checksum.table_checksums(database)
            }
    return checksum_by_table


async def _check_directory(settings: Settings) -> list[Discrepancy]:
    findings = [check_database async for check_database in _check_databases(settings)]
    # Skip the other checks: they would read the damaged files and report the same damage again.
    if findings:
        return findings
    for place, check in (("keys", _check_keys), ("blobs", _check_blobs), ("audit", _check_audit)):
        try:
            findings += [finding async for finding in check(settings)]
        except DecryptionFailed as refused:
            # If there are findings, the check of the keys has already given the remedy.
            remedy = "" if findings else refused.remedy
            findings.append(Discrepancy(place, refused.detail, remedy=remedy))
        except Refused as refused:
            detail = " ".join((refused.detail, *getattr(refused, "__notes__", ())))
            findings.append(Discrepancy(place, detail, remedy=refused.remedy or RESTORE_REMEDY))
    return findings


async def _check_databases(settings: Settings) -> AsyncIterator[Discrepancy]:
    if settings.database_url:
        async with postgres_snapshot.open_snapshot(settings.database_url, installation.SCHEMAS) as snapshot:
            for schema in snapshot.schemas:
                for table in await snapshot.tables(schema):
                    await snapshot.rows(schema, table, _discard)
        return
    migration_marker.require_not_moved(Path(settings.data))
    for schema, path in installation.files(settings).items():
        try:
            faults = await asyncio.to_thread(sqlite_snapshot.check_integrity, path)
        except Refused as refused:
            faults = [refused.detail]
        for fault in faults:
            yield Discrepancy(schema, f"{path.name}: {fault}")


async def _discard(_: bytes) -> None:
    """Discard the bytes: the check only needs PostgreSQL to read them."""


async def _check_keys(settings: Settings) -> AsyncIterator[Discrepancy]:
    """Check that every encrypted value can be decrypted. A value whose key is missing does not count as damaged."""
    async with keys.open_databases(settings) as databases:
        master = await asyncio.to_thread(master_key, settings)
        lots: list[KeyUsage] = []
        for service in databases:
            if await migrate.pending(service.database, service.tables.migrations):
                detail = "migrations are pending (countersign db upgrade): encrypted values were not checked"
                yield Discrepancy(service.tables.schema, detail, is_harm=False)
            else:
                lots += await service.key_usage(master)
    missing = sorted({lot.key_id for lot in lots if lot.key_id and master.named(lot.key_id) is None})
    for lot in lots:
        if lot.key_id in missing:
            detail = f"{lot.values} values need the master key {lot.key_id}, which is not given"
            yield Discrepancy(lot.table, detail, remedy=missing_keys(missing, master).remedy)
        elif lot.unopened:
            detail = f"{lot.unopened} of {lot.values} values cannot be decrypted with master key {lot.key_id or '?'}"
            yield Discrepancy(lot.table, detail, remedy=UNDECRYPTABLE_REMEDY)


async def _check_blobs(settings: Settings) -> AsyncIterator[Discrepancy]:
    if not await open_store.TABLES.exist(settings):
        return
    report = installation.progress_reporter()
    checked_bytes = 0
    async with open_store.TABLES.open(settings) as database:
        async for blob in blobs.verify(database, installation.blob_store(settings)):
            checked_bytes += blob.size
            report("reading files", checked_bytes)
            if blob.what is not None:
                yield Discrepancy(f"file {blob.sha256}", MEANINGS[blob.what], blob.what != "surplus")


async def _check_audit(settings: Settings) -> AsyncIterator[Discrepancy]:
    async with open_records.TABLES.open_existing(settings) as database:
        if database is None or not await install.is_installed(database):
            return
        master = await asyncio.to_thread(master_key, settings)
        report = await chains.verify(database, await root_secret.secret(database, master))
    for fault in report.faults:
        yield Discrepancy(f"audit lane {fault.lane}, number {fault.number}", records.AUDIT_MEANINGS[fault.what])
