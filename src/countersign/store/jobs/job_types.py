"""Job types: payload, permission and the work itself; the wire structs and errors of jobs."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import NotFound, Refused
from countersign.kernel.http.response import CursorText, Moment, Uuid
from countersign.store.auth.callers import Caller
from countersign.store.catalog.schemas import Limit
from countersign.store.context import Store

Status: TypeAlias = Literal["queued", "running", "completed", "failed"]


class NewJob(msgspec.Struct, forbid_unknown_fields=True):
    """A job to request; the shape of `payload` depends on the type."""

    type: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=100,
            description="The type of the job.",
            examples=["artifact.verify", "archive.extract", "build.process"],
        ),
    ]
    payload: Annotated[
        dict[str, Any],
        msgspec.Meta(description="The input of the job: `artifact_id` for every type, and options of the type."),
    ]


class JobStatus(msgspec.Struct):
    """The state of a job. `progress` is 0 to 1 and never decreases within an attempt. `attempts` is the number of times
    that the job was started. A completed job has a `result`, a failed job has an `error` (problem details)."""

    job_id: Uuid
    status: Status
    progress: float
    type: str
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None
    attempts: int
    result: dict[str, Any] | None
    error: dict[str, Any] | None


class JobList(msgspec.Struct):
    """A page of jobs, newest first; `next_cursor` is null on the last page. A result of more than 64 KiB is null here;
    only the job itself shows this result."""

    items: list[JobStatus]
    next_cursor: str | None


class JobsQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which jobs to list."""

    status: Annotated[Status, msgspec.Meta(description="Only jobs in this state.")] | None = None
    type: Annotated[str, msgspec.Meta(max_length=100, description="Only jobs of this type.")] | None = None
    limit: Limit = 20
    cursor: CursorText | None = None


class UnknownJobType(Refused):
    """The type of job does not exist, or cannot be requested from outside."""

    code = "unknown_job_type"
    title = "Unknown type of job"


class TooManyJobs(Refused):
    """Too many jobs of the organisation are queued."""

    status = 429
    code = "too_many_jobs"
    title = "Too many jobs"
    resolution = "Try again when some of the waiting jobs have ended, or cancel those that are not needed."


class TooManyFollowed(Refused):
    """The caller has too many open streams of job events."""

    status = 429
    code = "too_many_followed"
    title = "Too many jobs followed"
    resolution = "Close streams of events that are not needed, or poll GET /api/v1/jobs."


class JobNotFound(NotFound):
    """The job does not exist, or belongs to another organisation."""

    resolution = "List your jobs with GET /api/v1/jobs."


class JobEnded(Refused):
    """The job has ended and cannot be cancelled any more."""

    status = 409
    code = "job_ended"
    title = "The job has ended"
    resolution = "Get its outcome with GET /api/v1/jobs/{job_id}."


class JobCancelled(Refused):
    """The `error` of a cancelled job."""

    status = 409
    code = "job_cancelled"
    title = "The job was cancelled"
    resolution = "Request it again with POST /api/v1/jobs."


class JobFailed(Refused):
    """The `error` of a job that failed unexpectedly in all its attempts."""

    status = 500
    code = "job_failed"
    title = "The job failed"
    resolution = "Request it again with POST /api/v1/jobs; if it persists, check the log of the workers."


BUILD, REQUESTED, BACKGROUND = 0, 1, 2
"""Priorities of jobs, the most urgent first: a build that a publisher waits for, other jobs that were requested, and
jobs that the store starts by itself."""

PayloadT = TypeVar("PayloadT", bound=msgspec.Struct)


class JobStopped(Exception):
    """The job was cancelled, or another worker has it. The work must stop at once, because its outcome is discarded."""


class AdmittedJob(NamedTuple):
    """An admitted job: its organisation, and the number of bytes to process."""

    org_id: str
    size: int


@dataclass(frozen=True, slots=True)
class JobContext(Generic[PayloadT]):
    """The context of one attempt at a job, which `JobType.run` gets. `scratch` is an empty folder, which is removed
    after the attempt.

    `progress` reports the progress, 0 to 1. The work should call it often: only few calls write to the database.
    `progress` raises JobStopped if the job was cancelled, or if another worker has the job.
    """

    job_id: str
    org_id: str
    created_by: str
    payload: PayloadT
    attempt: int
    scratch: Path
    progress: Callable[[float], Awaitable[None]]


class Outcome(NamedTuple):
    """The outcome of a job. `commit` stores the effect of the job in the transaction that ends the job. So the effect
    is stored once, even if the job was started several times. If `commit` raises an error, the job is tried again."""

    result: msgspec.Struct
    commit: Callable[[Transaction], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class JobType(Generic[PayloadT]):
    """A type of job.

    admit  checks whether the caller may request a job with this payload; without it, no caller can request the job
    run    does the work, in a separate process. If it raises a Refused with a status below 500, the job ends as failed
           with that problem. After any other error, the job is tried again, `settings.job_attempts` times in all
    priority  the order in which queued jobs are started
    """

    name: str
    payload: type[PayloadT]
    run: Callable[[Store, JobContext[PayloadT]], Awaitable[Outcome]]
    admit: Callable[[Reader, Caller, PayloadT], Awaitable[AdmittedJob]] | None = None
    priority: int = REQUESTED


AnyJobType = JobType[Any]
