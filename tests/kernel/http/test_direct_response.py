"""A response that is written in one step has the same bytes as uvicorn's response, or is not written."""

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from countersign.kernel.http.direct_response import write_response

NAMES = st.sampled_from([b"etag", b"vary", b"x-request-id", b"ratelimit-limit"])
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=40)
DATE = (b"date", b"Sun, 29 Nov 2026 20:00:00 GMT")


class RecordingTransport:
    """Collects what is written."""

    def __init__(self) -> None:
        self.data = b""
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.data += data

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


class Flow:
    """The state of a client that reads at once, or not at all."""

    def __init__(self, *, write_paused: bool = False) -> None:
        self.write_paused = write_paused

    async def drain(self) -> None:
        self.write_paused = False


class Connection:
    """One request on a connection of uvicorn."""

    def __init__(
        self, method: str = "GET", *, keep_alive: bool = True, write_paused: bool = False, closing: bool = False
    ) -> None:
        self.transport = RecordingTransport()
        self.completed = 0
        logger = logging.getLogger("test")
        scope: Any = {"type": "http", "method": method, "headers": []}
        transport: Any = self.transport
        flow: Any = Flow(write_paused=write_paused)
        self.cycle = RequestResponseCycle(
            scope=scope,
            transport=transport,
            flow=flow,
            logger=logger,
            access_logger=logger,
            access_log=False,
            default_headers=[DATE, (b"connection", b"close")] if closing else [DATE],
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=keep_alive,
            on_response=self.complete,
        )

    def complete(self) -> None:
        self.completed += 1

    async def send_messages(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """Send the response as uvicorn expects it."""
        send: Any = self.cycle.send
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    def write(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> bool:
        """Write the response in one step."""
        send: Any = self.cycle.send
        return write_response(send, status, headers, body)


@given(
    method=st.sampled_from(["GET", "POST", "HEAD"]),
    status=st.sampled_from([200, 204, 299, 304, 400, 429, 503]),
    pairs=st.lists(st.tuples(NAMES, VALUES.map(lambda value: value.encode("latin-1"))), max_size=8),
    size=st.sampled_from([0, 1, 300, 70_000]),
)
async def test_the_response_has_the_same_bytes_as_with_uvicorn(
    method: str, status: int, pairs: list[tuple[bytes, bytes]], size: int
) -> None:
    body = b"" if status in (204, 304) else b"b" * size
    headers = pairs if status in (204, 304) else [*pairs, (b"content-length", b"%d" % len(body))]
    sent_body = b"" if method == "HEAD" else body
    direct, uvicorn_connection = Connection(method), Connection(method)

    assert direct.write(status, headers, sent_body)
    await uvicorn_connection.send_messages(status, headers, sent_body)

    assert direct.transport.data == uvicorn_connection.transport.data
    assert direct.completed == uvicorn_connection.completed == 1
    assert (direct.cycle.response_started, direct.cycle.response_complete) == (True, True)
    assert direct.cycle.message_event.is_set()


@pytest.mark.parametrize("character", [0, 7, 10, 11, 13, 27, 31, 127])
async def test_a_header_with_a_control_character_is_left_to_uvicorn_which_refuses_it(character: int) -> None:
    connection = Connection()
    headers = [(b"location", b"/a%cb: c" % character), (b"content-length", b"0")]

    assert not connection.write(200, headers, b"")
    assert connection.transport.data == b""
    with pytest.raises(RuntimeError, match="Invalid HTTP header value"):
        await connection.send_messages(200, headers, b"")


def test_a_line_break_in_one_header_does_not_compensate_for_a_missing_line_break() -> None:
    connection = Connection()

    assert not connection.write(200, [(b"a", b"1\r\nset-cookie: b"), (b"content-length", b"0")], b"")
    assert connection.transport.data == b""


@pytest.mark.parametrize(
    "connection",
    [Connection(keep_alive=False), Connection(write_paused=True), Connection(closing=True)],
    ids=["ends after this response", "client does not read", "server stops"],
)
def test_nothing_is_written_when_uvicorn_has_more_to_do(connection: Connection) -> None:
    assert not connection.write(200, [(b"content-length", b"0")], b"")
    assert connection.transport.data == b""
    assert not connection.cycle.response_started


def test_nothing_is_written_after_the_client_has_gone_or_a_response_has_started() -> None:
    gone_connection, started_connection = Connection(), Connection()
    gone_connection.cycle.disconnected = True
    started_connection.cycle.response_started = True

    assert not gone_connection.write(200, [], b"")
    assert not started_connection.write(200, [], b"")
    assert gone_connection.transport.data == started_connection.transport.data == b""


async def test_a_wrapping_application_sees_every_response() -> None:
    connection = Connection()

    async def send_changed(message: dict[str, Any]) -> None:
        raise AssertionError("not called here")

    assert not write_response(send_changed, 200, [], b"")
    assert connection.transport.data == b""
