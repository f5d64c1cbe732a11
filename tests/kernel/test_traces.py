"""A malicious trace collector: it causes no memory growth, keeps no thread busy and delays no shutdown."""

import socket
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress

import pytest

from countersign.kernel.http.instrumentation import require_exporter
from countersign.kernel.tracing import Span, Tracer

MIB = bytes(1 << 20)
MOST_MIB = 64
HEADERS, DRIP_S = 90, 0.2


class MaliciousServer:
    """Responds to one request in a malicious way. `gave` counts the bytes that it sent."""

    def __init__(self) -> None:
        self.gave = 0
        self.let_go = threading.Event()

    def endless(self, connected: socket.socket) -> None:
        """Send a body for as long as it is read, at most 64 MiB."""
        connected.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(MOST_MIB):
            connected.sendall(b"100000\r\n" + MIB + b"\r\n")
            self.gave += 1
        connected.sendall(b"0\r\n\r\n")

    def dripping(self, connected: socket.socket) -> None:
        """Send a header that takes 18 s."""
        connected.sendall(b"HTTP/1.1 200 OK\r\n")
        for _ in range(HEADERS):
            if self.let_go.wait(DRIP_S):
                return
            connected.sendall(b"X-A: b\r\n")
            self.gave += 1
        connected.sendall(b"Content-Length: 0\r\n\r\n")


@contextmanager
def collecting(answer: Callable[[socket.socket], None]) -> Generator[tuple[Tracer, threading.Thread]]:
    """Return a tracer with a span to send, and the thread of its collector."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connected, _ = listening.accept()
            with connected, suppress(OSError):
                connected.recv(1 << 16)
                answer(connected)

        serving_thread = threading.Thread(target=serve, daemon=True)
        serving_thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1/traces"
        tracer = require_exporter(url)(url, "0")
        tracer.record(Span("distribution", "/products", "GET", 200, 0.1, "request", None, False))
        yield tracer, serving_thread


@pytest.fixture
def malicious_server() -> Iterator[MaliciousServer]:
    """A malicious collector. The test is skipped if the packages for traces are not installed."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    server = MaliciousServer()
    yield server
    server.let_go.set()


def test_an_answer_without_end_is_not_read(malicious_server: MaliciousServer) -> None:
    with collecting(malicious_server.endless) as (tracer, serving):
        tracer.close()
        serving.join(30)

    assert malicious_server.gave < MOST_MIB


def test_a_header_that_drips_is_cut_off_when_its_time_is_over(malicious_server: MaliciousServer) -> None:
    with collecting(malicious_server.dripping) as (_, serving):
        serving.join(60)

    assert malicious_server.gave < HEADERS


def test_a_stop_does_not_wait_for_an_answer_that_drips(malicious_server: MaliciousServer) -> None:
    with collecting(malicious_server.dripping) as (tracer, _):
        tracer.close()

    assert malicious_server.gave < HEADERS
