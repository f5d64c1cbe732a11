"""The collector: removes expired uploads, staged parts without an upload, and unreferenced stored files.

It removes only files that the database knows and that have been unreferenced for a day. Files that the database
never knew are counted and reported. Nothing is removed if the database and the blob store belong to different
installations. Nothing is removed either if the database was restored from a backup, and the collector ran after the
time of the backup. If one run would remove more than a tenth of the files, it only completes the removals that an
earlier run began.

Every step can be interrupted and is resumed by the next run; several runs may be concurrent, on any nodes.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from countersign.kernel import clock, installation_id, metrics, telemetry
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader
from countersign.kernel.installation_id import DatabaseOutdated, InstallationMismatch
from countersign.store import lifespan
from countersign.store.context import Store
from countersign.store.releases import artifacts, blobs, media, uploads
from countersign.store.releases.uploads import Upload

MIN_IDLE_S = 86_400
"""A file is removed only if it has existed, and has been unreferenced, for at least this time."""
UPLOADS_PER_BATCH = 200
MAX_SHARE = 10
"""One run removes at most 1 / MAX_SHARE of all stored files. One file may always be removed."""
CONFIRM = "countersign installation collect --yes"
ABANDON = {"artifact": artifacts.abandon, "media": media.abandon}

REPORT = "SELECT ran_at, files, due, unknown, unknown_bytes, stopped FROM collection"
SET_REPORT = """
    INSERT INTO collection (one, ran_at, files, due, unknown, unknown_bytes, stopped)
    VALUES (1, $1, $2, $3, $4, $5, $6)
    ON CONFLICT (one) DO UPDATE SET ran_at = excluded.ran_at, files = excluded.files, due = excluded.due,
        unknown = excluded.unknown, unknown_bytes = excluded.unknown_bytes, stopped = excluded.stopped
