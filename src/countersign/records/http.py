"""The HTTP layer of records: endpoints, bearer tokens, JSON bodies, errors and the envelope of answers."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Container, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from countersign.kernel import telemetry
from countersign.kernel.errors import InvalidRequest, NotFound, Refused
from countersign.kernel.http import decode
from countersign.kernel.http.exchange import Exchange, Scope
from countersign.kernel.http.instrumentation import RequestInstrumentation
from countersign.kernel.http.problems import InternalError, MethodNotAllowed
from countersign.kernel.http.request import ClientGone, Headers, Receive, Send
from countersign.kernel.http.response import Response, encode
from countersign.records.commands import list_search
from countersign.records.commands.run import Body, Run

BODY_LIMIT = 8 << 20
MAX_KNOWN = 512
"""Addresses whose endpoints are remembered: those of commands are few, and asked for again and again."""

MAX_KNOWN_LENGTH = 200


class KnownCallers(Protocol):
    """Whoever calls, as far as the edge needs to know them."""

    @property
    def principal(self) -> str:
        """Names the caller in the log; never a secret."""
        ...


CallerT = TypeVar("CallerT", bound=KnownCallers)


class Unauthenticated(Refused):
    """The token is missing, unknown, expired or revoked."""

    status = 401
    code = "unauthenticated"
    title = "Authentication required"


@dataclass(slots=True)
class Request(Generic[CallerT]):
    """One request, its body still as bytes. `caller` is only there where the endpoint needs a token; `stopping` is set
    when the server stops, and whoever waits has to answer."""

    path: Mapping[str, str]
    query: bytes
    body: bytes
    headers: Headers
    address: str
    request_id: str
    known: CallerT | None
    stopping: asyncio.Event | None = None

    @property
    def caller(self) -> CallerT:
        """Whoever calls."""
        if self.known is None:
            raise LookupError("this endpoint needs no token, so nobody is known")
        return self.known


@dataclass(frozen=True, slots=True)
class Endpoint(Generic[CallerT]):
    """One address: `{name}` in the path is a parameter. Bodies may be left out where `may_be_empty`; form bodies are
    only read by pages. `guard` looks at the headers before anything else is done, and raises what is refused."""

    method: str
    path: str
    handler: Callable[[Request[CallerT]], Awaitable[Response]]
    needs_token: bool = True
    may_be_empty: bool = False
    media_type: str = "application/json"
    guard: Callable[[Headers], None] | None = None


class HttpApp(Generic[CallerT]):
    """An ASGI application of endpoints. Checks come in the documented order: method, size, content type, token; then
    the handler decides on visibility and input."""

    endpoints: tuple[Endpoint[CallerT], ...]

    def __init__(
        self,
        endpoints: tuple[Endpoint[CallerT], ...],
        caller_of: Callable[[Headers], Awaitable[CallerT | None]],
        *,
        trusted_proxies: Container[str] = (),
        log_requests: bool = False,
    ) -> None:
        self.endpoints = endpoints
        self._fixed: dict[str, dict[str, Endpoint[CallerT]]] = {}
        self._open: list[tuple[tuple[str, ...], Endpoint[CallerT]]] = []
        for each in endpoints:
            if "{" in each.path:
                self._open.append((tuple(each.path.split("/")[1:]), each))
            else:
                self._fixed.setdefault(each.path, {})[each.method] = each
        self._known: dict[bytes, Mapping[str, tuple[Endpoint[CallerT], Mapping[str, str]]]] = {}
        self._caller_of = caller_of
        self._trusted_proxies = trusted_proxies
        self._observed = RequestInstrumentation("records", log_requests=log_requests)
        self._log = telemetry.logger("records")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request (ASGI 3). Other kinds of scope are not served."""
        if scope["type"] != "http":
            return
        exchange = Exchange(scope, receive, send, self._trusted_proxies)
        began_s = self._observed.begin(exchange)
        try:
            await self._served(exchange)
        finally:
            self._observed.end(exchange, began_s)

    async def _served(self, exchange: Exchange) -> None:
        try:
            await exchange.answer(_private(await self._answer(exchange)))
        except ClientGone:
            exchange.status = ClientGone.status
        except Refused as refused:
            await _refuse(refused, exchange)
        except Exception as error:  # the process edge: logged once under the request's id, answered as 500
            self._log.error("request failed", route=exchange.route_path, exc_info=error)
            await _refuse(InternalError("the service failed; the fault was logged"), exchange)

    async def _answer(self, exchange: Exchange) -> Response:
        if not exchange.names_its_host:
            raise InvalidRequest("Host must be sent exactly once")
        endpoint, path = self._match(exchange)
        exchange.route_path = endpoint.path
        if endpoint.guard is not None:
            endpoint.guard(exchange.headers)
        body = b"" if exchange.method in ("GET", "HEAD") else await exchange.body(BODY_LIMIT)
        if endpoint.method == "POST":
            _require_media_type(endpoint, body, exchange.headers)
        caller = None
        if endpoint.needs_token:
            caller = await self._caller_of(exchange.headers)
            if caller is None:
                raise Unauthenticated("the bearer token is missing, unknown, expired or revoked")
            exchange.principal = caller.principal
        headers, address, request_id = exchange.headers, exchange.address, exchange.request_id
        call = Request(path, exchange.query_string, body, headers, address, request_id, caller, exchange.stopping)
        return await endpoint.handler(call)

    def _match(self, exchange: Exchange) -> tuple[Endpoint[CallerT], Mapping[str, str]]:
        path = exchange.raw_path
        found = self._known.get(path)
        if found is None:
            found = self._endpoints_of(path.decode("latin-1"))
            if found and len(path) <= MAX_KNOWN_LENGTH:
                if len(self._known) >= MAX_KNOWN:
                    self._known.clear()
                self._known[path] = found
        method = "GET" if exchange.method == "HEAD" else exchange.method
        if not found:
            raise NotFound("not found")
        if method not in found:
            allowed = sorted({*found, *({"HEAD"} if "GET" in found else ())})
            raise MethodNotAllowed("method not allowed", headers={"Allow": ", ".join(allowed)})
        return found[method]

    def _endpoints_of(self, path: str) -> Mapping[str, tuple[Endpoint[CallerT], Mapping[str, str]]]:
        """What is at the address, by method, with the parameters in it."""
        found: dict[str, tuple[Endpoint[CallerT], Mapping[str, str]]] = {
            each.method: (each, _NO_PARAMETERS) for each in self._fixed.get(path, {}).values()
        }
        if not found:
            segments = path.split("/")[1:]
            for template, endpoint in self._open:
                values = _values(template, segments)
                if values is not None:
                    found.setdefault(endpoint.method, (endpoint, values))
        return found


