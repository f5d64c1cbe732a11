"""One HTTP request with its response as ASGI messages. No other module reads or writes ASGI messages."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Container, Sequence
from typing import Any, TypeAlias

from countersign.kernel import ids
from countersign.kernel.http.client_address import client_address
from countersign.kernel.http.deprecation import Deprecation, deprecation_headers
from countersign.kernel.http.direct_response import write_response
from countersign.kernel.http.request import STATE_KEY, BodyTooLarge, ClientGone, Headers, Receive, Send
from countersign.kernel.http.response import EncodedHeaders, Response, encode_headers

Scope: TypeAlias = dict[str, Any]

_NOSNIFF = (b"x-content-type-options", b"nosniff")


class Exchange:
    """A request as received, the headers that every response to it gets, and its response."""

    __slots__ = (
        "address",
        "deprecations",
        "headers",
        "is_proxied",
        "limits",
        "method",
        "names_its_host",
        "notices",
        "principal",
        "query_string",
        "raw_path",
        "receive",
        "request_id",
        "root_path",
        "route_path",
        "send",
        "started",
        "status",
        "stopping",
        "versions",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send, trusted_proxies: Container[str] = ()) -> None:
        self.method: str = scope["method"]
        self.raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        self.query_string: bytes = scope["query_string"]
        self.root_path: str = scope.get("root_path", "")
        self.headers = Headers(scope["headers"])
        self.receive = receive
        self.stopping: asyncio.Event | None = scope.get("state", {}).get(STATE_KEY)
        self.send = send
        # Require exactly one Host header (RFC 9112 §3.2). If there were several, a proxy might use a different one than
        # this service.
        hosts = [name for name, _ in scope["headers"]].count(b"host")
        self.names_its_host = hosts == 1 or (hosts == 0 and scope.get("http_version") != "1.1")
        client = scope.get("client")
        self.is_proxied: bool = client is not None and client[0] in trusted_proxies
        self.address = client_address(scope.get("client"), self.headers, trusted_proxies)
        self.request_id = ids.new_request_id()
        self.principal = ""
        self.limits: EncodedHeaders = ()
        self.notices: EncodedHeaders = ()
        self.deprecations: tuple[Deprecation, ...] = ()
        self.route_path = ""
        self.started = False
        self.status = 0
        self.versions: tuple[int, ...] = ()

    @property
    def target(self) -> str:
        """The path and query as they were sent, including a prefix that an outer application removed. It is used for
        the `instance` of problems, and for links."""
        query = b"?" + self.query_string if self.query_string else b""
        return self.root_path + (self.raw_path + query).decode("latin-1")

    async def body(self, limit: int) -> bytes:
        """Return the complete body.

        Raises:
            BodyTooLarge: the body has, or its Content-Length announces, more than `limit` bytes.
            ClientGone: the connection ended early.
        """
        announced_length = self.headers.get("content-length")
        if announced_length is not None and announced_length.isdigit() and int(announced_length) > limit:
            raise BodyTooLarge(f"the body may have {limit} bytes at most")
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone("the connection ended before the body was complete")
            piece: bytes = message.get("body", b"")
            size += len(piece)
            if size > limit:
                raise BodyTooLarge(f"the body may have {limit} bytes at most")
            pieces.append(piece)
            if not message.get("more_body", False):
                return b"".join(pieces)

    async def answer(self, answer: Response) -> None:
        """Write the response of a handler or a refusal. The response to HEAD has only headers."""
        pairs = [*encode_headers(answer.headers)]
        if answer.etag is not None:
            pairs.append((b"etag", answer.etag.encode()))
        if isinstance(answer.body, bytes):
            await self.write(answer.status, answer.body, answer.media_type.encode(), pairs)
            return
        pairs.append((b"content-type", answer.media_type.encode()))
        await self._start(answer.status, pairs)
        if self.method != "HEAD":
            await self._stream(answer.body)
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _stream(self, body: AsyncIterator[bytes]) -> None:
        """Send the pieces while the client is connected. The server also accepts data for a disconnected client, so a
        large blob would otherwise be read to its end."""
        disconnect_task = asyncio.create_task(self._gone())
        try:
            async for piece in body:
                if disconnect_task.done():
                    raise ClientGone("the connection ended before the response was complete")
                await self.send({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            disconnect_task.cancel()
            if isinstance(body, AsyncGenerator):
                await body.aclose()

    async def _gone(self) -> None:
        """Wait until the client has closed the connection. Discard the data that the client sends until then."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def write(self, status: int, body: bytes, media_type: bytes, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Write a response whose body is in memory."""
        headers = [*pairs]
        if status not in (204, 304):
            headers.append((b"content-length", b"%d" % len(body)))
        if body:
            headers.append((b"content-type", media_type))
        self._add_own_headers(status, headers)
        sent_body = b"" if self.method == "HEAD" else body
        if not write_response(self.send, status, headers, sent_body):
            await self.send({"type": "http.response.start", "status": status, "headers": headers})
            await self.send({"type": "http.response.body", "body": sent_body, "more_body": False})

    async def _start(self, status: int, pairs: list[tuple[bytes, bytes]]) -> None:
        self._add_own_headers(status, pairs)
        await self.send({"type": "http.response.start", "status": status, "headers": pairs})

    def _add_own_headers(self, status: int, pairs: list[tuple[bytes, bytes]]) -> None:
        """Add the headers that every response to this request gets, and record that the response starts."""
        if status == 429 and any(name == b"ratelimit-limit" for name, _ in pairs):
            # The response already has the headers of the exceeded limit, so omit the headers of the caller's quota.
            self.limits = ()
        pairs += self.limits
        pairs += self.notices
        if self.deprecations:
            pairs += encode_headers(deprecation_headers(self.deprecations))
        pairs += ((b"x-request-id", self.request_id.encode()), _NOSNIFF)
        self.started = True
        self.status = status
