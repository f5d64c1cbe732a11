"""Sending spans with OpenTelemetry's SDK; imported only when a collector is configured."""

import threading
from collections.abc import Sequence

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

from countersign.kernel import clock
from countersign.kernel.traces import exchanges
from countersign.kernel.traces.span import SCOPE, Span, moments_ns, parent_of

SEND_EVERY_MS = 2_000
PATIENCE_S = 3.0
CLOSING_S = 2.0
MAX_WAITING = 4_096


class Sender:
    """A Tracer that sends batches from a thread of its own. Where the collector is slow or gone, spans are dropped;
    requests never wait."""

    def __init__(self, endpoint: str, version: str) -> None:
        self._endpoint = endpoint
        self._version = version
        self._providers: dict[str, TracerProvider] = {}

    def record(self, span: Span) -> None:
        """See Tracer."""
        began_ns, ended_ns = moments_ns(span.elapsed_s)
        context, links = _of_caller(span)
        attributes: dict[str, str | int] = {
            "http.request.method": span.method,
            "countersign.request_id": span.request_id,
            **({"http.route": span.route} if span.route else {}),
            **({"http.response.status_code": span.status} if span.status else {}),
            **({"error.type": str(span.status or "cut")} if not 0 < span.status < 500 else {}),
        }
        made = self._provider(span.service).get_tracer(SCOPE, self._version).start_span(
            f"{span.method} {span.route}".rstrip(),
            context=context,
            kind=SpanKind.SERVER,
            attributes=attributes,
            links=links,
            start_time=began_ns,
        )
        if "error.type" in attributes:
            made.set_status(StatusCode.ERROR)
        made.end(ended_ns)

    def close(self) -> None:
        """See Tracer. What the collector has not taken within CLOSING_S is dropped."""
        closing = [threading.Thread(target=each.shutdown, daemon=True) for each in self._providers.values()]
        until_s = clock.monotonic_s() + CLOSING_S
        for each in closing:
            each.start()
        for each in closing:
            each.join(max(0.0, until_s - clock.monotonic_s()))

    def _provider(self, service: str) -> TracerProvider:
        """Whatever is told of the process; a process may be two services."""
        found = self._providers.get(service)
        if found is None:
            names = {"service.namespace": SCOPE, "service.name": service, "service.version": self._version}
            found = TracerProvider(resource=Resource(names), shutdown_on_exit=False)
            found.add_span_processor(
                BatchSpanProcessor(
                    _Exporter(self._endpoint),
                    max_queue_size=MAX_WAITING,
                    schedule_delay_millis=SEND_EVERY_MS,
                    export_timeout_millis=PATIENCE_S * 1000,
                )
            )
            self._providers[service] = found
        return found


class _Exporter(OTLPSpanExporter):
    """Sends a batch within PATIENCE_S, or drops it."""

    def __init__(self, endpoint: str) -> None:
        self._own = exchanges.session()
        super().__init__(endpoint=endpoint, timeout=PATIENCE_S, session=self._own)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with exchanges.limited(self._own, PATIENCE_S):
            return super().export(spans)


def _of_caller(span: Span) -> tuple[Context | None, list[Link]]:
    """What the span is a part of, and what it is linked to."""
    parent = parent_of(span.traceparent)
    if parent is None:
        return None, []
    flags = TraceFlags(TraceFlags.SAMPLED if parent.is_sampled else TraceFlags.DEFAULT)
    remote = SpanContext(parent.trace_id, parent.span_id, is_remote=True, trace_flags=flags)
    if not span.is_believed:
        return None, [Link(remote)]
    return set_span_in_context(NonRecordingSpan(remote)), []
