"""`countersign installation`: which database, data directory and blob store belong together."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import click

from countersign.backup.creation import BlobSource
from countersign.backup.databases import PostgresDatabases, SqliteDatabases
from countersign.cli import configuration, output, progress
from countersign.cli.admin import lock, open_records, open_store
from countersign.cli.options import data_option
from countersign.cli.output import Exit, Failure
from countersign.kernel import clock, ids, installation_id
from countersign.kernel.blobs.open import open_blobs
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.database import migrate
from countersign.kernel.database.open import file_name
from countersign.kernel.database.port import Database
from countersign.kernel.errors import Refused
from countersign.kernel.installation_id import DatabaseOutdated, InstallationLocations, InstallationMismatch
from countersign.records import app
from countersign.settings import Settings
from countersign.store import lifespan
from countersign.store.context import Store
from countersign.store.releases import blob_gc, blobs
from countersign.store.releases.blob_gc import CollectionReport, CollectResult

SCHEMAS = (lifespan.SCHEMA, app.SCHEMA)
REPORT_EVERY_S = 5.0

CANNOT_SHOW, CANNOT_ADOPT, CANNOT_COLLECT = "cannot show the installation", "cannot adopt the places", "cannot collect"


def databases(settings: Settings) -> SqliteDatabases | PostgresDatabases | None:
    """Return the databases of the services; None if SQLite is configured and no file exists."""
    if settings.database_url:
        return PostgresDatabases(settings.database_url, SCHEMAS)
    paths = files(settings)
    return SqliteDatabases(paths, Path(settings.data), settings.reserve_mib << 20) if paths else None


def files(settings: Settings) -> dict[str, Path]:
    """Map each schema to its SQLite file, if the file exists."""
    data = Path(settings.data).absolute()
    return {schema: data / file_name(schema) for schema in SCHEMAS if (data / file_name(schema)).exists()}


def blob_store(settings: Settings) -> BlobStore:
    """Return the configured blob store."""
    return open_blobs(
        settings.blobs_url, Path(settings.data) / lifespan.BLOBS_FOLDER, beneath=settings.blobs_beneath, reserve_bytes=0
    )


def referenced_blobs(settings: Settings) -> BlobSource:
    """Return the blob store, and the query for the blobs that the store's tables refer to."""
    return BlobSource(blob_store(settings), lifespan.SCHEMA, blobs.LIVE)


def progress_reporter() -> Callable[[str, int], None]:
    """Return a callback that prints the current step and its progress in bytes on stderr, at most once in
    REPORT_EVERY_S."""
    reported_s = clock.monotonic_s()

    def report(label: str, done_bytes: int) -> None:
        nonlocal reported_s
        now_s = clock.monotonic_s()
        if now_s - reported_s >= REPORT_EVERY_S:
            reported_s = now_s
            output.note(f"{label}: {progress.size(done_bytes)}")

    return report


class InstallationPlace(NamedTuple):
    """A database, data directory or blob store, with its installation id.

    A place may have no id yet. If the id cannot be read, `problem` gives the reason.
    """

    name: str
    id: str | None
    problem: str = ""

    @property
    def words(self) -> str:
        """A line for people."""
        return f"{self.id or self.problem or 'no id yet'}\t{self.name}"


class InstallationOverview(NamedTuple):
    """Every database, data directory and blob store with its id, and whether they may be used together.

    `conflict` is the reason why they may not be used together, or empty; `remedy` is what to do about the conflict.
    `report` is the result of the last garbage collection. `notes` are other facts for the operator."""

    places: list[InstallationPlace]
    conflict: str
    remedy: str
    report: CollectionReport | None
    notes: list[str]


@click.group("installation")
def installation() -> None:
    """The installation: which database, data directory and blob store belong together."""


@installation.command("show")
@data_option
@output.json_option
def show(data: str | None) -> None:
    """Show the id in each database, in the data directory and in the blob store. Nothing is changed.

    The exit code is 5 if the ids do not belong together. The second part of the output is what the garbage collector
    found in its last run.
    """
    settings = configuration.load(data=data)
    shown_overview = open_records.run_coroutine(overview(settings), CANNOT_SHOW)
    _show(shown_overview)
    if shown_overview.conflict:
        sys.exit(Exit.CONFLICT)


