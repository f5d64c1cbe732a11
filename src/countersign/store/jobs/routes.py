"""POST and GET /jobs, GET and DELETE /jobs/{job_id}, GET /jobs/{job_id}/events (API document)."""

import asyncio
import heapq
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader
from countersign.kernel.errors import NotFound, Refused
from countersign.kernel.http import cursor, decode, response
from countersign.kernel.http.cursor import InvalidCursor
from countersign.kernel.http.rate_limit import exhausted_headers
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, Route, route
from countersign.store.auth.authentication import InsufficientScope
from countersign.store.auth.callers import Caller, StoreRequest
from countersign.store.context import Store
from countersign.store.jobs import queries, runner
from countersign.store.jobs.job_types import (
    AnyJobType,
    JobCancelled,
    JobEnded,
    JobList,
    JobNotFound,
    JobsQuery,
    JobStatus,
    NewJob,
    TooManyFollowed,
    TooManyJobs,
    UnknownJobType,
)
from countersign.store.jobs.queries import Job
from countersign.store.scopes import WRITE_RELEASES

MAX_WAIT_S = 30
DEFAULT_WAIT_S = 0.25
SMALL_BYTES = 1 << 20
FIRST_POLL_S, MAX_POLL_S = 0.01, 0.25

_WAIT = re.compile(r'wait="?(\d{1,9})"?')


class WaitPreference(NamedTuple):
    """The time to wait, and the applied preference of the Prefer header (RFC 7240 §3); empty if none was applied."""

    wait_s: float
    applied: str = ""


def wait_preference(prefer: str | None, size: int) -> WaitPreference:
    """The time to wait for a job of this size. `wait` has precedence over `respond-async`, which only applies after
    the wait; unknown preferences are ignored (RFC 7240 §2)."""
    preferences = [preference.strip().lower() for preference in (prefer or "").split(",")]
    for preference_text in preferences:
        if (match := _WAIT.fullmatch(preference_text.replace(" ", ""))) is not None:
            wait_s = min(MAX_WAIT_S, int(match[1]))
            return WaitPreference(wait_s, f"wait={wait_s}")
    if "respond-async" in preferences:
        return WaitPreference(0, "respond-async")
    return WaitPreference(DEFAULT_WAIT_S if size <= SMALL_BYTES else 0)


async def wait_until_ended(
    reader: Reader, job_id: str, within_s: float, stop_event: asyncio.Event | None = None
) -> Job | None:
    """Wait until the job has ended, the time has expired, or the server stops. Return the job, or None if the job was
    removed."""
    until_s = clock.monotonic_s() + within_s
    pause_s = FIRST_POLL_S
    while True:
        job = await queries.job(reader, job_id)
        left_s = until_s - clock.monotonic_s()
        is_stopping = stop_event is not None and stop_event.is_set()
        if job is None or job.has_ended or left_s <= 0 or is_stopping:
            return job
        await asyncio.sleep(min(pause_s, left_s))
        pause_s = min(pause_s * 1.2, MAX_POLL_S)


POLL_EVERY_S = 0.25
KEEP_ALIVE_S = 15.0
MAX_STREAM_S = 300.0
"""The maximum duration of a stream. Clients reconnect to continue; the first event has the current state."""


async def status_events(reader: Reader, job: Job, stop_event: asyncio.Event | None) -> AsyncGenerator[bytes]:
    """Yield a `status` event with the JobStatus at once and after each change, and a `done` event when the job has
    ended. The stream ends after `done`, after five minutes, or when the server stops. Periodic comments keep the
    connection open."""
    began_s = sent_s = clock.monotonic_s()
    last_job: Job | None = None
    current_job: Job | None = job
    while current_job is not None:
        if current_job != last_job:
            last_job, sent_s = current_job, clock.monotonic_s()
            yield response.event("status", current_job.shown())
        if current_job.has_ended:
            yield response.event("done", current_job.shown())
            return
        now_s = clock.monotonic_s()
        if now_s - began_s > MAX_STREAM_S or (stop_event is not None and stop_event.is_set()):
            return
        if now_s - sent_s > KEEP_ALIVE_S:
            sent_s = now_s
            yield b": still here\n\n"
        await asyncio.sleep(POLL_EVERY_S)
        try:
            current_job = await queries.job(reader, job.id)
        except Refused:
            # The response has begun, so the error cannot be sent. If the stream ends without `done`, a client
            # reconnects.
            return


READ_SCOPES = ("read:releases", WRITE_RELEASES)
RETRY_AFTER_S = 1
MAX_STREAMS = 32
"""Maximum number of open streams of one caller at each server process."""
NEWEST_POSSIBLE = (1 << 62, "\U0010ffff")


