"""Types of jobs: payload, permission and the work itself; what is sent and received about jobs, and their errors."""

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
    """A job that is asked for; the shape of `payload` is the type's."""

    type: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=100,
            description="What is to be done.",
            examples=["artifact.verify", "archive.extract", "build.process"],
        ),
    ]
    payload: Annotated[
        dict[str, Any],
        msgspec.Meta(description="What to do it with: `artifact_id` for every type, and options of the type."),
    ]


class JobStatus(msgspec.Struct):
    """How a job is doing. `progress` is 0 to 1 and never falls within an attempt; `attempts` is how often it was
    begun; `result` is there when it is completed, `error` (problem details) when it failed."""

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
    """A page of jobs, newest first; `next_cursor` is null on the last one. A result of more than 64 KiB is null here,
    and stands in the job itself."""

    items: list[JobStatus]
    next_cursor: str | None


class JobsQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which jobs to list."""

    status: Annotated[Status, msgspec.Meta(description="Only jobs in this state.")] | None = None
    type: Annotated[str, msgspec.Meta(max_length=100, description="Only jobs of this type.")] | None = None
    limit: Limit = 20
    cursor: CursorText | None = None


class UnknownJobType(Refused):
    """There is no such type of job, or nobody may ask for it from outside."""

    code = "unknown_job_type"
    title = "Unknown type of job"


class TooManyJobs(Refused):
    """Too many jobs of the organisation wait already."""

    status = 429
    code = "too_many_jobs"
    title = "Too many jobs"
    resolution = "Try again when some of the waiting jobs have ended, or cancel those that are not needed."


class TooManyFollowed(Refused):
    """The caller follows too many jobs at the same time."""

    status = 429
    code = "too_many_followed"
    title = "Too many jobs followed"
    resolution = "Close streams of events that are not needed, or look with GET /api/v1/jobs now and then."


class JobNotFound(NotFound):
    """There is no such job, or it is another organisation's."""

    resolution = "List your jobs with GET /api/v1/jobs."


class JobEnded(Refused):
    """The job has ended and cannot be cancelled any more."""

    status = 409
    code = "job_ended"
    title = "The job has ended"
    resolution = "Look at what came of it with GET /api/v1/jobs/{job_id}."


class JobCancelled(Refused):
    """What a job says that was cancelled."""

    status = 409
    code = "job_cancelled"
    title = "The job was cancelled"
    resolution = "Ask for it again with POST /api/v1/jobs."


class JobFailed(Refused):
    """What a job says that failed for no reason of its own, after all its attempts."""

    status = 500
    code = "job_failed"
    title = "The job failed"
    resolution = "Ask for it again with POST /api/v1/jobs; if it persists, look into the log of the workers."


BUILD, REQUESTED, BACKGROUND = 0, 1, 2
"""Priorities of jobs, the most urgent first: a build that a publisher waits for, other jobs that were requested, and
what the store prepares by itself."""

PayloadT = TypeVar("PayloadT", bound=msgspec.Struct)


class JobStopped(Exception):
    """The attempt is over: the job was cancelled, or another worker has it. Leave at once, nothing is kept."""


class AdmittedJob(NamedTuple):
    """A job that may be done: whose it is, and how many bytes it is about."""

    org_id: str
    size: int


@dataclass(frozen=True, slots=True)
class JobContext(Generic[PayloadT]):
    """One attempt at a job, as its type's code sees it. `scratch` is an empty folder that is removed afterwards.

    `progress` tells how far it is, 0 to 1; to be called often, it writes seldom. It raises Stopped when the job was
    cancelled or another worker has taken it over: leave at once.
    """

    job_id: str
    org_id: str
    created_by: str
    payload: PayloadT
    attempt: int
    scratch: Path
    progress: Callable[[float], Awaitable[None]]


class Outcome(NamedTuple):
    """What came out. `commit` makes it last, in the very transaction that ends the job, so that it happens once
    however often the work was begun; it may raise to have the work tried again."""

    result: msgspec.Struct
    commit: Callable[[Transaction], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class JobType(Generic[PayloadT]):
    """A type of job.

    admit  who may ask for it, and with which payload; None: nobody from outside
    run    the work, in a process of its own. A Refused below 500 ends the job as failed with that problem; anything
           else is tried again, `settings.job_attempts` times in all
    priority  which of the waiting jobs is begun first
    """

    name: str
    payload: type[PayloadT]
    run: Callable[[Store, JobContext[PayloadT]], Awaitable[Outcome]]
    admit: Callable[[Reader, Caller, PayloadT], Awaitable[AdmittedJob]] | None = None
    priority: int = REQUESTED


AnyJobType = JobType[Any]
