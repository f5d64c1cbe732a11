"""A collector of traces on loopback, which reads what OpenTelemetry's exporter sends."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Collector:
    """What arrived: spans by service, and the bodies as they were."""

    url: str = ""
    spans: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    bodies: list[bytes] = field(default_factory=list[bytes])

    def take(self, body: bytes) -> None:
        """Read one request of the exporter."""
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        self.bodies.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            known = {each.key: each.value.string_value for each in resource.resource.attributes}
            service = known["service.name"]
            self.spans += [(service, span) for scope in resource.scope_spans for span in scope.spans]


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector until the block ends."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        """OTLP over HTTP, in protobuf."""

        def do_POST(self) -> None:
            """Take spans."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/v1/traces"
            collector.take(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    collector.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield collector
    server.shutdown()
    server.server_close()
