"""An HTTP client for addresses that users configure: JSON by GET or POST, never into the own network (SSRF).

Each name is resolved in a thread of its own: one whose servers never answer delays no other name, no shutdown, and
nothing else that waits for a thread.
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
"""Names that are looked up at a time. Asked for again meanwhile, a name is not looked up twice."""

_Name: TypeAlias = tuple[str, int]

_under_way: dict[_Name, "Future[list[str]]"] = {}
_changing = Lock()


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host that take TCP, in the order of the system's choice, each once.

    Whoever stops waiting leaves the lookup to the others who wait: the system cannot be made to end it.

    Raises:
        OSError: there are none, or too many names are being looked up.
        UnicodeError: it is no name.
    """
    name = (host, port)
    with _changing:
        found = _under_way.get(name)
        if found is None:
            if len(_under_way) >= MAX_LOOKUPS:
                raise OSError(f"{MAX_LOOKUPS} names are being looked up already")
            found = _under_way[name] = Future()
            # From now on nobody who stops waiting ends it for the others.
            found.set_running_or_notify_cancel()
            Thread(target=_look_up, args=(name, found), name="lookup", daemon=True).start()
    return await asyncio.wrap_future(found)


def _look_up(name: _Name, found: "Future[list[str]]") -> None:
    host, port = name
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        _end_lookup(name)
        found.set_exception(error)
    else:
        _end_lookup(name)
        found.set_result(list(dict.fromkeys(str(entry[4][0]) for entry in entries)))


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
# What the address of a gateway to IPv4 leads to is in its last 32 bits (RFC 6052 §2.1).
_GATEWAY = IPv6Network("64:ff9b::/96")
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}")
_PRINTABLE = re.compile(rf"[!-~]{{1,{MAX_URL_LENGTH}}}")
_PORTS = {"https": 443, "http": 80}
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age=\"?(\d{1,9})", re.IGNORECASE)


class Unreachable(Exception):
    """The document could not be had. The text says why, for our own log: to a stranger it would tell what our
    network looks like from inside."""


class RequestTimeout(Unreachable):
    """There was no answer in the time it may take."""


class Address(NamedTuple):
    """Where a request goes: `target` is the path with its query, `authority` what the Host header says."""

    is_secure: bool
    host: str
    port: int
    authority: str
    target: str


class Document(NamedTuple):
    """A document, and how long its server lets us keep it (Cache-Control: max-age); None: it does not say."""

    body: bytes
    max_age_s: int | None


def address(url: str, *, private: bool) -> Address:
    """The parts of an absolute address without user, fragment and anything but ASCII.

    `private` allows http beside https, for tests and networks of one's own.

    Raises:
        ValueError: it is no such address, or longer than 2,048 characters; the text names the remedy.
    """
    if _PRINTABLE.fullmatch(url) is None:
        raise ValueError(f"an address has {MAX_URL_LENGTH} printable characters of ASCII at most")
    parts = urlsplit(url)
    if parts.scheme not in (_PORTS if private else ("https",)):
        raise ValueError("the address must begin with https://")
    if "@" in parts.netloc or "#" in url:
        raise ValueError("the address must not hold a user or a fragment")
    host = parts.hostname
    if host is None or _HOST.fullmatch(host) is None:
        raise ValueError("the address holds no host")
    target = parts._replace(scheme="", netloc="", path=parts.path or "/").geturl()
    return Address(parts.scheme == "https", host, parts.port or _PORTS[parts.scheme], parts.netloc, target)


def is_public(ip: IPv4Address | IPv6Address) -> bool:
    """Whether the address belongs to the public internet, looking through the forms of IPv6 that carry IPv4."""
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped is not None:
            return is_public(ip.ipv4_mapped)
        if ip in _GATEWAY:
            return is_public(IPv4Address(int(ip) & 0xFFFFFFFF))
        is_tunnel = ip.sixtofour is not None or ip.teredo is not None
        return ip in _GLOBAL_UNICAST and ip.is_global and not is_tunnel
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


async def get_json(url: str, *, private: bool) -> Document:
    """The document at the address, by one GET of at most 3 s and 64 KiB altogether.

    Every address that the name resolves to must be public, unless `private`; the connection goes to the very one
    that was checked, so that a name cannot change its mind in between. Redirects are not followed; proxies, cookies
    and credentials play no part.

    Raises:
        Unreachable: it could not be had so.
    """
    async with _exchange(url, TOTAL_S, private=private) as (place, reader, writer):
        return await _get(place, reader, writer)


