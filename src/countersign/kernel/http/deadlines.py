"""Extends uvicorn's HTTP/1.1 protocol with absolute deadlines and limits, against slow clients and memory exhaustion.

Twice a second, a loop over the open connections (a sweep) checks all deadlines. A request then needs only a few
assignments, which take less time than the timer that uvicorn sets for each response.
"""

import asyncio
import math
from collections.abc import Sized
from dataclasses import dataclass
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from countersign.kernel import clock

SWEEP_S = 0.5
MAX_HEADER_BYTES = 64 << 10
MAX_HEADERS = 128
MAX_PIPELINED = 1000
LINGER_S = 2.0

_SILENT, _HEADER, _BODY, _BETWEEN = range(4)
_BAD = b"400 Bad Request"
_TIMEOUT = b"408 Request Timeout"
_TOO_LARGE = b"431 Request Header Fields Too Large"


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The time limits of a connection.

    They limit the time for a header (from connecting, or from its first byte), the idle time between requests, the time
    for a body (`body_grace_s` plus its bytes at `body_bytes_s`, without the time in which the server does not read),
    and the time without the client receiving any byte of the response.
    """

    header_s: float = 5.0
    idle_s: float = 15.0
    body_grace_s: float = 10.0
    body_bytes_s: float = 64 * 1024
    write_stall_s: float = 30.0


class _LimitExceeded(Exception):
    """Ends the parsing after a limit was exceeded. The connection is already closed."""


class _PipelineFlow(FlowControl):
    """Pauses reading while pipelined requests wait.

    uvicorn resumes reading after each response and each read of a body. It would therefore accept more requests than it
    answers.
    """

    def __init__(self, transport: asyncio.Transport, waiting: Sized) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        """Resume, unless requests wait."""
        if not self._waiting:
            super().resume_reading()


class DeadlineProtocol(HttpToolsProtocol):
    """One connection, with the phase of the request that its client sends and the start of that phase.

    uvicorn tracks the request that is being answered (`cycle`, `pipeline`). A client may send its next request before
    it gets the response. This class therefore tracks the request that is being received separately.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        loop: asyncio.AbstractEventLoop,
        deadlines: Deadlines,
    ) -> None:
        super().__init__(config, server_state, app_state, loop)
        self._deadlines = deadlines
        self._phase = _SILENT
        self._since_s = loop.time()
        self._framing_bytes = 0
        self._body_bytes = 0
        self._unsent_bytes = 0
        self._unsent_since_s = self._since_s
        self._answering: RequestResponseCycle | None = None

    @property
    def has_spoken(self) -> bool:
        """Return whether the client has sent a part of a request."""
        return self._phase != _SILENT

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Install our own flow control."""
        super().connection_made(transport)
        self.flow = _PipelineFlow(transport, self.pipeline)

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the request that is being answered. uvicorn would notify the last request that was received.

        Then remove the references to requests. They refer to their connection, so each connection would otherwise be a
        reference cycle.
        """
        super().connection_lost(exc)
        if self._answering is not None:
            self._answering.disconnected = True
            self._answering.message_event.set()
        self.pipeline.clear()
        # uvicorn itself initializes `cycle` with None.
        vars(self)["cycle"] = self._answering = None

    def data_received(self, data: bytes) -> None:
        """Receive bytes of a header or a body.

        Refuse more than 64 KiB in a row outside of a body (a header, trailers, a chunk's extension) with 431. Bytes
        that are read together with the end of the previous request do not count, so a pipelined header may have up to
        twice this size.
        """
        self._framing_bytes += len(data)
        if self._framing_bytes >= MAX_HEADER_BYTES:
            self._framing_bytes -= len(data)
            self._take_in_pieces(data)
        else:
            super().data_received(data)

    def _take_in_pieces(self, data: bytes) -> None:
        """Feed the parser up to the limit of framing bytes at a time, and refuse when the limit is reached."""
        start = 0
        while start < len(data) and not self.transport.is_closing():
            piece = data[start : start + MAX_HEADER_BYTES - self._framing_bytes]
            start += len(piece)
            self._framing_bytes += len(piece)
            super().data_received(piece)
            if self._framing_bytes >= MAX_HEADER_BYTES:
                self._refuse(_TOO_LARGE)

    def on_message_begin(self) -> None:
        """Start the time of the header at the first byte of a request. Disconnect a client with more than MAX_PIPELINED
        waiting requests."""
        if len(self.pipeline) >= MAX_PIPELINED:
            self.transport.close()
            raise _LimitExceeded
        self._phase = _HEADER
        self._since_s = self.loop.time()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive a header field. The parser also passes trailers to this method. Drop them, because they must not be
        treated as header fields (RFC 9110 §6.5.1)."""
        if self._phase == _BODY:
            return
        if len(self.headers) >= MAX_HEADERS:
            self._refuse(_TOO_LARGE)
            raise _LimitExceeded
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the time of the body at the end of the header."""
        super().on_headers_complete()
        if not self.pipeline:
            self._answering = self.cycle
        self._phase = _BODY
        self._since_s = self.loop.time()
        self._framing_bytes = self._body_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Extend the time allowed for the body with each part of the body."""
        self._framing_bytes = 0
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Record that the request is complete. Until the response is sent, no deadline of the client runs."""
        self._phase = _BETWEEN
        self._framing_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """After a response, start the next waiting request. If there is none, start the idle time of the connection.

        This replaces uvicorn's method, which sets a timer for each response. Here, the sweep closes idle connections.
        """
        self._since_s = self.loop.time()
        if self.transport.is_closing():
            return
        if self.pipeline:
            self._answering, app = self.pipeline.pop()
            self._start_asgi_task(self._answering, app)
        self.flow.resume_reading()

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not HTTP, and close the connection."""
        self._refuse(_BAD)

    def resume_writing(self) -> None:
        """Record that the client has received most of the buffered data."""
        self._unsent_since_s = self.loop.time()
        super().resume_writing()

    def sweep(self, now_s: float) -> None:
        """Close the connection when its client exceeds the current deadline."""
        if self._is_stalled(now_s):
            self.transport.abort()
        elif self._phase == _HEADER and self._is_answering():
            self._since_s = now_s
        elif self._phase == _BODY and (self.flow.read_paused or self.cycle.waiting_for_100_continue):
            self._since_s += SWEEP_S
        elif now_s - self._since_s > self._allowed_s():
            self._refuse(_TIMEOUT)

    def _is_answering(self) -> bool:
        """Return whether a response is pending. Responses are sent in order, so it is enough to check the last
        request."""
        return bool(self.cycle) and not self.cycle.response_complete

    def _allowed_s(self) -> float:
        """Return the time limit of the current phase in seconds.

        After an early response, the rest of the body is read and discarded for a moment, so that the client can read
        the response before the connection closes.
        """
        limits = self._deadlines
        if self._phase in (_SILENT, _HEADER):
            return limits.header_s
        if self._phase == _BODY:
            earned_s = self._body_bytes / limits.body_bytes_s
            return LINGER_S if self.cycle.response_complete else limits.body_grace_s + earned_s
        return math.inf if self._is_answering() else limits.idle_s

    def _is_stalled(self, now_s: float) -> bool:
        """Return whether the client has not received buffered data for too long. Only a buffer that has drained enough
        to accept more data counts as progress (`resume_writing`). Data that the application adds to the buffer does
        not."""
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent < self._unsent_bytes:
            self._unsent_since_s = now_s
        self._unsent_bytes = unsent
        return now_s - self._unsent_since_s > self._deadlines.write_stall_s

    def _refuse(self, status: bytes) -> None:
        """Close the connection. A request that has started and has no response yet is answered with this status."""
        if self._may_speak() and not self.transport.is_closing():
            date = b"".join(b"%b: %b\r\n" % header for header in self.server_state.default_headers[:1])
            self.transport.write(b"HTTP/1.1 %b\r\n%bcontent-length: 0\r\nconnection: close\r\n\r\n" % (status, date))
        self.transport.close()

    def _may_speak(self) -> bool:
        """Return whether the client would assign a response to the request that it is sending."""
        if self._phase == _BODY:
            return not self.pipeline and not self.cycle.response_started
        return (self._phase == _HEADER or self._framing_bytes > 0) and not self._is_answering()


def open_connections(state: ServerState) -> list[DeadlineProtocol]:
    """Return the open connections."""
    connections: set[Any] = state.connections
    return [connection for connection in connections if isinstance(connection, DeadlineProtocol)]


async def sweep_connections(state: ServerState) -> None:
    """Sweep a worker's connections until cancelled, and keep its Date header current."""
    loop = asyncio.get_running_loop()
    while True:
        # Replace only the first entry, because a shutdown appends a header for every response to the list.
        state.default_headers[:1] = [(b"date", clock.http_date().encode())]
        now_s = loop.time()
        for connection in open_connections(state):
            connection.sweep(now_s)
        await asyncio.sleep(SWEEP_S)
