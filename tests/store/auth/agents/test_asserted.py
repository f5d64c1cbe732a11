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
    return asserting.unhurried(settings)


@pytest.fixture
def other_provider() -> Iterator[IdentityProvider]:
    """A second identity provider."""
    with identity_provider.serve_provider() as running:
        yield running


@pytest.mark.parametrize("dialect", [{"type": "identity_assertion"}, {"grant_type": JWT_BEARER}])
async def test_a_new_person_is_created_by_the_assertion_and_the_agent_continues_at_once(
    world: World, provider: IdentityProvider, dialect: dict[str, str]
) -> None:
    await provider.trust(world.store)
    agent = RegisteredAgent(world.http)
    body = {**dialect, "assertion_type": ID_JAG, "assertion": provider.mint(ROOT_URL), "scope": "read:library"}

    said = (await agent.register(body)).json()
    token = (await agent.exchange(said["identity_assertion"])).json()

    assert said["scopes"] == ["read:library"]
    assert said["registration_type"] == "identity_assertion"
    assert token["scope"] == "read:library"
    assert (await agent.library(token["access_token"])).json() == []
    me = await world.call("GET", "/auth/me", token["access_token"])
    assert me.json()["email"] == ANN
    assert me.json()["registration_id"] == said["registration_id"]


async def test_the_same_agent_registers_again_without_becoming_two(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)

    first = (await register(world, provider.mint(ROOT_URL)))[1].json()
    second = (await register(world, provider.mint(ROOT_URL)))[1].json()

    assert first["registration_id"] == second["registration_id"]


async def test_t14_an_assertion_is_used_once_at_either_endpoint(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)
    basic = await confidential(world)
    assertion = provider.mint(ROOT_URL, client_id=basic[0])

    first = await exchange(world, basic, assertion)
    at_token, at_register = await exchange(world, basic, assertion), (await register(world, assertion))[1]

    assert first.status_code == 200
    assert (at_token.status_code, at_token.json()["error"]) == (400, "invalid_grant")
    # An assertion that a client presents with its secret cannot be used to register, whether it was used before or not.
    assert (at_register.status_code, at_register.json()["code"]) == (400, "invalid_client_id")


async def test_t14_of_two_registrations_with_one_assertion_exactly_one_wins(
    world: World, provider: IdentityProvider, is_full: bool, figures: Figures
) -> None:
    races = 1000 if is_full else 200
    await provider.trust(world.store)
    for _ in range(races):
        assertion = provider.mint(ROOT_URL)

        answers = await asyncio.gather(register(world, assertion), register(world, assertion))

        statuses = sorted(answered.status_code for _, answered in answers)
        assert statuses == [200, 400], [answered.text for _, answered in answers]
    figures.update(races=races, winners_each=1)