class _PendingWait(msgspec.Struct):
    """A job that was just requested, and the time that its caller waits for it."""

    job_id: str
    preference: WaitPreference


class JobRequests:
    """POST /jobs for the given types of jobs."""

    def __init__(self, types: Iterable[AnyJobType]) -> None:
        self._types: Mapping[str, AnyJobType] = {kind.name: kind for kind in types if kind.admit is not None}

    async def create_job(self, call: StoreRequest[Nothing, NewJob]) -> Response:
        """Request a job, which runs in the background: 200 when it has ended within the wait, else 202.

        `Prefer: wait=N` waits up to N seconds, 30 at most; `Prefer: respond-async` does not wait. Without either
        preference, the request waits 250 ms for a job of 1 MiB or less.
        """
        store, transaction = call.context, call.transaction
        payload, size, org_id = await self._admit(transaction, call.caller, call.body)
        await queries.require_queue_space(transaction, store, org_id)
        kind = self._types[call.body.type]
        job_id = await queries.enqueue(
            transaction,
            store,
            kind.name,
            payload,
            org_id=org_id,
            created_by=call.caller.key,
            priority=kind.priority,
        )
        preference = wait_preference(call.headers.get("prefer"), size)
        call.prepared = _PendingWait(job_id, preference)
        return _job_response(store, await _require_job(transaction, job_id), preference)

    async def _admit(self, reader: Reader, caller: Caller, body: NewJob) -> tuple[msgspec.Struct, int, str]:
        """The payload in its type's shape, the size of the job, and its organisation."""
        kind = self._types.get(body.type)
        if kind is None or kind.admit is None:
            known_types = ", ".join(self._types) or "none"
            raise UnknownJobType(f"the job type {body.type} does not exist", resolution=f"Types: {known_types}.")
        payload: Any = decode.member(body.payload, kind.payload, "/payload")
        admitted_job = await kind.admit(reader, caller, payload)
        if admitted_job.org_id not in caller.orgs_allowing(WRITE_RELEASES):
            raise InsufficientScope(f"this requires the scope {WRITE_RELEASES} in the organisation")
        return payload, admitted_job.size, admitted_job.org_id

    async def await_job(self, call: StoreRequest[Nothing, NewJob], response: Response) -> Response:
        """Wait for the job, after the transaction that added the job was committed."""
        pending = msgspec.convert(call.prepared, _PendingWait)
        if pending.preference.wait_s <= 0:
            return response
        job = await wait_until_ended(call.context.database, pending.job_id, pending.preference.wait_s, call.stopping)
        return response if job is None else _job_response(call.context, job, pending.preference)


def _job_response(store: Store, job: Job, preference: WaitPreference) -> Response:
    """The response of POST /jobs."""
    headers: tuple[tuple[str, str], ...] = (("Location", f"{store.base_url}/jobs/{job.id}"),)
    if preference.applied:
        headers = (*headers, ("Preference-Applied", preference.applied))
    if job.has_ended:
        return response.json(job.shown(), 200, headers)
    return response.json(job.shown(), 202, (*headers, ("Retry-After", str(RETRY_AFTER_S))))


async def _require_job(reader: Reader, job_id: str) -> Job:
    job = await queries.job(reader, job_id)
    if job is None:
        raise JobNotFound("the job does not exist")
    return job


def _readable_orgs(caller: Caller) -> tuple[str, ...]:
    """The organisations whose jobs the caller can read."""
    return tuple(sorted({org for scope in READ_SCOPES for org in caller.orgs_allowing(scope)}))


async def _readable_job(reader: Reader, caller: Caller, job_id: str) -> Job:
    """The job, if the caller can read it.

    Raises:
        JobNotFound: the job does not exist, or the caller cannot read it.
    """
    job = await queries.job(reader, job_id.lower()) if ids.is_uuid(job_id) else None
    if job is None or job.org_id not in _readable_orgs(caller):
        raise JobNotFound("the job does not exist")
    return job


