"""uvicorn's HTTP/1.1 protocol with absolute deadlines, so that no slow client holds a connection.

One sweep over the open connections twice a second does all the timing; a request costs a few assignments.
"""

import asyncio
import math
from dataclasses import dataclass
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from countersign.kernel import clock

SWEEP_S = 0.5
MAX_HEADER_BYTES = 64 << 10
LINGER_S = 2.0

_HEADER, _BODY, _ANSWER, _IDLE, _LINGER = range(5)
_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


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


class GuardedProtocol(HttpToolsProtocol):
    """One connection that knows what it waits for and since when."""

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
        self._phase = _HEADER
        self._since_s = loop.time()
        self._header_bytes = 0
        self._body_bytes = 0
        self._unsent_bytes = 0
        self._unsent_since_s = self._since_s

    def data_received(self, data: bytes) -> None:
        """Take bytes of a header or a body; a header over 64 KiB is answered 431."""
        if self._phase == _IDLE:
            self._enter(_HEADER)
            self._header_bytes = 0
        if self._phase == _HEADER:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES and data.find(b"\r\n\r\n", 0, MAX_HEADER_BYTES) < 0:
                self._end(_TOO_LARGE)
                return
        elif self._phase == _BODY:
            self._body_bytes += len(data)
        if self.parser is not None:
            super().data_received(data)

    def on_headers_complete(self) -> None:
        """The header is whole: the body's own time begins."""
        self._enter(_BODY)
        self._body_bytes = 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is whole: what takes time now is our own."""
        if self._phase == _BODY:
            self._enter(_ANSWER)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The answer is written; a body that nobody wanted is let in for a moment and thrown away, so that the
        client gets to read its answer before the connection closes."""
        if self.cycle.more_body:
            self._enter(_LINGER)
        else:
            self._enter(_IDLE)
        super().on_response_complete()
        if self.pipeline:
            self._enter(_ANSWER)

    def _enter(self, phase: int) -> None:
        self._phase = phase
        self._since_s = self.loop.time()

    def sweep(self, now_s: float) -> None:
        """Close the connection when its client has taken too long with whatever is waited for."""
        if self._is_stalled(now_s):
            self.transport.abort()
        elif self._phase == _BODY and self.flow.read_paused:
            self._since_s += SWEEP_S
        elif now_s - self._since_s > self._allowed_s():
            self._end(self._last_words())

    def _allowed_s(self) -> float:
        """How long what is waited for may take."""
        limits = self._deadlines
        if self._phase == _BODY:
            return limits.body_grace_s + self._body_bytes / limits.body_bytes_s
        return {_HEADER: limits.header_s, _IDLE: limits.idle_s, _LINGER: LINGER_S}.get(self._phase, math.inf)

    def _last_words(self) -> bytes:
        """408 for whoever began a request and did not finish it, nothing for the idle and the answered."""
        began = self._phase == _HEADER and self._header_bytes > 0
        unanswered = self._phase == _BODY and not self.cycle.response_started
        return _TIMEOUT if began or unanswered else b""

    def _is_stalled(self, now_s: float) -> bool:
        """Whether the client has not taken a byte of what waits for it for too long."""
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self._unsent_bytes:
            self._unsent_bytes, self._unsent_since_s = unsent, now_s
            return False
        return now_s - self._unsent_since_s > self._deadlines.write_stall_s

    def _end(self, last_words: bytes) -> None:
        if last_words and not self.transport.is_closing():
            self.transport.write(last_words)
        self.transport.close()


def guarded(state: ServerState) -> list[GuardedProtocol]:
    """The open connections."""
    connections: set[Any] = state.connections
    return [each for each in connections if isinstance(each, GuardedProtocol)]


async def watch(state: ServerState) -> None:
    """Watch a listener's connections until cancelled, and keep its Date header current."""
    loop = asyncio.get_running_loop()
    while True:
        # The first place alone: a stop says more in every answer.
        state.default_headers[:1] = [(b"date", clock.http_date().encode())]
        now_s = loop.time()
        for connection in guarded(state):
            connection.sweep(now_s)
        await asyncio.sleep(SWEEP_S)
