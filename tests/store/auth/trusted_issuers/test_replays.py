"""Replays: an assertion can be used only once, even by concurrent requests, and is remembered while it is valid."""

import asyncio

import pytest

from countersign.kernel import clock
from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store.auth import id_jag, security_events, trusted_issuers
from countersign.store.auth.id_jag import IdentityAssertion, ReplayDetected
from countersign.store.auth.security_events import SecurityEvent
from countersign.store.context import Store
from tests.figures import Figures
from tests.store.conftest import ROOT_URL

PAIRS, PAIRS_FULL = 200, 1_000


def new_assertion(jti: str, issuer: str = "https://id.example") -> IdentityAssertion:
    """Return a verified assertion."""
    until = clock.later(clock.now(), seconds=300)
    return IdentityAssertion(issuer, "ID", "user-1", "agent-1", jti, until, None, None, None)


async def use(store: Store, token: IdentityAssertion) -> bool:
    """Return whether the assertion could be used."""
    try:
        async with store.database.transaction() as transaction:
            await id_jag.use_once(transaction, token)
    except ReplayDetected:
        return False
    return True


async def test_t14_exactly_one_of_two_concurrent_uses_succeeds(
    store: Store, is_full: bool, figures: Figures
) -> None:
    count = PAIRS_FULL if is_full else PAIRS
    wins: list[int] = []
    for number in range(count):
        token = new_assertion(f"jti-{number}")
        wins.append(sum(await asyncio.gather(use(store, token), use(store, token))))

    assert wins == [1] * count
    figures |= {"pairs": count, "winners": sum(wins)}


async def test_t14_exactly_one_of_many_concurrent_uses_succeeds(store: Store) -> None:
    for number in range(10):
        token = new_assertion(f"jti-{number}")
        assert sum(await asyncio.gather(*(use(store, token) for _ in range(20)))) == 1


async def test_t14_a_rolled_back_use_does_not_count(store: Store) -> None:
    token = new_assertion("jti")

    async def fail_afterwards() -> None:
        async with store.database.transaction() as transaction:
            await id_jag.use_once(transaction, token)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_afterwards()

    assert [await use(store, token) for _ in range(3)] == [True, False, False]


async def test_t14_a_restart_does_not_forget(store: Store, settings: Settings) -> None:
    token = new_assertion("jti")
    assert await use(store, token)

    async with distribution.open_store(settings, ROOT_URL, is_loopback=True) as restarted_store:
        assert not await use(restarted_store, token)


async def test_t15_the_same_jti_of_two_issuers_and_of_two_kinds_is_accepted(store: Store) -> None:
    event = SecurityEvent("https://id.example", "user-1", "jti", True, clock.later(clock.now(), seconds=300))

    assert await use(store, new_assertion("jti"))
    assert await use(store, new_assertion("jti", "https://other.example"))
    async with store.database.transaction() as transaction:
        assert await security_events.use_once(transaction, event)
        assert not await security_events.use_once(transaction, event)


async def test_t14_a_used_assertion_id_is_stored_until_its_assertion_expires(store: Store) -> None:
    token = new_assertion("jti")
    await use(store, token)
    for later_s, forgotten in ((0, 0), (300 + 120, 0), (300 + 3_601, 1)):
        with clock.fixed(clock.later(clock.now(), seconds=later_s)):
            async with store.database.transaction() as transaction:
                assert await trusted_issuers.forget_old_tokens(transaction) == forgotten


async def test_upkeep_removes_used_assertion_ids(store: Store) -> None:
    await use(store, new_assertion("jti"))

    with clock.fixed(clock.later(clock.now(), seconds=4_000)):
        await distribution.run_maintenance(store)

    assert await store.database.fetch("SELECT jti_hash FROM seen_token") == []
