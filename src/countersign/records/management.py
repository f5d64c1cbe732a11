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
from countersign.records.adopted.suspension import Suspensions
from countersign.records.context import Records
from countersign.records.schema import install

NAME = "records"

PLANS = metrics.gauge("countersign_plans_waiting", "Proposed plans that wait for a person's decision.")
SUSPENDED = metrics.gauge(
    "countersign_adopted_suspended", "Models of a connected database that are hidden, because their tables changed."
)
OLDEST = metrics.gauge("countersign_plans_oldest_seconds", "The age of the oldest waiting plan; 0 if none waits.")

_WAITING = "SELECT count(*), min(proposed_at) FROM plan WHERE state = 'pending' AND expires_at > $1"


def service_checks(service: app.RecordsService) -> ServiceChecks:
    """Return the health checks and the metrics of the service."""
    records = service.records
    SIGN_INS_FAILED.labels(NAME)  # reported as 0 before the first failure
    checks = (
        Check(f"{NAME} database", partial(_check_database, records)),
        Check(f"{NAME} migrations", partial(migrate.check_current, records.database, install.MIGRATIONS)),
        Check(f"{NAME} master key", partial(_check_keys, records)),
        Check(f"{NAME} deliveries", partial(outbox.describe_pause, records.database)),
    )
    suspensions = service.suspensions
    if suspensions is not None:
        checks = (*checks, Check(f"{NAME} connected tables", partial(_suspensions_text, suspensions)))
    return ServiceChecks(NAME, checks, partial(_measure, records, suspensions))


async def _suspensions_text(suspensions: Suspensions) -> str:
    """Describe the suspended models. The other models are still served, so the check does not fail."""
    if not suspensions.reasons:
        return f"{suspensions.count} models, none suspended"
    reasons = "; ".join(f"{model}: {reason}" for model, reason in sorted(suspensions.reasons.items()))
    return f"{len(suspensions.reasons)} of {suspensions.count} models suspended: {reasons}"


async def _check_database(records: Records) -> str:
    async with records.database.transaction() as transaction:
        await versions.check_writable(transaction)
    return f"{records.database.dialect}: written and made durable"


async def _check_keys(records: Records) -> str:
    await reencryption.require_keys(records.database, encrypted_columns.COLUMNS, records.master)
    if await root_secret.secret(records.database, records.master) != records.secret:
        raise Unavailable("the database's secret has changed since the service was started")
    return f"key {records.master.current.id} encrypts, and every key that encrypted anything is present"


async def _measure(records: Records, suspensions: Suspensions | None) -> Iterable[Sample]:
    now = clock.now()
    ((count, oldest_instant),) = await records.database.scan(_WAITING, now)
    samples = [
        Sample(PLANS, count),
        Sample(OLDEST, max(0, now - oldest_instant) / clock.SECOND if oldest_instant else 0),
    ]
    samples.append(Sample(SUSPENDED, len(suspensions.reasons) if suspensions is not None else 0))
    if records.database.dialect == "sqlite":
        file = app.database_file(records.settings)
        samples.append(Sample(instrumentation.WAL, instrumentation.wal_bytes(file), (NAME,)))
    return samples
