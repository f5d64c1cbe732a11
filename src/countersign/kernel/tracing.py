"""What is told of a request that was answered: its span.

It says what an access line says: route template, method, status, request id (OpenTelemetry's stable semantic
conventions for HTTP servers). Addresses, queries, headers, bodies and whoever calls are never in it. A `traceparent`
that came along (W3C Trace Context) makes it part of the caller's trace where the caller is believed. Anybody else's is
only linked to: whoever chose the trace's id, or that it is sampled, would decide what is kept of an attack of theirs.
"""

import re
from typing import NamedTuple, Protocol

from countersign.kernel import clock

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
NANOSECOND_US = 1_000
SECOND_NS = 1_000_000_000
SCOPE = "countersign"


class Span(NamedTuple):
    """A request that was answered. `traceparent` is the header as it came, and `is_believed` whether a trusted proxy
    sent it; `status` 0 where no answer began."""

    service: str
    route: str
    method: str
    status: int
    elapsed_s: float
    request_id: str
    traceparent: str | None
    is_believed: bool


class Tracer(Protocol):
    """Where spans go."""

    def record(self, span: Span) -> None:
        """Take the span of a request that ended now; it is sent later, from another thread."""
        ...

    def close(self) -> None:
        """Send what waits, within a few seconds."""
        ...


class Parent(NamedTuple):
    """The span of the caller, in the caller's trace."""

    trace_id: int
    span_id: int
    is_sampled: bool


def parent_of(traceparent: str | None) -> Parent | None:
    """What the header says (W3C Trace Context §3.2), or None when it is none."""
    found = _TRACEPARENT.fullmatch(traceparent or "")
    if found is None or not int(found[1], 16) or not int(found[2], 16):
        return None
    return Parent(int(found[1], 16), int(found[2], 16), bool(int(found[3], 16) & 1))


def moments_ns(elapsed_s: float) -> tuple[int, int]:
    """When a span began that ends now, and when it ends, in nanoseconds since 1970."""
    end = clock.now() * NANOSECOND_US
    return end - int(elapsed_s * SECOND_NS), end
