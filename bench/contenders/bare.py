"""The ceiling: an ASGI application that answers the same bytes to everything."""

from contenders.wanted import Wanted
from countersign.kernel.http.request import Receive, Send
from countersign.kernel.http.server import ASGIApp


def create(config: Wanted) -> ASGIApp:
    """Answers `body_bytes` bytes with the status."""
    body = b"x" * config.body_bytes
    headers = [(b"content-type", b"application/json")]
    if config.status != 304:
        headers.append((b"content-length", b"%d" % len(body)))
    start = {"type": "http.response.start", "status": config.status, "headers": headers}
    end = {"type": "http.response.body", "body": body}

    async def application(scope: dict[str, object], receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            await receive()
        await send(start)
        await send(end)

    return application
