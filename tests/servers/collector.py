"""A trace collector on a loopback port, which decodes the requests of OpenTelemetry's exporter."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Collector:
    """The data that the collector has received: spans with their services, and the bodies of the requests."""

    url: str = ""
    spans: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    bodies: list[bytes] = field(default_factory=list[bytes])

    def take(self, body: bytes) -> None:
        """Decode the body of one request of the exporter."""
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        self.bodies.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource_attributes = {
                attribute.key: attribute.value.string_value for attribute in resource.resource.attributes
            }
            service = resource_attributes["service.name"]
            self.spans += [(service, span) for scope in resource.scope_spans for span in scope.spans]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector until the block ends."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        """Handles OTLP requests over HTTP in the protobuf format."""

        def do_POST(self) -> None:
            """Receive spans."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/v1/traces"
            collector.take(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    collector.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield collector
    server.shutdown()
    server.server_close()