"""

REMOVED = metrics.counter("countersign_blobs_removed_total", "Stored files that the collector removed.")
REMOVED_BYTES = metrics.counter("countersign_blob_bytes_removed_total", "Bytes of the files that it removed.")


class CollectResult(NamedTuple):
    """The numbers of removed expired uploads, staged leftovers and stored files. `stopped` is the reason why due files
    were not removed; it is empty if they were removed. If they were not removed, `blobs` counts only the removals that
    an earlier run started."""

    uploads: int
    staged: int
    blobs: int
    stopped: str = ""


class CollectionReport(NamedTuple):
    """The report of the last run: the number of stored files, the number of files due for removal, the number and size
    of unknown files, and the reason why due files were not removed. The reason is empty if they were removed."""

    ran_at: Instant
    files: int = 0
    due: int = 0
    unknown: int = 0
    unknown_bytes: int = 0
    stopped: str = ""

    @property
    def notes(self) -> list[str]:
        """Messages for the operator."""
        notes = [f"the collector is stopped: {self.stopped}"] if self.stopped else []
        if self.unknown:
            notes.append(
                f"{self.unknown} stored files ({self.unknown_bytes} bytes) are unknown to the database and are kept"
            )
        return notes


class _BlobComparison(NamedTuple):
    """The differences between the blob store and the database. `due` contains the files to remove, with their sizes.
    `missing` contains the digests of files to remove that are not stored."""

    files: int
    due: dict[str, int]
    missing: list[str]
    unknown: list[str]
    unknown_bytes: int


async def collect(store: Store, *, is_confirmed: bool = False, takes_unknown: bool = False) -> CollectResult:
    """Remove expired uploads and unreferenced files. `is_confirmed` permits the removal of more than a tenth of the
    files; `takes_unknown` records unknown files as idle, so that they are removed a day later.

    Raises:
        Unavailable: database or blob store are unavailable; earlier removals persist.
    """
    idle_before = clock.later(clock.now(), seconds=-MIN_IDLE_S)
    try:
        await _require_own_blob_store(store)
    except (InstallationMismatch, DatabaseOutdated) as refused:
        await _store_report(store, CollectionReport(clock.now(), stopped=f"{refused.detail}. {refused.remedy}"))
        return CollectResult(0, 0, 0, refused.detail)
    expired_uploads = await _remove_expired_uploads(store)
    abandoned_stages = await _discard_abandoned_stages(store, idle_before)
    if expired_uploads or abandoned_stages:
        _log().info("removed uploads", expired=expired_uploads, leftovers=abandoned_stages)
    removed_blobs, stop_reason = await _remove_unused_blobs(
        store, idle_before, is_confirmed=is_confirmed, takes_unknown=takes_unknown
    )
    return CollectResult(expired_uploads, abandoned_stages, removed_blobs, stop_reason)


async def report(reader: Reader) -> CollectionReport | None:
    """The report of the last run; None before the first run."""
    row = await reader.fetch_one(REPORT)
    return None if row is None else CollectionReport(*row)


async def _require_own_blob_store(store: Store) -> None:
    """Check that the blob store belongs to this installation. Also check that the database is not older than the last
    removal of files from the blob store.

    Raises:
        InstallationMismatch, DatabaseOutdated: the check failed.
        Unavailable: database or blob store are unavailable.
    """
    locations = lifespan.installation_id_locations(store.settings, store.database, store.blobs)
    await installation_id.register(locations, await installation_id.examine(locations))
    await installation_id.advance(store.database, store.blobs, locations.blobs_name)


async def _remove_expired_uploads(store: Store) -> int:
    removed_uploads = 0
    while batch := await uploads.expired(store.database, UPLOADS_PER_BATCH):
        for upload in batch:
            await _remove_upload(store, upload)
        removed_uploads += len(batch)
    return removed_uploads


async def _remove_upload(store: Store, upload: Upload) -> None:
    async with store.database.transaction() as transaction:
        if await uploads.delete_unfinished(transaction, upload.id):
            await ABANDON[upload.purpose](transaction, upload)
        else:
            await uploads.delete_finished(transaction, upload.id)
    await store.blobs.discard(upload.id)


async def _discard_abandoned_stages(store: Store, idle_before: Instant) -> int:
    """Discard staged parts of finished or removed uploads that were not written to for a day. This is safe because the
    blob store belongs only to this installation."""
    removed_stages = 0
    async for staged_upload in store.blobs.staged_uploads():
        if staged_upload.changed_at < idle_before and not await uploads.is_open(store.database, staged_upload.upload):
            await store.blobs.discard(staged_upload.upload)
            removed_stages += 1
    return removed_stages


@dataclass(slots=True)
class _Removals:
    """The number of files that a run has removed, and their size."""

    files: int = 0
    size: int = 0

    def add(self, size: int) -> None:
        """Count a file."""
        self.files += 1
        self.size += size


@contextmanager
def _count_removals() -> Generator[_Removals]:
    """Count and log the removals of the block, even if the block raises an exception."""
    removals = _Removals()
    try:
        yield removals
    finally:
        if removals.files:
            REMOVED.labels().value += removals.files
            REMOVED_BYTES.labels().value += removals.size
            _log().info("removed files that were unreferenced for a day", files=removals.files, bytes=removals.size)


async def _remove_unused_blobs(
    store: Store, idle_before: Instant, *, is_confirmed: bool, takes_unknown: bool
) -> tuple[int, str]:
    """Finish the removals of an earlier run, then remove due files; return the number of removed files, and the reason
    why due files were not removed."""
    database = store.database
    with _count_removals() as removals:
        await _finish_removals(store, idle_before, removals)
        await blobs.note_unused(database)
        comparison = await _compare_blobs(store, idle_before)
        if takes_unknown and comparison.unknown:
            await blobs.note_idle(database, *comparison.unknown)
            _log().info("unknown files will be removed after a day", files=len(comparison.unknown))
            comparison = comparison._replace(unknown=[], unknown_bytes=0)
        stop_reason = "" if is_confirmed else _stop_reason(comparison)
        counts = (comparison.files, len(comparison.due), len(comparison.unknown), comparison.unknown_bytes)
        await _store_report(store, CollectionReport(clock.now(), *counts, stop_reason))
        if stop_reason:
            return removals.files, stop_reason
        for sha256 in comparison.missing:
            await blobs.remove_unused(database, store.blobs, sha256, idle_before)
        for sha256, length in comparison.due.items():
            if await blobs.remove_unused(database, store.blobs, sha256, idle_before):
                removals.add(length)
        return removals.files, ""


async def _finish_removals(store: Store, idle_before: Instant, removals: _Removals) -> None:
    """Remove the files whose removal an interrupted run started, unless another run has claimed the removal."""
    while condemned_blobs := await blobs.condemned_blobs(store.database, UPLOADS_PER_BATCH):
        for sha256, size in condemned_blobs:
            if await blobs.remove_condemned(store.database, store.blobs, sha256, idle_since=idle_before):
                removals.add(size)


async def _compare_blobs(store: Store, idle_before: Instant) -> _BlobComparison:
    """Compare the stored files with the database. Both are read in the order of their digests."""
    files, unknown_bytes = 0, 0
    due_blobs, unknown_blobs = dict[str, int](), list[str]()
    missing_blobs = await blobs.due_blobs(store.database, idle_before)
    digests = blobs.known_digests(store.database)
    last_digest = await anext(digests, None)
    async for sealed_blob in store.blobs.sealed_blobs():
        files += 1
        while last_digest is not None and last_digest < sealed_blob.sha256:
            last_digest = await anext(digests, None)
        if sealed_blob.sha256 in missing_blobs:
            missing_blobs.remove(sealed_blob.sha256)
            due_blobs[sealed_blob.sha256] = sealed_blob.size
        elif last_digest != sealed_blob.sha256 and sealed_blob.changed_at < idle_before:
            unknown_blobs.append(sealed_blob.sha256)
            unknown_bytes += sealed_blob.size
    return _BlobComparison(files, due_blobs, sorted(missing_blobs), unknown_blobs, unknown_bytes)


def _stop_reason(comparison: _BlobComparison) -> str:
    """Return the reason not to remove the due files, or an empty text if they may be removed."""
    if len(comparison.due) <= max(1, comparison.files // MAX_SHARE):
        return ""
    return (
        f"{len(comparison.due)} of {comparison.files} stored files are due for removal, which is more than a "
        f"tenth. Check that nothing is wrong with the database; to remove them, run: {CONFIRM}"
    )


async def _store_report(store: Store, current_report: CollectionReport) -> None:
    """Store the report for `doctor` and the metrics, and log changes that the operator should know."""
    last_report = await report(store.database)
    async with store.database.transaction() as transaction:
        await transaction.run(SET_REPORT, *current_report)
    if current_report.stopped and (last_report is None or last_report.stopped != current_report.stopped):
        _log().error("the collector is stopped: due files are not removed", reason=current_report.stopped)
    if current_report.unknown and (last_report is None or last_report.unknown != current_report.unknown):
        _log().warning(
            "stored files are unknown to the database and are kept",
            files=current_report.unknown,
            bytes=current_report.unknown_bytes,
        )


def _log() -> telemetry.Logger:
    return telemetry.logger("collector")
