"""Leases of jobs: claiming the next job, and every change of a job under its lease.

A lease is a random token held by one worker. A worker that sends no heartbeat before the lease expires loses the job;
its later changes have no effect, since its lease is no longer in the row.
"""

from typing import Literal, NamedTuple, TypeAlias

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Dialect, Row, Transaction
from countersign.store import webhook_events
from countersign.store.jobs.job_types import BACKGROUND

Lane: TypeAlias = Literal["requested", "background"]
"""The kind of job that a worker claims: a job that a person or client requested, or a job of priority BACKGROUND."""

# The order of jobs in a lane. First: a job whose worker died. Second: the first due job, by priority and time, of an
# organisation without a running job, so that many jobs of one organisation do not delay the jobs of another. Third: the
# first due job of an organisation that is below its limit. Only jobs of the same lane count towards the limit, so that
# background jobs do not delay requested jobs.
_REQUESTED = f"priority < {BACKGROUND}"
_BACKGROUND = f"priority >= {BACKGROUND}"
_ORPHANED = "SELECT id FROM job WHERE status = 'running' AND lease_until <= $1 AND"
_OLDEST = "ORDER BY lease_until LIMIT 1"
_DUE = "SELECT id FROM job WHERE status = 'queued' AND run_after <= $1 AND"
_EXCEPT_ORGS_WITH = "AND org_id NOT IN (SELECT org_id FROM job WHERE status = 'running' AND"
_COUNT_AT_LEAST = "GROUP BY org_id HAVING count(*) >="
_FIRST = "ORDER BY priority, run_after LIMIT 1"
# If a row is locked, another transaction is ending or cancelling the job. The claim skips such a row.
_FREE = "FOR UPDATE SKIP LOCKED"
_NEXT_REQUESTED = f"""
    ({_ORPHANED} {_REQUESTED} {_OLDEST}),
    ({_DUE} {_REQUESTED} {_EXCEPT_ORGS_WITH} {_REQUESTED} {_COUNT_AT_LEAST} 1) {_FIRST}),
    ({_DUE} {_REQUESTED} {_EXCEPT_ORGS_WITH} {_REQUESTED} {_COUNT_AT_LEAST} $2) {_FIRST})
"""
_NEXT_BACKGROUND = f"""
    ({_ORPHANED} {_BACKGROUND} {_OLDEST}),
    ({_DUE} {_BACKGROUND} {_EXCEPT_ORGS_WITH} {_BACKGROUND} {_COUNT_AT_LEAST} 1) {_FIRST}),
    ({_DUE} {_BACKGROUND} {_EXCEPT_ORGS_WITH} {_BACKGROUND} {_COUNT_AT_LEAST} $2) {_FIRST})
"""
_FREE_REQUESTED = f"""
    ({_ORPHANED} {_REQUESTED} {_OLDEST} {_FREE}),
    ({_DUE} {_REQUESTED} {_EXCEPT_ORGS_WITH} {_REQUESTED} {_COUNT_AT_LEAST} 1) {_FIRST} {_FREE}),
    ({_DUE} {_REQUESTED} {_EXCEPT_ORGS_WITH} {_REQUESTED} {_COUNT_AT_LEAST} $2) {_FIRST} {_FREE})
"""
_FREE_BACKGROUND = f"""
    ({_ORPHANED} {_BACKGROUND} {_OLDEST} {_FREE}),
    ({_DUE} {_BACKGROUND} {_EXCEPT_ORGS_WITH} {_BACKGROUND} {_COUNT_AT_LEAST} 1) {_FIRST} {_FREE}),
    ({_DUE} {_BACKGROUND} {_EXCEPT_ORGS_WITH} {_BACKGROUND} {_COUNT_AT_LEAST} $2) {_FIRST} {_FREE})
"""
NEXT: dict[Lane, str] = {
    "requested": f"SELECT COALESCE({_NEXT_REQUESTED})",
    "background": f"SELECT COALESCE({_NEXT_BACKGROUND})",
}
_TAKE = """
    UPDATE job
    SET losses = losses + CASE WHEN status = 'running' THEN 1 ELSE 0 END,
        status = 'running',
        progress = 0,
        attempts = attempts + 1,
        lease = $3,
        lease_until = $4,
        started_at = COALESCE(started_at, $1)
    WHERE id = """
