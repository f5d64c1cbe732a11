"""uvicorn's HTTP/1.1 protocol with absolute deadlines and limits, so that no client holds a connection or fills memory.

One sweep over the open connections twice a second does all the timing; a request costs a few assignments, less than
the timer per answer that uvicorn would set.
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
    """How long a client may take: for its header (from connecting, or from the first byte), idle between
    requests, for its body (`body_grace_s` plus its bytes at `body_bytes_s`; time in which we do not read does not
    count), and without taking any byte of its answer."""

    header_s: float = 5.0
    idle_s: float = 15.0
    body_grace_s: float = 10.0
    body_bytes_s: float = 64 * 1024
    write_stall_s: float = 30.0


class _LimitExceeded(Exception):
    """Ends the parsing of what goes on beyond a limit; the connection is closed by then."""


class _PipelineFlow(FlowControl):
    """Reads nothing more while requests wait for the one before them, whoever asks for it: each answer and each look
    at a body does, and would let in more requests than were answered."""

    def __init__(self, transport: asyncio.Transport, waiting: Sized) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        """Read on, unless requests wait."""
        if not self._waiting:
            super().resume_reading()


class DeadlineProtocol(HttpToolsProtocol):
    """One connection that knows what its client is sending and since when.

    What is being answered is uvicorn's to know (`cycle`, `pipeline`): a client may send its next request before
    this one is answered, so the two are told apart.
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
        """Whether anything of a request has come."""
        return self._phase != _SILENT

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin with a flow of our own."""
        super().connection_made(transport)
        self.flow = _PipelineFlow(transport, self.pipeline)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is being answered; uvicorn tells the last that came.

        Requests know their connection: let go of them, or each connection is a circle until the collector comes.
        """
        super().connection_lost(exc)
        if self._answering is not None:
            self._answering.disconnected = True
            self._answering.message_event.set()
        self.pipeline.clear()
        # uvicorn begins with None here, too.
        vars(self)["cycle"] = self._answering = None

    def data_received(self, data: bytes) -> None:
        """Take bytes of a header or a body. Over 64 KiB in a row that are no body (a header, trailers, a chunk's
        extension) are refused with 431 and kept nowhere. What is read together with the end of another request is not
        counted, so that a header behind others may have up to twice as much."""
        self._framing_bytes += len(data)
        if self._framing_bytes >= MAX_HEADER_BYTES:
            self._framing_bytes -= len(data)
            self._take_in_pieces(data)
        else:
            super().data_received(data)

    def _take_in_pieces(self, data: bytes) -> None:
        """Never give the parser more than may still be framing, and stop when all of that was."""
        start = 0
        while start < len(data) and not self.transport.is_closing():
            piece = data[start : start + MAX_HEADER_BYTES - self._framing_bytes]
            start += len(piece)
            self._framing_bytes += len(piece)
            super().data_received(piece)
            if self._framing_bytes >= MAX_HEADER_BYTES:
                self._refuse(_TOO_LARGE)

    def on_message_begin(self) -> None:
        """A request's first byte: its header's time begins. Whoever sends more than MAX_AHEAD requests without
        waiting for an answer is cut off."""
        if len(self.pipeline) >= MAX_PIPELINED:
            self.transport.close()
            raise _LimitExceeded
        self._phase = _HEADER
        self._since_s = self.loop.time()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the header. Trailers come here too and are dropped: nothing here reads them, and what was sent
        after the header must not pass for it (RFC 9110 §6.5.1)."""
        if self._phase == _BODY:
            return
        if len(self.headers) >= MAX_HEADERS:
            self._refuse(_TOO_LARGE)
            raise _LimitExceeded
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The header is whole: the body's own time begins."""
        super().on_headers_complete()
        if not self.pipeline:
            self._answering = self.cycle
        self._phase = _BODY
        self._since_s = self.loop.time()
        self._framing_bytes = self._body_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Some of the body: it earns its client more time."""
        self._framing_bytes = 0
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole: what takes time now is our own."""
        self._phase = _BETWEEN
        self._framing_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """An answer is written: the next request that waits is begun, or the connection is idle from now on.

        In place of uvicorn's own, which sets a timer for each answer: the sweep closes idle connections.
        """
        self._since_s = self.loop.time()
        if self.transport.is_closing():
            return
        if self.pipeline:
            self._answering, app = self.pipeline.pop()
            self._start_asgi_task(self._answering, app)
        self.flow.resume_reading()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, and close."""
        self._refuse(_BAD)

    def resume_writing(self) -> None:
        """The client has taken most of what waited for it."""
        self._unsent_since_s = self.loop.time()
        super().resume_writing()

    def sweep(self, now_s: float) -> None:
        """Close the connection when its client has taken too long with whatever is waited for."""
        if self._is_stalled(now_s):
            self.transport.abort()
        elif self._phase == _HEADER and self._is_answering():
            self._since_s = now_s
        elif self._phase == _BODY and (self.flow.read_paused or self.cycle.waiting_for_100_continue):
            self._since_s += SWEEP_S
        elif now_s - self._since_s > self._allowed_s():
            self._refuse(_TIMEOUT)

    def _is_answering(self) -> bool:
        """Whether an answer is owed; they are given in order, so the last request's tells for all."""
        return bool(self.cycle) and not self.cycle.response_complete

    def _allowed_s(self) -> float:
        """How long what is waited for may take.

        A body that nobody wanted is let in for a moment after its answer and thrown away, so that the client gets to
        read that answer before the connection closes.
        """
        limits = self._deadlines
        if self._phase in (_SILENT, _HEADER):
            return limits.header_s
        if self._phase == _BODY:
            earned_s = self._body_bytes / limits.body_bytes_s
            return LINGER_S if self.cycle.response_complete else limits.body_grace_s + earned_s
        return math.inf if self._is_answering() else limits.idle_s

    def _is_stalled(self, now_s: float) -> bool:
        """Whether what waits for the client has not become less for too long. What the application adds meanwhile is
        no sign of life; that it may add to a full buffer again is one (`resume_writing`)."""
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent < self._unsent_bytes:
            self._unsent_since_s = now_s
        self._unsent_bytes = unsent
        return now_s - self._unsent_since_s > self._deadlines.write_stall_s

    def _refuse(self, status: bytes) -> None:
        """Close the connection, with this status for a request that was begun and has no answer yet."""
        if self._may_speak() and not self.transport.is_closing():
            date = b"".join(b"%b: %b\r\n" % header for header in self.server_state.default_headers[:1])
            self.transport.write(b"HTTP/1.1 %b\r\n%bcontent-length: 0\r\nconnection: close\r\n\r\n" % (status, date))
        self.transport.close()

    def _may_speak(self) -> bool:
        """Whether an answer of ours would be taken for the answer to what is being sent, and for no other."""
        if self._phase == _BODY:
            return not self.pipeline and not self.cycle.response_started
        return (self._phase == _HEADER or self._framing_bytes > 0) and not self._is_answering()


def open_connections(state: ServerState) -> list[DeadlineProtocol]:
    """The open connections."""
    connections: set[Any] = state.connections
    return [each for each in connections if isinstance(each, DeadlineProtocol)]


async def sweep_connections(state: ServerState) -> None:
    """Watch a worker's connections until cancelled, and keep its Date header current."""
    loop = asyncio.get_running_loop()
    while True:
        # The first place alone: a stop says more in every answer.
        state.default_headers[:1] = [(b"date", clock.http_date().encode())]
        now_s = loop.time()
        for connection in open_connections(state):
            connection.sweep(now_s)
        await asyncio.sleep(SWEEP_S)
