"""Writes a complete response to uvicorn's connection in one step.

For a response in two ASGI messages, uvicorn searches each name and each value of a header by regular expression, and
writes twice. A complete response needs one check of its head and one write.
"""

from collections.abc import Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from countersign.kernel.http.request import Send

# Compare classes by name: commands that are not servers import this module, and should not import uvicorn.
_CYCLE = ("uvicorn.protocols.http.httptools_impl", "RequestResponseCycle")

# The bytes that uvicorn refuses in the value of a header; the tab is allowed (RFC 9110 §5.5).
_CONTROL = bytes((*range(9), *range(10, 32), 127))
_STATUSES = frozenset(HTTPStatus)
_JOINED_BYTES = 64 << 10
"""A longer body is written by itself, so that it is not copied."""


def write_response(send: Send, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bool:
    """Write the response, and return whether it was written. The names of the headers are in lower case; `body` is
    empty, or as long as Content-Length announces.

    Nothing is written if `send` is not uvicorn's own, since an outer application may then change the response, if the
    client reads slowly, if the connection closes after this response, or if a header is invalid. The caller then sends
    the response as ASGI messages.
    """
    cycle: Any = getattr(send, "__self__", None)
    if _name_of_class(cycle) != _CYCLE or not _is_ready(cycle):
        return False
    lines = b"".join([b"%b: %b\r\n" % pair for pair in (*cycle.default_headers, *headers)])
    count = len(cycle.default_headers) + len(headers)
    if len(lines.translate(None, _CONTROL)) != len(lines) - 2 * count or b"\r\nconnection: " in lines:
        return False
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    if len(body) <= _JOINED_BYTES:
        cycle.transport.write(b"%b%b\r\n%b" % (_status_line(status), lines, body))
    else:
        cycle.transport.write(b"%b%b\r\n" % (_status_line(status), lines))
        cycle.transport.write(body)
    cycle.message_event.set()
    cycle.on_response()
    return True


def _name_of_class(value: object) -> tuple[str, str]:
    return type(value).__module__, type(value).__qualname__


def _is_ready(cycle: Any) -> bool:
    return bool(
        cycle.keep_alive
        and not cycle.response_started
        and not cycle.disconnected
        and not cycle.flow.write_paused
        and not cycle.access_log
    )


@lru_cache
def _status_line(status: int) -> bytes:
    phrase = HTTPStatus(status).phrase if status in _STATUSES else ""
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()
