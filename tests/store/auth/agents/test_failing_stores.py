"""Failures of a store in the middle of an operation (attack T49): single-use tokens are refused, and counters allow the
request."""

from dataclasses import replace

import httpx
import pytest

from countersign.settings import Settings
from countersign.store import app
from tests.peers.identity_provider import IdentityProvider
from tests.store.auth.agents.people import RegisteredAgent
from tests.store.conftest import ROOT_URL
from tests.store.world import World

ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings with an identity provider on this machine."""
    return replace(settings, private_issuers=True)


async def test_t49_when_its_use_cannot_be_noted_no_assertion_is_accepted(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    body = {"type": "identity_assertion", "assertion_type": ID_JAG, "assertion": provider.mint(ROOT_URL)}

    await run(world, "ALTER TABLE seen_token RENAME TO away")
    refused_registration = await RegisteredAgent(world.http).register(body)
    await run(world, "ALTER TABLE away RENAME TO seen_token")

    assert refused_registration.status_code >= 500
    assert "identity_assertion" not in refused_registration.json()
    # Nothing was stored, so the assertion can still be used once.
    assert (await RegisteredAgent(world.http).register(body)).status_code == 200


async def test_t49_agents_can_register_while_the_counters_are_unavailable(world: World, settings: Settings) -> None:
    counterless = replace(settings, counters_url="redis://127.0.0.1:1/0")

    async with app.open_store(counterless, ROOT_URL, is_loopback=True) as store:
        transport = httpx.ASGITransport(app.create(store), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as http:
            answer = await RegisteredAgent(http).register({"type": "anonymous"})

    assert answer.status_code == 200


async def run(world: World, statement: str) -> None:
    """Run a statement in its own transaction."""
    async with world.store.database.transaction() as transaction:
        await transaction.run(statement)
