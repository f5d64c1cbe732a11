"""Raw messages: limits of bodies, streams that stop when the client disconnects, and client addresses."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from countersign.kernel.http.client_address import TrustedProxies
from countersign.kernel.http.exchange import Exchange
from countersign.kernel.http.request import BodyTooLarge, ClientGone, Message
from countersign.kernel.http.response import Response


def scope(**headers: str) -> dict[str, object]:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {
        "method": "POST",
        "path": "/a",
        "raw_path": b"/a",
        "query_string": b"b=1",
        "headers": pairs,
        "client": ("192.0.2.7", 1234),
    }


class MessageQueue:
    """Returns messages in order, then waits forever or until the client disconnects. It stores what was sent."""

    def __init__(self, *messages: Message) -> None:
        self.messages = list(messages)
        self.gone = asyncio.Event()
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        if self.messages:
            return self.messages.pop(0)
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        await asyncio.sleep(0)

    def exchange(self, *proxies: str, **headers: str) -> Exchange:
        return Exchange(scope(**headers), self.receive, self.send, frozenset(proxies))


def piece(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


async def test_a_body_is_put_together_from_its_pieces() -> None:
    assert await MessageQueue(piece(b"ab", more=True), piece(b"c")).exchange().body(10) == b"abc"


async def test_a_body_over_the_limit_is_refused_when_announced_and_when_not() -> None:
    with pytest.raises(BodyTooLarge):
        await MessageQueue(piece(b"")).exchange(content_length="11").body(10)
    with pytest.raises(BodyTooLarge):
        await MessageQueue(piece(b"abcdef", more=True), piece(b"ghijkl")).exchange().body(10)


async def test_a_body_that_is_cut_off_is_noticed() -> None:
    wire = MessageQueue(piece(b"ab", more=True))
    wire.gone.set()

    with pytest.raises(ClientGone):
        await wire.exchange().body(10)


async def test_a_stream_stops_when_the_client_disconnects() -> None:
    wire = MessageQueue()
    chunk_count = 0
    is_ended = False

    async def endless() -> AsyncIterator[bytes]:
        nonlocal chunk_count, is_ended
        try:
            while True:
                chunk_count += 1
                if chunk_count == 3:
                    wire.gone.set()
                yield b"x"
                await asyncio.sleep(0)
        finally:
            is_ended = True

    with pytest.raises(ClientGone):
        await wire.exchange().answer(Response(200, endless()))

    assert 3 <= chunk_count < 10
    assert is_ended


async def test_a_whole_stream_ends_with_its_last_message() -> None:
    wire = MessageQueue()

    async def two_chunks() -> AsyncIterator[bytes]:
        yield b"a"
        yield b"b"

    await wire.exchange().answer(Response(200, two_chunks()))

    assert [message.get("body") for message in wire.sent[1:]] == [b"a", b"b", b""]
    assert wire.sent[-1]["more_body"] is False


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        ((), "203.0.113.9", "192.0.2.7"),
        (("192.0.2.7",), "203.0.113.9", "203.0.113.9"),
        (("192.0.2.7",), "198.51.100.1, 203.0.113.9", "203.0.113.9"),
        (("192.0.2.7", "203.0.113.9"), "198.51.100.1, 203.0.113.9", "198.51.100.1"),
        (("192.0.2.7",), "", "192.0.2.7"),
    ],
)
async def test_a_forwarded_address_is_trusted_only_from_configured_proxies(
    proxies: tuple[str, ...], forwarded: str, address: str
) -> None:
    assert MessageQueue().exchange(*proxies, x_forwarded_for=forwarded).address == address


def test_a_proxy_network_may_be_configured_by_any_address_in_the_network() -> None:
    proxies = TrustedProxies("10.0.0.1/8, fd00::7/64")

    assert "10.200.0.9" in proxies
    assert "fd00::1" in proxies
    assert "11.0.0.1" not in proxies


@pytest.mark.parametrize(
    ("address", "counted_address"),
    [
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("no:address", "no:address"),
    ],
)
async def test_a_whole_ipv6_network_counts_as_one_client(address: str, counted_address: str) -> None:
    assert MessageQueue().exchange("192.0.2.7", x_forwarded_for=address).address == counted_address


@pytest.mark.parametrize(("hosts", "names"), [(0, False), (1, True), (2, False)])
async def test_a_request_names_its_host_once(hosts: int, names: bool) -> None:
    wire = MessageQueue()
    headers = {**scope(), "http_version": "1.1", "headers": [(b"host", b"a")] * hosts}

    assert Exchange(headers, wire.receive, wire.send, frozenset()).names_its_host is names


async def test_header_values_are_written_as_latin_1() -> None:
    wire = MessageQueue()

    await wire.exchange().answer(Response(200, b"", headers=(("Location", "/é"),)))

    values = dict(wire.sent[0]["headers"])
    assert values[b"location"] == "/é".encode("latin-1")
