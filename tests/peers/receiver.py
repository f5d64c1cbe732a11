"""A receiver of webhooks on this machine with configurable answers."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple


class ReceivedMessage(NamedTuple):
    """A received message: headers by their lower-case names, and the body's bytes."""

    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        """The body, decoded."""
        return json.loads(self.body)


class Receiver:
    """Answers each POST with `status`, or with the next of `statuses` as long as there are any, or with the fault in
    `instead`: `hang` (no answer until `release`), `endless head`, `endless body`, `garbage`, `cut` (it closes without
    an answer)."""

    def __init__(self) -> None:
        self.status = 200
        self.statuses: list[int] = []
        self.instead = ""
        self.messages: list[ReceivedMessage] = []
        self.port = 0
        self.location = ""
        self.arrived = asyncio.Condition()
        self.release = asyncio.Event()
        self.open = 0
        self.most_open = 0

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/hook?key=secret-of-the-path"

    @property
    def ids(self) -> list[str]:
        """The ids of the messages, in the order of their arrival."""
        return [message.headers["webhook-id"] for message in self.messages]

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one connection."""
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            message = ReceivedMessage(headers, await reader.readexactly(int(headers["content-length"])))
            async with self.arrived:
                self.messages.append(message)
                self.arrived.notify_all()
            await self._answer(writer)
        self.open -= 1
        writer.close()

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        if self.instead == "hang":
            await self.release.wait()
        elif self.instead.startswith("endless"):
            writer.write(b"HTTP/1.1 200 OK\r\n" + (b"" if "head" in self.instead else b"\r\n"))
            while True:
                writer.write(b"x: " + b"y" * 8_000 + b"\r\n")
                await writer.drain()
        elif self.instead == "garbage":
            writer.write(b"\0\xff not HTTP at all\r\n\r\n")
            await writer.drain()
        elif not self.instead:
            status = self.statuses.pop(0) if self.statuses else self.status
            location = f"Location: {self.location}\r\n" if self.location else ""
            writer.write(f"HTTP/1.1 {status} Told\r\n{location}Content-Length: 5\r\n\r\nHostile".encode())
            await writer.drain()

    async def wait_for_messages(self, count: int) -> None:
        """Wait until this count of messages has arrived, a minute at most."""
        async with asyncio.timeout(60), self.arrived:
            await self.arrived.wait_for(lambda: len(self.messages) >= count)


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """Run a receiver until the block ends."""
    receiver = Receiver()
    server = await asyncio.start_server(receiver.take, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
