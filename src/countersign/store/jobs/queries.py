"""The job table for callers who request jobs: add, read, cancel and remove jobs."""

from typing import Any, NamedTuple

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database, Dialect, Reader, Transaction
from countersign.kernel.http.rate_limit import exhausted_headers
from countersign.store import webhook_events
from countersign.store.context import Store
from countersign.store.jobs.job_types import BACKGROUND, REQUESTED, JobStatus, Status, TooManyJobs

COLUMNS = """id, org_id, type, status, progress, attempts, cancelled, result, error, created_at, started_at,
    finished_at"""
LISTED_COLUMNS = """id, org_id, type, status, progress, attempts, cancelled,
    CASE WHEN length(result) <= 65536 THEN result END, error, created_at, started_at, finished_at"""
ADD = """
    INSERT INTO job (
        id, org_id, created_by, type, payload, status, progress, attempts, losses, cancelled, run_after, created_at,
        priority
    )
    VALUES ($1, $2, $3, $4, $5, 'queued', 0, 0, 0, 0, $6, $6, $7)
"""
LOCK_ADDING = "SELECT pg_advisory_xact_lock(hashtext('job.' || $1))"
WAITING_OF_ORG = f"""
    SELECT count(*)
    FROM (
        SELECT 1 FROM job WHERE org_id = $1 AND status = 'queued' AND priority < {BACKGROUND} LIMIT $2
    ) AS waiting
"""
JOB = f"SELECT {COLUMNS} FROM job WHERE id = $1"
STATE = "SELECT status, progress, attempts FROM job WHERE id = $1"
# The statement omits large results, because a page of large results would fill the memory.
PAGE = f"""
    SELECT {LISTED_COLUMNS}
    FROM job
    WHERE org_id = $1
        AND (created_at, id) < ($2, $3)
        AND ($4 = '' OR status = $4)
        AND ($5 = '' OR type = $5)
    ORDER BY created_at DESC, id DESC
    LIMIT $6
"""
CANCEL_WAITING = """
    UPDATE job
    SET status = 'failed', cancelled = 1, error = $2, finished_at = $3
    WHERE id = $1 AND status = 'queued'
    RETURNING org_id
"""
CANCEL_RUNNING = "UPDATE job SET cancelled = 1 WHERE id = $1 AND status = 'running'"
FORGET_OLD = "DELETE FROM job WHERE finished_at <= $1"
FORGET_WORKERS = "DELETE FROM job_worker WHERE seen_at <= $1"
SET_SEEN_AT = """
    INSERT INTO job_worker (id, seen_at)
    VALUES ($1, $2)
    ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
"""
DELETE_WORKER = "DELETE FROM job_worker WHERE id = $1"
LAST_SEEN = "SELECT max(seen_at) FROM job_worker"
COUNTS = "SELECT status, count(*) FROM job GROUP BY status"
OLDEST = "SELECT status, min(created_at) FROM job WHERE status IN ('queued', 'running') GROUP BY status"
LONGEST_DUE = "SELECT min(run_after) FROM job WHERE status = 'queued'"


class Job(NamedTuple):
    """A row of the job table, as shown to those who requested the job."""

    id: str
    org_id: str
    type: str
    status: Status
    progress: float
    attempts: int
    is_cancelled: bool
    result: str | None
    error: str | None
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None

    @property
    def has_ended(self) -> bool:
        """Whether the job has ended."""
        return self.finished_at is not None

    def shown(self) -> JobStatus:
        """The job as a `JobStatus`."""
        return JobStatus(
            job_id=self.id,
            status=self.status,
            progress=self.progress,
            type=self.type,
            created_at=clock.rfc3339(self.created_at),
            started_at=clock.rfc3339_or_none(self.started_at),
            finished_at=clock.rfc3339_or_none(self.finished_at),
            attempts=self.attempts,
            result=_decoded_object(self.result),
            error=_decoded_object(self.error),
        )


def _decoded_object(text: str | None) -> dict[str, Any] | None:
    return None if text is None else msgspec.json.decode(text, type=dict[str, Any])


def _job(row: tuple[Any, ...]) -> Job:
    return Job(*row)


async def add(
    transaction: Transaction, job_id: str, *, org_id: str, created_by: str, kind: str, payload: str, priority: int
) -> None:
    """Add a job to the queue."""
    await transaction.run(ADD, job_id, org_id, created_by, kind, payload, clock.now(), priority)


