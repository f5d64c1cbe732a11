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
    """A collector is configured, but the OpenTelemetry packages are not installed."""

    status = 500
    code = "traces_unavailable"
    title = "Traces are not installed"
    resolution = "Install countersign[traces], or leave COUNTERSIGN_OTLP_URL empty."


_tracers: list[Tracer] = []


def current_tracer() -> Tracer | None:
    """Return the tracer of this process, or None if traces are off."""
    return _tracers[-1] if _tracers else None


@contextmanager
def export_spans(url: str) -> Generator[None]:
    """Export spans to the collector at this base URL while the block runs. With an empty URL, no spans are exported.
    Enter the block in the process that answers requests, since the exporter starts threads.

    Raises:
        TracesUnavailable: the packages are not installed.
        ValueError: `url` is not an http(s) URL.
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
    """Return the constructor of a tracer, which takes an endpoint and our version.

    Raises:
        TracesUnavailable: the packages are not installed.
        ValueError: `url` is not an http(s) URL.
    """
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise ValueError("COUNTERSIGN_OTLP_URL must be an http or https address, like http://127.0.0.1:4318")
    try:
        # Import the packages only when needed: they are optional, and slow to import.
        from countersign.kernel.otlp import OtlpTracer
    except ImportError as error:
        raise TracesUnavailable(f"COUNTERSIGN_OTLP_URL is set, and {error.name} is not installed") from error
    return OtlpTracer


EVERY_S = 0.5

MEMORY = metrics.gauge("process_resident_memory_bytes", "Resident memory of the process in bytes.")
FILES = metrics.gauge("process_open_fds", "Open files and connections of the process.")
MAX_FILES = metrics.gauge("process_max_fds", "Maximum number of open files and connections of the process.")
PROCESSOR = metrics.counter("process_cpu_seconds_total", "CPU time of the process in seconds.")
STARTED = metrics.gauge("process_start_time_seconds", "Start time of the process in seconds since 1970.")
LAG = metrics.histogram("countersign_loop_lag_seconds", "Lag of the event loop behind its timers.")
BUILD = metrics.gauge("countersign_build_info", "1; the labels name the running versions.", "version", "python")


@asynccontextmanager
async def track_loop_lag() -> AsyncGenerator[None]:
    """Measure the lag of the event loop twice a second while the block lasts."""
    STARTED.labels().value = clock.now() / clock.SECOND
    BUILD.labels(__version__, platform.python_version()).value = 1
    async with background(_watch()):
        yield


async def _watch() -> None:
    lag = LAG.labels()
    while True:
        due_s = clock.monotonic_s() + EVERY_S
        await asyncio.sleep(EVERY_S)
        lag.add(max(0.0, clock.monotonic_s() - due_s))


def update_process_metrics() -> None:
    """Update the metrics that are read on demand."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    PROCESSOR.labels().value = usage.ru_utime + usage.ru_stime
    MAX_FILES.labels().value = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    # The memory and the number of open files are available on Linux only.
    with suppress(OSError):
        pages = Path("/proc/self/statm").read_text().split()[1]
        MEMORY.labels().value = int(pages) * os.sysconf("SC_PAGE_SIZE")
        FILES.labels().value = len(os.listdir("/proc/self/fd"))


METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
UNMATCHED = "unmatched"
"""The route label of unmatched paths: labels never contain what callers send."""

CUT = "cut"
"""The status label of connections that ended before a response began."""

REQUESTS = metrics.histogram(
    "countersign_http_request_seconds",
    "Duration of requests, by the route's template and the class of the status.",
    *("service", "route", "method", "status"),
)
RUNNING = metrics.gauge("countersign_http_requests_running", "Requests in progress.", "service")
LIMITED = metrics.counter(
    "countersign_http_limited_total", "Requests refused with 429, by a rate limit or a lockout.", "service", "route"
)


class RequestInstrumentation:
    """Metrics, access lines and spans of the requests of one service in this process."""

    def __init__(self, service: str, *, log_requests: bool) -> None:
        self._service = service
        self._tracer = current_tracer()
        self._log_requests = log_requests
        self._running = RUNNING.labels(service)
        # Export 0 from the start: an alert on a missing series never fires.
        LIMITED.labels(service, UNMATCHED)
        REQUESTS.labels(service, UNMATCHED, "GET", "4xx")
        self._known: dict[tuple[str, str, int], metrics.Durations] = {}

    def begin(self, exchange: Exchange) -> float:
        """Record the start of a request, and return the start time for `end`. From now on, log lines of the task
        contain the id of the request."""
        self._running.value += 1
        telemetry.REQUEST.set(exchange)
        return clock.monotonic_s()

    def end(self, exchange: Exchange, started_s: float) -> None:
        """Record the end of a request, or of its connection."""
        elapsed_s = clock.monotonic_s() - started_s
        self._running.value -= 1
        key = (exchange.route_path, exchange.method, exchange.status)
        durations = self._known.get(key)
        if durations is None:
            durations = self._durations(*key)
        durations.add(elapsed_s)
        if exchange.status == 429:
            LIMITED.labels(self._service, exchange.route_path or UNMATCHED).value += 1
        if self._tracer is not None:
            self._tracer.record(self._span(exchange, elapsed_s))
        if self._log_requests:
            telemetry.access(exchange.method, exchange.route_path, exchange.status, elapsed_s * 1000)
        # Break the reference cycle of the exchange, its task and its connection.
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
            is_trusted=exchange.is_proxied,
        )

    def _durations(self, route: str, method: str, status: int) -> metrics.Durations:
        """Return the series of these labels. Series of matched routes are cached, since there are few of them."""
        method_label = method if method in METHODS else metrics.OTHER
        status_label = f"{status // 100}xx" if status else CUT
        series = REQUESTS.labels(self._service, route or UNMATCHED, method_label, status_label)
        if route and method_label == method:
            self._known[route, method, status] = series
        return series
