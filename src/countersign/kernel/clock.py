"""Time: the one place that reads the machine's clock, so that tests can fix it."""

import time
from datetime import UTC, datetime
from typing import NewType

Instant = NewType("Instant", int)
"""A moment in UTC as microseconds since 1970-01-01T00:00:00Z; what the databases store."""

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def now() -> Instant:
    """The present moment, from the wall clock."""
    return Instant(time.time_ns() // 1_000)


def monotonic_s() -> float:
    """Seconds on a clock that never goes back; for durations and deadlines only."""
    return time.monotonic()


def later(instant: Instant, *, seconds: float) -> Instant:
    """The moment `seconds` after (negative: before) the given one."""
    return Instant(instant + int(seconds * SECOND))


def rfc3339(instant: Instant) -> str:
    """The moment as RFC 3339 text in UTC, with milliseconds: 2026-11-20T22:13:00.123Z."""
    moment = datetime.fromtimestamp(instant / SECOND, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{instant % SECOND // 1000:03d}Z"


def from_datetime(moment: datetime) -> Instant:
    """The instant of an aware datetime.

    Raises:
        ValueError: the datetime has no time zone.
    """
    if moment.tzinfo is None:
        raise ValueError("a moment needs a time zone, for example 2026-11-20T22:13:00Z")
    return Instant(int(moment.timestamp() * SECOND))
