"""What is noted of every request a service answers: its numbers, its access line, and its span where traces are on."""

from countersign.kernel import clock, metrics, telemetry
from countersign.kernel.http.exchange import Exchange
from countersign.kernel.traces import open as traces
from countersign.kernel.traces.span import Span

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


class Observed:
    """The requests of one service in this process."""

    def __init__(self, service: str, *, log_requests: bool) -> None:
        self._service = service
        self._tracer = traces.current()
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
