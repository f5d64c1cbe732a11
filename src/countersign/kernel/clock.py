"""Time: the only module that reads the machine's clock, so that tests can fix the time."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import NewType

Instant = NewType("Instant", int)
"""A moment in UTC as microseconds since 1970-01-01T00:00:00Z. The databases store this number."""

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_fixed: dict[object, Instant] = {}
"""The time of each open block of `fixed`; the most recently opened block is the last."""


def now() -> Instant:
    """Return the present moment, from the wall clock unless it is fixed."""
    return next(reversed(_fixed.values())) if _fixed else Instant(time.time_ns() // 1_000)


@contextmanager
def fixed(instant: Instant) -> Generator[None]:
    """Make now() return this moment in the whole process while the block lasts. This is for tests, and for
    demonstration data that is created before anything is served. Blocks may overlap without nesting: leaving a block
    removes only its own moment.
    """
    block = object()
    _fixed[block] = instant
    try:
        yield
    finally:
        del _fixed[block]


def thread_cpu_s() -> float:
    """Return the CPU time that this thread has used, in seconds."""
    return time.thread_time()


def monotonic_s() -> float:
    """Return the time of a monotonic clock in seconds; for durations and deadlines only."""
    return time.monotonic()


def sleep(seconds: float) -> None:
    """Block the thread for this time. Only processes that watch other processes may call this, and never on an event
    loop."""
    time.sleep(seconds)


def later(instant: Instant, *, seconds: float) -> Instant:
    """Return the moment that is `seconds` after the given moment, or before it if `seconds` is negative."""
    return Instant(instant + int(seconds * SECOND))


def rfc3339(instant: Instant) -> str:
    """Return the moment as RFC 3339 text in UTC, with milliseconds: 2026-11-20T22:13:00.123Z."""
    return to_datetime(instant).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def rfc3339_or_none(instant: Instant | None) -> str | None:
    """Return the instant as RFC 3339, or None."""
    return None if instant is None else rfc3339(instant)


def http_date() -> str:
    """Return the machine's time, also in a `fixed` block, in the format of the Date header (RFC 9110 §5.6.7)."""
    return format_datetime(datetime.now(UTC), usegmt=True)


def to_datetime(instant: Instant) -> datetime:
    """Return the instant as a datetime in UTC."""
    return _EPOCH + timedelta(microseconds=instant)


def from_datetime(moment: datetime) -> Instant:
    """Return the instant of an aware datetime.

    Raises:
        ValueError: the datetime has no time zone, or is outside the years 1 to 9999 in UTC.
    """
    if moment.tzinfo is None:
        raise ValueError("a moment needs a time zone, for example 2026-11-20T22:13:00Z")
    try:
        moment = moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("a moment must lie in the years 1 to 9999 in UTC") from error
    return Instant((moment - _EPOCH) // timedelta(microseconds=1))
