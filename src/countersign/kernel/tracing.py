"""Spans of requests.

A span contains the same data as an access line: route template, method, status, request id (OpenTelemetry's stable
semantic conventions for HTTP servers), and never addresses, queries, headers, bodies or the caller. With a
`traceparent` (W3C Trace Context) from a trusted caller, the span becomes part of the caller's trace. With a
`traceparent` from any other caller, the span only has a link to the trace, since an attacker must not control the trace
id and the sampling of an attack.
"""

import re
from typing import NamedTuple, Protocol

from countersign.kernel import clock

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
NANOSECOND_US = 1_000
SECOND_NS = 1_000_000_000
SCOPE = "countersign"


class Span(NamedTuple):
    """A completed request. `traceparent` is the header as received. `is_trusted` is set if a trusted proxy sent the
    header. `status` is 0 if there was no response."""

    service: str
    route: str
    method: str
    status: int
    elapsed_s: float
    request_id: str
    traceparent: str | None
    is_trusted: bool


class Tracer(Protocol):
    """Exports spans."""

    def record(self, span: Span) -> None:
        """Record the span of a request that ends now; another thread sends it later."""
        ...

    def close(self) -> None:
        """Send the queued spans, within a few seconds."""
        ...


class Parent(NamedTuple):
    """The parent span, in the caller's trace."""

    trace_id: int
    span_id: int
    is_sampled: bool


def parse_traceparent(traceparent: str | None) -> Parent | None:
    """Parse the header (W3C Trace Context §3.2); returns None if the header is invalid."""
    match = _TRACEPARENT.fullmatch(traceparent or "")
    if match is None or not int(match[1], 16) or not int(match[2], 16):
        return None
    return Parent(int(match[1], 16), int(match[2], 16), bool(int(match[3], 16) & 1))


def span_times_ns(elapsed_s: float) -> tuple[int, int]:
    """Return the start and the end of a span that ends now, in nanoseconds since 1970."""
    end = clock.now() * NANOSECOND_US
    return end - int(elapsed_s * SECOND_NS), end
