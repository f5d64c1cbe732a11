"""Uploads a file in parts that can be resumed, and has the store make a build from it."""

import hashlib
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol

import msgspec

from countersign.cli import output, progress
from countersign.cli.client import api_models, connection
from countersign.cli.client.connection import Reply, Server, read_reply, segment
from countersign.cli.client.credentials import write_private
from countersign.cli.client.transport import Request, Unreachable, send
from countersign.cli.output import Exit, Failure
from countersign.cli.progress import Meter
from countersign.kernel import clock

PIECE_BYTES = 256 << 10
MIN_PART_BYTES = 64 << 20
MAX_PARTS = 1_000
ATTEMPTS = 8
ASSEMBLY_S = 900
"""The number of seconds in which the server must assemble and hash the file after the last part."""

POLL_S = 0.5
REPORT_EVERY_S = 5.0


class SavedUpload(msgspec.Struct):
    """The artifact and the URL for continuing an incomplete upload."""

    artifact_id: str
    upload_url: str


@dataclass(slots=True)
class Content:
    """An open file to send: its name on the server, size in bytes, and SHA-256."""

    file: BinaryIO
    filename: str
    size: int
    sha256: str


def read_content(file: BinaryIO, filename: str) -> Content:
    """Read the size and the SHA-256 of an open file.

    Raises:
        OSError: the file cannot be read.
    """
    file.seek(0)
    digest = hashlib.sha256()
    while piece := file.read(PIECE_BYTES):
        digest.update(piece)
    return Content(file, filename, file.tell(), digest.hexdigest())


class UploadCache:
    """The file in the person's cache directory that saves the state of one upload.

    Anyone who knows the URL in the file can continue the upload, so the file is readable only by its owner."""

    def __init__(self, server: str, release: str, platform: str | None, content: Content) -> None:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        key = "\0".join((server, release, platform or "", content.filename, content.sha256))
        name = hashlib.sha256(key.encode()).hexdigest()[:32]
        self._path = Path(base) / "countersign" / "uploads" / f"{name}.json"

    def recall(self) -> SavedUpload | None:
        """Return the unfinished upload, or None if there is no file or the file is damaged."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=SavedUpload)
        except (OSError, msgspec.DecodeError):
            return None

    def remember(self, upload: SavedUpload) -> None:
        """Save how to continue the upload.

        Raises:
            OSError: the cache directory cannot be written.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(self._path, msgspec.json.encode(upload))

    def forget(self) -> None:
        """Remove the file, because the upload has ended."""
        self._path.unlink(missing_ok=True)


