"""One attempt at a claimed job: its scratch folder, the work beside its heartbeat, and the result."""

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
    """An empty folder of this attempt's own below the data directory, until the block is left."""
    folder = data / FOLDER / f"{job_id}-{attempt}"
    _make(folder)
    try:
        yield folder
    finally:
        # Most jobs leave it empty; what is left may be a whole build.
        if not _is_removed(folder):
            await asyncio.shield(asyncio.to_thread(_remove, folder))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700)
    except FileNotFoundError:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        # Of an attempt with the same number, which was given back.
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
    """Remove the folders of attempts that run no longer; how many there were. What is in one that another process is
    just about to make, or to remove, is left alone."""
    removed = 0
    for folder in await asyncio.to_thread(_folders, data / FOLDER):
        job_id, _, attempt = folder.name.rpartition("-")
        if attempt.isdigit() and await database.fetch_one(RUNNING_ATTEMPT, job_id, int(attempt)) is None:
            await asyncio.to_thread(_remove, folder)
            removed += 1
    return removed


def _folders(parent: Path) -> list[Path]:
    return [folder for folder in parent.iterdir() if folder.is_dir()] if parent.is_dir() else []


BEATS_PER_LEASE = 5
"""How often a worker is heard of while a lease lasts."""
PROGRESS_EVERY_S = 1.0
LEAVE_AFTER_S = 5.0
"""How long the work of a job that is no longer wanted may take to notice."""
CANCEL_S = 1.0
BACK_OFF_S, MAX_BACK_OFF_S = 1.0, 300.0
MAX_PAUSE_S = 1.5 * MAX_BACK_OFF_S
"""How far ahead the next attempt is put at most, with its share of chance."""

MAX_LOSSES_PER_ATTEMPT = 3
"""For each attempt that a job has, it may end so many workers: not every one that dies was killed by its job."""

Reason: TypeAlias = Literal["", "cancelled", "lost", "late", "stopping"]
"""Why an attempt is to end before its work has: nothing, cancelled, taken over, out of time, worker told to stop."""


class JobAttempt:
    """The state of one attempt, between the work, which tells its progress, and the watch, which keeps the lease."""

    def __init__(self, store: Store, claimed: LeasedJob) -> None:
        self.store = store
        self.claimed = claimed
        self.reason: Reason = ""
        self.was_left_behind = False
        self._progress = 0.0
        self._told = 0.0
        self._beaten_s = clock.monotonic_s()
        self._beating = asyncio.Lock()

    async def progress(self, part: float) -> None:
        """How far the work is, 0 to 1; what is less than before is not believed.

        Raises:
            Stopped: the job was cancelled, or is another worker's.
        """
        self._progress = max(self._progress, min(1.0, part))
        if self._progress != self._told and clock.monotonic_s() - self._beaten_s >= PROGRESS_EVERY_S:
            await self.beat()
        if self.reason in ("cancelled", "lost"):
            raise JobStopped(self.reason)

    async def beat(self) -> None:
        """Keep the lease, unless it is lost; a database that is away for less than the lease does no harm."""
        lease_s = self.store.settings.job_lease_s
        async with self._beating:
            told, at_s = self._progress, clock.monotonic_s()
            try:
                is_cancelled = await leases.beat(self.store.database, self.claimed, told, lease_s)
            except LeaseLost:
                self.reason = "lost"
                return
            except Refused as refused:
                telemetry.logger("jobs").warning("a lease was not kept", job=self.claimed.id, reason=refused.detail)
                if at_s - self._beaten_s > lease_s:
                    self.reason = "lost"
                return
            self._told, self._beaten_s = told, at_s
            if is_cancelled:
                self.reason = "cancelled"

    async def watch(self, work: "asyncio.Task[Outcome]", stopping: asyncio.Event) -> None:
        """Wait for the end of the work, keeping the lease; end it when there is a reason to."""
        settings = self.store.settings
        late_s = clock.monotonic_s() + settings.job_seconds
        leave_s = float("inf")
        stop = asyncio.ensure_future(stopping.wait())
        try:
            while not work.done():
                within_s = min(
                    settings.job_lease_s / BEATS_PER_LEASE, max(0.0, min(late_s, leave_s) - clock.monotonic_s())
                )
                await asyncio.wait(
                    {work} if stop.done() else {work, stop}, timeout=within_s, return_when="FIRST_COMPLETED"
                )
                if work.done():
                    return
                now_s = clock.monotonic_s()
                if now_s >= min(late_s, leave_s):
                    await self._end(work, "late" if now_s >= late_s else "stopping")
                    return
                await self.beat()
                if leave_s == float("inf") and (self.reason or stop.done()):
                    leave_s = now_s + (LEAVE_AFTER_S if self.reason else settings.grace_s)
        finally:
            stop.cancel()

    async def _end(self, work: "asyncio.Task[Outcome]", reason: Reason) -> None:
        """Cancel the work. What it does in threads goes on all the same: this process is not to be used again."""
        self.reason = self.reason or reason
        self.was_left_behind = True
        work.cancel()
        await asyncio.wait({work}, timeout=CANCEL_S)


async def perform(store: Store, types: Mapping[str, AnyJobType], claimed: LeasedJob, stopping: asyncio.Event) -> bool:
    """Make one attempt at the job and write down what came of it; whether this process is as good as new afterwards.

    Raises:
        Unavailable: the database is away; the lease will run out, and the job be begun again.
    """
    attempt = JobAttempt(store, claimed)
    refused = _refusal_before_start(store, types, claimed)
    if refused is not None:
        await _write(store, lambda transaction: leases.fail(transaction, claimed, _problem(store, claimed, refused)))
        return True
    async with scratch(Path(store.settings.data), claimed.id, claimed.attempts) as folder:
        work = asyncio.create_task(_run(store, types[claimed.type], attempt, folder))
        await attempt.watch(work, stopping)
        outcome = None if attempt.was_left_behind else _outcome(work)
        if isinstance(outcome, Outcome):
            outcome = await _commit(store, attempt, outcome)
        if outcome is not True:
            await _record_end(store, attempt, outcome)
    return not attempt.was_left_behind


