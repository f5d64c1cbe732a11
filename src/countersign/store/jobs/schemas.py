"""What goes over the wire about jobs (API document, JobStatus; decisions 9)."""

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from countersign.kernel.http.response import CursorText, Moment, Uuid
from countersign.store.catalog.schemas import Limit

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
