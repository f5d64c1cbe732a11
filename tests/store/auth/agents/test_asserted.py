"""Agents whose person an identity provider asserts: at registration, at the token endpoint, and in a claim."""

import asyncio
import re
from collections.abc import Iterator
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import httpx
import pytest

from countersign.settings import Settings
from countersign.store import app
from countersign.store.auth.agents import registrations
from countersign.store.auth.agents.register import claim_by_assertion, verify_assertion
from countersign.store.auth.tokens import InvalidScope
from tests.contract.scenes import all_rows
from tests.figures import Figures
from tests.peers import identity_provider
from tests.peers.identity_provider import IdentityProvider
from tests.store.auth.agents import asserting
from tests.store.auth.agents.asserting import ANN, ID_JAG, JWT_BEARER, confidential, exchange, register
from tests.store.auth.agents.people import RegisteredAgent, Visitor
from tests.store.conftest import ROOT_URL
from tests.store.world import World


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings without waiting times."""
    return asserting.fast_polling_settings(settings)


@pytest.fixture
def other_provider() -> Iterator[IdentityProvider]:
    """A second identity provider."""
    with identity_provider.serve_provider() as second_provider:
        yield second_provider


@pytest.mark.parametrize("dialect", [{"type": "identity_assertion"}, {"grant_type": JWT_BEARER}])
async def test_a_new_person_is_created_by_the_assertion_and_the_agent_continues_at_once(
    world: World, provider: IdentityProvider, dialect: dict[str, str]
) -> None:
    await provider.trust(world.store)
    agent = RegisteredAgent(world.http)
    body = {**dialect, "assertion_type": ID_JAG, "assertion": provider.mint(ROOT_URL), "scope": "read:library"}

    registration = (await agent.register(body)).json()
    token = (await agent.exchange(registration["identity_assertion"])).json()

    assert registration["scopes"] == ["read:library"]
    assert registration["registration_type"] == "identity_assertion"
    assert token["scope"] == "read:library"
    assert (await agent.library(token["access_token"])).json() == []
    me = await world.call("GET", "/auth/me", token["access_token"])
    assert me.json()["email"] == ANN
    assert me.json()["registration_id"] == registration["registration_id"]


async def test_a_repeated_registration_returns_the_same_registration(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)

    first_body = (await register(world, provider.mint(ROOT_URL)))[1].json()
    second_body = (await register(world, provider.mint(ROOT_URL)))[1].json()

    assert first_body["registration_id"] == second_body["registration_id"]


async def test_t14_an_assertion_is_used_once_at_either_endpoint(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)
    client_credentials = await confidential(world)
    assertion = provider.mint(ROOT_URL, client_id=client_credentials[0])

    first_response = await exchange(world, client_credentials, assertion)
    token_response, register_response = (
        await exchange(world, client_credentials, assertion),
        (await register(world, assertion))[1],
    )

    assert first_response.status_code == 200
    assert (token_response.status_code, token_response.json()["error"]) == (400, "invalid_grant")
    # An assertion that a client presents with its secret cannot be used to register, whether it was used before or not.
    assert (register_response.status_code, register_response.json()["code"]) == (400, "invalid_client_id")


async def test_t14_exactly_one_of_two_registrations_with_one_assertion_succeeds(
    world: World, provider: IdentityProvider, is_full: bool, figures: Figures
) -> None:
    races = 1000 if is_full else 200
    await provider.trust(world.store)
    for _ in range(races):
        assertion = provider.mint(ROOT_URL)

        registrations_made = await asyncio.gather(register(world, assertion), register(world, assertion))

        statuses = sorted(response.status_code for _, response in registrations_made)
        assert statuses == [200, 400], [response.text for _, response in registrations_made]
    figures.update(races=races, winners_each=1)


async def test_t14_an_assertion_stays_used_after_a_restart(
    world: World, provider: IdentityProvider, settings: Settings
) -> None:
    await provider.trust(world.store)
    assertion = provider.mint(ROOT_URL)
    await register(world, assertion)

    async with app.open_store(settings, ROOT_URL, is_loopback=True) as restarted_store:
        transport = httpx.ASGITransport(app.create(restarted_store), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as http:
            _, response = await register(World(restarted_store, http), assertion)

    assert response.json()["code"] == "replay_detected"


async def test_t18_an_old_sign_in_must_be_repeated(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)
    rows_before = await all_rows(world.store)

    for auth_time in (None, 1, provider.claims(ROOT_URL)["iat"] - 3_700):
        _, response = await register(world, provider.mint(ROOT_URL, auth_time=auth_time))

        assert (response.status_code, response.json()["code"]) == (401, "login_required")
        assert response.json()["max_age"] == 3600
        assert 'AgentAuth error="login_required", max_age="3600"' in response.headers["www-authenticate"]
    assert await all_rows(world.store) == rows_before


async def test_t20_an_account_is_linked_to_a_provider_only_after_its_person_confirms(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    ann = await Visitor.signed_in(world, ANN)

    agent, response = await register(world, provider.mint(ROOT_URL))
    body = response.json()
    agent.answer = body

    assert (response.status_code, body["code"], body["error"]) == (401, "interaction_required", "interaction_required")
    assert body["status"] == 401
    assert body["type"] == f"{ROOT_URL}/problems/interaction-required"
    assert 'AgentAuth error="interaction_required"' in response.headers["www-authenticate"]
    assert "identity_assertion" not in body
    assert (await agent.poll()).json()["status"] == "pending"
    page = await ann.get(agent.link)
    assert identity_provider.NAME in page.text

    await ann.decide(agent.link, user_code=agent.code)
    claimed_body = (await agent.poll()).json()
    second_agent, second_response = await register(world, provider.mint(ROOT_URL))

    assert claimed_body["status"] == "claimed"
    assert second_response.status_code == 200
    token = (await second_agent.exchange(second_response.json()["identity_assertion"])).json()["access_token"]
    assert (await world.call("GET", "/auth/me", token)).json()["email"] == ANN


async def test_t20_the_account_of_a_member_who_never_signed_in_needs_confirmation(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    await world.person(ANN, north="owner")

    _, response = await register(world, provider.mint(ROOT_URL))

    assert response.json()["code"] == "interaction_required"


async def test_t21_the_same_subject_of_two_providers_is_two_people(
    world: World, provider: IdentityProvider, other_provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    await other_provider.trust(world.store)
    own_body = (await register(world, provider.mint(ROOT_URL)))[1].json()

    same_email_response = (await register(world, other_provider.mint(ROOT_URL)))[1]
    other_person_body = (await register(world, other_provider.mint(ROOT_URL, email="bob@example.com")))[1].json()

    assert same_email_response.json()["code"] == "interaction_required"
    people = [await owner_of(world, body["registration_id"]) for body in (own_body, other_person_body)]
    assert people[0] != people[1]


async def test_t23_an_agent_gets_only_scopes_that_the_assertion_names(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)
    asserted_scopes = "read:products admin:org"

    _, wider_response = await register(
        world, provider.mint(ROOT_URL, scope=asserted_scopes), scope="read:products read:library"
    )
    _, narrow_response = await register(world, provider.mint(ROOT_URL, scope=asserted_scopes))

    assert (wider_response.status_code, wider_response.json()["code"]) == (400, "invalid_scope")
    assert narrow_response.json()["scopes"] == ["read:products"]


async def test_the_person_confirms_the_write_scopes_of_an_agent_once(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)
    ann = await Visitor.signed_in(world, ANN, north="publisher")
    requested_scopes = "read:products write:releases"
    first_scopes, _ = await register_with_confirmation(world, provider, ann, scope="read:products")

    agent, first_response = await register(world, provider.mint(ROOT_URL), scope=requested_scopes)
    agent.answer = first_response.json()
    await ann.decide(agent.link, user_code=agent.code)
    _, later_response = await register(world, provider.mint(ROOT_URL), scope=requested_scopes)

    assert first_scopes == ["read:products"]
    assert first_response.json()["code"] == "interaction_required"
    assert later_response.status_code == 200
    assert "write:releases" in later_response.json()["scopes"]


async def register_with_confirmation(
    world: World, provider: IdentityProvider, visitor: Visitor, **members: Any
) -> tuple[list[str], RegisteredAgent]:
    """Register an agent, let its person confirm the registration, and return the scopes."""
    agent, response = await register(world, provider.mint(ROOT_URL), **members)
    agent.answer = response.json()
    await visitor.decide(agent.link, user_code=agent.code)
    return (await agent.poll()).json()["scopes"], agent


async def test_an_anonymous_agent_is_claimed_by_an_assertion(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)
    agent = await RegisteredAgent.anonymous(world)
    body = {"type": "identity_assertion", "claim_token": agent.claim_token, "assertion": provider.mint(ROOT_URL)}

    response = await world.http.post("/api/v1/auth/me", json=body)
    second_response = await world.http.post("/api/v1/auth/me", json=body)

    assert response.json()["status"] == "claimed"
    assert second_response.json()["code"] == "already_claimed"
    token = (await agent.exchange(response.json()["identity_assertion"])).json()["access_token"]
    assert (await agent.library(token)).status_code == 200


async def test_an_anonymous_agent_of_an_existing_account_waits_for_its_person(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    ann = await Visitor.signed_in(world, ANN)
    agent = await RegisteredAgent.anonymous(world)
    body = {"type": "identity_assertion", "claim_token": agent.claim_token, "assertion": provider.mint(ROOT_URL)}

    response = await world.http.post("/api/v1/auth/me", json=body)
    link, code = (response.json()["claim_attempt"][name] for name in ("verification_uri", "user_code"))
    await ann.decide(link, user_code=code)

    assert response.json()["status"] == "initiated"
    assert (await agent.poll()).json()["status"] == "claimed"
    assert (await register(world, provider.mint(ROOT_URL)))[1].status_code == 200


async def claim_with_assertion(world: World, agent: RegisteredAgent, assertion: str) -> httpx.Response:
    """Let an anonymous agent present an assertion for its claim, and return the response."""
    body = {"type": "identity_assertion", "claim_token": agent.claim_token, "assertion": assertion}
    return await world.http.post("/api/v1/auth/me", json=body)


async def confirm_claim(visitor: Visitor, response: httpx.Response) -> str:
    """Let the person of a claim allow it, and return the page."""
    link, code = (response.json()["claim_attempt"][name] for name in ("verification_uri", "user_code"))
    page = await visitor.get(link)
    await visitor.decide(link, user_code=code)
    return page.text


async def register_anonymously(world: World, scope: str) -> RegisteredAgent:
    """Register an anonymous agent that asks for these scopes."""
    agent = RegisteredAgent(world.http)
    assert (await agent.register({"type": "anonymous", "scope": scope})).status_code == 200
    return agent


async def scopes_of(world: World, agent: RegisteredAgent) -> tuple[str, frozenset[str]]:
    """Return the status and the scopes of an agent's registration."""
    registration = await registrations.with_id(world.store.database, agent.answer["id"])
    assert registration is not None
    return registration.status, registration.scopes