def _refusal_before_start(store: Store, types: Mapping[str, AnyJobType], claimed: LeasedJob) -> Refused | None:
    """Why a claimed job is not to be begun at all."""
    if claimed.cancelled:
        return JobCancelled("the job was cancelled")
    if claimed.losses >= MAX_LOSSES_PER_ATTEMPT * store.settings.job_attempts:
        return JobFailed(f"{claimed.losses} workers ended while they worked on it")
    if claimed.type not in types:
        return JobFailed("no worker knows this type of job any more")
    return None


async def _run(store: Store, kind: AnyJobType, attempt: JobAttempt, folder: Path) -> Outcome:
    claimed = attempt.claimed
    work: JobContext[Any] = JobContext(
        job_id=claimed.id,
        org_id=claimed.org_id,
        created_by=claimed.created_by,
        payload=msgspec.json.decode(claimed.payload, type=kind.payload),
        attempt=claimed.attempts,
        scratch=folder,
        progress=attempt.progress,
    )
    return await kind.run(store, work)


def _outcome(work: "asyncio.Task[Outcome]") -> Outcome | BaseException:
    """What the work made, or what it raised."""
    if work.cancelled():
        return asyncio.CancelledError()
    return work.exception() or work.result()


async def _commit(store: Store, attempt: JobAttempt, outcome: Outcome) -> BaseException | Literal[True]:
    """Keep the outcome, its effect and the job's end in one transaction; what went wrong otherwise."""

    async def commit() -> None:
        async with store.database.transaction() as transaction:
            result = msgspec.json.encode(outcome.result).decode()
            # First, so that of two workers one waits here and then finds the lease gone.
            await leases.complete(transaction, attempt.claimed, result)
            if outcome.commit is not None:
                await outcome.commit(transaction)

    keeping = asyncio.create_task(commit())
    await asyncio.wait({keeping})
    error = keeping.exception()
    if isinstance(error, LeaseLost):
        await attempt.beat()
    return True if error is None else error


async def _record_end(store: Store, attempt: JobAttempt, error: BaseException | None) -> None:
    """Write down the end of an attempt that did not complete the job."""
    claimed = attempt.claimed
    if attempt.reason == "lost":
        telemetry.logger("jobs").warning("a job was taken over by another worker", job=claimed.id)
    elif attempt.reason == "cancelled":
        await _fail(store, claimed, JobCancelled("the job was cancelled"))
    elif attempt.reason == "stopping":
        await _write(store, lambda transaction: _give_back(store, transaction, claimed))
    elif isinstance(error, Refused) and error.status < 500:
        log = telemetry.logger("jobs")
        log.info("a job was refused", job=claimed.id, type=claimed.type, code=error.code, reason=error.detail[:500])
        await _fail(store, claimed, error)
    else:
        await _retry(store, claimed, error)


async def _retry(store: Store, claimed: LeasedJob, error: BaseException | None) -> None:
    """Have the job begun again after a while, or fail it when that was its last attempt."""
    log = telemetry.logger("jobs")
    counted = claimed.attempts - claimed.losses
    log.error("an attempt at a job failed", job=claimed.id, type=claimed.type, attempt=counted, exc_info=error)
    if counted >= store.settings.job_attempts:
        why = "took too long" if error is None else "failed; the fault was logged"
        await _fail(store, claimed, JobFailed(f"attempt {counted} of {counted} {why}"))
        return
    run_after = clock.later(clock.now(), seconds=back_off_s(counted))

    async def again(transaction: Transaction) -> None:
        await leases.try_again(transaction, claimed, run_after)
        await store.jobs.defer(transaction, run_after)

    await _write(store, again)


def back_off_s(attempt: int) -> float:
    """Seconds until the next attempt: twice as many each time, and up to half as many again, so that what failed
    together is not begun together."""
    chance = ids.random_bytes(1)[0] / 256
    return min(MAX_BACK_OFF_S, BACK_OFF_S * 2 ** (attempt - 1)) * (1 + chance / 2)


async def _give_back(store: Store, transaction: Transaction, claimed: LeasedJob) -> None:
    await leases.give_back(transaction, claimed)
    await store.jobs.defer(transaction)


async def _fail(store: Store, claimed: LeasedJob, refused: Refused) -> None:
    await _write(store, lambda transaction: leases.fail(transaction, claimed, _problem(store, claimed, refused)))


def _problem(store: Store, claimed: LeasedJob, refused: Refused) -> str:
    return problem_of(store, claimed.id, refused)


def problem_of(store: Store, job_id: str, refused: Refused) -> str:
    """The refusal as the `error` of the job: problem details, as JSON."""
    body = problem(refused, store.problems_root, f"{store.base_url}/jobs/{job_id}").body
    return body.decode() if isinstance(body, bytes) else ""


async def _write(store: Store, change: Callable[[Transaction], Awaitable[None]]) -> None:
    """Make a change under the lease; without the lease there is nothing to say."""
    try:
        async with store.database.transaction() as transaction:
            await change(transaction)
    except LeaseLost as lost:
        telemetry.logger("jobs").warning("a job was taken over by another worker", job=str(lost))
