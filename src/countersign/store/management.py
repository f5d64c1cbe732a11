"""The store's health checks and database metrics on the management port."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from countersign.kernel import installation_id, metrics, reencryption
from countersign.kernel.database import instrumentation, migrate, versions
from countersign.kernel.errors import Unavailable
from countersign.kernel.http.management import Check, ServiceChecks
from countersign.kernel.mail import transports
from countersign.kernel.metrics import Sample
from countersign.kernel.security.passwords import SIGN_INS_FAILED
from countersign.kernel.webhooks import outbox
from countersign.store import encrypted_columns, lifespan
from countersign.store.auth import tokens
from countersign.store.context import Store
from countersign.store.jobs import queries as jobs
from countersign.store.releases import blob_gc, blobs

NAME = "distribution"

JOBS = metrics.gauge("countersign_jobs", "Jobs in the table, by status.", "status")
OLDEST = metrics.gauge("countersign_jobs_oldest_seconds", "Age of the oldest waiting, or running, job.", "status")
BLOBS = metrics.gauge("countersign_blobs", "Stored files in use.")
BLOB_BYTES = metrics.gauge("countersign_blob_bytes", "Bytes of the stored files in use.")
UNKNOWN = metrics.gauge("countersign_blobs_unknown", "Stored files that the database never knew and that are kept.")
UNKNOWN_BYTES = metrics.gauge(
    "countersign_blob_bytes_unknown", "Bytes of the stored files that the database never knew."
)
STOPPED = metrics.gauge("countersign_collector_stopped", "Whether the collector is stopped and removes no files (1).")
OUTBOX = metrics.gauge("countersign_mail_outbox", "E-mails in the outbox folder, if no mail server is configured.")


def service_checks(store: Store) -> ServiceChecks:
    """Return the store's health checks and metrics."""
    # Create these metrics now, so that they are reported as 0 until the first event.
    SIGN_INS_FAILED.labels(NAME)
    blob_gc.REMOVED.labels()
    blob_gc.REMOVED_BYTES.labels()
    checks = (
        Check(f"{NAME} database", partial(_check_database, store)),
        Check(f"{NAME} migrations", partial(migrate.check_current, store.database, lifespan.MIGRATIONS)),
        Check(f"{NAME} master key", partial(_check_keys, store)),
        Check(f"{NAME} deliveries", partial(outbox.describe_pause, store.database)),
        Check("blob store", partial(_check_blobs, store)),
        Check("installation", partial(_check_installation, store)),
    )
    return ServiceChecks(NAME, checks, partial(_measure, store))


async def _check_database(store: Store) -> str:
    async with store.database.transaction() as transaction:
        await versions.check_writable(transaction)
    return f"{store.database.dialect}: written and made durable"


async def _check_keys(store: Store) -> str:
    await reencryption.require_keys(store.database, encrypted_columns.COLUMNS, store.master)
    if await tokens.stored_keys(store.database, store.master) is None:
        raise Unavailable(
            "the database contains no encrypted keys: it is not the database that the service was started with"
        )
    return f"key {store.master.current.id} encrypts, and every key in use is present"


async def _check_blobs(store: Store) -> str:
    await store.blobs.check()
    return "written, read and removed"


async def _check_installation(store: Store) -> str:
    """Fail if the blob store belongs to another installation; the result includes the collector's notes."""
    locations = lifespan.installation_id_locations(store.settings, store.database, store.blobs)
    id_examination = await installation_id.examine(locations)
    gc_report = await blob_gc.report(store.database)
    return "; ".join([f"id {id_examination.known or 'not recorded yet'}", *(gc_report.notes if gc_report else ())])


async def _measure(store: Store) -> Iterable[Sample]:
    count, size = await blobs.usage(store.database)
    samples = [Sample(BLOBS, count), Sample(BLOB_BYTES, size)]
    samples += [
        Sample(JOBS, count, (status,)) for status, count in (await jobs.counts_by_status(store.database)).items()
    ]
    samples += [
        Sample(OLDEST, value, (status,)) for status, value in (await jobs.oldest_ages_s(store.database)).items()
    ]
    gc_report = await blob_gc.report(store.database)
    samples += [
        Sample(UNKNOWN, gc_report.unknown if gc_report else 0),
        Sample(UNKNOWN_BYTES, gc_report.unknown_bytes if gc_report else 0),
        Sample(STOPPED, 1 if gc_report and gc_report.stopped else 0),
    ]
    data = Path(store.settings.data)
    if store.database.dialect == "sqlite":
        samples.append(Sample(instrumentation.WAL, instrumentation.wal_bytes(data / lifespan.DATABASE_FILE), (NAME,)))
    if not store.settings.smtp_url:
        samples.append(Sample(OUTBOX, len(transports.messages(data / transports.OUTBOX_FOLDER))))
    return samples
