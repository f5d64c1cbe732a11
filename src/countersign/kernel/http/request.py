"""The decoded request that a handler receives, and the subrequests that it can send."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from countersign.kernel.database.port import Database, Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.http.response import Response

Message: TypeAlias = dict[str, Any]
"""One ASGI event."""

STATE_KEY = "stopping"
"""The key under which the state of the ASGI scope contains the event that is set when the server stops."""

Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

ASGIApp: TypeAlias = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


class RequestCaller(Protocol):
    """The properties of a request's caller that the HTTP kernel needs."""

    @property
    def key(self) -> str:
        """Return the name of the caller in counters and idempotency records. It is never a secret."""
        ...

    @property
    def quota(self) -> str:
        """Return the name of the rate limit that counts this caller's requests."""
        ...

    @property
    def is_anonymous(self) -> bool:
        """Return whether no credential was presented."""
        ...


class Headers:
    """The request's headers, accessed by lower-case name. The values of a repeated header are joined by commas
    (RFC 9110 §5.3)."""

    __slots__ = ("_pairs", "_values")

    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        self._pairs = pairs
        self._values: dict[bytes, bytes] | None = None

    def get(self, name: str) -> str | None:
        """Return the value of the header, or None. Bytes outside ASCII are decoded as Latin-1."""
        values = self._values or self._join()
        value = values.get(name.encode())
        return None if value is None else value.decode("latin-1")

    def has_any(self, names: Iterable[bytes]) -> bool:
        """Return whether one of these headers was sent."""
        values = self._values or self._join()
        return any([name in values for name in names])

    def _join(self) -> dict[bytes, bytes]:
        """Join the values of repeated headers."""
        values = self._values = dict(self._pairs)
        if len(values) < len(self._pairs):
            values.clear()
            for name, value in self._pairs:
                values[name] = values[name] + b", " + value if name in values else value
        return values

    def count(self, name: str) -> int:
        """Return how many times the header was sent."""
        wanted_name = name.encode()
        return sum(key == wanted_name for key, _ in self._pairs)


class ClientGone(Refused):
    """The client closed the connection during its request."""

    status = 400
    code = "client_closed_request"
    title = "Client closed the request"


class BodyTooLarge(Refused):
    """The body is longer than this endpoint accepts."""

    status = 413
    code = "content_too_large"
    title = "Content too large"
    resolution = "Send a smaller body."


class NotBatchable(Refused):
    """The endpoint cannot be called as a subrequest."""

    status = 400
    code = "not_batchable"
    title = "Not batchable"
    resolution = "Call it by itself."


INNER_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Subrequest:
    """A request inside another request. `target` is the path with its query, as it would be sent. `headers` have
    lower-case names. `max_bytes` limits the body of the response. `batched` is true if the subrequest is part of a
    batch."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    max_bytes: int = INNER_BYTES
    batched: bool = False


ContextT = TypeVar("ContextT")
CallerT = TypeVar("CallerT", bound=RequestCaller)
QueryT = TypeVar("QueryT", bound=msgspec.Struct)
BodyT = TypeVar("BodyT", bound=msgspec.Struct | bytes)


class SubrequestHandler(Protocol):
    """Processes subrequests; see `Request.send_subrequest` and `Request.prepare_subrequest`."""

    async def answer_subrequest(self, outer: "Request[Any, Any, Any, Any]", inner: Subrequest) -> Response:
        """Return the response to the subrequest."""
        ...

    async def prepare_subrequest(
        self, outer: "Request[Any, Any, Any, Any]", inner: Subrequest
    ) -> "PreparedSubrequest[Any]":
        """Return the subrequest, ready to be sent in a transaction."""
        ...


@dataclass(frozen=True, slots=True)
class ScopedContext(Generic[ContextT]):
    """A context and a database that a subrequest uses instead of the service's own."""

    context: ContextT
    database: Database


PreparedSubrequest: TypeAlias = Callable[[ScopedContext[ContextT]], Awaitable[Response]]
"""A function that sends a prepared subrequest with the given context and database, and returns its response."""


@dataclass(slots=True)
class Request(Generic[ContextT, CallerT, QueryT, BodyT]):
    """One decoded request: the service's context, the caller, and the typed path, query and body.

    `path` contains the parameters of the route's template. `address` is the client's IP address, which comes from a
    header of a trusted proxy if one is configured. `target` is the path with its query as it was sent. `stopping` is
    set when the server stops. Long-running responses must then end. `root_path` is the path below which the whole
    application is served. The body of a raw route is bytes.
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
    request_id: str = ""
    stopping: asyncio.Event | None = None
    prepared: object = None
    is_prepared: bool = False
    subrequests: SubrequestHandler | None = None
    root_path: str = ""
    _transaction: Transaction | None = field(default=None)

    @property
    def transaction(self) -> Transaction:
        """Return the transaction of a writing route. It commits the effect together with the idempotency record."""
        if self._transaction is None:
            raise LookupError("only a route declared with writes=True runs in a transaction")
        return self._transaction

    def with_transaction(self, transaction: Transaction) -> "Request[ContextT, CallerT, QueryT, BodyT]":
        """Return the same request with the given transaction."""
        self._transaction = transaction
        return self

    async def send_subrequest(self, inner: Subrequest) -> Response:
        """Send another request of the same caller, and return the response with its complete body.

        The subrequest is authorized, limited and counted as a separate request. Refusals and faults are returned as
        responses. Faults are also logged.

        Routes that stream a body or read their own credentials answer NotBatchable.
        """
        return await self._handler().answer_subrequest(self, inner)

    async def prepare_subrequest(self, inner: Subrequest) -> PreparedSubrequest[ContextT]:
        """Authorize, count and decode a subrequest, and run its route's `prepare_before_batch`. Call this before the
        transaction in which the subrequest is sent. If the subrequest is refused here, sending it returns the
        refusal."""
        return await self._handler().prepare_subrequest(self, inner)

    def _handler(self) -> SubrequestHandler:
        if self.subrequests is None:
            raise LookupError("this request was not made by an application")
        return self.subrequests

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the chunks of a streamed body as they arrive.

        Raises:
            ClientGone: the connection ended before the body was complete.
        """
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone("the connection ended before the body was complete")
            piece: bytes = message.get("body", b"")
            if piece:
                yield piece
            if not message.get("more_body", False):
                return
