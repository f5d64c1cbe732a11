"""Uses the assertions of an identity provider: registers agents with them, and exchanges them as an OAuth client."""

from dataclasses import replace
from typing import Any

import httpx

from countersign.settings import Settings
from countersign.store.auth import queries
from countersign.store.auth.oauth import clients
from tests.store.auth.agents.people import RegisteredAgent
from tests.store.world import World

ANN = "ann@example.com"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
READING = "read:products read:releases read:library"

Basic = tuple[str, str]
"""The id and the secret of a client."""


def fast_polling_settings(settings: Settings) -> Settings:
    """Settings with an identity provider on this machine, no wait between polls, and unlimited registrations."""
    no_limit = 1_000_000
    return replace(
        settings,
        private_issuers=True,
        poll_interval_s=0,
        register_named_all=no_limit,
        register_anonymous_all=no_limit,
        rate_register=no_limit,
    )


async def confidential(world: World, scope: str = READING) -> Basic:
    """Create a client of north."""
    org = await queries.organisation_with_slug(world.store.database, "north")
    assert org is not None
    async with world.store.database.transaction() as transaction:
        client, secret = await clients.create_client(transaction, org.id, "an agent", scope.split())
    return client.id, secret


async def exchange(world: World, basic: Basic | None, assertion: str, **parameters: str) -> httpx.Response:
    """Send an assertion to the token endpoint, with or without the credentials of a client, and return the response."""
    form = {"grant_type": JWT_BEARER, "assertion": assertion, **parameters}
    options: dict[str, Any] = {} if basic is None else {"auth": basic}
    return await world.http.post("/api/v1/auth/token", data=form, **options)


async def register(world: World, assertion: str, **members: Any) -> tuple[RegisteredAgent, httpx.Response]:
    """Register an agent with an assertion, and return the agent and the response."""
    agent = RegisteredAgent(world.http)
    body = {"type": "identity_assertion", "assertion_type": ID_JAG, "assertion": assertion, **members}
    return agent, await agent.register(body)