async def test_t14_an_assertion_stays_used_after_a_restart(
    world: World, provider: IdentityProvider, settings: Settings
) -> None:
    await provider.trust(world.store)
    assertion = provider.mint(ROOT_URL)
    await register(world, assertion)

    async with app.open_store(settings, ROOT_URL, is_loopback=True) as again:
        transport = httpx.ASGITransport(app.create(again), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as http:
            _, answered = await register(World(again, http), assertion)

    assert answered.json()["code"] == "replay_detected"


async def test_t18_an_old_sign_in_must_be_repeated(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)
    before = await all_rows(world.store)

    for auth_time in (None, 1, provider.claims(ROOT_URL)["iat"] - 3_700):
        _, answered = await register(world, provider.mint(ROOT_URL, auth_time=auth_time))

        assert (answered.status_code, answered.json()["code"]) == (401, "login_required")
        assert answered.json()["max_age"] == 3600
        assert 'AgentAuth error="login_required", max_age="3600"' in answered.headers["www-authenticate"]
    assert await all_rows(world.store) == before


async def test_t20_an_account_is_never_tied_to_a_provider_without_its_person(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    ann = await Visitor.signed_in(world, ANN)

    agent, answered = await register(world, provider.mint(ROOT_URL))
    body = answered.json()
    agent.answer = body

    assert (answered.status_code, body["code"], body["error"]) == (401, "interaction_required", "interaction_required")
    assert body["status"] == 401
    assert body["type"] == f"{ROOT_URL}/problems/interaction-required"
    assert 'AgentAuth error="interaction_required"' in answered.headers["www-authenticate"]
    assert "identity_assertion" not in body
    assert (await agent.poll()).json()["status"] == "pending"
    page = await ann.get(agent.link)
    assert identity_provider.NAME in page.text

    await ann.decide(agent.link, user_code=agent.code)
    claimed = (await agent.poll()).json()
    again, at_once = await register(world, provider.mint(ROOT_URL))

    assert claimed["status"] == "claimed"
    assert at_once.status_code == 200
    token = (await again.exchange(at_once.json()["identity_assertion"])).json()["access_token"]
    assert (await world.call("GET", "/auth/me", token)).json()["email"] == ANN


async def test_t20_a_member_who_never_signed_in_is_no_free_account(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)
    await world.person(ANN, north="owner")

    _, answered = await register(world, provider.mint(ROOT_URL))

    assert answered.json()["code"] == "interaction_required"


async def test_t21_one_provider_is_not_another_even_with_the_same_subject(
    world: World, provider: IdentityProvider, other_provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    await other_provider.trust(world.store)
    own_body = (await register(world, provider.mint(ROOT_URL)))[1].json()

    same_email = (await register(world, other_provider.mint(ROOT_URL)))[1]
    another = (await register(world, other_provider.mint(ROOT_URL, email="bob@example.com")))[1].json()

    assert same_email.json()["code"] == "interaction_required"
    people = [await owner_of(world, said["registration_id"]) for said in (own_body, another)]
    assert people[0] != people[1]


async def test_t23_an_assertion_gives_no_more_than_it_carries(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)
    carried = "read:products admin:org"

    _, wider = await register(world, provider.mint(ROOT_URL, scope=carried), scope="read:products read:library")
    _, within = await register(world, provider.mint(ROOT_URL, scope=carried))

    assert (wider.status_code, wider.json()["code"]) == (400, "invalid_scope")
    assert within.json()["scopes"] == ["read:products"]


async def test_the_person_confirms_the_write_scopes_of_an_agent_once(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)
    ann = await Visitor.signed_in(world, ANN, north="publisher")
    wanted = "read:products write:releases"
    first, _ = await confirmed(world, provider, ann, scope="read:products")

    agent, asked = await register(world, provider.mint(ROOT_URL), scope=wanted)
    agent.answer = asked.json()
    await ann.decide(agent.link, user_code=agent.code)
    _, later = await register(world, provider.mint(ROOT_URL), scope=wanted)

    assert first == ["read:products"]
    assert asked.json()["code"] == "interaction_required"
    assert later.status_code == 200
    assert "write:releases" in later.json()["scopes"]


async def confirmed(
    world: World, provider: IdentityProvider, visitor: Visitor, **more: Any
) -> tuple[list[str], RegisteredAgent]:
    """Register an agent, let its person confirm the registration, and return the scopes."""
    agent, answered = await register(world, provider.mint(ROOT_URL), **more)
    agent.answer = answered.json()
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


async def taken_over(world: World, agent: RegisteredAgent, assertion: str) -> httpx.Response:
    """Let an anonymous agent present an assertion for its claim, and return the response."""
    body = {"type": "identity_assertion", "claim_token": agent.claim_token, "assertion": assertion}
    return await world.http.post("/api/v1/auth/me", json=body)


async def confirmed_claim(visitor: Visitor, answered: httpx.Response) -> str:
    """Let the person of a claim allow it, and return the page."""
    link, code = (answered.json()["claim_attempt"][name] for name in ("verification_uri", "user_code"))
    page = await visitor.get(link)
    await visitor.decide(link, user_code=code)
    return page.text


async def asking_anonymously(world: World, scope: str) -> RegisteredAgent:
    """Register an anonymous agent that asks for these scopes."""
    agent = RegisteredAgent(world.http)
    assert (await agent.register({"type": "anonymous", "scope": scope})).status_code == 200
    return agent


async def scopes_of(world: World, agent: RegisteredAgent) -> tuple[str, frozenset[str]]:
    """Return the status and the scopes of an agent's registration."""
    found = await registrations.with_id(world.store.database, agent.answer["id"])
    assert found is not None
    return found.status, found.scopes


ASKED = "read:products read:library write:releases"
CARRIED = ["read:products", "read:products write:releases", None]


@pytest.mark.parametrize("is_tied", [True, False])
@pytest.mark.parametrize("carried", CARRIED)
async def test_t23_a_claim_by_an_assertion_asks_the_person_for_no_more_than_agent_and_assertion_both_name(
    world: World, provider: IdentityProvider, carried: str | None, is_tied: bool
) -> None:
    await provider.trust(world.store)
    agent = await asking_anonymously(world, ASKED)
    ann = await Visitor.signed_in(world, ANN, north="publisher")
    if is_tied:
        await confirmed(world, provider, ann, scope="read:products")
    granted = frozenset((carried or ASKED).split())

    answered = await taken_over(world, agent, provider.mint(ROOT_URL, **({"scope": carried} if carried else {})))
    # An agent of a linked account can continue at once, unless it asks for write access.
    is_at_once = is_tied and "write:releases" not in granted
    assert answered.json()["status"] == ("claimed" if is_at_once else "initiated")
    if not is_at_once:
        page = await confirmed_claim(ann, answered)
        assert ("see your library" in page) == ("read:library" in granted)
        assert ("publish releases" in page) == ("write:releases" in granted)

    assert await scopes_of(world, agent) == ("claimed", granted)


async def test_t23_an_assertion_never_widens_what_another_has_narrowed_since_the_registration_was_read(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    agent = await asking_anonymously(world, ASKED)
    await Visitor.signed_in(world, ANN, north="publisher")
    before = await registrations.with_id(world.store.database, agent.answer["id"])
    assert before is not None
    await taken_over(world, agent, provider.mint(ROOT_URL, scope="read:products"))

    # This one was read before the other one was written, as when both arrive at the same time.
    later = await verify_assertion(world.store, provider.mint(ROOT_URL, scope="read:products write:releases"))
    await claim_by_assertion(world.store, later, before)
    foreign = await verify_assertion(world.store, provider.mint(ROOT_URL, scope="write:releases"))
    with pytest.raises(InvalidScope):
        await claim_by_assertion(world.store, foreign, before)

    assert await scopes_of(world, agent) == ("unclaimed", frozenset({"read:products"}))


@pytest.mark.parametrize("carried", CARRIED)
async def test_t23_a_claim_for_a_new_account_gives_no_more_than_agent_and_assertion_both_name(
    world: World, provider: IdentityProvider, carried: str | None
) -> None:
    await provider.trust(world.store)
    agent = await asking_anonymously(world, ASKED)
    granted = frozenset((carried or ASKED).split())

    await taken_over(world, agent, provider.mint(ROOT_URL, **({"scope": carried} if carried else {})))

    # Write access waits for the person.
    status = "unclaimed" if "write:releases" in granted else "claimed"
    assert await scopes_of(world, agent) == (status, granted)


async def test_an_assertion_without_any_scope_that_the_agent_asked_for_claims_nothing_and_is_not_used_up(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    agent, other = RegisteredAgent(world.http), RegisteredAgent(world.http)
    await agent.register({"type": "anonymous", "scope": "read:products"})
    await other.register({"type": "anonymous", "scope": "read:library"})
    assertion = provider.mint(ROOT_URL, scope="read:library")

    refused = await taken_over(world, agent, assertion)

    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_scope")
    assert (await taken_over(world, other, assertion)).json()["status"] == "claimed"


async def test_t42_a_security_event_ends_everything_the_provider_asserted(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    agent, answered = await register(world, provider.mint(ROOT_URL))
    assertion = answered.json()["identity_assertion"]
    token = (await agent.exchange(assertion)).json()["access_token"]

    pushed = await push(world, provider.event(ROOT_URL))

    assert (pushed.status_code, pushed.content) == (202, b"")
    assert (await agent.library(token)).status_code == 401
    assert (await agent.exchange(assertion)).json()["error"] == "invalid_grant"
    # The account remains, but the next assertion needs the confirmation of its person.
    assert (await register(world, provider.mint(ROOT_URL)))[1].json()["code"] == "interaction_required"


async def test_t42_an_event_of_another_provider_changes_nothing(
    world: World, provider: IdentityProvider, other_provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    await other_provider.trust(world.store)
    agent, answered = await register(world, provider.mint(ROOT_URL))
    token = (await agent.exchange(answered.json()["identity_assertion"])).json()["access_token"]

    pushed = await push(world, other_provider.event(ROOT_URL))

    assert pushed.status_code == 202
    assert (await agent.library(token)).status_code == 200


async def test_an_id_jag_is_exchanged_by_the_client_it_was_made_for(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)
    basic = await confidential(world)

    alone = await exchange(world, None, provider.mint(ROOT_URL, client_id=basic[0]))
    given = await exchange(world, basic, provider.mint(ROOT_URL, client_id=basic[0]))
    foreign = await exchange(world, basic, provider.mint(ROOT_URL))

    assert (alone.status_code, alone.json()["error"]) == (401, "invalid_client")
    assert given.json()["scope"] == "read:products read:releases read:library"
    assert "refresh_token" not in given.json()
    assert (foreign.status_code, foreign.json()["error"]) == (400, "invalid_grant")


async def test_t17_an_id_jag_of_an_existing_account_sends_the_client_to_register(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    await Visitor.signed_in(world, ANN)
    basic = await confidential(world)

    answered = await exchange(world, basic, provider.mint(ROOT_URL, client_id=basic[0]))

    assert (answered.status_code, answered.json()["error"]) == (400, "invalid_grant")
    assert "/api/v1/auth/register" in answered.json()["resolution"]


async def push(world: World, event: str) -> httpx.Response:
    """Send a security event."""
    headers = {"Content-Type": "application/secevent+jwt"}
    return await world.http.post("/healthz", content=event, headers=headers)


async def owner_of(world: World, registration_id: str) -> str | None:
    """Return the person of the agent."""
    found = await registrations.with_id(world.store.database, registration_id)
    assert found is not None
    return found.person_id


async def test_t34_an_agent_bound_before_the_address_was_proven_ends_with_the_proof(
    world: World, provider: IdentityProvider, settings: Settings
) -> None:
    await provider.trust(world.store)
    agent, answered = await register(world, provider.mint(ROOT_URL))
    assertion = answered.json()["identity_assertion"]
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
    (letter,) = (Path(settings.data) / "mail").glob("*.eml")
    content = message_from_bytes(letter.read_bytes(), policy=default).get_content()
    match = re.search(r"/auth/prove\?token=(cep_\w+)", content)
    assert match is not None
    form = {"token": match[1], "password": "correct horse battery"}
    response = await world.http.post("/auth/prove", data=form, headers=own_page)
    assert response.status_code == 303, response.text
