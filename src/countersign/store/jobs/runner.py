"""Run one attempt at a leased job: its scratch folder, the work with a heartbeat, and the outcome."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from countersign.kernel import clock, ids, telemetry
from countersign.kernel.database.port import Database, Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.http.problems import problem
from countersign.store.context import Store
from countersign.store.jobs import leases
from countersign.store.jobs.job_types import AnyJobType, JobCancelled, JobContext, JobFailed, JobStopped, Outcome
from countersign.store.jobs.leases import LeasedJob, LeaseLost

FOLDER = "work"
RUNNING_ATTEMPT = "SELECT 1 FROM job WHERE id = $1 AND attempts = $2 AND status = 'running'"


@asynccontextmanager
async def scratch(data: Path, job_id: str, attempt: int) -> AsyncGenerator[Path]:
    """Create an empty folder for this attempt below the data directory, and remove it after the block."""
    folder = data / FOLDER / f"{job_id}-{attempt}"
    _make(folder)
    try:
        yield folder
    finally:
        # Most jobs write nothing to the folder. Only a folder with files, such as a build, is removed in a thread.
        if not _is_removed(folder):
            await asyncio.shield(asyncio.to_thread(_remove, folder))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700)
    except FileNotFoundError:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        # The folder belongs to an attempt with the same number, which was returned to the queue.
        _remove(folder)
        folder.mkdir(mode=0o700)


def _is_removed(folder: Path) -> bool:
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


async def sweep(data: Path, database: Database) -> int:
    """Remove the folders of attempts that no longer run; return their number. A folder that another process is
    creating or removing is skipped."""
    removed_count = 0
    for folder in await asyncio.to_thread(_folders, data / FOLDER):
        job_id, _, attempt = folder.name.rpartition("-")
        if attempt.isdigit() and await database.fetch_one(RUNNING_ATTEMPT, job_id, int(attempt)) is None:
            await asyncio.to_thread(_remove, folder)
            removed_count += 1
    return removed_count


def _folders(parent: Path) -> list[Path]:
    return [folder for folder in parent.iterdir() if folder.is_dir()] if parent.is_dir() else []


HEARTBEATS_PER_LEASE = 5
"""Number of heartbeats that a worker sends during a lease."""
PROGRESS_EVERY_S = 1.0
MAX_STOP_S = 5.0
"""Maximum time for the work of a cancelled or lost job to stop."""
CANCEL_S = 1.0
BACK_OFF_S, MAX_BACK_OFF_S = 1.0, 300.0
MAX_PAUSE_S = 1.5 * MAX_BACK_OFF_S
"""The maximum pause before the next attempt, with jitter."""

MAX_LOSSES_PER_ATTEMPT = 3
"""The number of workers that may die for each attempt that a job has. A worker can also die for other reasons."""

Reason: TypeAlias = Literal["", "cancelled", "lost", "late", "stopping"]
"""The reason why an attempt ends before its work: none, cancelled, lease lost, out of time, or worker stopping."""


class JobAttempt:
    """The state of one attempt, shared by the work, which reports progress, and the watch, which extends the lease."""

    def __init__(self, store: Store, job: LeasedJob) -> None:
        self.store = store
        self.job = job
        self.reason: Reason = ""
        self.is_abandoned = False
        self._progress = 0.0
        self._reported = 0.0
        self._extended_s = clock.monotonic_s()
        self._lease_lock = asyncio.Lock()

    async def progress(self, fraction: float) -> None:
        """Report the progress, 0 to 1; values below the previous one are ignored.

        Raises:
            JobStopped: the job was cancelled, or another worker has it.
        """
        self._progress = max(self._progress, min(1.0, fraction))
        if self._progress != self._reported and clock.monotonic_s() - self._extended_s >= PROGRESS_EVERY_S:
            await self.extend_lease()
        if self.reason in ("cancelled", "lost"):
            raise JobStopped(self.reason)

    async def extend_lease(self) -> None:
        """Extend the lease, unless the lease is lost. If the database is unavailable for longer than the duration of
        the lease, the lease counts as lost."""
        lease_s = self.store.settings.job_lease_s
        async with self._lease_lock:
            reported_progress, at_s = self._progress, clock.monotonic_s()
            try:
                is_cancelled = await leases.extend_lease(self.store.database, self.job, reported_progress, lease_s)
            except LeaseLost:
                self.reason = "lost"
                return
            except Refused as refused:
                telemetry.logger("jobs").warning("lease not extended", job=self.job.id, reason=refused.detail)
                if at_s - self._extended_s > lease_s:
                    self.reason = "lost"
                return
            self._reported, self._extended_s = reported_progress, at_s
            if is_cancelled:
                self.reason = "cancelled"

    async def watch(self, work: "asyncio.Task[Outcome]", stop_event: asyncio.Event) -> None:
        """Wait for the end of the work, and extend the lease meanwhile. Cancel the work if its time is over. Also
        cancel the work if it does not end soon after the job was cancelled or lost, or the worker was stopped."""
        settings = self.store.settings
        deadline_s = clock.monotonic_s() + settings.job_seconds
        abandon_s = float("inf")
        stop = asyncio.ensure_future(stop_event.wait())
        try:
            while not work.done():
                within_s = min(
                    settings.job_lease_s / HEARTBEATS_PER_LEASE,
                    max(0.0, min(deadline_s, abandon_s) - clock.monotonic_s()),
                )
                await asyncio.wait(
                    {work} if stop.done() else {work, stop}, timeout=within_s, return_when="FIRST_COMPLETED"
                )
                if work.done():
                    return
                now_s = clock.monotonic_s()
                if now_s >= min(deadline_s, abandon_s):
                    await self._cancel(work, "late" if now_s >= deadline_s else "stopping")
                    return
                await self.extend_lease()
                if abandon_s == float("inf") and (self.reason or stop.done()):
                    abandon_s = now_s + (MAX_STOP_S if self.reason else settings.grace_s)
        finally:
            stop.cancel()

    async def _cancel(self, work: "asyncio.Task[Outcome]", reason: Reason) -> None:
        """Cancel the work. Its threads continue, so this process must not be used again."""
        self.reason = self.reason or reason
        self.is_abandoned = True
        work.cancel()
        await asyncio.wait({work}, timeout=CANCEL_S)


async def run_attempt(store: Store, types: Mapping[str, AnyJobType], job: LeasedJob, stop_event: asyncio.Event) -> bool:
    """Make one attempt at the job and store its outcome; return whether this process can be reused.

    Raises:
        Unavailable: the database cannot be reached; the lease expires, and the job is started again.
    """
    attempt = JobAttempt(store, job)
    refusal = _refusal_before_start(store, types, job)
    if refusal is not None:
        await _write_unless_lost(
            store, lambda transaction: leases.fail(transaction, job, _problem(store, job, refusal))
        )
        return True
    async with scratch(Path(store.settings.data), job.id, job.attempts) as folder:
        work = asyncio.create_task(_run(store, types[job.type], attempt, folder))
        await attempt.watch(work, stop_event)
        outcome = None if attempt.is_abandoned else _outcome(work)
        if isinstance(outcome, Outcome):
            outcome = await _commit(store, attempt, outcome)
        if outcome is not True:
            await _record_end(store, attempt, outcome)
    return not attempt.is_abandoned


def _refusal_before_start(store: Store, types: Mapping[str, AnyJobType], job: LeasedJob) -> Refused | None:
    """The reason why a leased job must not be started, or None if the job may be started."""
    if job.cancelled:
        return JobCancelled("the job was cancelled")
    if job.losses >= MAX_LOSSES_PER_ATTEMPT * store.settings.job_attempts:
        return JobFailed(f"{job.losses} workers died while they ran it")
    if job.type not in types:
        return JobFailed("no worker supports this type of job any more")
    return None


async def _run(store: Store, kind: AnyJobType, attempt: JobAttempt, folder: Path) -> Outcome:
    job = attempt.job
    work: JobContext[Any] = JobContext(
        job_id=job.id,
        org_id=job.org_id,
        created_by=job.created_by,
        payload=msgspec.json.decode(job.payload, type=kind.payload),
        attempt=job.attempts,
        scratch=folder,
        progress=attempt.progress,
    )
    return await kind.run(store, work)


def _outcome(work: "asyncio.Task[Outcome]") -> Outcome | BaseException:
    """The outcome of the work, or the exception that it raised."""
    if work.cancelled():
        return asyncio.CancelledError()
    return work.exception() or work.result()


async def _commit(store: Store, attempt: JobAttempt, outcome: Outcome) -> BaseException | Literal[True]:
    """Store the outcome, its effect and the end of the job in one transaction; return True or the error."""

    async def commit() -> None:
        async with store.database.transaction() as transaction:
            result = msgspec.json.encode(outcome.result).decode()
            # This statement must be the first. If two workers have the job, the second waits here for the first, and
            # then gets LeaseLost.
            await leases.complete(transaction, attempt.job, result)
            if outcome.commit is not None:
                await outcome.commit(transaction)

    commit_task = asyncio.create_task(commit())
    await asyncio.wait({commit_task})
    error = commit_task.exception()
    if isinstance(error, LeaseLost):
        await attempt.extend_lease()
    return True if error is None else error


async def _record_end(store: Store, attempt: JobAttempt, error: BaseException | None) -> None:
    """Store the end of an attempt that did not complete the job."""
    job = attempt.job
    if attempt.reason == "lost":
        telemetry.logger("jobs").warning("job taken over by another worker", job=job.id)
    elif attempt.reason == "cancelled":
        await _fail(store, job, JobCancelled("the job was cancelled"))
    elif attempt.reason == "stopping":
        await _write_unless_lost(store, lambda transaction: _give_back(store, transaction, job))
    elif isinstance(error, Refused) and error.status < 500:
        log = telemetry.logger("jobs")
        log.info("job refused", job=job.id, type=job.type, code=error.code, reason=error.detail[:500])
        await _fail(store, job, error)
    else:
        await _retry(store, job, error)


async def _retry(store: Store, job: LeasedJob, error: BaseException | None) -> None:
    """Return the job to the queue after a pause, or fail it after its last attempt."""
    log = telemetry.logger("jobs")
    counted_attempts = job.attempts - job.losses
    log.error("attempt at a job failed", job=job.id, type=job.type, attempt=counted_attempts, exc_info=error)
    if counted_attempts >= store.settings.job_attempts:
        reason = "took too long" if error is None else "failed; the error was logged"
        await _fail(store, job, JobFailed(f"attempt {counted_attempts} of {counted_attempts} {reason}"))
        return
    run_after = clock.later(clock.now(), seconds=back_off_s(counted_attempts))

    async def requeue(transaction: Transaction) -> None:
        await leases.requeue(transaction, job, run_after)
        await store.jobs.defer(transaction, run_after)

    await _write_unless_lost(store, requeue)


def back_off_s(attempt: int) -> float:
    """Seconds until the next attempt: doubled each time, with up to 50 % jitter, so that jobs that failed together are
    not started together."""
    jitter = ids.random_bytes(1)[0] / 256
    return min(MAX_BACK_OFF_S, BACK_OFF_S * 2 ** (attempt - 1)) * (1 + jitter / 2)


async def _give_back(store: Store, transaction: Transaction, job: LeasedJob) -> None:
    await leases.return_to_queue(transaction, job)
    await store.jobs.defer(transaction)


async def _fail(store: Store, job: LeasedJob, refusal: Refused) -> None:
    await _write_unless_lost(store, lambda transaction: leases.fail(transaction, job, _problem(store, job, refusal)))


def _problem(store: Store, job: LeasedJob, refusal: Refused) -> str:
    return problem_of(store, job.id, refusal)


def problem_of(store: Store, job_id: str, refusal: Refused) -> str:
    """The `error` of the job: problem details, as JSON."""
    body = problem(refusal, store.problems_root, f"{store.base_url}/jobs/{job_id}").body
    return body.decode() if isinstance(body, bytes) else ""


async def _write_unless_lost(store: Store, change: Callable[[Transaction], Awaitable[None]]) -> None:
    """Run `change` in a transaction. If the lease is lost, log a warning instead of an exception."""
    try:
        async with store.database.transaction() as transaction:
            await change(transaction)
    except LeaseLost as lost:
        telemetry.logger("jobs").warning("job taken over by another worker", job=str(lost))