_NO_PARAMETERS: Mapping[str, str] = {}


def _values(template: tuple[str, ...], segments: list[str]) -> Mapping[str, str] | None:
    if len(template) != len(segments):
        return None
    values: dict[str, str] = {}
    for expected, segment in zip(template, segments, strict=True):
        if expected.startswith("{"):
            values[expected[1:-1]] = segment
        elif expected != segment:
            return None
    return values


def _require_media_type(endpoint: Endpoint[Any], body: bytes, headers: Headers) -> None:
    """415 unless the body was sent as JSON (API document, Endpoints)."""
    sent = headers.get("content-type")
    if sent is None and not body and endpoint.may_be_empty:
        return
    decode.require_media_type(sent, endpoint.media_type)


def _private(answer: Response) -> Response:
    if not any(name == "Cache-Control" for name, _ in answer.headers):
        answer.headers = (*answer.headers, ("Cache-Control", "no-store"))
    return answer


async def _refuse(refused: Refused, exchange: Exchange) -> None:
    if exchange.started:
        # The head is out: only an aborted connection can tell the client that the body is not whole.
        raise ConnectionAbortedError(refused.code)
    await exchange.answer(error_answer(refused))


def error_answer(refused: Refused) -> Response:
    """A refusal as bytes: {"error": …}; every 404 is the same."""
    if refused.status == 404:
        return _private(Response(404, b'{"error":"not found"}'))
    members: Mapping[str, object] = getattr(refused, "members", {})
    headers = tuple(refused.headers.items())
    if refused.status == 401 and "WWW-Authenticate" not in refused.headers:
        headers = (*headers, ("WWW-Authenticate", "Bearer"))
    return _private(Response(refused.status, encode({"error": refused.detail, **members}), headers=headers))


class Envelope(msgspec.Struct):
    """The answer of a command that was carried out (API document, Command envelope)."""

    denied: tuple[str, ...]
    value: object


def is_whole_list(command: str, body: Body) -> bool:
    """Whether a list of every visible record is asked for, which may be longer than memory."""
    return command == "list" and "limit" not in body


def whole_list(run: Run, model: str, body: Body) -> AsyncGenerator[bytes]:
    """The envelope of every visible record, from one snapshot, in constant memory.

    Raises:
        BadInput: the query is refused; raised by the call, before the first piece is made.
    """
    asked = list_search.read_query(run, model, "list", body)
    list_search.statement(run, model, asked)
    denied = run.view_of(model).denied

    async def pieces() -> AsyncGenerator[bytes]:
        yield b'{"denied":%b,"value":[' % encode(denied)
        separator = b""
        async with aclosing(list_search.stream(run, model, asked)) as found:
            async for records in found:
                yield separator + encode(records)[1:-1]
                separator = b","
        yield b"]}"

    return pieces()