# Check the status again under the row lock, because the job may have been cancelled or its lease extended.
_IF_STILL_FREE = """
        AND (status = 'queued' OR (status = 'running' AND lease_until <= $1))
    RETURNING id, org_id, created_by, type, payload, attempts, losses, cancelled
"""
CLAIM: dict[Dialect, dict[Lane, str]] = {
    "sqlite": {
        "requested": f"{_TAKE} (SELECT COALESCE({_NEXT_REQUESTED})) {_IF_STILL_FREE}",
        "background": f"{_TAKE} (SELECT COALESCE({_NEXT_BACKGROUND})) {_IF_STILL_FREE}",
    },
    "postgres": {
        "requested": f"{_TAKE} (SELECT COALESCE({_FREE_REQUESTED})) {_IF_STILL_FREE}",
        "background": f"{_TAKE} (SELECT COALESCE({_FREE_BACKGROUND})) {_IF_STILL_FREE}",
    },
}
# Claims are serialized: otherwise two claims could both use the last slot of an organisation. A claim may be lost in
# a power failure: the job is still queued then, and changes under the lost lease are rejected.
LOCK_CLAIMS = (
    "SELECT pg_advisory_xact_lock(hashtext('job.claim.' || current_schema())), "
    "set_config('synchronous_commit', 'off', true)"
)
EXTEND_LEASE = """
    UPDATE job
    SET lease_until = $3, progress = CASE WHEN progress < $4 THEN $4 ELSE progress END
    WHERE id = $1 AND lease = $2 AND status = 'running'
    RETURNING cancelled
"""
COMPLETE = """
    UPDATE job
    SET status = 'completed', progress = 1, result = $3, finished_at = $4, lease = NULL, lease_until = NULL
    WHERE id = $1 AND lease = $2 AND status = 'running' AND cancelled = 0
"""
FAIL = """
    UPDATE job
    SET status = 'failed', error = $3, finished_at = $4, lease = NULL, lease_until = NULL
    WHERE id = $1 AND lease = $2 AND status = 'running'
"""
TRY_AGAIN = """
    UPDATE job
    SET status = 'queued', run_after = $3, lease = NULL, lease_until = NULL
    WHERE id = $1 AND lease = $2 AND status = 'running'
"""
GIVE_BACK = """
    UPDATE job
    SET status = 'queued', run_after = $3, attempts = attempts - 1, lease = NULL, lease_until = NULL
    WHERE id = $1 AND lease = $2 AND status = 'running'
"""
PULL_RUN_AFTER = "UPDATE job SET run_after = $1 WHERE status = 'queued' AND run_after > $2"
PULL_LEASE_UNTIL = "UPDATE job SET lease_until = $1 WHERE status = 'running' AND lease_until > $2"

SKEW_S = 60
"""The maximum clock skew between nodes."""


class LeaseLost(Exception):
    """Another worker has the job, or the job was cancelled. The transaction must be rolled back."""


class LeasedJob(NamedTuple):
    """A job that this worker has leased. `attempts` includes the current attempt. `losses` is the number of attempts
    whose worker died."""

    lease: str
    id: str
    org_id: str
    created_by: str
    type: str
    payload: str
    attempts: int
    losses: int
    cancelled: int


async def claim_next(database: Database, *, max_running: int, lease_s: float, lane: Lane) -> LeasedJob | None:
    """Lease the next job of the lane, if there is one. Each organisation can have at most `max_running` requested jobs
    and `max_running` background jobs at a time.

    Raises:
        Unavailable: the database cannot be reached.
    """
    now = clock.now()
    row = await database.fetch_one(NEXT[lane], now, max_running)
    if row is None or row[0] is None:
        return None
    lease = ids.new_record_id()
    async with database.transaction() as transaction:
        if database.dialect == "postgres":
            await transaction.fetch(LOCK_CLAIMS)
        job: Row | None = await transaction.fetch_one(
            CLAIM[database.dialect][lane], now, max_running, lease, clock.later(now, seconds=lease_s)
        )
    return None if job is None else LeasedJob(lease, *job)


async def repair_times(transaction: Transaction, *, lease_s: float, wait_s: float) -> None:
    """Repair times that are too far in the future, because they were written before the clock was set back. Otherwise
    such jobs would wait until the clock reaches these times. A repaired lease lasts for `lease_s` seconds, so that a
    running worker has time for its next heartbeat."""
    now = clock.now()
    await transaction.run(PULL_RUN_AFTER, now, clock.later(now, seconds=wait_s + SKEW_S))
    await transaction.run(
        PULL_LEASE_UNTIL, clock.later(now, seconds=lease_s), clock.later(now, seconds=lease_s + SKEW_S)
    )


async def extend_lease(database: Database, job: LeasedJob, progress: float, lease_s: float) -> bool:
    """Extend the lease by `lease_s` seconds and store the progress; return whether the job was cancelled.

    Raises:
        LeaseLost: another worker has the job.
    """
    leased_until = clock.later(clock.now(), seconds=lease_s)
    async with database.transaction() as transaction:
        row = await transaction.fetch_one(EXTEND_LEASE, job.id, job.lease, leased_until, progress)
    if row is None:
        raise LeaseLost(job.id)
    return bool(row[0])


async def complete(transaction: Transaction, job: LeasedJob, result: str) -> None:
    """End the job with its result, if the lease is valid and the job was not cancelled.

    Raises:
        LeaseLost: the lease is lost, or the job was cancelled.
    """
    _require_lease(await transaction.run(COMPLETE, job.id, job.lease, result, clock.now()), job)
    await webhook_events.job_ended(transaction, job.org_id, job.id)


async def fail(transaction: Transaction, job: LeasedJob, problem: str) -> None:
    """End the job with a problem.

    Raises:
        LeaseLost: another worker has the job.
    """
    _require_lease(await transaction.run(FAIL, job.id, job.lease, problem, clock.now()), job)
    await webhook_events.job_ended(transaction, job.org_id, job.id)


async def requeue(transaction: Transaction, job: LeasedJob, run_after: Instant) -> None:
    """Return the job to the queue for another attempt, not before `run_after`.

    Raises:
        LeaseLost: another worker has the job.
    """
    _require_lease(await transaction.run(TRY_AGAIN, job.id, job.lease, run_after), job)


async def return_to_queue(transaction: Transaction, job: LeasedJob) -> None:
    """Return the job to the queue, without counting the attempt.

    Raises:
        LeaseLost: another worker has the job.
    """
    _require_lease(await transaction.run(GIVE_BACK, job.id, job.lease, clock.now()), job)


def _require_lease(changed_rows: int, job: LeasedJob) -> None:
    if not changed_rows:
        raise LeaseLost(job.id)