async def show_job(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show the state of a job."""
    job = await _readable_job(call.context.database, call.caller, call.path["job_id"])
    retry_header = () if job.has_ended else (("Retry-After", str(RETRY_AFTER_S)),)
    return response.json(job.shown(), headers=(("Cache-Control", "no-store"), *retry_header))


async def list_jobs(call: StoreRequest[JobsQuery, Nothing]) -> Response:
    """List the jobs of your organisations, newest first."""
    store, query = call.context, call.query
    orgs = _readable_orgs(call.caller)
    filter_values = [*orgs, query.status or "", query.type or ""]
    after_key: tuple[Instant, str] = (Instant(NEWEST_POSSIBLE[0]), NEWEST_POSSIBLE[1])
    if query.cursor is not None:
        position = cursor.read(store.cursors, query.cursor, "jobs", int, str)
        if position.filter != filter_values:
            raise InvalidCursor("made for another filter, or for other organisations")
        after_key = (Instant(int(position.after[0])), str(position.after[1]))
    pages = [
        await queries.page(store.database, org, after_key, query.status or "", query.type or "", query.limit + 1)
        for org in orgs
    ]
    # Each page is in order, and an index limits the rows that its query reads. Most callers have one organisation.
    jobs = [*heapq.merge(*pages, key=attrgetter("created_at", "id"), reverse=True)]
    page_jobs, jobs_after_page = jobs[: query.limit], jobs[query.limit :]
    next_cursor = None
    if jobs_after_page:
        last_job = page_jobs[-1]
        next_cursor = cursor.write(
            store.cursors, cursor.Position("jobs", filter_values, [last_job.created_at, last_job.id])
        )
    return response.json(
        JobList([job.shown() for job in page_jobs], next_cursor), headers=(("Cache-Control", "no-store"),)
    )


async def cancel_job(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Cancel a job: a queued job ends at once, a running job as soon as its worker notices the cancellation. The job
    ends as failed with the code `job_cancelled`."""
    store, transaction = call.context, call.transaction
    job = await _readable_job(transaction, call.caller, call.path["job_id"])
    if job.org_id not in call.caller.orgs_allowing(WRITE_RELEASES):
        raise InsufficientScope(f"this requires the scope {WRITE_RELEASES} in the organisation")
    error = runner.problem_of(store, job.id, JobCancelled("the job was cancelled"))
    if not await queries.cancel(transaction, job.id, error):
        raise JobEnded("the job has ended already")
    job_after = await _require_job(transaction, job.id)
    return response.json(job_after.shown(), 200 if job_after.has_ended else 202)


class JobStreams:
    """GET /jobs/{job_id}/events; the number of streams is limited, as each one polls the database."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    async def stream_events(self, call: StoreRequest[Nothing, Nothing]) -> Response:
        """Follow a job: `status` events with its JobStatus as it changes, and `done` at its end."""
        job = await _readable_job(call.context.database, call.caller, call.path["job_id"])
        if self._open[call.caller.key] >= MAX_STREAMS:
            raise TooManyFollowed(f"{MAX_STREAMS} streams are open already", headers=exhausted_headers(MAX_STREAMS, 10))
        stream = status_events(call.context.database, job, call.stopping)
        return response.event_stream(self._count_stream(call.caller.key, stream))

    async def _count_stream(self, key: str, stream: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """Yield the same events. The stream counts as open from the first read on, because the response to a HEAD
        request is never read."""
        self._open[key] += 1
        try:
            async with aclosing(stream):
                async for event in stream:
                    yield event
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]


_JOB_HEADERS = ("Location", "Preference-Applied")


def routes(types: Iterable[AnyJobType]) -> tuple[Route[Store], ...]:
    """The routes of jobs, for requests of these types."""
    requests = JobRequests(types)
    return (
        route(
            "POST",
            "/jobs",
            requests.create_job,
            body=NewJob,
            settle=requests.await_job,
            answers={200: JobStatus, 202: JobStatus},
            refusals=(UnknownJobType, NotFound, InsufficientScope, TooManyJobs),
            scope=WRITE_RELEASES,
            writes=True,
            documented=True,
            reads=("Prefer",),
            sends={200: _JOB_HEADERS, 202: (*_JOB_HEADERS, "Retry-After")},
            example={"type": "artifact.verify", "payload": {"artifact_id": "01890a5d-ac96-774b-bcce-b302099a8057"}},
        ),
        route(
            "GET",
            "/jobs",
            list_jobs,
            query=JobsQuery,
            answers={200: JobList},
            refusals=(InvalidCursor,),
            signed_in=True,
        ),
        route(
            "GET",
            "/jobs/{job_id}",
            show_job,
            answers={200: JobStatus},
            refusals=(JobNotFound,),
            signed_in=True,
            documented=True,
            sends={200: ("Retry-After", "Cache-Control")},
        ),
        route(
            "DELETE",
            "/jobs/{job_id}",
            cancel_job,
            answers={200: JobStatus, 202: JobStatus},
            refusals=(JobNotFound, InsufficientScope, JobEnded),
            scope=WRITE_RELEASES,
            writes=True,
        ),
        route(
            "GET",
            "/jobs/{job_id}/events",
            JobStreams().stream_events,
            answers={200: bytes},
            refusals=(JobNotFound, TooManyFollowed),
            signed_in=True,
            produces=(response.EVENTS,),
        ),
    )