REQUESTED_SCOPES = "read:products read:library write:releases"
ASSERTED_SCOPES = ["read:products", "read:products write:releases", None]


@pytest.mark.parametrize("is_tied", [True, False])
@pytest.mark.parametrize("carried", ASSERTED_SCOPES)
async def test_t23_a_claim_by_an_assertion_asks_the_person_for_no_more_than_agent_and_assertion_both_name(
    world: World, provider: IdentityProvider, carried: str | None, is_tied: bool
) -> None:
    await provider.trust(world.store)
    agent = await register_anonymously(world, REQUESTED_SCOPES)
    ann = await Visitor.signed_in(world, ANN, north="publisher")
    if is_tied:
        await register_with_confirmation(world, provider, ann, scope="read:products")
    granted_scopes = frozenset((carried or REQUESTED_SCOPES).split())

    response = await claim_with_assertion(
        world, agent, provider.mint(ROOT_URL, **({"scope": carried} if carried else {}))
    )
    # An agent of a linked account can continue at once, unless it asks for write access.
    is_at_once = is_tied and "write:releases" not in granted_scopes
    assert response.json()["status"] == ("claimed" if is_at_once else "initiated")
    if not is_at_once:
        page = await confirm_claim(ann, response)
        assert ("see your library" in page) == ("read:library" in granted_scopes)
        assert ("publish releases" in page) == ("write:releases" in granted_scopes)

    assert await scopes_of(world, agent) == ("claimed", granted_scopes)


