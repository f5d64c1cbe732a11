"""Exporting spans with OpenTelemetry's SDK; imported only when a collector is configured.

The timeouts of requests apply to each piece that arrives, so a collector that sends a byte a second never times out.
Every export therefore has its own deadline, at which its connections are closed.
"""

import socket
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Protocol, Self, cast

import requests
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool

from countersign.kernel import clock
from countersign.kernel.tracing import SCOPE, Span, parse_traceparent, span_times_ns


def session() -> requests.Session:
    """Return a session that reads the status and headers of a response, and never its body, which may be endless. Use
    it only within `deadline`."""
    http_session = requests.Session()
    http_session.stream = True
    http_session.hooks["response"] = [_discard_body]
    for scheme in ("http://", "https://"):
        http_session.mount(scheme, _CuttableAdapter())
    return http_session


@contextmanager
def deadline(session: requests.Session, limit_s: float) -> Generator[None]:
    """Use the session in this thread during the block. The connections of the session are closed when the block ends,
    or after `limit_s`, whichever is earlier."""
    with _ConnectionCutter(limit_s) as cutter:
        token = _UNDER_WAY.set(cutter)
        try:
            yield
        finally:
            _UNDER_WAY.reset(token)
            session.close()


def _discard_body(answer: requests.Response, *_: object, **__: object) -> None:
    answer.close()


class _ConnectionCutter:
    """Shuts down the connections of the block at its deadline. The object has its own copies of the file descriptors,
    since TLS replaces the sockets."""

    def __init__(self, limit_s: float) -> None:
        self._made: list[socket.socket] = []
        self._is_over = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(limit_s, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            for connection_copy in self._made:
                connection_copy.close()
            self._made.clear()

    def register(self, connection: socket.socket) -> None:
        """Register a new connection.

        Raises:
            TimeoutError: the deadline has passed.
        """
        with self._lock:
            if self._is_over:
                connection.close()
                raise TimeoutError("connecting to the collector timed out")
            self._made.append(connection.dup())

    def _cut(self) -> None:
        with self._lock:
            self._is_over = True
            for connection_copy in self._made:
                with suppress(OSError):
                    connection_copy.shutdown(socket.SHUT_RDWR)


_UNDER_WAY: ContextVar[_ConnectionCutter] = ContextVar("exchange")


class _HttpConnection(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        connection = super()._new_conn()
        _UNDER_WAY.get().register(connection)
        return connection


class _HttpsConnection(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        connection = super()._new_conn()
        _UNDER_WAY.get().register(connection)
        return connection


class _Pool(Protocol):
    ConnectionCls: type[HTTPConnection]


class _CuttableAdapter(HTTPAdapter):
    """Makes connections that the current deadline can shut down."""

    def get_connection_with_tls_context(
        self,
        request: requests.PreparedRequest,
        verify: bool | str,
        proxies: dict[str, str] | None = None,
        cert: str | tuple[str, str] | None = None,
    ) -> HTTPConnectionPool:
        pool = super().get_connection_with_tls_context(request, verify, proxies, cert)
        cast(_Pool, pool).ConnectionCls = _HttpsConnection if pool.scheme == "https" else _HttpConnection
        return pool


SEND_EVERY_MS = 2_000
PATIENCE_S = 3.0
CLOSING_S = 2.0
MAX_WAITING = 4_096


class OtlpTracer:
    """A Tracer that sends batches from a thread of its own. If the collector is slow or unreachable, spans are dropped;
    requests never wait."""

    def __init__(self, endpoint: str, version: str) -> None:
        self._endpoint = endpoint
        self._version = version
        self._providers: dict[str, TracerProvider] = {}

    def record(self, span: Span) -> None:
        """See Tracer."""
        began_ns, ended_ns = span_times_ns(span.elapsed_s)
        context, links = _parent_and_links(span)
        attributes: dict[str, str | int] = {
            "http.request.method": span.method,
            "countersign.request_id": span.request_id,
            **({"http.route": span.route} if span.route else {}),
            **({"http.response.status_code": span.status} if span.status else {}),
            **({"error.type": str(span.status or "cut")} if not 0 < span.status < 500 else {}),
        }
        exported_count = (
            self._provider(span.service)
            .get_tracer(SCOPE, self._version)
            .start_span(
                f"{span.method} {span.route}".rstrip(),
                context=context,
                kind=SpanKind.SERVER,
                attributes=attributes,
                links=links,
                start_time=began_ns,
            )
        )
        if "error.type" in attributes:
            exported_count.set_status(StatusCode.ERROR)
        exported_count.end(ended_ns)

    def close(self) -> None:
        """See Tracer. Spans that the collector does not accept within CLOSING_S are dropped."""
        shutdown_threads = [
            threading.Thread(target=provider.shutdown, daemon=True) for provider in self._providers.values()
        ]
        until_s = clock.monotonic_s() + CLOSING_S
        for shutdown_thread in shutdown_threads:
            shutdown_thread.start()
        for shutdown_thread in shutdown_threads:
            shutdown_thread.join(max(0.0, until_s - clock.monotonic_s()))

    def _provider(self, service: str) -> TracerProvider:
        """Return the provider of a service. A process may run two services, so each service has its own."""
        provider = self._providers.get(service)
        if provider is None:
            names = {"service.namespace": SCOPE, "service.name": service, "service.version": self._version}
            provider = TracerProvider(resource=Resource(names), shutdown_on_exit=False)
            provider.add_span_processor(
                BatchSpanProcessor(
                    _Exporter(self._endpoint),
                    max_queue_size=MAX_WAITING,
                    schedule_delay_millis=SEND_EVERY_MS,
                    export_timeout_millis=PATIENCE_S * 1000,
                )
            )
            self._providers[service] = provider
        return provider


class _Exporter(OTLPSpanExporter):
    """Sends a batch within PATIENCE_S, or drops it."""

    def __init__(self, endpoint: str) -> None:
        self._own = session()
        super().__init__(endpoint=endpoint, timeout=PATIENCE_S, session=self._own)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with deadline(self._own, PATIENCE_S):
            return super().export(spans)


def _parent_and_links(span: Span) -> tuple[Context | None, list[Link]]:
    """Return the parent context and the links of the span."""
    parent = parse_traceparent(span.traceparent)
    if parent is None:
        return None, []
    flags = TraceFlags(TraceFlags.SAMPLED if parent.is_sampled else TraceFlags.DEFAULT)
    remote = SpanContext(parent.trace_id, parent.span_id, is_remote=True, trace_flags=flags)
    if not span.is_trusted:
        return None, [Link(remote)]
    return set_span_in_context(NonRecordingSpan(remote)), []
