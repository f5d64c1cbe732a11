"""Attacks on agents, clients that authenticate with assertions, and their endpoints."""

import base64
import re
from html import unescape
from pathlib import Path

import pytest

from countersign.kernel.mail import queue, transports
from countersign.settings import Settings
from countersign.store.auth import people, queries
from countersign.store.auth.agents import claim
from countersign.store.auth.agents import routes as agents
from countersign.store.auth.oauth import clients
from tests.peers.identity_provider import IdentityProvider
from tests.store.auth.accounts.conftest import AccountVisitor as Mailed
from tests.store.auth.agents import asserting
from tests.store.auth.agents.asserting import ANN, confidential, exchange, register
from tests.store.auth.agents.people import RegisteredAgent, Visitor, csrf_of
from tests.store.conftest import ROOT_URL
from tests.store.world import World


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings without delays."""
    return asserting.fast_polling_settings(settings)


async def test_a_client_gets_only_the_scopes_of_a_narrow_assertion(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    basic = await confidential(world)
    await exchange(world, basic, provider.mint(ROOT_URL, client_id=basic[0]))

    narrow = await exchange(world, basic, provider.mint(ROOT_URL, client_id=basic[0], scope="read:products"))

    assert narrow.json()["scope"] == "read:products"


async def test_a_client_gets_only_the_scopes_that_it_requested(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)
    basic = await confidential(world)
    await exchange(world, basic, provider.mint(ROOT_URL, client_id=basic[0]))

    exchange_answer = await exchange(world, basic, provider.mint(ROOT_URL, client_id=basic[0]), scope="read:products")

    assert exchange_answer.json()["scope"] == "read:products"


async def test_a_client_gets_only_its_own_scopes(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)
    basic = await confidential(world, "read:products")
    await register(world, provider.mint(ROOT_URL, client_id=basic[0]))

    exchanged_response = await exchange(world, basic, provider.mint(ROOT_URL, client_id=basic[0]))

    assert exchanged_response.json()["scope"] == "read:products"


async def test_a_narrow_assertion_registers_no_wider_agent(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)
    ann = await Visitor.signed_in(world, ANN, north="publisher")
    agent, registration = await register(world, provider.mint(ROOT_URL), scope="read:products write:releases")
    agent.answer = registration.json()
    await ann.decide(agent.link, user_code=agent.code)

    later_agent, answer = await register(world, provider.mint(ROOT_URL, scope="read:products"), scope="read:products")
    token = await later_agent.exchange(answer.json()["identity_assertion"])

    assert "write:releases" not in answer.json()["scopes"]
    assert token.json().get("scope") == "read:products"


async def test_tokens_from_an_assertion_end_with_the_client(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)
    basic = await confidential(world)
    token = (await exchange(world, basic, provider.mint(ROOT_URL, client_id=basic[0]))).json()["access_token"]
    org = await queries.organisation_with_slug(world.store.database, "north")
    assert org is not None
    before_response = await world.call("GET", "/library", token)

    async with world.store.database.transaction() as transaction:
        await clients.delete_client(transaction, org.id, basic[0])

    assert before_response.status_code == 200
    assert (await world.call("GET", "/library", token)).status_code == 401


async def test_a_client_can_revoke_a_token_issued_for_an_assertion(world: World, provider: IdentityProvider) -> None:
    await provider.trust(world.store)
    basic = await confidential(world)
    token = (await exchange(world, basic, provider.mint(ROOT_URL, client_id=basic[0]))).json()["access_token"]

    revocation = await world.http.post("/auth/revoke", data={"token": token}, auth=basic)

    assert revocation.status_code == 200
    assert (await world.call("GET", "/library", token)).status_code == 401


async def test_an_assertion_for_a_confidential_client_registers_no_agent_without_its_secret(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    client_id, _ = await confidential(world)

    _, answer = await register(world, provider.mint(ROOT_URL, client_id=client_id))

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_client_id")


@pytest.mark.parametrize("pair", ["a\0b:secret", "%00:secret", "x:%00", "a\0:"])
@pytest.mark.parametrize("path", ["/api/v1/auth/token", "/auth/revoke"])
async def test_a_nul_in_basic_credentials_is_not_a_server_error(world: World, path: str, pair: str) -> None:
    header = {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}

    answer = await world.http.post(path, data={"grant_type": "client_credentials", "token": "x"}, headers=header)

    assert answer.status_code in (400, 401), answer.text


async def test_an_anonymous_agent_reads_only_public_data(world: World) -> None:
    agent = await RegisteredAgent.anonymous(world)
    token = (await agent.exchange(agent.answer["identity_assertion"])).json()["access_token"]
    await world.product("north", "new-game")
    await world.product("north", "old-game", status="archived")

    shown_response = await world.call("GET", "/products/new-game", token)
    releases = await world.call("GET", "/products/new-game/releases", token)
    archived_response = await world.call("GET", "/products/old-game", token)

    assert [response.status_code for response in (shown_response, releases, archived_response)] == [200, 200, 404]


async def test_only_a_form_with_the_confirmation_allows_an_agent(world: World) -> None:
    pat = await Visitor.signed_in(world, "pat@example.com")
    agent = await RegisteredAgent.by_email(world, "pat@example.com")
    csrf = csrf_of(await pat.get(agent.other_link))

    for form in ({"deny": "yes"}, {}, {"confirm": ""}, {"user_code": "123456"}):
        response = await pat.send(agent.other_link, csrf=csrf, **form)
        assert "<output>" not in response.text
    csrf_token = csrf_of(await pat.get(agent.link))
    await pat.send(agent.link, csrf=csrf_token, user_code=agent.code)

    assert (await agent.poll()).json().get("status") != "claimed"


async def test_t34_an_agent_bound_before_the_address_was_proven_gets_nothing_of_a_later_role(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    agent, answer = await register(world, provider.mint(ROOT_URL, email="future@example.com"))
    token = (await agent.exchange(answer.json()["identity_assertion"])).json()["access_token"]
    await world.product("north", "secret-draft", status="draft")
    org = await queries.organisation_with_slug(world.store.database, "north")
    assert org is not None
    hidden_response = await world.call("GET", "/products/secret-draft", token)

    async with world.store.database.transaction() as transaction:
        await people.set_role(transaction, org.id, "future@example.com", "publisher")

    assert hidden_response.status_code == 404
    assert (await world.call("GET", "/products/secret-draft", token)).status_code != 200


async def test_pages_of_any_site_may_register(world: World) -> None:
    preflight = await world.http.options("/api/v1/auth/register", headers={"Origin": "https://app.example"})

    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("foreign_cookie", ['consent={"ads": false}', "a b=c", "list[0]=1", 't="q'])
async def test_a_cookie_of_a_neighbour_signs_no_user_out(world: World, foreign_cookie: str) -> None:
    pat = await Visitor.signed_in(world, "pat@example.com")
    own_cookies = "; ".join(f"{name}={value}" for name, value in pat.cookies.items())

    answer = await world.http.get("/auth/agents", headers={"Cookie": f"{foreign_cookie}; {own_cookies}"})

    assert answer.status_code == 200


async def test_t25_a_person_is_informed_by_email_that_an_agent_was_allowed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "PAUSES_S", (0.0,))
    pat = await Visitor.signed_in(world, "pat@example.com")
    agent = await RegisteredAgent.by_email(world, "pat@example.com")

    await pat.decide(agent.link, user_code=agent.code)
    await world.store.mail.drain()

    letters = transports.messages(Path(world.store.settings.data) / transports.OUTBOX_FOLDER)
    assert any(b"To: pat@example.com" in letter.read_bytes() for letter in letters)


async def test_t44_nothing_secret_of_a_claim_is_in_the_log(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    pat = await Visitor.signed_in(world, "pat@example.com")
    agent = await RegisteredAgent.by_email(world, "pat@example.com")
    link, code = agent.link, agent.code
    await pat.decide(link, user_code=code)
    assertion = (await agent.poll()).json()["identity_assertion"]
    token = (await agent.exchange(assertion)).json()["access_token"]
    await world.http.post("/auth/revoke", data={"token": token})
    await agent.complete("123456")

    log_text = "".join(capsys.readouterr())
    for secret in (agent.claim_token, link.partition("=")[2], code, assertion, token, "pat@example.com"):
        assert secret not in log_text


async def test_a_claim_ties_no_provider_that_the_agent_named_before_the_person(
    world: World, provider: IdentityProvider
) -> None:
    await provider.trust(world.store)
    await Visitor.signed_in(world, "mallory@example.com")
    pat = await Visitor.signed_in(world, "pat@example.com")
    agent, store = await RegisteredAgent.anonymous(world), world.store
    mallory = provider.mint(ROOT_URL, sub="mallory", email="mallory@example.com")
    body = {"type": "identity_assertion", "claim_token": agent.claim_token, "assertion": mallory}
    await world.http.post("/api/v1/auth/me", json=body)
    # What /auth/me/complete reads first, and what changes before it reads the attempt.
    read_before = await claim.registration_of_token(store, agent.claim_token)
    await agent.attempt_again("pat@example.com")
    await pat.decide(agent.other_link)
    attempt = await claim.latest_attempt(store.database, read_before.id)
    assert attempt is not None
    assert attempt.confirmed_by is not None

    with pytest.raises(claim.AttemptOver):
        async with store.database.transaction() as transaction:
            await claim.accept(transaction, attempt, read_before, attempt.confirmed_by)

    assert await store.database.fetch("SELECT * FROM delegation WHERE subject = 'mallory'") == []


async def test_t34_the_first_proof_of_an_address_ends_the_agents_that_a_provider_bound_to_it(
    world: World, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "PAUSES_S", (0.0,))
    await provider.trust(world.store)
    agent, answer = await register(world, provider.mint(ROOT_URL, email="future@example.com"))
    assertion = answer.json()["identity_assertion"]
    token = (await agent.exchange(assertion)).json()["access_token"]
    library_before = await agent.library(token)

    visitor = Mailed(world.store, world.http)
    opened_account = await visitor.open_account("future@example.com")

    assert (library_before.status_code, opened_account.status_code) == (200, 303)
    assert (await agent.library(token)).status_code == 401
    assert (await agent.exchange(assertion)).json()["error"] == "invalid_grant"
    _, later_answer = await register(world, provider.mint(ROOT_URL, email="future@example.com"))
    assert later_answer.json()["code"] == "interaction_required"


async def test_t32_a_dead_assertion_of_before_the_claim_ends_nothing(world: World) -> None:
    pat = await Visitor.signed_in(world, "pat@example.com")
    agent = await RegisteredAgent.anonymous(world)
    dead = agent.answer["identity_assertion"]
    await agent.attempt_again("pat@example.com")
    await pat.decide(agent.link, user_code=agent.code)
    token = (await agent.exchange((await agent.poll()).json()["identity_assertion"])).json()["access_token"]

    await world.http.post("/auth/revoke", data={"token": dead})

    assert (await agent.exchange(dead)).json()["error"] == "invalid_grant"
    assert (await agent.library(token)).status_code == 200


@pytest.mark.parametrize("letter", "\u202e\u2066\u200b\u00ad\u2028\r\0\u034f\u115f\u1160\u180b\u2800\u3164\uffa0")
@pytest.mark.parametrize("edge_word", ["", "App"])
async def test_the_names_of_a_consent_page_hold_nothing_that_is_unseen_or_turns_a_line_around(
    world: World, letter: str, edge_word: str
) -> None:
    owner = await world.person("owner@north.example", north="owner")
    name = f"{edge_word}{letter}{edge_word}"

    client = await world.call("POST", "/org/clients", owner, json={"name": name, "scopes": ["read:library"]})
    organisation = await world.call("PUT", "/org", owner, json={"name": name})

    assert (client.status_code, organisation.status_code) == (400, 400)


@pytest.mark.parametrize("path", ["/auth/authorize?client_id=x&client_id=y&state=s", "/auth/agents?x=y"])
async def test_t44_a_refused_page_is_not_cached(world: World, path: str) -> None:
    answer = await world.http.get(path)

    assert answer.status_code == 400
    assert answer.headers.get("cache-control") == "no-store"


async def test_a_resource_may_be_named_twice(world: World) -> None:
    basic = await confidential(world)
    form = f"grant_type=client_credentials&resource={ROOT_URL}&resource={ROOT_URL}/api/v1"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}

    answer = await world.http.post("/api/v1/auth/token", content=form, headers=headers, auth=basic)

    assert answer.status_code == 200


async def test_a_long_return_address_is_kept_by_the_links_of_the_sign_in_page(world: World) -> None:
    long_address = "/auth/authorize?state=" + "s" * 3_000
    page = await world.http.get("/auth/signin", params={"return_to": long_address})
    links = re.findall(r'href="(/auth/(?:signup|reset)\?[^"]+)"', page.text)

    answers = [await world.http.get(unescape(link)) for link in links]

    assert [answer.status_code for answer in answers] == [200, 200]


async def test_the_skill_lists_every_refusal_and_only_existing_addresses(world: World) -> None:
    skill = (await world.http.get("/auth.md")).text
    codes = {refusal.code for route in agents.ROUTES if not route.at_root for refusal in route.refusals}
    addresses = set(re.findall(rf"`{ROOT_URL}(/[a-z0-9/.-]+)`", skill))

    absent = [path for path in sorted(addresses) if (await world.http.get(path)).status_code == 404]

    assert sorted(code for code in codes if f"`{code}`" not in skill) == []
    assert absent == []
