"""Instrumentation: metrics of requests and of the process, access lines, and spans for a collector of traces."""

import asyncio
import os
import platform
import resource
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from countersign import __version__
from countersign.kernel import clock, metrics, telemetry
from countersign.kernel.concurrency import background
from countersign.kernel.errors import Refused
from countersign.kernel.http.exchange import Exchange
from countersign.kernel.tracing import Span, Tracer


class TracesUnavailable(Refused):
    """A collector is configured and what speaks to it is not installed."""

    status = 500
    code = "traces_unavailable"
    title = "Traces are not installed"
    resolution = "Install countersign[traces], or leave COUNTERSIGN_OTLP_URL empty."


_tracers: list[Tracer] = []


def current_tracer() -> Tracer | None:
    """Where spans of this process go; None: nowhere."""
    return _tracers[-1] if _tracers else None


@contextmanager
def export_spans(url: str) -> Generator[None]:
    """While the block lasts, spans go to the collector at this base address; to an empty one none do. To be entered
    in the process that answers requests, for it starts threads.

    Raises:
        TracesUnavailable, ValueError: as `require_exporter`.
    """
    if not url:
        yield
        return
    tracer = require_exporter(url)(url.rstrip("/") + "/v1/traces", __version__)
    _tracers.append(tracer)
    try:
        yield
    finally:
        _tracers.remove(tracer)
        tracer.close()


def require_exporter(url: str) -> Callable[[str, str], Tracer]:
    """What makes a tracer for an endpoint and a version of ours.

    Raises:
        TracesUnavailable: the packages are not installed.
        ValueError: it is no http address.
    """
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise ValueError("COUNTERSIGN_OTLP_URL must be an http or https address, like http://127.0.0.1:4318")
    try:
        # Only who configures a collector has, and waits for, the packages.
        from countersign.kernel.otlp import OtlpTracer
    except ImportError as error:
        raise TracesUnavailable(f"COUNTERSIGN_OTLP_URL is set, and {error.name} is not installed") from error
    return OtlpTracer


EVERY_S = 0.5

MEMORY = metrics.gauge("process_resident_memory_bytes", "Memory of the process that is in RAM, in bytes.")
FILES = metrics.gauge("process_open_fds", "Open files and connections of the process.")
MAX_FILES = metrics.gauge("process_max_fds", "How many files and connections the process may have.")
PROCESSOR = metrics.counter("process_cpu_seconds_total", "Processor time of the process, in seconds.")
STARTED = metrics.gauge("process_start_time_seconds", "When the process began to serve, in seconds since 1970.")
LAG = metrics.histogram("countersign_loop_lag_seconds", "How late the event loop came to what was due.")
BUILD = metrics.gauge("countersign_build_info", "1; the labels tell what is running.", "version", "python")


@asynccontextmanager
async def track_loop_lag() -> AsyncGenerator[None]:
    """While the block lasts, the lag of the event loop is looked at twice a second."""
    STARTED.of().value = clock.now() / clock.SECOND
    BUILD.of(__version__, platform.python_version()).value = 1
    async with background(_watch()):
        yield


async def _watch() -> None:
    lag = LAG.of()
    while True:
        due_s = clock.monotonic_s() + EVERY_S
        await asyncio.sleep(EVERY_S)
        lag.add(max(0.0, clock.monotonic_s() - due_s))


def update_process_metrics() -> None:
    """Bring what is only known when it is asked for up to date."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    PROCESSOR.of().value = used.ru_utime + used.ru_stime
    MAX_FILES.of().value = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    # Linux alone tells these.
    with suppress(OSError):
        pages = Path("/proc/self/statm").read_text().split()[1]
        MEMORY.of().value = int(pages) * os.sysconf("SC_PAGE_SIZE")
        FILES.of().value = len(os.listdir("/proc/self/fd"))


METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
UNMATCHED = "unmatched"
"""In place of a template, where no route has the address: what somebody typed is no label."""

CUT = "cut"
"""In place of a class of statuses, where the connection ended before an answer began."""

REQUESTS = metrics.histogram(
    "countersign_http_request_seconds",
    "Requests answered, and how long that took, by the route's template and the class of the status.",
    *("service", "route", "method", "status"),
)
RUNNING = metrics.gauge("countersign_http_requests_running", "Requests that are being answered.", "service")
LIMITED = metrics.counter(
    "countersign_http_limited_total", "Requests refused with 429, by a rate limit or a lockout.", "service", "route"
)


class RequestInstrumentation:
    """The requests of one service in this process."""

    def __init__(self, service: str, *, log_requests: bool) -> None:
        self._service = service
        self._tracer = current_tracer()
        self._log_requests = log_requests
        self._running = RUNNING.of(service)
        # What was never counted is told as 0: an alert that finds nothing to look at says nothing.
        LIMITED.of(service, UNMATCHED)
        REQUESTS.of(service, UNMATCHED, "GET", "4xx")
        self._known: dict[tuple[str, str, int], metrics.Durations] = {}

    def begin(self, exchange: Exchange) -> float:
        """A request has come; the moment for `end`. What is logged from now on in its task tells whose it is."""
        self._running.value += 1
        telemetry.REQUEST.set(exchange)
        return clock.monotonic_s()

    def end(self, exchange: Exchange, started_s: float) -> None:
        """The request was answered, or its connection is gone."""
        elapsed_s = clock.monotonic_s() - started_s
        self._running.value -= 1
        key = (exchange.route_path, exchange.method, exchange.status)
        durations = self._known.get(key)
        if durations is None:
            durations = self._durations(*key)
        durations.add(elapsed_s)
        if exchange.status == 429:
            LIMITED.of(self._service, exchange.route_path or UNMATCHED).value += 1
        if self._tracer is not None:
            self._tracer.record(self._span(exchange, elapsed_s))
        if self._log_requests:
            telemetry.access(exchange.method, exchange.route_path, exchange.status, elapsed_s * 1000)
        # Else the exchange, its task and its connection would hold each other until the collector comes.
        telemetry.REQUEST.set(None)

    def _span(self, exchange: Exchange, elapsed_s: float) -> Span:
        return Span(
            service=self._service,
            route=exchange.route_path,
            method=exchange.method if exchange.method in METHODS else "_OTHER",
            status=exchange.status,
            elapsed_s=elapsed_s,
            request_id=exchange.request_id,
            traceparent=exchange.headers.get("traceparent"),
            is_believed=exchange.is_proxied,
        )

    def _durations(self, route: str, method: str, status: int) -> metrics.Durations:
        """The series of such requests. It is remembered where a route was matched: there the keys are few."""
        shown = method if method in METHODS else metrics.OTHER
        found = REQUESTS.of(self._service, route or UNMATCHED, shown, f"{status // 100}xx" if status else CUT)
        if route and shown == method:
            self._known[route, method, status] = found
        return found
