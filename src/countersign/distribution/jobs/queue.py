"""Asking for a job, in the transaction of whatever needs it."""

import msgspec

from countersign.distribution.context import Store
from countersign.distribution.jobs import queries
from countersign.distribution.jobs.kinds import REQUESTED
from countersign.distribution.jobs.refusals import TooManyJobs
from countersign.kernel import ids
from countersign.kernel.database.port import Transaction
from countersign.kernel.http.rate_limit import used_up

TRY_AGAIN_S = 10


async def enqueue(
    transaction: Transaction,
    store: Store,
    type: str,
    payload: msgspec.Struct,
    *,
    org_id: str,
    created_by: str,
    priority: int = REQUESTED,
) -> str:
    """Have the job done once the transaction is durable; its id. `created_by` is a caller's key."""
    job_id = ids.new_uuid()
    text = msgspec.json.encode(payload).decode()
    await queries.add(
        transaction, job_id, org_id=org_id, created_by=created_by, kind=type, payload=text, priority=priority
    )
    await store.jobs.defer(transaction)
    return job_id


async def require_room(transaction: Transaction, store: Store, org_id: str) -> None:
    """Let the organisation ask for one more job.

    Raises:
        TooManyJobs: `jobs_queued` of its jobs wait already.
    """
    most = store.settings.jobs_queued
    if await queries.waiting(transaction, store.database.dialect, org_id, most) >= most:
        raise TooManyJobs(f"{most} jobs of the organisation wait already", headers=used_up(most, TRY_AGAIN_S))
