"""`countersign db`: upgrade the databases of both services, or move them to PostgreSQL."""

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import click
import msgspec

from countersign.backup import atomic_files, postgres_bulk_load, sqlite_to_postgres
from countersign.backup.databases import SqliteDatabases
from countersign.backup.sqlite_to_postgres import BlobMigration, ServiceTables
from countersign.backup.table_checksum import TableChecksum
from countersign.cli import configuration, output, progress
from countersign.cli.admin import installation, lock, open_records, open_store
from countersign.cli.admin.open_store import Tables
from countersign.cli.options import data_option
from countersign.cli.output import Exit, Failure
from countersign.kernel import clock, connection_urls, ids, installation_id
from countersign.kernel.blobs.open import open_blobs
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.database import migrate as migrations
from countersign.kernel.database import migration_marker
from countersign.kernel.database.migration_marker import MigrationMarker
from countersign.kernel.database.port import Transaction
from countersign.kernel.database.postgres_admin import privileges_at
from countersign.kernel.errors import NotEmpty
from countersign.kernel.security import masterkey
from countersign.records import app, modules, root_secret
from countersign.records.schema import install
from countersign.records.schema import postgres_move as tables
from countersign.settings import Settings, explain
from countersign.store import lifespan
from countersign.store.releases import blobs, uploads

AWS_VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
MIGRATING = "cannot move the installation"


@dataclass(frozen=True, slots=True)
class Migration:
    """The source and the target of a move: the settings with the data directory, and the addresses to move to.

    If `blobs_to` is empty, files are not moved.
    """

    settings: Settings
    to: str
    blobs_to: str
    databases: SqliteDatabases

    @property
    def folder(self) -> Path:
        """The data directory."""
        return Path(self.settings.data).absolute()

    @property
    def target(self) -> str:
        """The target database as text, with the user name but without the password."""
        return connection_urls.describe_postgres(self.to)

    @property
    def place(self) -> str:
        """The location of the target database, without user name and password."""
        return connection_urls.postgres_location(self.to)


class MigrationResult(msgspec.Struct):
    """The result of a move: table checksums keyed by schema and name, and the number and total size of the files."""

    tables: dict[str, TableChecksum]
    blobs: int = 0
    blobs_bytes: int = 0
    was_there: bool = False


@click.command("migrate")
@click.option("--to", "to", metavar="URL", required=True, help="postgresql://… : an unused database.")
@click.option("--blobs-to", metavar="URL", default="", help="s3://… : an empty prefix for files. Default: files stay.")
@click.option("--dry-run", is_flag=True, help="Read everything, show what would be moved, and change nothing.")
@data_option
@output.json_option
def migrate(*, to: str, blobs_to: str, dry_run: bool, data: str | None) -> None:
    """Move this installation from SQLite to PostgreSQL, and compare every row on both sides.

    Files are copied first, while the server may be running. The server must be stopped before the databases are moved.
    If the command is interrupted, run it again.
    """
    migration = _read_options(configuration.load(data=data), to, blobs_to)
    if dry_run:
        _show_plan(migration, open_records.run_coroutine(_plan(migration), MIGRATING))
        return
    migration_result = open_records.run_coroutine(_migrate(migration), MIGRATING)
    rows = sum(table.rows for table in migration_result.tables.values())
    value: dict[str, object] = {
        "to": migration.target,
        "blobs": migration_result.blobs,
        "blobs_bytes": migration_result.blobs_bytes,
        "tables": {
            name: {"rows": table.rows, "sha256": table.sha256} for name, table in migration_result.tables.items()
        },
        "settings": list(target_settings(migration)),
    }
    summary = (
        f"Moved {rows} rows of {len(migration_result.tables)} tables to {migration.target}; each table is equal on "
        "both sides."
    )
    if migration_result.was_there:
        summary = f"Everything is in {migration.target} already: an earlier run was interrupted after the last step."
    if migration.blobs_to:
        summary += (
            f" {migration_result.blobs} files ({progress.size(migration_result.blobs_bytes)}) are in the other store."
        )
    output.print_result(value, summary)
    output.note("From now on, serve the installation with these settings on every node (… means the present value):")
    for line in target_settings(migration):
        output.note(f"  {line}")
    output.note("To serve on another machine, copy the master key to it: no other key decrypts the stored secrets.")
    output.note(
        f"The databases in {migration.folder} stay unchanged and are no longer served ({migration_marker.FILE_NAME})."
    )


