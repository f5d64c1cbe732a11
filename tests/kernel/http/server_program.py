"""A process that serves a small ASGI application, for tests of the server: connections, shutdown, workers.

python -m tests.kernel.http.server_program JSON. The JSON contains `port`, `workers`, `grace_s`, `watchdog_s`,
`deadlines`, `listeners` (their number; each has its own program) and `files` (the limit of open files). With `failing`
or `slow`, the worker with that number fails at its start or takes very long. With `broken`, no worker starts once that
file exists. The process prints its ports when it is ready.
"""

import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from countersign.kernel import telemetry
from countersign.kernel.http import server
from countersign.kernel.http.deadlines import Deadlines
from countersign.kernel.http.request import Receive, Send
from countersign.kernel.http.server import ASGIApp, CannotListen, Listener, Program, Server, Worker
from countersign.kernel.http.workers import WorkerFailed

LARGE = 64 << 20
EVENTS, EVENT_EVERY_S = 15, 0.2
GONE: list[str] = []
"""The paths of streams whose clients have disconnected."""


async def body_size(receive: Receive) -> int:
    """Read the whole body and return its size, or -1 if the client disconnected."""
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return -1
        size += len(message.get("body", b""))
        if not message.get("more_body", False):
            return size


async def say(send: Send, status: int, body: bytes) -> None:
    """Send a complete response."""
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def stream(send: Send) -> None:
    """Send events for three seconds."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for number in range(EVENTS):
        await asyncio.sleep(EVENT_EVERY_S)
        await send({"type": "http.response.body", "body": b"event %d\n" % number, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def large(send: Send) -> None:
    """Send more bytes than all buffers can contain."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % LARGE)]})
    for _ in range(LARGE >> 20):
        await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def events(scope: dict[str, Any], send: Send) -> None:
    """Send one event, and another when the server stops."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello\n", "more_body": True})
    await scope["state"][server.STATE_KEY].wait()
    await send({"type": "http.response.body", "body": b"reconnect\n"})


async def stream_until_gone(path: str, receive: Receive, send: Send) -> None:
    """Send a stream that ends when its client disconnects."""
    await body_size(receive)
    removed_task = asyncio.create_task(body_size(receive))
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while not removed_task.done():
        await send({"type": "http.response.body", "body": b"still here\n", "more_body": True})
        await asyncio.sleep(0.02)
    GONE.append(path)


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Respond as the test requests with the path."""
    path = scope["path"]
    if path == "/stream":
        await stream(send)
    elif path == "/large":
        await large(send)
    elif path == "/events":
        await events(scope, send)
    elif path.startswith("/until-gone/"):
        await stream_until_gone(path, receive, send)
    elif path == "/stuck":
        time.sleep(60)
    elif path == "/spin":
        spin()
    elif path == "/refused":
        await say(send, 413, b"too large")
    else:
        await say(send, 200, await text(scope, receive))


def spin() -> None:
    """Use the processor and block the event loop."""
    while True:
        pass


async def text(scope: dict[str, Any], receive: Receive) -> bytes:
    """Send a short response that depends on the path."""
    path = scope["path"]
    if path.startswith("/after/"):
        await asyncio.sleep(float(path.removeprefix("/after/")))
        return b"late"
    if path.startswith("/size/after/"):
        await asyncio.sleep(float(path.removeprefix("/size/after/")))
    if path.startswith("/size"):
        return b"%d" % await body_size(receive)
    if path == "/headers":
        await body_size(receive)
        return b" ".join(name for name, _ in scope["headers"])
    return " ".join(GONE).encode() if path == "/gone" else b"%d" % os.getpid()


def main(options: dict[str, Any]) -> None:
    """Serve with the options of the test."""
    telemetry.configure()
    if "files" in options:
        resource.setrlimit(resource.RLIMIT_NOFILE, (options["files"], options["files"]))

    @asynccontextmanager
    async def application(worker: Worker, _: Listener) -> AsyncGenerator[ASGIApp]:
        if worker.place == options.get("failing") or Path(options.get("broken", "")).is_file():
            raise RuntimeError("the store is not there")
        if worker.place == options.get("slow"):
            await asyncio.sleep(60)
        yield app

    def report_ready(listeners: Sequence[Listener]) -> None:
        sys.stdout.write(" ".join(str(listener.port) for listener in listeners) + "\n")
        sys.stdout.flush()

    workers = options.get("workers", 1)
    server.run(
        Server(
            [
                Program(application, Listener(f"test {number}", "127.0.0.1", options.get("port", 0)), workers)
                for number in range(options.get("listeners", 1))
            ],
            deadlines=Deadlines(**options.get("deadlines", {})),
            grace_s=options.get("grace_s", 5.0),
            watchdog_s=options.get("watchdog_s", 10.0),
            on_ready=report_ready,
        )
    )


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except (CannotListen, WorkerFailed, RuntimeError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
