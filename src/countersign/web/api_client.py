"""Calls the API of the service in the same process, as a browser would. Pages have no other access to data."""

import asyncio
import json
from collections.abc import Sequence
from typing import NamedTuple, cast

from countersign.kernel.errors import Refused
from countersign.kernel.http.exchange import Scope
from countersign.kernel.http.request import ASGIApp, Message
from countersign.kernel.http.response import Response

MAX_BYTES = 4 << 20
_FORWARDED = frozenset((b"host", b"user-agent", b"x-forwarded-for", b"x-forwarded-proto"))


class ResponseTooLong(Refused):
    """A response of the API exceeds the limit for pages."""

    status = 502
    code = "answer_too_long"
    title = "Response too long"
    resolution = "Request less data at once."


class ApiResponse(NamedTuple):
    """A complete response of the API."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes

    def header(self, name: bytes) -> str | None:
        """The first header with this lower-case name."""
        return next((value.decode("latin-1") for key, value in self.headers if key == name), None)

    def passed_on(self) -> Response:
        """Return the response as the visitor gets it, without headers other than the type and when to try again."""
        retry_after = self.header(b"retry-after")
        headers = (("Cache-Control", "no-store"), *((("Retry-After", retry_after),) if retry_after else ()))
        return Response(self.status, self.body, self.header(b"content-type") or "application/octet-stream", headers)

    def members(self) -> dict[str, object]:
        """Return the JSON object in the body, or an empty object if the body is not a JSON object."""
        try:
            decoded_body: object = json.loads(self.body)
        except ValueError:
            return {}
        return cast("dict[str, object]", decoded_body) if isinstance(decoded_body, dict) else {}


async def call_api(
    app: ASGIApp,
    scope: Scope,
    method: str,
    target: str,
    *,
    headers: Sequence[tuple[str, str]] = (),
    body: bytes = b"",
) -> ApiResponse:
    """Call the API on behalf of the visitor who sent the request of `scope`.

    The call has the visitor's address and these headers, but no credentials of the visitor's request. `target` is an
    encoded path with its query.

    Raises:
        ResponseTooLong: the response has more than 4 MiB.
    """
    path, _, query = target.partition("?")
    forwarded_headers = [pair for pair in scope["headers"] if pair[0] in _FORWARDED]
    forwarded_headers += [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in headers]
    if body:
        forwarded_headers += ((b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)))
    inner = {
        **scope,
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": forwarded_headers,
    }
    to_send = [{"type": "http.request", "body": body, "more_body": False}]
    response_start: Message = {}
    chunks: list[bytes] = []
    size = 0

    async def receive() -> Message:
        if to_send:
            return to_send.pop()
        # Wait forever, since this client never disconnects.
        return await asyncio.get_running_loop().create_future()

    async def collect(message: Message) -> None:
        nonlocal size
        if message["type"] == "http.response.start":
            response_start.update(message)
            return
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        # A response that is too long is refused later, since the service might catch an exception that is raised here.
        if size <= MAX_BYTES:
            chunks.append(chunk)

    await app(inner, receive, collect)
    if size > MAX_BYTES:
        raise ResponseTooLong(f"the response to {path} has more than {MAX_BYTES} bytes")
    return ApiResponse(response_start["status"], response_start["headers"], b"".join(chunks))