def _read_options(settings: Settings, to: str, blobs_to: str) -> Migration:
    if not to.startswith(connection_urls.POSTGRES_SCHEMES):
        raise click.UsageError("--to takes postgresql://user:password@host/database")
    try:
        connection_urls.require_postgres(to, "--to")
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if settings.database_url:
        raise click.UsageError("COUNTERSIGN_DATABASE_URL is set: this installation is on PostgreSQL already")
    if blobs_to and settings.blobs_url:
        raise click.UsageError("--blobs-to moves files out of a data directory, but COUNTERSIGN_BLOBS_URL is set")
    if blobs_to and not blobs_to.startswith("s3://"):
        raise click.UsageError("--blobs-to takes s3://bucket/prefix?region=…")
    databases = installation.databases(settings)
    if not isinstance(databases, SqliteDatabases):
        remedy = "Pass --data with the directory that is served."
        raise open_store.missing_database(settings, MIGRATING, remedy)
    return Migration(settings, to, blobs_to, databases)


def target_settings(move: Migration) -> tuple[str, ...]:
    """Return the settings for serving after the move: first the settings that change, then all other settings in use.

    Each secret is printed as `…`, because it keeps its current value."""
    settings = move.settings
    user, separator, host_part = move.target.rpartition("@")
    values = {
        "COUNTERSIGN_DATABASE_URL": f"postgresql://{quote(user)}{':…' if separator else '…'}@{host_part}",
        **_key_setting(move),
    }
    if move.blobs_to:
        values["COUNTERSIGN_BLOBS_URL"] = move.blobs_to
        values |= {name: "…" for name in AWS_VARIABLES if os.environ.get(name)}
    values["COUNTERSIGN_DATA"] = str(move.folder)
    for setting in explain(os.environ, data=settings.data):
        if setting.source != "default" and setting.variable not in {*values, "COUNTERSIGN_MASTER_KEY"}:
            values[setting.variable] = "…" if setting.is_secret else setting.shown
    return tuple(f"{name}={value}" for name, value in values.items())


def _key_setting(move: Migration) -> dict[str, str]:
    """Return the setting that names the master key, without which no stored secret can be decrypted."""
    settings = move.settings
    if settings.master_key:
        return {"COUNTERSIGN_MASTER_KEY": "…"}
    file = Path(settings.master_key_file) if settings.master_key_file else move.folder / masterkey.FILE_NAME
    return {"COUNTERSIGN_MASTER_KEY_FILE": str(file.absolute())}


async def _plan(move: Migration) -> MigrationResult:
    migration_marker.require_not_moved(move.folder)
    await installation.require_one_installation(move.settings)
    await _require_upgraded(move)
    await _require_empty(move)
    await _rehearse(move)
    report = installation.progress_reporter()
    checksums: dict[str, TableChecksum] = {}
    async with move.databases.snapshot() as snapshot:
        for schema in snapshot.schemas:
            checksums |= {
                f"{schema}.{copy.table}": copy for copy in await sqlite_to_postgres.dry_run(snapshot.of(schema), report)
            }
        if not move.blobs_to or lifespan.SCHEMA not in snapshot.schemas:
            return MigrationResult(checksums)
        referenced_blobs = installation.referenced_blobs(move.settings)
        return MigrationResult(checksums, *await sqlite_to_postgres.blob_totals(snapshot, referenced_blobs))


