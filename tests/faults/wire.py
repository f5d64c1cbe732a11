"""Sends one HTTP request on a connection of its own. The result is a complete answer or an error, without retries."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import NamedTuple

PATIENCE_S = 60


class WireResponse(NamedTuple):
    """A complete answer; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


async def call(
    port: int,
    method: str,
    path: str,
    *,
    token: str = "",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    patience_s: float = PATIENCE_S,
) -> WireResponse:
    """Send the request and read the answer. The body is JSON unless the headers name another kind.

    Raises:
        OSError, EOFError: the connection was refused, or ended before the answer was complete.
    """
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: close"]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    if body:
        kind = [] if "Content-Type" in (headers or {}) else ["Content-Type: application/json"]
        lines += [*kind, f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    async with asyncio.timeout(patience_s):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            await writer.drain()
            return await read_answer(reader)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def read_answer(reader: asyncio.StreamReader) -> WireResponse:
    """Return the next answer on a connection, with its body by Content-Length or in chunks.

    Raises:
        OSError, EOFError: it is incomplete.
    """
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status_line, *header_lines = head.rstrip().split("\r\n")
    pairs = (line.partition(":") for line in header_lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if headers.get("transfer-encoding") == "chunked":
        body = b"".join([piece async for piece in chunks(reader)])
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return WireResponse(int(status_line.split()[1]), headers, body)


async def chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the pieces of a chunked body (RFC 9112 7.1, without trailers), to its end.

    Raises:
        OSError, EOFError: it is incomplete.
    """
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readexactly(2)
