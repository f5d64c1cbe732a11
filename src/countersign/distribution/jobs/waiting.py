"""Waiting for the end of a job, for as long as the caller prefers (RFC 7240)."""

import asyncio
import re
from typing import NamedTuple

from countersign.distribution.jobs import queries
from countersign.distribution.jobs.queries import Job
from countersign.kernel import clock
from countersign.kernel.database.port import Reader

MAX_WAIT_S = 30
USUAL_S = 0.25
SMALL_BYTES = 1 << 20
FIRST_LOOK_S, LAST_LOOK_S = 0.01, 0.25

_WAIT = re.compile(r'wait="?(\d{1,9})"?')


class Preference(NamedTuple):
    """How long to wait, and what of the Prefer header that follows (RFC 7240 §3); empty when nothing of it."""

    wait_s: float
    applied: str = ""


def preference(prefer: str | None, size: int) -> Preference:
    """How long to wait for a job about so many bytes. `wait` counts before `respond-async`, which only says what to do
    when the wait is over; preferences that are not understood are passed over (RFC 7240 §2)."""
    wished = [part.strip().lower() for part in (prefer or "").split(",")]
    for wish in wished:
        if (found := _WAIT.fullmatch(wish.replace(" ", ""))) is not None:
            wait_s = min(MAX_WAIT_S, int(found[1]))
            return Preference(wait_s, f"wait={wait_s}")
    if "respond-async" in wished:
        return Preference(0, "respond-async")
    return Preference(USUAL_S if size <= SMALL_BYTES else 0)


async def ended(reader: Reader, job_id: str, within_s: float, stopping: asyncio.Event | None = None) -> Job | None:
    """The job once it has ended, or as it is when the time has passed or the server stops; None when it is no more."""
    until_s = clock.monotonic_s() + within_s
    pause_s = FIRST_LOOK_S
    while True:
        found = await queries.job(reader, job_id)
        left_s = until_s - clock.monotonic_s()
        is_stopping = stopping is not None and stopping.is_set()
        if found is None or found.has_ended or left_s <= 0 or is_stopping:
            return found
        await asyncio.sleep(min(pause_s, left_s))
        pause_s = min(pause_s * 1.2, LAST_LOOK_S)
