"""Has the store make a build of an artifact, and waits for it: what `push` does once a file has arrived."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Literal, Protocol

import msgspec

from countersign.cli import connection, output, progress
from countersign.cli.connection import Server, segment
from countersign.cli.output import Failure
from countersign.kernel import clock

LOOK_AGAIN_S = 0.5
SAY_EVERY_S = 5.0


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


def build(server: Server, artifact_id: str, size: int, doing: str) -> Built:
    """The build of an artifact of `size` bytes, once the store has made it, however long that takes.

    Raises:
        Failure: the artifact was refused, as a hostile archive is, or the store is away, or its result has another
            form. The file stays uploaded.
    """
    asked = {"type": "build.process", "payload": {"artifact_id": artifact_id}}
    job = connection.decoded(server.post("/jobs", asked, doing), Job, doing)
    with _shown(size) as shown:
        while job.status not in ("completed", "failed"):
            shown.at(job)
            clock.sleep(LOOK_AGAIN_S)
            job = server.get(f"/jobs/{segment(job.job_id)}", Job, doing)
    if job.status == "failed":
        raise _refused(job, doing)
    try:
        return msgspec.convert(job.result, Built)
    except msgspec.ValidationError as error:
        remedy = "Check that --server is the address of a Countersign store of this version."
        raise Failure(doing, why=f"the job's result is not understood: {error}", remedy=remedy) from error


class _Shown(Protocol):
    """Shows how the job is doing."""

    def at(self, job: Job) -> None:
        """The job as it is now."""
        ...


@contextmanager
def _shown(size: int) -> Generator[_Shown]:
    """A bar on a terminal, a line every SAY_EVERY_S elsewhere."""
    if not output.is_terminal() or output.wants_json():
        yield _Lines()
        return
    with progress.meter("processing", size) as meter:
        yield _Bar(meter, size)


class _Bar:
    """How far the job is, as a bar."""

    def __init__(self, meter: progress.Meter, size: int) -> None:
        self._meter = meter
        self._size = size

    def at(self, job: Job) -> None:
        """The job as it is now."""
        self._meter.at(int(job.progress * self._size))


class _Lines:
    """How long the job waits, then how far it is; nothing about a job that ends soon."""

    def __init__(self) -> None:
        self._began_s = self._said_s = clock.monotonic_s()

    def at(self, job: Job) -> None:
        """The job as it is now."""
        now_s = clock.monotonic_s()
        if now_s - self._said_s < SAY_EVERY_S:
            return
        self._said_s = now_s
        waits = "waiting for a worker of the store"
        state = waits if job.status == "queued" else f"{100 * job.progress:.0f}%"
        output.note(f"processing: {state}, for {progress.duration(now_s - self._began_s)}")


def _refused(job: Job, doing: str) -> Failure:
    problem = job.error or {}
    code = str(problem.get("code", ""))
    status = problem.get("status", 500)
    rule = problem.get("rule")
    return Failure(
        doing,
        why=str(problem.get("detail", "the job failed")) + (f" (rule {rule})" if rule else ""),
        remedy=str(problem.get("resolution", "")),
        exit_code=output.exit_of(status if isinstance(status, int) else 500, code),
        problem=code,
    )
