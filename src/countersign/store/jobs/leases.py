"""Who works on a job: leases in the job table, and every change under the lease it was claimed with.

A lease is a word that only its worker knows. Whoever was silent for longer than the lease lasts has lost the job;
what such a worker still says changes nothing, since its word is no longer in the row.
"""

from typing import Literal, NamedTuple, TypeAlias

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Dialect, Row, Transaction
from countersign.store import events
from countersign.store.jobs.job_types import BACKGROUND

Lane: TypeAlias = Literal["requested", "background"]
"""Which jobs a claim is for: those that a person or client asked for, or those of BACKGROUND."""

# The order of a lane: a job whose worker died; else the first due job, by priority and time, of an organisation that
# has none running, so that many jobs of one do not delay another; else of one below its limit. Only jobs of the same
# lane count against the limit: background jobs take no requested job's place.
_REQUESTED = f"priority < {BACKGROUND}"
_BACKGROUND = f"priority >= {BACKGROUND}"
_ORPHANED = "SELECT id FROM job WHERE status = 'running' AND lease_until <= $1 AND"
_OLDEST = "ORDER BY lease_until LIMIT 1"
_DUE = "SELECT id FROM job WHERE status = 'queued' AND run_after <= $1 AND"
_EXCEPT_ORGS_WITH = "AND org_id NOT IN (SELECT org_id FROM job WHERE status = 'running' AND"
_COUNT_AT_LEAST = "GROUP BY org_id HAVING count(*) >="
_FIRST = "ORDER BY priority, run_after LIMIT 1"
# A locked row is about to be ended or cancelled: the claim does not wait for it.
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
# Asked again as the row is locked: meanwhile it may have been cancelled, or its worker may have been heard of.
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
# One claim after the other, or two would both find the last place of an organisation free. That a claim is lost with
# the power is no harm: the job waits as before, and what was done under the lost lease is refused.
LOCK_CLAIMS = (
    "SELECT pg_advisory_xact_lock(hashtext('job.claim.' || current_schema())), "
    "set_config('synchronous_commit', 'off', true)"
)
BEAT = """
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
"""By how much the clocks of nodes may differ."""


class LeaseLost(Exception):
    """The job is another worker's by now, or it was cancelled; nothing of this transaction may be kept."""


class LeasedJob(NamedTuple):
    """A job that is this worker's while the lease lasts. `attempts` counts this one; `losses` those that ended with
    their worker."""

    lease: str
    id: str
    org_id: str
    created_by: str
    type: str
    payload: str
    attempts: int
    losses: int
    cancelled: int


async def claim_next(database: Database, *, running: int, lease_s: float, lane: Lane) -> LeasedJob | None:
    """Take up the job whose turn it is in the lane, if there is one. Of each organisation at most `running` requested
    and `running` background jobs run at a time.

    Raises:
        Unavailable: the database is away.
    """
    now = clock.now()
    row = await database.fetch_one(NEXT[lane], now, running)
    if row is None or row[0] is None:
        return None
    lease = ids.new_record_id()
    async with database.transaction() as transaction:
        if database.dialect == "postgres":
            await transaction.fetch(LOCK_CLAIMS)
        claimed: Row | None = await transaction.fetch_one(
            CLAIM[database.dialect][lane], now, running, lease, clock.later(now, seconds=lease_s)
        )
    return None if claimed is None else LeasedJob(lease, *claimed)


async def repair_times(transaction: Transaction, *, lease_s: float, wait_s: float) -> None:
    """Bring back what lies further ahead than anything is put off: it was written before the clock went back, and
    nobody would see to it until the clock is there again. A worker that lives has a whole lease to say so."""
    now = clock.now()
    await transaction.run(PULL_RUN_AFTER, now, clock.later(now, seconds=wait_s + SKEW_S))
    await transaction.run(
        PULL_LEASE_UNTIL, clock.later(now, seconds=lease_s), clock.later(now, seconds=lease_s + SKEW_S)
    )


async def beat(database: Database, claimed: LeasedJob, progress: float, lease_s: float) -> bool:
    """Keep the lease for `lease_s` more seconds and tell the progress; whether the job was cancelled.

    Raises:
        LeaseLost: another worker has the job.
    """
    until = clock.later(clock.now(), seconds=lease_s)
    async with database.transaction() as transaction:
        row = await transaction.fetch_one(BEAT, claimed.id, claimed.lease, until, progress)
    if row is None:
        raise LeaseLost(claimed.id)
    return bool(row[0])


async def complete(transaction: Transaction, claimed: LeasedJob, result: str) -> None:
    """End the job with its result, as long as it is this worker's and was not cancelled.

    Raises:
        LeaseLost: it is not, or it was.
    """
    _require(await transaction.run(COMPLETE, claimed.id, claimed.lease, result, clock.now()), claimed)
    await events.job_ended(transaction, claimed.org_id, claimed.id)


async def fail(transaction: Transaction, claimed: LeasedJob, problem: str) -> None:
    """End the job with a problem.

    Raises:
        LeaseLost: it is not this worker's any more.
    """
    _require(await transaction.run(FAIL, claimed.id, claimed.lease, problem, clock.now()), claimed)
    await events.job_ended(transaction, claimed.org_id, claimed.id)


async def try_again(transaction: Transaction, claimed: LeasedJob, run_after: Instant) -> None:
    """Have the job begun again, not before the moment.

    Raises:
        LeaseLost: it is not this worker's any more.
    """
    _require(await transaction.run(TRY_AGAIN, claimed.id, claimed.lease, run_after), claimed)


async def give_back(transaction: Transaction, claimed: LeasedJob) -> None:
    """Have the job begun by another worker as if this one had never had it.

    Raises:
        LeaseLost: it is not this worker's any more.
    """
    _require(await transaction.run(GIVE_BACK, claimed.id, claimed.lease, clock.now()), claimed)


def _require(changed: int, claimed: LeasedJob) -> None:
    if not changed:
        raise LeaseLost(claimed.id)
