"""What becomes of a job, as a stream of events (WHATWG HTML §9.2)."""

import asyncio
from collections.abc import AsyncGenerator

from countersign.distribution.jobs import queries
from countersign.distribution.jobs.queries import Job
from countersign.kernel import clock
from countersign.kernel.database.port import Reader
from countersign.kernel.errors import Refused
from countersign.kernel.http import response

LOOK_EVERY_S = 0.25
ALIVE_EVERY_S = 15.0
MAX_STREAM_S = 300.0
"""A client that wants to know more asks again; the first event tells how the job is by then."""


async def events(reader: Reader, job: Job, stopping: asyncio.Event | None) -> AsyncGenerator[bytes]:
    """`status` with the JobStatus now and whenever it changes, `done` with the last one; the stream ends then,
    after five minutes, or when the server stops. A comment now and then tells that somebody is still there."""
    began_s = told_s = clock.monotonic_s()
    seen: Job | None = None
    found: Job | None = job
    while found is not None:
        if found != seen:
            seen, told_s = found, clock.monotonic_s()
            yield _event("status", found)
        if found.has_ended:
            yield _event("done", found)
            return
        now_s = clock.monotonic_s()
        if now_s - began_s > MAX_STREAM_S or (stopping is not None and stopping.is_set()):
            return
        if now_s - told_s > ALIVE_EVERY_S:
            told_s = now_s
            yield b": still here\n\n"
        await asyncio.sleep(LOOK_EVERY_S)
        try:
            found = await queries.job(reader, job.id)
        except Refused:
            # The head is out: an end without `done` has the client ask again.
            return


def _event(name: str, job: Job) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), response.encode(job.shown()))
