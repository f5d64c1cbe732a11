"""An HTTP client for addresses that users configure. It sends GET and POST requests for JSON, but never to the internal
network (SSRF).

Each name is resolved in a separate thread, so that a name whose servers never answer does not delay other names, a
shutdown, or other work that waits for a thread.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from threading import Lock, Thread
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

import httptools

MAX_LOOKUPS = 128
"""The maximum number of concurrent lookups. Concurrent requests for one name share one lookup."""

_Name: TypeAlias = tuple[str, int]

_under_way: dict[_Name, "Future[list[str]]"] = {}
_changing = Lock()


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host for TCP, in the system's order, without duplicates.

    When a caller is cancelled, the lookup continues for the other callers; the system could not abort it anyway.

    Raises:
        OSError: the host has no address, or too many lookups are running.
        UnicodeError: the name is malformed.
    """
    name = (host, port)
    with _changing:
        lookup = _under_way.get(name)
        if lookup is None:
            if len(_under_way) >= MAX_LOOKUPS:
                raise OSError(f"{MAX_LOOKUPS} name lookups are running already")
            lookup = _under_way[name] = Future()
            # Mark the future as running, so that no waiter can cancel it for the other waiters.
            lookup.set_running_or_notify_cancel()
            Thread(target=_look_up, args=(name, lookup), name="lookup", daemon=True).start()
    return await asyncio.wrap_future(lookup)


def _look_up(name: _Name, lookup: "Future[list[str]]") -> None:
    host, port = name
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        _end_lookup(name)
        lookup.set_exception(error)
    else:
        _end_lookup(name)
        lookup.set_result(list(dict.fromkeys(str(entry[4][0]) for entry in entries)))


def _end_lookup(name: _Name) -> None:
    with _changing:
        del _under_way[name]


TOTAL_S = 3.0
POST_S = 10.0
MAX_BODY_BYTES = 64 << 10
MAX_HEAD_BYTES = 16 << 10
MAX_URL_LENGTH = 2_048
ADDRESSES_TRIED = 4

_READ_BYTES = 16 << 10
# The last 32 bits of an IPv4 gateway address are the IPv4 address behind it (RFC 6052 §2.1).
_GATEWAY = IPv6Network("64:ff9b::/96")
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}")
_PRINTABLE = re.compile(rf"[!-~]{{1,{MAX_URL_LENGTH}}}")
_PORTS = {"https": 443, "http": 80}
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age=\"?(\d{1,9})", re.IGNORECASE)


class Unreachable(Exception):
    """The request failed. The reason is for our own log only: it would reveal the structure of our network."""


class RequestTimeout(Unreachable):
    """There was no response in time."""


class UrlParts(NamedTuple):
    """The parsed URL: `target` is the path with its query, and `authority` is the value of the Host header."""

    is_secure: bool
    host: str
    port: int
    authority: str
    target: str


class Document(NamedTuple):
    """A document, and how long its server allows caching (Cache-Control: max-age); None: not stated."""

    body: bytes
    max_age_s: int | None


def address(url: str, *, allows_private: bool) -> UrlParts:
    """Parse an absolute ASCII URL without user and fragment. With `allows_private`, http is allowed as well, for tests
    and private networks.

    Raises:
        ValueError: the URL is malformed, or longer than 2,048 characters; the text names the remedy.
    """
    if _PRINTABLE.fullmatch(url) is None:
        raise ValueError(f"a URL must have at most {MAX_URL_LENGTH} printable ASCII characters")
    url_parts = urlsplit(url)
    if url_parts.scheme not in (_PORTS if allows_private else ("https",)):
        raise ValueError("the URL must begin with https://")
    if "@" in url_parts.netloc or "#" in url:
        raise ValueError("the URL must not contain a user or a fragment")
    host = url_parts.hostname
    if host is None or _HOST.fullmatch(host) is None:
        raise ValueError("the URL contains no host")
    target = url_parts._replace(scheme="", netloc="", path=url_parts.path or "/").geturl()
    return UrlParts(
        url_parts.scheme == "https", host, url_parts.port or _PORTS[url_parts.scheme], url_parts.netloc, target
    )


def is_public(ip: IPv4Address | IPv6Address) -> bool:
    """Return whether the address belongs to the public internet; IPv4 addresses embedded in IPv6 are checked as
    IPv4."""
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped is not None:
            return is_public(ip.ipv4_mapped)
        if ip in _GATEWAY:
            return is_public(IPv4Address(int(ip) & 0xFFFFFFFF))
        is_tunnel = ip.sixtofour is not None or ip.teredo is not None
        return ip in _GLOBAL_UNICAST and ip.is_global and not is_tunnel
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


async def get_json(url: str, *, allows_private: bool) -> Document:
    """Fetch the document at the URL with one GET request, within 3 s and up to 64 KiB in total.

    Every IP address of the host must be public, unless `allows_private` is set. The connection goes to the address that
    was checked, so that DNS rebinding has no effect. Redirects are not followed; proxies, cookies and credentials are
    not used.

    Raises:
        Unreachable: the request failed.
    """
    async with _exchange(url, TOTAL_S, allows_private=allows_private) as (address_parts, reader, writer):
        return await _get(address_parts, reader, writer)