async def post(url: str, body: bytes, headers: Mapping[str, str], *, private: bool) -> int:
    """Leave a JSON document at the address, by one POST of at most 10 s altogether; the status of the answer.

    Addresses are checked and pinned as by `get_json`. Of the answer no more is read than its head, 16 KiB at most;
    redirects are not followed, whatever else it says is not looked at.

    Raises:
        TooSlow: there was no answer in time.
        Unreachable: there was none that is HTTP, or the address is not public.
    """
    async with _exchange(url, POST_S, private=private) as (place, reader, writer):
        given = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = (
            f"POST {place.target} HTTP/1.1\r\nHost: {place.authority}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nUser-Agent: countersign\r\nConnection: close\r\n{given}\r\n"
        )
        writer.write(head.encode() + body)
        await writer.drain()
        return await _status(reader)


@asynccontextmanager
async def _exchange(
    url: str, total_s: float, *, private: bool
) -> AsyncGenerator[tuple[Address, asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to the address, closed with the block, which may take so long.

    Raises:
        TooSlow: it took longer.
        Unreachable: there is none to be had, or what was done with it failed.
    """
    try:
        async with asyncio.timeout(total_s):
            place = address(url, private=private)
            reader, writer = await _open_connection(place, private=private)
            try:
                yield place, reader, writer
            finally:
                writer.transport.abort()
    except TimeoutError:
        raise RequestTimeout(f"no whole answer within {total_s:g} s") from None
    except (OSError, ValueError, httptools.HttpParserError) as error:
        raise Unreachable(f"{type(error).__name__}: {error}") from error


async def _open_connection(place: Address, *, private: bool) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the first checked address that takes it; with https to who proves to be the named host."""
    ips = await resolve(place.host, place.port)
    for ip in ips:
        if not private and not is_public(ip_address(ip)):
            raise Unreachable(f"{place.host} resolves to {ip}, which is not public")
    # Reading the trusted certificates takes a while.
    tls = await asyncio.to_thread(ssl.create_default_context) if place.is_secure else None
    name = place.host if place.is_secure else None
    refused = OSError(f"{place.host} has no address")
    for ip in ips[:ADDRESSES_TRIED]:
        try:
            return await asyncio.open_connection(ip, place.port, ssl=tls, server_hostname=name)
        except OSError as error:
            refused = error
    raise refused


class _ResponseParser:
    """What the parser has found of the answer so far; of what comes after its end, nothing."""

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


async def _get(place: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Document:
    lines = (
        f"GET {place.target} HTTP/1.1",
        f"Host: {place.authority}",
        "Accept: application/json, application/jwk-set+json;q=0.9, */*;q=0.1",
        "Accept-Encoding: identity",
        "User-Agent: countersign",
        "Connection: close",
    )
    writer.write("".join(f"{line}\r\n" for line in (*lines, "")).encode())
    await writer.drain()
    answer = _ResponseParser()
    await _read(answer, reader)
    if answer.headers.get(b"content-encoding", b"identity") != b"identity":
        raise Unreachable("the answer is encoded, which was not asked for")
    return Document(bytes(answer.body), _max_age_s(answer.headers.get(b"cache-control", b"").decode("latin-1")))


async def _status(reader: asyncio.StreamReader) -> int:
    """The status of the answer, once its head is whole."""
    answer = _ResponseParser()
    parser = httptools.HttpResponseParser(answer)
    received = 0
    while not answer.has_head:
        piece = await reader.read(_READ_BYTES)
        received += len(piece)
        if not piece or received > MAX_HEAD_BYTES + _READ_BYTES:
            raise Unreachable("the answer has no head, or too large a one")
        try:
            parser.feed_data(piece)
        except httptools.HttpParserError:
            # After its head an answer may be what it likes.
            if not answer.has_head:
                raise
    return parser.get_status_code()


async def _read(answer: _ResponseParser, reader: asyncio.StreamReader) -> None:
    """Read until the answer is whole; no further than it may go, and not for another status than 200."""
    parser = httptools.HttpResponseParser(answer)
    received = 0
    while not answer.is_whole:
        piece = await reader.read(_READ_BYTES)
        if not piece and answer.ends_with_the_connection:
            break
        if not piece:
            raise Unreachable("the connection ended before the answer was whole")
        received += len(piece)
        parser.feed_data(piece)
        if answer.has_head and parser.get_status_code() != 200:
            raise Unreachable(f"the answer's status is {parser.get_status_code()}; redirects are not followed")
        if received > MAX_HEAD_BYTES + MAX_BODY_BYTES or len(answer.body) > MAX_BODY_BYTES:
            raise Unreachable(f"the answer has more than {MAX_BODY_BYTES} bytes")


def _max_age_s(said: str) -> int | None:
    """How long Cache-Control lets an answer be kept (RFC 9111 §5.2.2)."""
    if "no-store" in said.lower() or "no-cache" in said.lower():
        return 0
    found = _MAX_AGE.search(said)
    return None if found is None else int(found[1])
