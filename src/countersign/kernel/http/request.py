"""A request once it is decoded: what a handler is given."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from countersign.kernel.database.port import Database, Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.http.response import Response

Message: TypeAlias = dict[str, Any]
"""One ASGI event."""

STATE_KEY = "stopping"
"""Where an application finds, in its scope's state, the event that is set when the server stops."""

Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

ASGIApp: TypeAlias = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


class Caller(Protocol):
    """Whoever sends a request, as far as the HTTP kernel needs to know them."""

    @property
    def key(self) -> str:
        """Names the caller in counters and idempotency records; equal for equal callers, never a secret."""
        ...

    @property
    def quota(self) -> str:
        """Which rate limit counts this caller's requests."""
        ...

    @property
    def is_anonymous(self) -> bool:
        """Whether no credential was presented."""
        ...

    def allows(self, scope: str) -> bool:
        """Whether the credential carries the scope at all (in whichever organisation)."""
        ...


class Headers:
    """The request's headers by lower-case name; of a repeated one, all values joined by a comma (RFC 9110 §5.3)."""

    __slots__ = ("_pairs", "_values")

    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        self._pairs = pairs
        self._values: dict[bytes, bytes] | None = None

    def get(self, name: str) -> str | None:
        """The value of the header, or None; bytes outside ASCII are kept as Latin-1."""
        if self._values is None:
            self._values = {}
            for key, value in self._pairs:
                present = self._values.get(key)
                self._values[key] = value if present is None else present + b", " + value
        found = self._values.get(name.encode())
        return None if found is None else found.decode("latin-1")

    def count(self, name: str) -> int:
        """How many times the header was sent."""
        wanted = name.encode()
        return sum(key == wanted for key, _ in self._pairs)


class ClientGone(Refused):
    """The client closed the connection in the middle of its request; nobody reads the answer."""

    status = 400
    code = "client_closed_request"
    title = "Client closed the request"


class BodyTooLarge(Refused):
    """The body is longer than this address takes."""

    status = 413
    code = "content_too_large"
    title = "Content too large"
    resolution = "Send a smaller body."


class NotBatchable(Refused):
    """This cannot be called inside another request."""

    status = 400
    code = "not_batchable"
    title = "Not batchable"
    resolution = "Call it by itself."


INNER_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Subrequest:
    """A request inside another. `target` is the whole path with its query, as it would be sent; `headers` have
    lower-case names; `max_bytes` is what the answer's body may have; `batched` tells that it is one of several."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    max_bytes: int = INNER_BYTES
    batched: bool = False


ContextT = TypeVar("ContextT")
CallerT = TypeVar("CallerT", bound=Caller)
QueryT = TypeVar("QueryT", bound=msgspec.Struct)
BodyT = TypeVar("BodyT", bound=msgspec.Struct)


class SubrequestHandler(Protocol):
    """Answers a request inside another; see `Request.send_subrequest`."""

    async def __call__(
        self, outer: "Request[Any, Any, Any, Any]", inner: Subrequest, within: "ScopedContext[Any] | None"
    ) -> Response:
        """The inner request's answer."""
        ...


@dataclass(frozen=True, slots=True)
class ScopedContext(Generic[ContextT]):
    """What an inner request works on in place of the service's own: a context, and the database that it holds."""

    context: ContextT
    database: Database


@dataclass(slots=True)
class Request(Generic[ContextT, CallerT, QueryT, BodyT]):
    """One decoded request: the service's context, who calls, and the typed path, query and body.

    `path` holds the parameters of the route's template; `address` is the client's IP address (from a trusted
    proxy's header where one is configured); `target` is the path with its query as it was sent. `stopping` is set when
    the server stops: what has no end of its own, or a late one, ends then. `root_path` is the path below which the
    whole application is served.
    """

    context: ContextT
    caller: CallerT
    path: Mapping[str, str]
    query: QueryT
    body: BodyT
    headers: Headers
    address: str
    target: str
    receive: Receive
    stopping: asyncio.Event | None = None
    prepared: object = None
    subrequests: SubrequestHandler | None = None
    root_path: str = ""
    _transaction: Transaction | None = field(default=None)

    @property
    def transaction(self) -> Transaction:
        """The transaction a writing route runs in: its effect and its idempotency record commit together."""
        if self._transaction is None:
            raise LookupError("only a route declared with writes=True runs in a transaction")
        return self._transaction

    def with_transaction(self, transaction: Transaction) -> "Request[ContextT, CallerT, QueryT, BodyT]":
        """The same call, working in the given transaction."""
        self._transaction = transaction
        return self

    async def send_subrequest(self, inner: Subrequest, within: ScopedContext[ContextT] | None = None) -> Response:
        """The answer to another request of the same caller, with a whole body: decided, limited and counted as if it
        had come by itself. A refusal is an answer too, and so is a fault, which is logged.

        A route that reads or writes a stream, or credentials of its own, refuses to be called so: NotBatchable.
        """
        if self.subrequests is None:
            raise LookupError("this call was not made by an application")
        return await self.subrequests(self, inner, within)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body of a streaming route, piece by piece as it arrives.

        Raises:
            ClientGone: the connection ended before the body was whole.
        """
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone("the connection ended before the body was whole")
            piece: bytes = message.get("body", b"")
            if piece:
                yield piece
            if not message.get("more_body", False):
                return