async def count_queued(transaction: Transaction, dialect: Dialect, org_id: str, limit: int) -> int:
    """Count the organisation's queued requested jobs, up to `limit`. Until this transaction ends, no other transaction
    can add a job of the organisation. PostgreSQL needs a lock for this; SQLite has only one writer."""
    if dialect == "postgres":
        await transaction.fetch(LOCK_ADDING, org_id)
    row = await transaction.fetch_one(WAITING_OF_ORG, org_id, limit)
    return 0 if row is None else int(row[0])


async def job(reader: Reader, job_id: str) -> Job | None:
    """The job, of any organisation."""
    row = await reader.fetch_one(JOB, job_id)
    return None if row is None else _job(row)


async def page(
    reader: Reader, org_id: str, after_key: tuple[Instant, str], status: str, kind: str, limit: int
) -> list[Job]:
    """Jobs of one organisation that are older than the position `after_key`, newest first. An empty `status` or `kind`
    selects all jobs. Results of more than 65,536 characters are omitted."""
    return [_job(row) for row in await reader.fetch(PAGE, org_id, *after_key, status, kind, limit)]


async def cancel(transaction: Transaction, job_id: str, problem: str) -> bool:
    """End a queued job with this problem, or request a running job to stop. Return False if the job has ended."""
    ended_row = await transaction.fetch_one(CANCEL_WAITING, job_id, problem, clock.now())
    if ended_row is not None:
        await webhook_events.job_ended(transaction, str(ended_row[0]), job_id)
        return True
    return bool(await transaction.run(CANCEL_RUNNING, job_id))


async def forget_old(transaction: Transaction, days: int) -> None:
    """Remove jobs that ended `days` days ago, and workers without a heartbeat for one day."""
    await transaction.run(FORGET_OLD, clock.later(clock.now(), seconds=-86_400 * days))
    await transaction.run(FORGET_WORKERS, clock.later(clock.now(), seconds=-86_400))


async def record_heartbeat(transaction: Transaction, worker_id: str) -> None:
    """Store the heartbeat of the worker."""
    await transaction.run(SET_SEEN_AT, worker_id, clock.now())


async def forget_worker(transaction: Transaction, worker_id: str) -> None:
    """Remove a stopped worker."""
    await transaction.run(DELETE_WORKER, worker_id)


async def unattended_s(reader: Reader) -> float:
    """The number of seconds for which jobs have been due without a heartbeat of any worker; 0 if no job is due."""
    due_row = await reader.fetch_one(LONGEST_DUE)
    seen_row = await reader.fetch_one(LAST_SEEN)
    if due_row is None or due_row[0] is None:
        return 0.0
    since_instant = max(due_row[0], (seen_row[0] if seen_row is not None else None) or 0)
    return max(0.0, (clock.now() - since_instant) / clock.SECOND)


async def counts_by_status(database: Database) -> dict[Status, int]:
    """The number of jobs in each status."""
    no_counts: dict[Status, int] = {"queued": 0, "running": 0, "completed": 0, "failed": 0}
    return no_counts | {status: count for status, count in await database.scan(COUNTS)}


async def oldest_ages_s(database: Database) -> dict[Status, float]:
    """The age in seconds of the oldest queued job and of the oldest running job; 0 if no such job exists."""
    now = clock.now()
    no_ages: dict[Status, float] = {"queued": 0.0, "running": 0.0}
    return no_ages | {
        status: max(0.0, (now - since_instant) / clock.SECOND) for status, since_instant in await database.scan(OLDEST)
    }


RETRY_AFTER_S = 10


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
    """Add a job that starts after the transaction is committed durably; return its id. `created_by` is the key of a
    caller."""
    job_id = ids.new_uuid()
    text = msgspec.json.encode(payload).decode()
    await add(transaction, job_id, org_id=org_id, created_by=created_by, kind=type, payload=text, priority=priority)
    await store.jobs.defer(transaction)
    return job_id


async def require_queue_space(transaction: Transaction, store: Store, org_id: str) -> None:
    """Check that the organisation may queue one more job.

    Raises:
        TooManyJobs: the organisation already has `jobs_queued` queued jobs.
    """
    limit = store.settings.jobs_queued
    if await count_queued(transaction, store.database.dialect, org_id, limit) >= limit:
        detail = f"{limit} jobs of the organisation are queued already"
        raise TooManyJobs(detail, headers=exhausted_headers(limit, RETRY_AFTER_S))