@installation.command("adopt")
@click.option("--new-id", is_flag=True, help="Create a new id, for a copy that shares no part with its original.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@data_option
@output.json_option
def adopt(*, new_id: bool, yes: bool, data: str | None) -> None:
    """Make the configured database, data directory and blob store one installation, even if they belonged to others
    before.

    All of these places get the id of the database. Files that the database has no record of are not removed. Any
    other installation that uses one of these places is refused from then on.
    """
    settings = configuration.load(data=data)
    _note_places(open_records.run_coroutine(overview(settings), CANNOT_ADOPT))
    _confirm(yes, "Make these places one installation?", CANNOT_ADOPT)
    with lock.acquire(Path(settings.data), CANNOT_ADOPT):
        own_id = open_records.run_coroutine(_adopt(settings, is_new=new_id), CANNOT_ADOPT)
    output.print_result({"id": own_id}, f"The places belong to the installation {own_id}.")


@installation.command("collect")
@click.option("--yes", is_flag=True, help="Remove all unused files, even if they are more than a tenth of the files.")
@click.option("--unknown", is_flag=True, help="Also remove files that the database has no record of, after a day.")
@data_option
@output.json_option
def collect(*, yes: bool, unknown: bool, data: str | None) -> None:
    """Remove the stored files that nothing has referred to for a day. `serve` does so every five minutes.

    The exit code is 5 if the garbage collector is stopped. It removes files only if database and blob store belong
    together.
    """

    async def work(opened_store: Store) -> tuple[CollectResult, CollectionReport | None]:
        collection_report = await blob_gc.collect(opened_store, is_confirmed=yes, takes_unknown=unknown)
        return collection_report, await blob_gc.report(opened_store.database)

    collection_report, report = open_store.run(data, CANNOT_COLLECT, work)
    value: dict[str, object] = {
        "removed": collection_report.blobs,
        "uploads": collection_report.uploads + collection_report.staged,
        "stopped": collection_report.stopped,
    }
    uploads = collection_report.uploads + collection_report.staged
    summary = f"Removed {collection_report.blobs} files, and the leftovers of {uploads} uploads."
    output.print_result(value | {"report": report and report._asdict()}, summary)
    for note in report.notes if report else ():
        output.note(note)
    if collection_report.stopped:
        sys.exit(Exit.CONFLICT)


async def require_one_installation(settings: Settings) -> None:
    """Check that the databases, the data directory and the blob store belong to one installation. Change nothing.

    Raises:
        InstallationMismatch: they belong to different installations.
        Moved, Unavailable, ValueError: a database, the data directory or the blob store cannot be read.
    """
    async with _open_places(settings) as places:
        for place in places:
            await installation_id.examine(place)


@asynccontextmanager
async def _open_places(settings: Settings) -> AsyncGenerator[list[InstallationLocations]]:
    """Yield the places of both services. A service whose tables do not exist has no database among its places."""
    async with AsyncExitStack() as stack:
        store_database = await stack.enter_async_context(open_store.TABLES.open_existing(settings))
        records_database = await stack.enter_async_context(open_records.TABLES.open_existing(settings))
        yield [
            replace(
                lifespan.installation_id_locations(settings, store_database, lifespan.open_blob_store(settings)),
                sibling=await _database_id(records_database),
            ),
            replace(
                app.installation_id_locations(settings, records_database), sibling=await _database_id(store_database)
            ),
        ]


async def _database_id(database: Database | None) -> str | None:
    return await installation_id.database_id(database) if database else None


async def overview(settings: Settings) -> InstallationOverview:
    """Return every place with its installation id. Change nothing.

    Raises:
        InstallationMismatch: the file with the id in the data directory cannot be read.
        Moved, Unavailable, ValueError, SchemaMismatch: a database cannot be read.
    """
    folder = Path(settings.data)
    folder_id = await asyncio.to_thread(installation_id.directory_id, folder)
    async with _open_places(settings) as places:
        place_rows = [
            InstallationPlace(place.database_name, await _database_id(place.database))
            for place in places
            if place.database
        ]
        place_rows.append(
            InstallationPlace(
                f"the data directory {folder}", folder_id.id if folder_id and folder_id.is_settled else None
            )
        )
        place_rows.append(await _blob_store_place(settings))
        report, notes = await _collector_report(places[0])
        for place in places:
            try:
                await installation_id.examine(place)
            except InstallationMismatch as refused:
                return InstallationOverview(place_rows, refused.detail, refused.remedy, report, notes)
        return InstallationOverview(place_rows, "", "", report, notes)


async def _collector_report(places: InstallationLocations) -> tuple[CollectionReport | None, list[str]]:
    database, blobs = places.database, places.blobs
    if database is None or blobs is None or await migrate.pending(database, lifespan.MIGRATIONS):
        return None, []
    report = await blob_gc.report(database)
    notes = report.notes if report else []
    try:
        await installation_id.require_latest(database, blobs, places.blobs_name)
    except DatabaseOutdated as refused:
        if not report or refused.detail not in report.stopped:
            notes = [*notes, f"the collector will remove nothing: {refused.detail}. {refused.remedy}"]
    except Refused as refused:
        notes = [*notes, f"the marker of the blob store was not read: {refused.detail}"]
    return report, notes


async def _blob_store_place(settings: Settings) -> InstallationPlace:
    name = lifespan.blob_store_name(settings)
    try:
        marker = await installation_id.blobs_marker(lifespan.open_blob_store(settings), name)
    except Refused as refused:
        return InstallationPlace(name, None, refused.detail)
    return InstallationPlace(name, marker and marker.id)


def _show(overview: InstallationOverview) -> None:
    value: dict[str, object] = {
        "places": [place._asdict() for place in overview.places],
        "conflict": overview.conflict,
        "remedy": overview.remedy,
        "report": overview.report and overview.report._asdict(),
        "notes": overview.notes,
    }
    lines = [place.words for place in overview.places]
    if overview.report is not None:
        lines.append(
            f"The collector last ran at {clock.rfc3339(overview.report.ran_at)}: {overview.report.files} files."
        )
    lines += overview.notes
    output.print_result(value, "\n".join(lines))
    if overview.conflict:
        output.note(f"Conflict: {overview.conflict}.")
        output.note(overview.remedy)


def _note_places(overview: InstallationOverview) -> None:
    for place in overview.places:
        output.note(place.words)
    if overview.conflict:
        output.note(f"Conflict: {overview.conflict}.")


def _confirm(yes: bool, question: str, failure: str) -> None:
    """Ask for confirmation unless --yes was given.

    Raises:
        Failure: the answer is no, or stdin is not a terminal.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        remedy = "Check the places above, then run the command again with --yes."
        raise Failure(failure, why="it was not confirmed", remedy=remedy, exit_code=Exit.USAGE)
    if not click.confirm(question, err=True):
        raise Failure(failure, why="it was not confirmed", exit_code=Exit.USAGE)


async def _adopt(settings: Settings, *, is_new: bool) -> str:
    async with _open_places(settings) as places:
        existing_places = [place for place in places if place.database is not None]
        if not existing_places:
            raise open_store.missing_database(settings, CANNOT_ADOPT, "Make one first: countersign db upgrade")
        for place in existing_places:
            await _require_upgraded(place)
        known_ids = [own_id for place in existing_places if (own_id := await _database_id(place.database))]
        own_id = known_ids[0] if known_ids and not is_new else ids.new_uuid()
        adopted_at = clock.now()
        for place in existing_places:
            await installation_id.adopt(place, own_id, adopted_at)
        return own_id


async def _require_upgraded(places: InstallationLocations) -> None:
    tables = open_store.TABLES if places.service.schema == lifespan.SCHEMA else open_records.TABLES
    if places.database is not None and await migrate.pending(places.database, tables.migrations):
        reason = f"migrations of {places.service.schema} are pending"
        raise Failure(CANNOT_ADOPT, why=reason, remedy="Run: countersign db upgrade", exit_code=Exit.CONFLICT)
