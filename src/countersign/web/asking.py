"""One request to the service in the same process, as a browser would send it: the pages' only way to data."""

import asyncio
import json
from collections.abc import Sequence
from typing import NamedTuple, cast

from countersign.kernel.errors import Refused
from countersign.kernel.http.exchange import Scope
from countersign.kernel.http.request import ASGIApp, Message

MAX_BYTES = 4 << 20
_KEPT = frozenset((b"host", b"user-agent", b"x-forwarded-for", b"x-forwarded-proto"))


class AnswerTooLong(Refused):
    """The service answered with more than a page is made of."""

    status = 502
    code = "answer_too_long"
    title = "Answer too long"
    resolution = "Ask for less at once."


class Reply(NamedTuple):
    """The service's answer, whole."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes

    def header(self, name: bytes) -> str | None:
        """The first header of this lower-case name."""
        return next((value.decode("latin-1") for key, value in self.headers if key == name), None)

    def members(self) -> dict[str, object]:
        """The JSON object in the body; empty when there is none."""
        try:
            found: object = json.loads(self.body)
        except ValueError:
            return {}
        return cast("dict[str, object]", found) if isinstance(found, dict) else {}


async def ask(
    app: ASGIApp,
    scope: Scope,
    method: str,
    target: str,
    *,
    headers: Sequence[tuple[str, str]] = (),
    body: bytes = b"",
) -> Reply:
    """The service's answer to a request of the visitor whose own request `scope` is: from the same address, with these
    headers and nothing else of the visitor's. `target` is a path with its query, encoded.

    Raises:
        AnswerTooLong: the answer has more than 4 MiB.
    """
    path, _, query = target.partition("?")
    sent = [pair for pair in scope["headers"] if pair[0] in _KEPT]
    sent += [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in headers]
    if body:
        sent += ((b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)))
    inner = {
        **scope,
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": sent,
    }
    to_send = [{"type": "http.request", "body": body, "more_body": False}]
    started: Message = {}
    pieces: list[bytes] = []
    size = 0

    async def receive() -> Message:
        if to_send:
            return to_send.pop()
        # The visitor stays until the answer is there.
        return await asyncio.get_running_loop().create_future()

    async def take(message: Message) -> None:
        nonlocal size
        if message["type"] == "http.response.start":
            started.update(message)
            return
        piece: bytes = message.get("body", b"")
        size += len(piece)
        # Refused afterwards: what is raised in here is the service's to make of it what it likes.
        if size <= MAX_BYTES:
            pieces.append(piece)

    await app(inner, receive, take)
    if size > MAX_BYTES:
        raise AnswerTooLong(f"{path} answered with more than {MAX_BYTES} bytes")
    return Reply(started["status"], started["headers"], b"".join(pieces))
