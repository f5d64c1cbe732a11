"""Problem pages: turns JSON error responses into HTML pages for browsers."""

import json
from typing import cast

from countersign.kernel.http import html
from countersign.kernel.http.request import Message, Send
from countersign.kernel.http.response import Response

MAX_PROBLEM_BYTES = 65_536
_BODY_HEADERS = frozenset((b"content-type", b"content-length", b"content-encoding", b"etag", b"transfer-encoding"))


def send_problem_pages(method: str, send: Send) -> Send:
    """Return a `send` that turns a JSON response with a status of 400 or more into a page with the same status and
    headers. Other responses stay unchanged."""
    response_start: Message = {}
    body = bytearray()

    async def convert(message: Message) -> None:
        if message["type"] == "http.response.start" and _is_problem(message):
            response_start.update(message)
            return
        if not response_start:
            await send(message)
            return
        chunk: bytes = message.get("body", b"")
        body.extend(chunk[: MAX_PROBLEM_BYTES - len(body)])
        if not message.get("more_body", False):
            await _send_page(response_start, bytes(body), method, send)

    return convert


def _is_problem(start: Message) -> bool:
    kind = next((value for name, value in start["headers"] if name == b"content-type"), b"")
    return start["status"] >= 400 and kind.split(b";")[0] in (b"application/json", b"application/problem+json")


async def _send_page(start: Message, body: bytes, method: str, send: Send) -> None:
    headers: list[tuple[bytes, bytes]] = [pair for pair in start["headers"] if pair[0] not in _BODY_HEADERS]
    page = _page(start["status"], _members(body), headers)
    text = page.body if isinstance(page.body, bytes) else b""
    page_headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in page.headers]
    page_headers += [(b"content-type", page.media_type.encode()), (b"content-length", b"%d" % len(text))]
    names = {name for name, _ in page_headers}
    other_headers = [pair for pair in headers if pair[0] not in names]
    await send({**start, "headers": [*page_headers, *other_headers]})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else text, "more_body": False})


def _page(status: int, members: dict[str, object], headers: list[tuple[bytes, bytes]]) -> Response:
    texts = {name: value for name, value in members.items() if isinstance(value, str)}
    wait_s = next((value.decode("latin-1") for name, value in headers if name == b"retry-after"), None)
    detail = texts.get("detail") or texts.get("error", "")
    return html.problem_page(status, texts.get("title", ""), detail, texts.get("resolution", ""), wait_s)


def _members(body: bytes) -> dict[str, object]:
    try:
        decoded_body: object = json.loads(body)
    except ValueError:
        return {}
    return cast("dict[str, object]", decoded_body) if isinstance(decoded_body, dict) else {}