async def _rehearse(move: Migration) -> None:
    """Create the tables in the target database and roll back; write, read and remove a few bytes in the target bucket.

    Raises:
        Refused: the target database or the target bucket cannot be used.
    """
    services = await _migration_tables(move)
    async with postgres_bulk_load.bulk_load(move.to, installation.SCHEMAS, keeps=False) as bulk_load:
        for schema, service in services.of.items():
            await service.create(await bulk_load.make(schema))
            await bulk_load.stamp(schema, "")
    blobs_there = _blob_copy(move)
    if blobs_there:
        await blobs_there.require_own(blobs.KNOWN)
        await _require_free_bucket(move)


def _show_plan(move: Migration, plan: MigrationResult) -> None:
    is_served = lock.is_locked(move.folder)
    rows = {name: table.rows for name, table in plan.tables.items()}
    lines = [f"{name}\t{count}" for name, count in rows.items() if count]
    lines.append(f"{sum(rows.values())} rows of {len(rows)} tables would go to {move.target}.")
    if move.blobs_to:
        lines.append(f"{plan.blobs} files ({progress.size(plan.blobs_bytes)}) would be copied first, while serving.")
    if is_served:
        lines.append("A server is running: stop it before the rows are moved.")
    value: dict[str, object] = {"to": move.target, "rows": rows, "blobs": plan.blobs, "blobs_bytes": plan.blobs_bytes}
    output.print_result({**value, "served": is_served}, "\n".join(lines))


async def _migrate(move: Migration) -> MigrationResult:
    if migration_marker.read_marker(move.folder) is not None:
        with lock.acquire(move.folder, MIGRATING):
            if await _is_already_complete(move):
                return MigrationResult({}, was_there=True)
    await installation.require_one_installation(move.settings)
    await _require_upgraded(move)
    await _require_empty(move)
    under_way = await _start_blob_copy(move)
    if lock.is_locked(move.folder):
        copied_text = f" {under_way.count} files are copied already." if under_way else ""
        remedy = f"Stop the server, and run the same command again.{copied_text}"
        raise Failure(MIGRATING, why=f"{move.folder} is served", remedy=remedy, exit_code=Exit.CONFLICT)
    with lock.acquire(move.folder, MIGRATING):
        services = await _migration_tables(move)
        # Block writes: the lock keeps out servers, but other commands may still write to the databases.
        async with move.databases.snapshot(block_writes=True) as snapshot:
            if under_way:
                await under_way.end(snapshot)
            if app.SCHEMA in snapshot.schemas:
                await tables.require_same(snapshot.of(app.SCHEMA), services.installed)
            mark = MigrationMarker(ids.new_uuid(), move.place, clock.rfc3339(clock.now()), is_complete=False)
            async with postgres_bulk_load.bulk_load(move.to, installation.SCHEMAS) as bulk_load:
                digests = await sqlite_to_postgres.migrate_tables(
                    snapshot, bulk_load, services.of, installation.progress_reporter()
                )
                for schema in services.of:
                    await bulk_load.stamp(schema, mark.id)
                # The marker is written before the commit. If the result of COMMIT is unknown, the next run checks it.
                with atomic_files.disk_errors(move.folder):
                    migration_marker.write_marker(move.folder, mark)
            with atomic_files.disk_errors(move.folder):
                migration_marker.write_marker(move.folder, msgspec.structs.replace(mark, is_complete=True))
    return MigrationResult(digests, under_way.count if under_way else 0, under_way.bytes if under_way else 0)


