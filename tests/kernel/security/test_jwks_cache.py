"""Key sets of other servers: they are fetched rarely and only once at a time, and are limited in size. No request waits
for a server that is down."""

import asyncio
import json
from collections.abc import Callable
from typing import NamedTuple

import pytest

from countersign.kernel.security.external_jwt import JwksCache, KeySetUnavailable
from tests.kernel.security.forgery import NOW_S
from tests.peers.identity_provider import SigningKey, new_key

ADDRESS = "https://id.example/jwks.json"
KEY = new_key("ES256")

pytestmark = pytest.mark.usefixtures("fixed_clock")


class FetchedKeySet(NamedTuple):
    """A fetched key set."""

    body: bytes
    max_age_s: int | None


class KeySetServer:
    """A server of key sets with a request counter, which may be down or slow."""

    def __init__(self) -> None:
        self.keys = [KEY]
        self.max_age_s: int | None = None
        self.failure = ""
        self.body: bytes | None = None
        self.asked: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def fetch(self, address: str) -> FetchedKeySet:
        """Return the key set."""
        self.asked.append(address)
        await self.gate.wait()
        if self.failure:
            raise KeySetUnavailable(self.failure)
        key_set = json.dumps({"keys": [key.jwk() for key in self.keys]}).encode()
        return FetchedKeySet(key_set if self.body is None else self.body, self.max_age_s)


@pytest.fixture
async def server() -> KeySetServer:
    """A server with one key."""
    return KeySetServer()


@pytest.fixture
def sets(server: KeySetServer) -> JwksCache:
    """An empty cache of key sets."""
    return JwksCache(server.fetch)


async def has_key(sets: JwksCache, key: SigningKey = KEY, address: str = ADDRESS) -> bool:
    """Return whether the key is found."""
    return await sets.key(address, key.algorithm, key.kid) is not None


@pytest.mark.parametrize(("max_age_s", "kept_s"), [(None, 600), (0, 600), (5, 600), (7_200, 7_200), (10**9, 86_400)])
async def test_a_set_is_kept_as_long_as_its_owner_says_within_ten_minutes_and_a_day(
    sets: JwksCache, server: KeySetServer, fixed_clock: Callable[[int], None], max_age_s: int | None, kept_s: int
) -> None:
    server.max_age_s = max_age_s
    for later_s, times in ((0, 1), (kept_s - 1, 1), (kept_s, 2), (2 * kept_s - 1, 2)):
        fixed_clock(NOW_S + later_s)

        assert await has_key(sets)
        assert len(server.asked) == times


async def test_t9_an_unknown_key_id_has_the_set_fetched_once_in_60_seconds(
    sets: JwksCache, server: KeySetServer, fixed_clock: Callable[[int], None]
) -> None:
    await has_key(sets)
    for later_s, times in ((0, 2), (59, 2), (60, 3), (119, 3), (120, 4)):
        fixed_clock(NOW_S + later_s)
        for _ in range(20):
            assert not await has_key(sets, new_key("ES256"))
        assert len(server.asked) == times
    assert await has_key(sets)


async def test_t9_a_first_question_for_an_unknown_key_fetches_once(sets: JwksCache, server: KeySetServer) -> None:
    assert not await has_key(sets, new_key("ES256"))
    assert len(server.asked) == 1


async def test_t10_a_new_key_is_found_and_a_removed_key_is_not(
    sets: JwksCache, server: KeySetServer, fixed_clock: Callable[[int], None]
) -> None:
    await has_key(sets)
    server.keys = [new_key("ES256")]

    assert await has_key(sets, server.keys[0])
    assert not await has_key(sets)


async def test_t9_concurrent_callers_share_one_fetch(sets: JwksCache, server: KeySetServer) -> None:
    server.gate.clear()
    asking = [asyncio.create_task(has_key(sets)) for _ in range(50)]
    while not server.asked:
        await asyncio.sleep(0)
    asking[0].cancel()
    server.gate.set()

    assert all(await asyncio.gather(*asking[1:]))
    assert len(server.asked) == 1


async def test_t9_a_server_that_is_down_is_requested_every_5_seconds_and_no_caller_waits_in_between(
    sets: JwksCache, server: KeySetServer, fixed_clock: Callable[[int], None]
) -> None:
    server.failure = "down"
    for later_s, times in ((0, 1), (4, 1), (5, 2)):
        fixed_clock(NOW_S + later_s)
        for _ in range(3):
            with pytest.raises(KeySetUnavailable, match="down"):
                await has_key(sets)
        assert len(server.asked) == times
    server.failure = ""
    fixed_clock(NOW_S + 10)
    assert await has_key(sets)


async def test_keys_that_are_kept_serve_on_while_the_server_is_down_but_not_beyond_their_time(
    sets: JwksCache, server: KeySetServer, fixed_clock: Callable[[int], None]
) -> None:
    await has_key(sets)
    server.failure = "down"

    for _ in range(2):
        with pytest.raises(KeySetUnavailable):
            await has_key(sets, new_key("ES256"))
        assert await has_key(sets)
    assert len(server.asked) == 2
    fixed_clock(NOW_S + 600)
    with pytest.raises(KeySetUnavailable):
        await has_key(sets)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"not json", b'{"keys":' + b"[" * 9_000, b'{"keys":[{},{}' + b",{}" * 20 + b"]}"]
)
async def test_t9_an_invalid_key_set_is_treated_like_an_unreachable_server(
    sets: JwksCache, server: KeySetServer, body: bytes
) -> None:
    server.body = body

    with pytest.raises(KeySetUnavailable, match="cannot be used"):
        await has_key(sets)


async def test_addresses_do_not_share_keys(sets: JwksCache, server: KeySetServer) -> None:
    assert await has_key(sets)
    server.keys = []

    assert not await has_key(sets, address="https://other.example/")
    assert await has_key(sets)


async def test_a_clock_that_was_set_back_has_the_set_fetched_again(
    sets: JwksCache, server: KeySetServer, fixed_clock: Callable[[int], None]
) -> None:
    await has_key(sets)
    fixed_clock(NOW_S - 3_600)

    assert await has_key(sets)
    assert len(server.asked) == 2