async def post(url: str, body: bytes, headers: Mapping[str, str], *, allows_private: bool) -> int:
    """Send a JSON document with one POST request, within 10 s in total; returns the status of the response.

    IP addresses are checked and pinned as in `get_json`. Only the head of the response is read, at most 16 KiB;
    redirects are not followed.

    Raises:
        RequestTimeout: there was no response in time.
        Unreachable: the response is not HTTP, or the address is not public.
    """
    async with _exchange(url, POST_S, allows_private=allows_private) as (address_parts, reader, writer):
        header_lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = (
            f"POST {address_parts.target} HTTP/1.1\r\nHost: {address_parts.authority}\r\nContent-Type: "
            "application/json\r\n"
            f"Content-Length: {len(body)}\r\nUser-Agent: countersign\r\nConnection: close\r\n{header_lines}\r\n"
        )
        writer.write(head.encode() + body)
        await writer.drain()
        return await _read_status(reader)


@asynccontextmanager
async def _exchange(
    url: str, total_s: float, *, allows_private: bool
) -> AsyncGenerator[tuple[UrlParts, asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a connection that is closed when the block ends. The block has a deadline.

    Raises:
        RequestTimeout: the deadline passed.
        Unreachable: the connection, or an operation on it, failed.
    """
    try:
        async with asyncio.timeout(total_s):
            address_parts = address(url, allows_private=allows_private)
            reader, writer = await _open_connection(address_parts, allows_private=allows_private)
            try:
                yield address_parts, reader, writer
            finally:
                writer.transport.abort()
    except TimeoutError:
        raise RequestTimeout(f"no complete response within {total_s:g} s") from None
    except (OSError, ValueError, httptools.HttpParserError) as error:
        raise Unreachable(f"{type(error).__name__}: {error}") from error


async def _open_connection(
    url_parts: UrlParts, *, allows_private: bool
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first checked address that accepts a connection. With https, verify the certificate of the
    host."""
    ips = await resolve(url_parts.host, url_parts.port)
    for ip in ips:
        if not allows_private and not is_public(ip_address(ip)):
            raise Unreachable(f"{url_parts.host} resolves to {ip}, which is not public")
    # Load the trusted certificates in a thread, since that is slow.
    tls = await asyncio.to_thread(ssl.create_default_context) if url_parts.is_secure else None
    name = url_parts.host if url_parts.is_secure else None
    connection_error = OSError(f"{url_parts.host} has no address")
    for ip in ips[:ADDRESSES_TRIED]:
        try:
            return await asyncio.open_connection(ip, url_parts.port, ssl=tls, server_hostname=name)
        except OSError as error:
            connection_error = error
    raise connection_error


class _ResponseParser:
    """The part of the response that has been parsed so far. Data after the end of the response is ignored."""

    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.body = bytearray()
        self.has_head = False
        self.is_whole = False

    def on_header(self, name: bytes, value: bytes) -> None:
        key = name.lower()
        self.headers[key] = self.headers[key] + b"," + value if key in self.headers else value

    def on_headers_complete(self) -> None:
        self.has_head = True

    def on_body(self, piece: bytes) -> None:
        if not self.is_whole:
            self.body += piece

    def on_message_complete(self) -> None:
        self.is_whole = True

    @property
    def ends_with_the_connection(self) -> bool:
        """Whether the end of the connection is the end of the body (RFC 9112 §6.3)."""
        return self.has_head and not {b"content-length", b"transfer-encoding"} & self.headers.keys()


async def _get(url_parts: UrlParts, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Document:
    lines = (
        f"GET {url_parts.target} HTTP/1.1",
        f"Host: {url_parts.authority}",
        "Accept: application/json, application/jwk-set+json;q=0.9, */*;q=0.1",
        "Accept-Encoding: identity",
        "User-Agent: countersign",
        "Connection: close",
    )
    writer.write("".join(f"{line}\r\n" for line in (*lines, "")).encode())
    await writer.drain()
    answer = _ResponseParser()
    await _read_response(answer, reader)
    if answer.headers.get(b"content-encoding", b"identity") != b"identity":
        raise Unreachable("the response has a content coding, which was not requested")
    return Document(bytes(answer.body), _max_age_s(answer.headers.get(b"cache-control", b"").decode("latin-1")))


async def _read_status(reader: asyncio.StreamReader) -> int:
    """Return the status of the response, after its complete head."""
    answer = _ResponseParser()
    parser = httptools.HttpResponseParser(answer)
    received_bytes = 0
    while not answer.has_head:
        piece = await reader.read(_READ_BYTES)
        received_bytes += len(piece)
        if not piece or received_bytes > MAX_HEAD_BYTES + _READ_BYTES:
            raise Unreachable("the response has no head, or one that is too large")
        try:
            parser.feed_data(piece)
        except httptools.HttpParserError:
            # Stop after the head, since the body is not needed.
            if not answer.has_head:
                raise
    return parser.get_status_code()


async def _read_response(answer: _ResponseParser, reader: asyncio.StreamReader) -> None:
    """Read a complete response of status 200, up to the limits."""
    parser = httptools.HttpResponseParser(answer)
    received_bytes = 0
    while not answer.is_whole:
        piece = await reader.read(_READ_BYTES)
        if not piece and answer.ends_with_the_connection:
            break
        if not piece:
            raise Unreachable("the connection ended before the response was complete")
        received_bytes += len(piece)
        parser.feed_data(piece)
        if answer.has_head and parser.get_status_code() != 200:
            raise Unreachable(f"the status of the response is {parser.get_status_code()}; redirects are not followed")
        if received_bytes > MAX_HEAD_BYTES + MAX_BODY_BYTES or len(answer.body) > MAX_BODY_BYTES:
            raise Unreachable(f"the response has more than {MAX_BODY_BYTES} bytes")


def _max_age_s(cache_control: str) -> int | None:
    """Return how long Cache-Control allows a response to be cached (RFC 9111 §5.2.2)."""
    if "no-store" in cache_control.lower() or "no-cache" in cache_control.lower():
        return 0
    match = _MAX_AGE.search(cache_control)
    return None if match is None else int(match[1])
