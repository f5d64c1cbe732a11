"""Keys of issuers from the network: which addresses an attacker can make the store fetch, and failures of the
issuer."""

import asyncio
import time

import pytest

from countersign.kernel import clock, safe_http_client
from countersign.kernel.errors import Refused, Unavailable
from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store.auth import id_jag
from countersign.store.context import Store
from tests.peers.identity_provider import IdentityProvider
from tests.store.auth.trusted_issuers.refusals import refusal_code
from tests.store.conftest import ROOT_URL, with_settings


async def unavailable_refusal(store: Store, token: str) -> Unavailable:
    """Return the refusal when the keys cannot be fetched. It must not contain the reason."""
    with pytest.raises(Unavailable) as refusal:
        await id_jag.verify(store, token)
    assert refusal.value.detail == "the keys of the token's issuer cannot be fetched; try again later"
    assert refusal.value.headers["Retry-After"] == "5"
    return refusal.value


async def test_t9_a_flood_of_unknown_key_ids_causes_two_requests_to_the_issuer(
    store: Store, provider: IdentityProvider
) -> None:
    await provider.trust(store)
    await id_jag.verify(store, provider.mint(ROOT_URL))

    for number in range(100):
        token = provider.mint(ROOT_URL, header={"kid": f"unknown-{number}"})
        assert await refusal_code(store, token) == "invalid_signature"

    assert provider.requests == 2


async def test_t9_many_at_once_ask_the_issuer_once(store: Store, provider: IdentityProvider) -> None:
    await provider.trust(store)
    provider.delay_s = 0.2

    results = await asyncio.gather(*(id_jag.verify(store, provider.mint(ROOT_URL)) for _ in range(50)))

    assert len(results) == 50
    assert provider.requests == 1


async def test_t10_a_rotated_key_is_fetched_and_the_old_key_is_refused(
    store: Store, provider: IdentityProvider
) -> None:
    await provider.trust(store)
    old = provider.mint(ROOT_URL)
    await id_jag.verify(store, old)
    provider.rotate()

    assert await id_jag.verify(store, provider.mint(ROOT_URL))
    assert await refusal_code(store, old) == "invalid_signature"
    assert provider.requests == 2


async def test_t9_a_redirect_is_not_followed(store: Store, provider: IdentityProvider) -> None:
    await provider.trust(store)
    provider.status, provider.headers = 302, {"Location": f"{provider.issuer}/elsewhere"}

    await unavailable_refusal(store, provider.mint(ROOT_URL))

    assert provider.paths == ["/jwks.json"]


@pytest.mark.parametrize("body", [b" " * 70_000, b"[]", b"{", b"<html>", b'{"keys":[' + b"{}," * 30 + b"{}]}"])
async def test_t9_a_huge_set_or_none_at_all_is_as_if_the_issuer_were_away(
    store: Store, provider: IdentityProvider, body: bytes
) -> None:
    await provider.trust(store)
    provider.body = body

    await unavailable_refusal(store, provider.mint(ROOT_URL))


@pytest.mark.parametrize("how", ["delay_s", "drip_s"])
async def test_t9_a_slow_issuer_delays_no_caller_beyond_the_time_limit(
    store: Store, provider: IdentityProvider, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safe_http_client, "TOTAL_S", 0.3)
    await provider.trust(store)
    setattr(provider, how, 60 if how == "delay_s" else 0.05)
    began_s = time.monotonic()

    for _ in range(5):
        await unavailable_refusal(store, provider.mint(ROOT_URL))

    assert time.monotonic() - began_s < 20
    assert provider.requests == 1


async def test_t9_an_issuer_that_is_down_is_503_at_once_and_believed_again_when_it_is_back(
    store: Store, provider: IdentityProvider
) -> None:
    await provider.trust(store)
    provider.status = 500
    await unavailable_refusal(store, provider.mint(ROOT_URL))
    provider.status = 200
    await unavailable_refusal(store, provider.mint(ROOT_URL))

    later_time = clock.later(clock.now(), seconds=6)
    with clock.fixed(later_time):
        token = provider.mint(ROOT_URL, now_s=later_time // clock.SECOND)
        assert await id_jag.verify(store, token)
        provider.stop()
        assert await id_jag.verify(store, token)
    with clock.fixed(clock.later(later_time, seconds=600)):
        await unavailable_refusal(store, token)


async def test_t9_a_private_address_is_not_fetched_from_unless_the_operator_says_so(
    store: Store, settings: Settings, provider: IdentityProvider
) -> None:
    await provider.trust(store)
    careful = with_settings(settings, private_issuers=False)

    async with distribution.open_store(careful, ROOT_URL, is_loopback=True) as careful_store:
        await unavailable_refusal(careful_store, provider.mint(ROOT_URL))

    assert provider.requests == 0
    assert await id_jag.verify(store, provider.mint(ROOT_URL))


async def test_no_response_shows_why_keys_cannot_be_fetched(store: Store, provider: IdentityProvider) -> None:
    await provider.trust(store)
    provider.stop()

    refusal: Refused = await unavailable_refusal(store, provider.mint(ROOT_URL))

    assert "Connect" not in refusal.detail + refusal.remedy
