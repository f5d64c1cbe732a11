"""Has the store make a build of an artifact, and waits for it: what `push` does once a file has arrived."""

from contextlib import nullcontext
from typing import Any, Literal

import msgspec

from countersign.cli import connection, output, progress
from countersign.cli.connection import Server, segment
from countersign.cli.output import Failure
from countersign.kernel import clock

LOOK_AGAIN_S = 0.5
QUEUE_PATIENCE_S = 20


class Job(msgspec.Struct):
    """How a job is doing; its error is a problem."""

    job_id: str
    status: Literal["queued", "running", "completed", "failed"]
    progress: float = 0.0
    result: Any = None
    error: dict[str, Any] | None = None


class Built(msgspec.Struct):
    """What was made of an artifact; `stored` are the bytes that the store did not have before."""

    manifest_sha256: str
    files: int
    size: int
    chunks: int
    new_chunks: int
    stored: int


def build(server: Server, artifact_id: str, size: int, doing: str) -> Built | None:
    """The build of an artifact of `size` bytes, once the store has made it; None when no worker has begun it within
    QUEUE_PATIENCE_S: it is made as soon as one is there.

    Raises:
        Failure: the artifact was refused, as a hostile archive is, or the store is away. The file stays uploaded.
    """
    asked = {"type": "build.process", "payload": {"artifact_id": artifact_id}}
    job = connection.decoded(server.post("/jobs", asked, doing), Job, doing)
    patience_s = clock.monotonic_s() + QUEUE_PATIENCE_S
    with progress.meter("processing", size) if output.is_terminal() else nullcontext() as meter:
        while job.status not in ("completed", "failed"):
            if job.status == "queued" and clock.monotonic_s() > patience_s:
                output.note("No worker has begun to make a build of it yet; it is made as soon as one is there.")
                return None
            clock.sleep(LOOK_AGAIN_S)
            job = server.get(f"/jobs/{segment(job.job_id)}", Job, doing)
            if meter is not None:
                meter.at(int(job.progress * size))
    if job.status == "failed":
        raise _refused(job, doing)
    return msgspec.convert(job.result, Built)


def _refused(job: Job, doing: str) -> Failure:
    problem = job.error or {}
    code = str(problem.get("code", ""))
    status = problem.get("status", 500)
    return Failure(
        doing,
        why=str(problem.get("detail", "the job failed")),
        remedy=str(problem.get("resolution", "")),
        exit_code=output.exit_of(status if isinstance(status, int) else 500, code),
        problem=code,
    )
