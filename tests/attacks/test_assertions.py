"""Attacks with assertions of a provider: expired assertions, used assertions, and revoked links to an account."""

import time

import pytest

from countersign.settings import Settings
from tests.peers.identity_provider import IdentityProvider
from tests.store.auth.agents import asserting
from tests.store.auth.agents.asserting import ANN, confidential, exchange, register
from tests.store.auth.agents.people import RegisteredAgent, Visitor
from tests.store.conftest import ROOT_URL
from tests.store.world import World


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings without delays."""
    return asserting.fast_polling_settings(settings)


async def claim_with_assertion(world: World, agent: RegisteredAgent, assertion: str) -> dict[str, str]:
    """Claim an anonymous agent with an assertion, and return the body of the answer."""
    body = {"type": "identity_assertion", "claim_token": agent.claim_token, "assertion": assertion}
    return (await world.http.post("/api/v1/auth/me", json=body)).json()


async def test_t18_a_sign_in_too_long_ago_gives_no_token_and_claims_nothing(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    basic, long_ago = await confidential(world), int(time.time()) - 7_200
    agent = await RegisteredAgent.anonymous(world)

    token = await exchange(world, basic, provider.mint(ROOT_URL, client_id=basic[0], auth_time=long_ago))
    claim = await claim_with_assertion(world, agent, provider.mint(ROOT_URL, auth_time=long_ago))

    assert (token.status_code, token.json()["error"]) == (400, "invalid_grant")
    assert claim["code"] == "login_required"


async def test_t14_an_assertion_that_claimed_an_agent_is_used_up_everywhere(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    first_agent, second_agent, assertion = (
        await RegisteredAgent.anonymous(world),
        await RegisteredAgent.anonymous(world),
        provider.mint(ROOT_URL),
    )

    claim = await claim_with_assertion(world, first_agent, assertion)
    second_claim = await claim_with_assertion(world, second_agent, assertion)
    _, registration = await register(world, assertion)

    assert claim["status"] == "claimed"
    assert second_claim["code"] == registration.json()["code"] == "replay_detected"


async def test_t20_no_provider_confirms_an_address_that_an_agent_could_write(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    ann = await Visitor.signed_in(world, ANN, north="publisher")
    first_agent, registration = await register(world, provider.mint(ROOT_URL), scope="read:products")
    first_agent.answer = registration.json()
    await ann.decide(first_agent.link, user_code=first_agent.code)
    agent = RegisteredAgent(world.http)
    await agent.register({"type": "anonymous", "scope": "read:products write:releases"})

    claim = await claim_with_assertion(world, agent, provider.mint(ROOT_URL, scope="read:products write:releases"))

    assert claim["status"] == "initiated"


async def test_t20_revoking_an_agents_assertion_removes_its_binding_to_the_provider(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    _, answer = await register(world, provider.mint(ROOT_URL))

    await world.http.post("/auth/revoke", data={"token": answer.json()["identity_assertion"]})
    _, later_answer = await register(world, provider.mint(ROOT_URL))

    assert later_answer.json()["code"] == "interaction_required"


async def test_t21_a_claim_by_e_mail_ties_no_provider_that_was_named_before(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    await Visitor.signed_in(world, "mallory@example.com")
    pat, agent = await Visitor.signed_in(world, "pat@example.com"), await RegisteredAgent.anonymous(world)
    await claim_with_assertion(world, agent, provider.mint(ROOT_URL, sub="mallory", email="mallory@example.com"))

    await agent.attempt_again("pat@example.com")
    await pat.decide(agent.link, user_code=agent.code)

    assert (await agent.poll()).json()["status"] == "claimed"
    assert await world.store.database.fetch("SELECT person_id FROM delegation") == []
