"""Health checks and metrics of the records service on the operator's port."""

from collections.abc import Iterable
from functools import partial

from countersign.kernel import clock, metrics, reencryption
from countersign.kernel.database import instrumentation, migrate, versions
from countersign.kernel.errors import Unavailable
from countersign.kernel.http.management import Check, ServiceChecks
from countersign.kernel.metrics import Sample
from countersign.kernel.security.passwords import SIGN_INS_FAILED
from countersign.kernel.webhooks import outbox
from countersign.records import app, encrypted_columns, root_secret
from countersign.records.context import Records
from countersign.records.schema import install

NAME = "records"

PLANS = metrics.gauge("countersign_plans_waiting", "Proposed plans that wait for a person's decision.")
OLDEST = metrics.gauge("countersign_plans_oldest_seconds", "How long the oldest of them has waited; 0 without one.")

_WAITING = "SELECT count(*), min(proposed_at) FROM plan WHERE state = 'pending' AND expires_at > $1"


def watched(service: app.RecordsService) -> ServiceChecks:
    """Return the health checks and the metrics of the service."""
    records = service.records
    SIGN_INS_FAILED.of(NAME)  # told as 0 until there is one
    checks = (
        Check(f"{NAME} database", partial(_writable, records)),
        Check(f"{NAME} migrations", partial(migrate.check_current, records.database, install.MIGRATIONS)),
        Check(f"{NAME} master key", partial(_opened, records)),
        Check(f"{NAME} deliveries", partial(outbox.describe_pause, records.database)),
    )
    return ServiceChecks(NAME, checks, partial(_measured, records))


async def _writable(records: Records) -> str:
    async with records.database.transaction() as transaction:
        await versions.check_writable(transaction)
    return f"{records.database.dialect}: written and made durable"


async def _opened(records: Records) -> str:
    await reencryption.require_keys(records.database, encrypted_columns.COLUMNS, records.master)
    if await root_secret.secret(records.database, records.master) != records.secret:
        raise Unavailable("the database's secret has changed since the service was started")
    return f"key {records.master.current.id} encrypts, and every key that encrypted anything is present"


async def _measured(records: Records) -> Iterable[Sample]:
    now = clock.now()
    ((count, oldest_instant),) = await records.database.scan(_WAITING, now)
    samples = [
        Sample(PLANS, count),
        Sample(OLDEST, max(0, now - oldest_instant) / clock.SECOND if oldest_instant else 0),
    ]
    if records.database.dialect == "sqlite":
        file = app.database_file(records.settings)
        samples.append(Sample(instrumentation.WAL, instrumentation.wal_bytes(file), (NAME,)))
    return samples