class UploadSession:
    """An upload in progress."""

    def __init__(self, server: Server, upload_url: str, content: Content, failure: str) -> None:
        self._server = server
        self._url = upload_url
        self._content = content
        self._failure = failure
        self._part_bytes = max(MIN_PART_BYTES, -(-content.size // MAX_PARTS))

    def missing(self) -> list[tuple[int, int]]:
        """Return the byte ranges that the server does not have, each as the first byte and the byte after the last.

        Raises:
            Failure: the upload has ended or was never started (404, 410), or the server cannot be reached.
        """
        state = self._server.get(self._url, api_models.UploadStatus, self._failure)
        if state.size != self._content.size:
            raise Failure(self._failure, why="the upload belongs to another file", exit_code=Exit.NOT_FOUND)
        gaps: list[tuple[int, int]] = []
        position = 0
        for first_byte, last_byte in sorted(state.received):
            if first_byte > position:
                gaps.append((position, first_byte))
            position = max(position, last_byte + 1)
        if position < state.size:
            gaps.append((position, state.size))
        return gaps

    def run(self, gaps: list[tuple[int, int]], meter: Meter) -> api_models.Artifact | None:
        """Send the missing byte ranges, and return the artifact.

        None means that all parts were accepted but no response contained the artifact. After a lost connection, ask
        the server which ranges it lacks, and send those. Give up after ATTEMPTS failed attempts in a row, but not
        before `patience_s` of the server has passed.

        Raises:
            Failure: the server refuses the request or cannot be reached.
        """
        failures, arrived_s = 0, clock.monotonic_s()
        ranges = self._parts(gaps)
        while ranges:
            start, stop = ranges[0]
            try:
                reply = self._put(start, stop, meter, sum(end - begin for begin, end in ranges))
            except Unreachable as error:
                failures += 1
                if failures >= ATTEMPTS and clock.monotonic_s() - arrived_s >= self._server.patience_s:
                    raise self._unreachable_failure(str(error)) from error
                connection.wait(connection.pause_s(failures + 1))
                ranges = self._parts(self.missing())
                continue
            failures, arrived_s = 0, clock.monotonic_s()
            if reply.status == 201:
                return connection.decode(reply, api_models.Artifact, self._failure)
            ranges.pop(0)
        return None

    def _unreachable_failure(self, reason: str) -> Failure:
        remedy = "Run the same command again: it continues where this one stopped."
        return Failure(self._failure, why=reason, remedy=remedy, exit_code=Exit.UNREACHABLE)

    def _parts(self, gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Split the missing ranges into parts. If no bytes are missing, return the last byte.

        The server may have all bytes without having assembled the file. Another part makes it assemble the file and
        return the artifact."""
        size, end = self._part_bytes, self._content.size
        ranges = [(at, min(at + size, stop)) for start, stop in gaps for at in range(start, stop, size)]
        return ranges or [(max(0, end - 1), end)]

    def _put(self, start: int, stop: int, meter: Meter, bytes_left: int) -> Reply:
        headers = {**self._server.headers(self._url), "Content-Type": "application/octet-stream"}
        if stop:
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{self._content.size}"
        body = self._pieces(start, stop, meter, self._content.size - bytes_left)
        reply = read_reply(send(Request("PUT", self._url, headers, body, stop - start, ASSEMBLY_S)))
        if reply.status in (429, 502, 503, 504):
            connection.wait(connection.retry_pause_s(reply.headers, 1))
            raise Unreachable(f"the server answered {reply.status}")
        if not reply.is_success:
            raise self._server.refusal(reply, self._failure)
        return reply

    def _pieces(self, start: int, stop: int, meter: Meter, done_bytes: int) -> Iterator[bytes]:
        file = self._content.file
        file.seek(start)
        while start < stop:
            piece = file.read(min(PIECE_BYTES, stop - start))
            if not piece:
                remedy = "Push again when the file is complete."
                raise Failure(self._failure, why="the file became shorter meanwhile", remedy=remedy)
            yield piece
            start += len(piece)
            done_bytes += len(piece)
            meter.at(done_bytes)


class Job(msgspec.Struct):
    """The state of a job. Its error is a problem document."""

    job_id: str
    status: Literal["queued", "running", "completed", "failed"]
    progress: float = 0.0
    result: Any = None
    error: dict[str, Any] | None = None


class BuildResult(msgspec.Struct):
    """The build that was made from an artifact. `stored` is the number of bytes that were new to the store."""

    manifest_sha256: str
    files: int
    size: int
    chunks: int
    new_chunks: int
    stored: int


def build(server: Server, artifact_id: str, size: int, failure: str) -> BuildResult:
    """Wait until the store has made the build of the artifact, without a time limit, and return the build.

    Raises:
        Failure: the store refused the artifact (for example a hostile archive), cannot be reached, or returned an
            invalid result. The file stays uploaded.
    """
    job_body = {"type": "build.process", "payload": {"artifact_id": artifact_id}}
    job = connection.decode(server.post("/jobs", job_body, failure), Job, failure)
    with _job_display(size) as display:
        while job.status not in ("completed", "failed"):
            display.at(job)
            clock.sleep(POLL_S)
            job = server.get(f"/jobs/{segment(job.job_id)}", Job, failure)
    if job.status == "failed":
        raise _job_failure(job, failure)
    try:
        return msgspec.convert(job.result, BuildResult)
    except msgspec.ValidationError as error:
        remedy = "Check that --server is the address of a Countersign store of this version."
        raise Failure(failure, why=f"the job's result is not understood: {error}", remedy=remedy) from error


class _JobDisplay(Protocol):
    """Shows the progress of a job."""

    def at(self, job: Job) -> None:
        """Show the current state of the job."""
        ...


@contextmanager
def _job_display(size: int) -> Generator[_JobDisplay]:
    """Show a bar on a terminal, else a line every REPORT_EVERY_S."""
    if not output.is_terminal() or output.wants_json():
        yield _JobLines()
        return
    with progress.meter("processing", size) as meter:
        yield _JobBar(meter, size)


class _JobBar:
    """Shows the progress of a job as a bar."""

    def __init__(self, meter: progress.Meter, size: int) -> None:
        self._meter = meter
        self._size = size

    def at(self, job: Job) -> None:
        """Show the current state of the job."""
        self._meter.at(int(job.progress * self._size))


class _JobLines:
    """Prints how long a job waits, then its progress; prints nothing about a job that ends soon."""

    def __init__(self) -> None:
        self._began_s = self._said_s = clock.monotonic_s()

    def at(self, job: Job) -> None:
        """Show the current state of the job."""
        now_s = clock.monotonic_s()
        if now_s - self._said_s < REPORT_EVERY_S:
            return
        self._said_s = now_s
        waits = "waiting for a worker of the store"
        state = waits if job.status == "queued" else f"{100 * job.progress:.0f}%"
        output.note(f"processing: {state}, for {progress.duration(now_s - self._began_s)}")


def _job_failure(job: Job, failure: str) -> Failure:
    problem = job.error or {}
    code = str(problem.get("code", ""))
    status = problem.get("status", 500)
    rule = problem.get("rule")
    return Failure(
        failure,
        why=str(problem.get("detail", "the job failed")) + (f" (rule {rule})" if rule else ""),
        remedy=output.hint(code, 0) or str(problem.get("resolution", "")),
        exit_code=output.exit_code_of(status if isinstance(status, int) else 500, code),
        problem=code,
    )
