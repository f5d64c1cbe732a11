"""A process that serves a small ASGI application, for tests of the server: connections, stops, workers.

python -m tests.kernel.http.serving JSON, where JSON holds `port`, `workers`, `grace_s`, `deadlines` and, to have the
worker of that number fail at its start, `failing`. Prints its port when it is ready.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from countersign.kernel import telemetry
from countersign.kernel.http import server
from countersign.kernel.http.call import Receive, Send
from countersign.kernel.http.deadlines import Deadlines
from countersign.kernel.http.server import ASGIApp, CannotListen, Listener, Server
from countersign.kernel.http.workers import WorkerFailed

LARGE = 64 << 20
EVENTS, EVENT_EVERY_S = 15, 0.2


async def body_size(receive: Receive) -> int:
    """Read the whole body; -1 when the client went away."""
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return -1
        size += len(message.get("body", b""))
        if not message.get("more_body", False):
            return size


async def say(send: Send, status: int, body: bytes) -> None:
    """A whole answer."""
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def stream(send: Send) -> None:
    """Events for three seconds."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for number in range(EVENTS):
        await asyncio.sleep(EVENT_EVERY_S)
        await send({"type": "http.response.body", "body": b"event %d\n" % number, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def large(send: Send) -> None:
    """More than any buffer on the way holds."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % LARGE)]})
    for _ in range(LARGE >> 20):
        await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """What the tests ask for, by path."""
    path = scope["path"]
    if path == "/stream":
        await stream(send)
    elif path == "/large":
        await large(send)
    elif path == "/refused":
        await say(send, 413, b"too large")
    elif path.startswith("/after/"):
        await asyncio.sleep(float(path.removeprefix("/after/")))
        await say(send, 200, b"late")
    elif path == "/size":
        await say(send, 200, b"%d" % await body_size(receive))
    else:
        await say(send, 200, b"%d" % os.getpid())


def main(wanted: dict[str, Any]) -> None:
    """Serve as the tests want it."""
    telemetry.configure()

    @asynccontextmanager
    async def application(index: int, _: Sequence[Listener]) -> AsyncGenerator[Sequence[ASGIApp]]:
        if index == wanted.get("failing"):
            raise RuntimeError("the store is not there")
        yield [app]

    def ready(listeners: Sequence[Listener]) -> None:
        sys.stdout.write(f"{listeners[0].port}\n")
        sys.stdout.flush()

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server.run(
        Server(
            application,
            [Listener("the test", "127.0.0.1", wanted.get("port", 0))],
            workers=wanted.get("workers", 1),
            deadlines=Deadlines(**wanted.get("deadlines", {})),
            grace_s=wanted.get("grace_s", 5.0),
            on_ready=ready,
        )
    )


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except (CannotListen, WorkerFailed, RuntimeError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
