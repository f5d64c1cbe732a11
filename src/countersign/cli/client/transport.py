"""Sends one HTTP request on one connection with http.client, with deadlines, a streamed body and proxy support."""

import http.client
import os
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import SplitResult, urlsplit

from countersign import __version__

Response: TypeAlias = http.client.HTTPResponse

CONNECT_S = 10
STEP_S = 60
"""The number of seconds that one step of sending or reading may take."""


class Unreachable(Exception):
    """The connection failed, or ended before the response was complete."""


@dataclass(slots=True)
class Request:
    """A request to an absolute URL. A streamed body needs its `length` in bytes.

    `answer_s` is the time within which the response must begin.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | Iterator[bytes] = b""
    length: int | None = None
    answer_s: float = STEP_S


def send(request: Request) -> Response:
    """Send the request, and read the status and the headers of the response.

    The caller reads the body and closes the response.

    Raises:
        Unreachable: the connection failed or ended early.
    """
    connection: http.client.HTTPConnection | None = None
    try:
        connection, target = _connection(urlsplit(request.url))
        connection.connect()
        return _exchange(connection, target, request)
    except (OSError, http.client.HTTPException) as error:
        if connection is not None:
            connection.close()
        raise Unreachable(explain(error)) from error


def read(response: Response, max_bytes: int) -> bytes:
    """Read at most `max_bytes` bytes of the body, whatever length the server declares. Return no bytes at the end.

    Raises:
        Unreachable: the connection failed.
    """
    buffer = bytearray(max_bytes)
    try:
        # Do not call `response.read`: it reads all remaining bytes if a chunk has a declared size of -1.
        count = response.readinto(buffer)
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(explain(error)) from error
    return bytes(memoryview(buffer)[:count])


def explain(error: Exception) -> str:
    """Describe the error of the connection."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    if isinstance(error, http.client.RemoteDisconnected | ConnectionResetError | BrokenPipeError):
        return "the connection was closed before the answer"
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return str(error) or type(error).__name__


def _exchange(connection: http.client.HTTPConnection, target: str, request: Request) -> Response:
    connection.sock.settimeout(STEP_S)
    connection.putrequest(request.method, target, skip_accept_encoding=True)
    length = len(request.body) if isinstance(request.body, bytes) else request.length
    headers = {"User-Agent": f"countersign/{__version__}", "Connection": "close", **request.headers}
    if length or request.method not in ("GET", "HEAD"):
        headers["Content-Length"] = str(length or 0)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    try:
        for piece in [request.body] if isinstance(request.body, bytes) else request.body:
            connection.send(piece)
    except (BrokenPipeError, ConnectionResetError):
        # A server may refuse a request and close the connection while the body is still being sent. Use its response.
        return connection.getresponse()
    connection.sock.settimeout(request.answer_s)
    return connection.getresponse()


def _connection(url_parts: SplitResult) -> tuple[http.client.HTTPConnection, str]:
    """Return a connection that is not open yet, and the target for the request line."""
    host = url_parts.hostname or ""
    port = url_parts.port or (443 if url_parts.scheme == "https" else 80)
    target = (url_parts.path or "/") + (f"?{url_parts.query}" if url_parts.query else "")
    proxy = _proxy(url_parts)
    if url_parts.scheme == "https":
        context = ssl.create_default_context()
        if proxy is None:
            return http.client.HTTPSConnection(host, port, timeout=CONNECT_S, context=context), target
        tunnel = http.client.HTTPSConnection(*proxy, timeout=CONNECT_S, context=context)
        tunnel.set_tunnel(host, port)
        return tunnel, target
    if proxy is None:
        return http.client.HTTPConnection(host, port, timeout=CONNECT_S), target
    return http.client.HTTPConnection(*proxy, timeout=CONNECT_S), f"http://{url_parts.netloc}{target}"


def _proxy(url_parts: SplitResult) -> tuple[str, int] | None:
    """Return the host and port of the proxy for this URL, or None. See http_proxy, https_proxy and no_proxy."""
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies_environment, proxy_bypass

    address = getproxies_environment().get(url_parts.scheme)
    if not address or proxy_bypass(url_parts.netloc):
        return None
    proxy = urlsplit(address if "://" in address else f"http://{address}")
    return (proxy.hostname or "", proxy.port or 8080)