async def _is_already_complete(move: Migration) -> bool:
    """Return whether an interrupted move had completed in the target database. If not, its marker is removed.

    Raises:
        Moved: the marker belongs to a move to a different database, or to a move that is known to be complete.
    """
    mark = migration_marker.read_marker(move.folder)
    if mark is None:
        return False
    if mark.is_complete or mark.to != move.place:
        migration_marker.require_not_moved(move.folder)
    if await postgres_bulk_load.stamp(move.to, move.databases.schemas[0]) == mark.id:
        migration_marker.write_marker(move.folder, msgspec.structs.replace(mark, is_complete=True))
        return True
    migration_marker.remove_marker(move.folder)
    return False


async def _require_empty(move: Migration) -> None:
    """Check that the schemas do not exist in the target database, or are empty and owned by the role.

    Raises:
        NotEmpty, PrivilegeMissing: a schema is not empty, is owned by another role, or cannot be created.
    """
    for privileges in await privileges_at(move.to, installation.SCHEMAS):
        privileges.require_new()


def _blob_copy(move: Migration) -> BlobMigration | None:
    if not move.blobs_to or lifespan.SCHEMA not in move.databases.schemas:
        return None
    referenced_blobs = installation.referenced_blobs(move.settings)
    return BlobMigration(move.databases, referenced_blobs, _blobs_target(move), installation.progress_reporter())


def _blobs_target(move: Migration) -> BlobStore:
    return open_blobs(move.blobs_to, move.folder, reserve_bytes=0)


async def _require_free_bucket(move: Migration) -> str | None:
    """Check that the target bucket does not belong to another installation. Return the id of this installation, if any.

    Raises:
        NotEmpty: the target bucket belongs to another installation.
    """
    own_id = installation_id.directory_id(move.folder)
    marker = await installation_id.blobs_marker(_blobs_target(move), move.blobs_to)
    if marker is not None and (own_id is None or marker.id != own_id.id):
        text = f"{move.blobs_to} belongs to the installation {marker.id}"
        raise NotEmpty(text, resolution="Name another prefix.")
    return own_id.id if own_id and own_id.is_settled else None


async def _start_blob_copy(move: Migration) -> BlobMigration | None:
    under_way = _blob_copy(move)
    if under_way:
        await under_way.require_own(blobs.KNOWN)
        own_id = await _require_free_bucket(move)
        if own_id is not None:
            await installation_id.claim(_blobs_target(move), own_id, move.blobs_to)
        await under_way.begin()
    return under_way


@dataclass(frozen=True, slots=True)
class MigrationTables:
    """`of` maps each schema to the tables to move. `installed` are the modules installed in the source database."""

    of: dict[str, ServiceTables]
    installed: install.Snapshot


async def _require_upgraded(move: Migration) -> install.Snapshot:
    """Return the installed modules.

    Raises:
        Failure: the tables must be upgraded first.
    """
    settings = move.settings
    pending_upgrades: list[str] = []
    if lifespan.SCHEMA in move.databases.schemas:
        pending_upgrades += await open_store.pending(settings)
    installed_snapshot = install.EMPTY
    async with open_records.TABLES.open_existing(settings) as database:
        if database is not None:
            pending_upgrades += await migrations.pending(database, install.MIGRATIONS)
            registry = modules.found(modules.module_names(settings.modules))
            if not pending_upgrades:
                pending_upgrades += [step.sentence for step in (await install.plan_upgrade(database, registry)).steps]
                installed_snapshot = await install.installed(database)
    if pending_upgrades:
        remedy = "Run `countersign db upgrade`, or start `countersign serve` once with this version and stop it again."
        reason = f"the databases must be upgraded first: {'; '.join(pending_upgrades)}"
        raise Failure(MIGRATING, why=reason, remedy=remedy, exit_code=Exit.CONFLICT)
    return installed_snapshot