async def test_t23_an_assertion_never_widens_what_another_has_narrowed_since_the_registration_was_read(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    agent = await register_anonymously(world, REQUESTED_SCOPES)
    await Visitor.signed_in(world, ANN, north="publisher")
    registration_before = await registrations.with_id(world.store.database, agent.answer["id"])
    assert registration_before is not None
    await claim_with_assertion(world, agent, provider.mint(ROOT_URL, scope="read:products"))

    # This one was read before the other one was written, as when both arrive at the same time.
    later_assertion = await verify_assertion(world.store, provider.mint(ROOT_URL, scope="read:products write:releases"))
    await claim_by_assertion(world.store, later_assertion, registration_before)
    foreign = await verify_assertion(world.store, provider.mint(ROOT_URL, scope="write:releases"))
    with pytest.raises(InvalidScope):
        await claim_by_assertion(world.store, foreign, registration_before)

    assert await scopes_of(world, agent) == ("unclaimed", frozenset({"read:products"}))


@pytest.mark.parametrize("carried", ASSERTED_SCOPES)
async def test_t23_a_claim_for_a_new_account_gives_no_more_than_agent_and_assertion_both_name(
    world: World, provider: IdentityProvider, carried: str | None
) -> None:
    await provider.trust(world.store)
    agent = await register_anonymously(world, REQUESTED_SCOPES)
    granted_scopes = frozenset((carried or REQUESTED_SCOPES).split())

    await claim_with_assertion(world, agent, provider.mint(ROOT_URL, **({"scope": carried} if carried else {})))

    # Write access waits for the person.
    status = "unclaimed" if "write:releases" in granted_scopes else "claimed"
    assert await scopes_of(world, agent) == (status, granted_scopes)


async def test_an_assertion_without_a_scope_that_the_agent_requested_claims_nothing_and_is_not_used_up(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    agent, other_agent = RegisteredAgent(world.http), RegisteredAgent(world.http)
    await agent.register({"type": "anonymous", "scope": "read:products"})
    await other_agent.register({"type": "anonymous", "scope": "read:library"})
    assertion = provider.mint(ROOT_URL, scope="read:library")

    refused_claim = await claim_with_assertion(world, agent, assertion)

    assert (refused_claim.status_code, refused_claim.json()["code"]) == (400, "invalid_scope")
    assert (await claim_with_assertion(world, other_agent, assertion)).json()["status"] == "claimed"


async def test_t42_a_security_event_ends_everything_the_provider_asserted(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    agent, response = await register(world, provider.mint(ROOT_URL))
    assertion = response.json()["identity_assertion"]
    token = (await agent.exchange(assertion)).json()["access_token"]

    push_answer = await push_security_event(world, provider.event(ROOT_URL))

    assert (push_answer.status_code, push_answer.content) == (202, b"")
    assert (await agent.library(token)).status_code == 401
    assert (await agent.exchange(assertion)).json()["error"] == "invalid_grant"
    # The account remains, but the next assertion needs the confirmation of its person.
    assert (await register(world, provider.mint(ROOT_URL)))[1].json()["code"] == "interaction_required"


async def test_t42_an_event_of_another_provider_changes_nothing(
    world: World, provider: IdentityProvider, other_provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    await other_provider.trust(world.store)
    agent, response = await register(world, provider.mint(ROOT_URL))
    token = (await agent.exchange(response.json()["identity_assertion"])).json()["access_token"]

    push_answer = await push_security_event(world, other_provider.event(ROOT_URL))

    assert push_answer.status_code == 202
    assert (await agent.library(token)).status_code == 200


async def test_an_id_jag_is_exchanged_only_by_the_client_that_it_names(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    client_credentials = await confidential(world)

    unauthenticated_response = await exchange(world, None, provider.mint(ROOT_URL, client_id=client_credentials[0]))
    response = await exchange(world, client_credentials, provider.mint(ROOT_URL, client_id=client_credentials[0]))
    foreign_response = await exchange(world, client_credentials, provider.mint(ROOT_URL))

    assert (unauthenticated_response.status_code, unauthenticated_response.json()["error"]) == (401, "invalid_client")
    assert response.json()["scope"] == "read:products read:releases read:library"
    assert "refresh_token" not in response.json()
    assert (foreign_response.status_code, foreign_response.json()["error"]) == (400, "invalid_grant")


async def test_t17_an_id_jag_of_an_existing_account_sends_the_client_to_register(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    await Visitor.signed_in(world, ANN)
    client_credentials = await confidential(world)

    response = await exchange(world, client_credentials, provider.mint(ROOT_URL, client_id=client_credentials[0]))

    assert (response.status_code, response.json()["error"]) == (400, "invalid_grant")
    assert "/api/v1/auth/register" in response.json()["resolution"]


async def push_security_event(world: World, event: str) -> httpx.Response:
    """Send a security event."""
    headers = {"Content-Type": "application/secevent+jwt"}
    return await world.http.post("/healthz", content=event, headers=headers)


async def owner_of(world: World, registration_id: str) -> str | None:
    """Return the person of the agent."""
    registration = await registrations.with_id(world.store.database, registration_id)
    assert registration is not None
    return registration.person_id


async def test_t34_proving_the_address_ends_agents_that_were_registered_before(
    world: World, provider: IdentityProvider, settings: Settings
) -> None:
    await provider.trust(world.store)
    agent, response = await register(world, provider.mint(ROOT_URL))
    assertion = response.json()["identity_assertion"]
    token = (await agent.exchange(assertion)).json()["access_token"]

    await prove(world, settings, ANN)

    assert (await agent.library(token)).status_code == 401
    assert (await agent.exchange(assertion)).json()["error"] == "invalid_grant"
    assert (await register(world, provider.mint(ROOT_URL)))[1].json()["code"] == "interaction_required"


async def prove(world: World, settings: Settings, email: str) -> None:
    """Open an account with the address by the link in the e-mail."""
    own_page = {"Origin": ROOT_URL}
    await world.http.post("/auth/signup", data={"email": email}, headers=own_page)
    await world.store.mail.drain()
    (email_file,) = (Path(settings.data) / "mail").glob("*.eml")
    content = message_from_bytes(email_file.read_bytes(), policy=default).get_content()
    match = re.search(r"/auth/prove\?token=(cep_\w+)", content)
    assert match is not None
    form = {"token": match[1], "password": "correct horse battery"}
    response = await world.http.post("/auth/prove", data=form, headers=own_page)
    assert response.status_code == 303, response.text