async def _migration_tables(move: Migration) -> MigrationTables:
    tables_by_service: dict[str, ServiceTables] = {}
    installed_snapshot = await _require_upgraded(move)
    if lifespan.SCHEMA in move.databases.schemas:

        async def make_store(transaction: Transaction) -> None:
            await migrations.create_within(transaction, lifespan.MIGRATIONS, "postgres")

        async def settle_store(transaction: Transaction) -> None:
            if move.blobs_to:
                await uploads.forget_all_parts(transaction)

        tables_by_service[lifespan.SCHEMA] = ServiceTables(make_store, settle_store)
    async with open_records.TABLES.open_existing(move.settings) as database:
        if database is not None:
            secret = await root_secret.secret(database, masterkey.master_key(move.settings))
            registry = modules.found(modules.module_names(move.settings.modules))
            target_tables = tables.target_snapshot(registry, installed_snapshot)
            tables_by_service[app.SCHEMA] = ServiceTables(
                partial(tables.create_tables, snapshot=target_tables),
                partial(tables.complete_installation, snapshot=target_tables, secret=secret),
            )
    return MigrationTables(tables_by_service, installed_snapshot)


class ServiceDatabase(NamedTuple):
    """The tables of a service, and the functions that return and apply their pending migrations."""

    tables: Tables
    pending: Callable[[Settings], Awaitable[list[str]]]
    upgrade: Callable[[Settings], Awaitable[list[str]]]


SERVICES = {
    lifespan.SCHEMA: ServiceDatabase(open_store.TABLES, open_store.pending, open_store.upgrade),
    app.SCHEMA: ServiceDatabase(open_records.TABLES, open_records.pending, open_records.upgrade),
}

UPGRADING = "cannot upgrade the databases"


@click.group()
def db() -> None:
    """The databases of both services."""


@db.command("upgrade")
@click.argument("service", type=click.Choice(tuple(SERVICES)), required=False)
@click.option("--dry-run", is_flag=True, help="Show what would be applied, and change nothing.")
@data_option
@output.json_option
def upgrade_db(service: str | None, dry_run: bool, data: str | None) -> None:
    """Apply the pending migrations to the database of the named service, or of both services. `serve` does so, too.

    If the tables of a named service do not exist, they are created; without a name, the tables of both services are
    created if neither exists. A step that would lose data is refused: see `modules plan`. While a server uses the data
    directory, all pending migrations are refused.
    """
    settings = configuration.load(data=data)
    services, names = open_records.run_coroutine(_pending_upgrades(settings, service), UPGRADING)
    value, summary = {"pending": names}, f"Up to date: {', '.join(services)}."
    if not dry_run:
        if names:
            # Hold the lock, because a running server expects the tables as they were when it started.
            with lock.acquire(Path(settings.data), UPGRADING):
                names = open_records.run_coroutine(_upgrade(settings, services), UPGRADING)
        value, summary = {"applied": names}, f"Were up to date: {', '.join(services)}."
    output.print_result({**value, "services": services}, "\n".join(names) or summary)
    for name in SERVICES:
        if service is None and name not in services:
            output.note(f"There are no tables of {name} here; to make them: countersign db upgrade {name}")


async def _selected_services(settings: Settings, service: str | None) -> list[str]:
    """Return the named service; else the services whose databases exist; else both services."""
    if service is not None:
        return [service]
    return [name for name, service in SERVICES.items() if await service.tables.exist(settings)] or list(SERVICES)


async def _pending_upgrades(settings: Settings, service: str | None) -> tuple[list[str], list[str]]:
    """Return the selected services, and their pending migrations.

    Raises:
        PrivilegeMissing: the PostgreSQL role may not apply the migrations.
    """
    services, names = await _selected_services(settings, service), list[str]()
    for service_name in services:
        pending_names = await SERVICES[service_name].pending(settings)
        if pending_names and settings.database_url:
            (privileges,) = await privileges_at(settings.database_url, (service_name,))
            privileges.require_upgrade()
        names += pending_names
    return services, names


async def _upgrade(settings: Settings, services: Sequence[str]) -> list[str]:
    return [name for service in services for name in await SERVICES[service].upgrade(settings)]


db.add_command(migrate)
