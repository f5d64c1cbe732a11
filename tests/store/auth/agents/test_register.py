"""Registration in both dialects: responses, refusals and limits."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from countersign.kernel.http.rate_limit import RateLimited
from countersign.settings import Settings
from countersign.store.auth.agents import registration_limits
from countersign.store.auth.agents.registrations import Kind
from countersign.store.context import Store
from tests.store.auth.agents.people import RegisteredAgent, Visitor
from tests.store.world import World

ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
READING = ["read:products", "read:releases", "read:library"]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings that allow only a few registrations per hour, so that the test reaches the limits."""
    return replace(settings, rate_register=3, register_anonymous_all=5)


@pytest.mark.parametrize("body", [{"method": "anonymous"}, {"type": "anonymous"}, {"type": "anonymous", "odd": [1]}])
async def test_an_anonymous_agent_may_read_at_once_and_be_claimed_later(world: World, body: dict[str, Any]) -> None:
    agent = RegisteredAgent(world.http)

    answer = await agent.register(body)

    registration = answer.json()
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert registration["registration_id"] == registration["id"]
    assert registration["registration_type"] == registration["type"] == "anonymous"
    assert registration["pre_claim_scopes"] == registration["scopes"]["pre_claim"] == READING[:2]
    assert registration["post_claim_scopes"] == registration["scopes"]["post_claim"] == READING
    assert registration["identity_assertion"] == registration["identity"]["assertion"]
    assert registration["claim_token"] == registration["claim"]["token"]
    assert registration["claim_url"] == "http://127.0.0.1:8480/api/v1/auth/me"
    assert "user_code" not in registration["claim"]


@pytest.mark.parametrize(
    "body",
    [
        {"method": "service_auth", "email": " Pat@Example.com "},
        {"type": "service_auth", "login_hint": "pat@example.com"},
        {"type": "service_auth", "method": "service_auth", "login_hint": "pat@example.com", "email": "pat@example.com"},
    ],
)
async def test_an_agent_names_its_person_in_either_dialect(world: World, body: dict[str, Any]) -> None:
    agent = RegisteredAgent(world.http)

    answer = await agent.register(body)

    response_body = answer.json()
    assert answer.status_code == 200
    assert "identity_assertion" not in response_body
    assert response_body["scopes"] == {"post_claim": READING}
    claim = response_body["claim"]
    assert len(claim["user_code"]) == 9
    assert claim["verification_uri"] != claim["attempt"]["verification_uri"]
    assert claim["verification_uri"].startswith("http://127.0.0.1:8480/auth/claim?claim_attempt_token=cat_")
    assert claim["interval"] == 5
    assert 590 <= claim["expires_in"] <= 600


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid_request"),
        ({"type": "anonymous", "method": "service_auth"}, "invalid_request"),
        ({"type": "anonymous", "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer"}, "invalid_request"),
        ({"type": "refresh"}, "unsupported_identity_type"),
        ({"grant_type": "password"}, "unsupported_identity_type"),
        ({"type": 7}, "invalid_request"),
        ({"type": "service_auth"}, "invalid_login_hint"),
        ({"type": "service_auth", "email": "nobody"}, "invalid_login_hint"),
        ({"type": "service_auth", "email": "a b@example.com"}, "invalid_login_hint"),
        ({"type": "service_auth", "email": "a@b@example.com"}, "invalid_login_hint"),
        ({"type": "service_auth", "email": "a@example.com\r\nBcc: b@example.com"}, "invalid_login_hint"),
        ({"type": "service_auth", "email": "a@example.com", "login_hint": "b@example.com"}, "invalid_login_hint"),
        ({"type": "anonymous", "scope": "read:everything"}, "invalid_scope"),
        ({"type": "anonymous", "scope": "admin:org"}, "invalid_scope"),
        ({"type": "identity_assertion"}, "invalid_request"),
        ({"type": "identity_assertion", "assertion_type": ID_JAG}, "invalid_request"),
    ],
)
async def test_a_wrong_registration_is_refused_with_the_error(world: World, body: dict[str, Any], code: str) -> None:
    answer = await RegisteredAgent(world.http).register(body)

    error_body = answer.json()
    assert (answer.status_code, error_body["code"], error_body["error"]) == (400, code, code)
    assert error_body["message"] == error_body["detail"] == error_body["error_description"]
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"


async def test_registration_accepts_only_json(world: World) -> None:
    response = await world.http.post("/api/v1/auth/register", data={"type": "anonymous"})

    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")


async def test_a_huge_registration_is_not_read(world: World) -> None:
    answer = await RegisteredAgent(world.http).register({"type": "anonymous", "odd": "x" * 70_000})

    assert answer.status_code == 413


async def test_t23_registration_never_grants_administration(world: World) -> None:
    pat = await Visitor.signed_in(world, "pat@example.com", north="owner")
    agent = await RegisteredAgent.by_email(world, "pat@example.com", "read:library admin:org write:releases")

    await pat.decide(agent.link, user_code=agent.code)
    body = (await agent.poll()).json()

    assert body["scopes"] == ["write:releases", "read:library"]


async def test_the_write_scopes_of_an_agent_follow_the_persons_role(world: World) -> None:
    pat = await Visitor.signed_in(world, "pat@example.com", north="publisher")
    agent = await RegisteredAgent.by_email(world, "pat@example.com", "read:library write:products")

    await pat.decide(agent.link, user_code=agent.code)

    assert (await agent.poll()).json()["scopes"] == ["write:products", "read:library"]


async def test_t43_a_known_and_an_unknown_address_are_answered_alike(world: World) -> None:
    await Visitor.signed_in(world, "known@example.com")

    known_answer = await RegisteredAgent(world.http).register({"type": "service_auth", "email": "known@example.com"})
    unknown = await RegisteredAgent(world.http).register({"type": "service_auth", "email": "other@example.com"})

    assert shape(known_answer) == shape(unknown)


def shape(answer: httpx.Response) -> object:
    """Return the status, the names of the headers, the members and their lengths."""

    def of(value: object) -> object:
        if isinstance(value, dict):
            return {name: of(member) for name, member in value.items()}
        return [len(value), type(value)] if isinstance(value, str | list) else type(value)

    return answer.status_code, sorted(answer.headers), of(answer.json())


async def test_t47_registrations_from_one_address_are_limited(world: World) -> None:
    for _ in range(3):
        assert (await RegisteredAgent(world.http).register({"type": "anonymous"})).status_code == 200

    answer = await RegisteredAgent(world.http).register({"type": "anonymous"}, **{"X-Forwarded-For": "203.0.113.9"})

    body = answer.json()
    assert (answer.status_code, body["code"], body["error"]) == (429, "rate_limit_exceeded", "rate_limited")
    assert 3590 <= int(answer.headers["retry-after"]) <= 3600
    assert (
        await RegisteredAgent(world.http).register({"type": "service_auth", "email": "a@example.com"})
    ).status_code == 200


async def test_t47_the_registrations_of_a_caller_are_limited_over_all_addresses(world: World) -> None:
    for number in range(3):
        body = {"type": "service_auth", "email": f"a{number}@example.com"}
        assert (await RegisteredAgent(world.http).register(body)).status_code == 200

    assert (
        await RegisteredAgent(world.http).register({"type": "service_auth", "email": "b@example.com"})
    ).status_code == 429


@pytest.mark.parametrize(("kind", "limit"), [("anonymous", 20), ("service_auth", 20), ("identity_assertion", 60)])
async def test_t47_each_kind_of_registration_has_its_own_limit_for_each_address(
    store: Store, kind: Kind, limit: int
) -> None:
    unset = replace(store, settings=replace(store.settings, rate_register=0, register_anonymous_all=1000))

    for _ in range(limit):
        await registration_limits.count_registration(unset, kind, "192.0.2.1")

    with pytest.raises(RateLimited):
        await registration_limits.count_registration(unset, kind, "192.0.2.1")
    await registration_limits.count_registration(unset, kind, "192.0.2.2")


async def test_t47_one_e_mail_is_named_five_times_in_an_hour(store: Store) -> None:
    unset = replace(store, settings=replace(store.settings, rate_register=0))

    for _ in range(5):
        await registration_limits.count_claim_of_person(unset, "a@example.com")

    with pytest.raises(RateLimited):
        await registration_limits.count_claim_of_person(unset, "a@example.com")


async def test_t47_all_addresses_together_have_a_limit(store: Store) -> None:
    for number in range(5):
        await registration_limits.count_registration(store, "anonymous", f"192.0.2.{number}")

    with pytest.raises(RateLimited):
        await registration_limits.count_registration(store, "anonymous", "192.0.2.9")


async def test_the_operator_can_close_a_door(store: Store, http: httpx.AsyncClient) -> None:
    # The settings of the store are immutable, so the store with other settings is a copy.
    world = World(replace(store, settings=replace(store.settings, agents_anonymous=False, agents_by_email=False)), http)
    from countersign.store import app

    transport = httpx.ASGITransport(app.create(world.store), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8480") as closed_client:
        anonymous = await RegisteredAgent(closed_client).register({"type": "anonymous"})
        by_email = await RegisteredAgent(closed_client).register({"type": "service_auth", "email": "a@example.com"})

    assert (anonymous.status_code, anonymous.json()["code"]) == (403, "anonymous_not_enabled")
    assert (by_email.status_code, by_email.json()["code"]) == (403, "service_auth_not_enabled")


async def test_the_name_of_an_agent_is_shown_as_harmless_text(world: World) -> None:
    pat = await Visitor.signed_in(world, "pat@example.com")
    agent = RegisteredAgent(world.http)
    name = "<script>alert(1)</script>\u202e" + "x" * 500
    body = {"type": "service_auth", "email": "pat@example.com"}
    response = await world.http.post("/api/v1/auth/register", json=body, headers={b"User-Agent": name.encode()})
    agent.answer = response.json()

    page = await pat.get(agent.link)

    assert "<script>" not in page.text
    assert "&lt;script&gt;alert(1)" in page.text
    assert "x" * 121 not in page.text


async def test_t50_a_registration_inside_another_request_is_refused(world: World) -> None:
    body = {"operations": [{"method": "POST", "path": "/auth/register", "body": {"type": "anonymous"}}]}

    response = await world.http.post("/api/v1/batch", json=body)

    (result,) = response.json()["results"]
    assert (response.status_code, result["status"], result["body"]["code"]) == (200, 400, "not_batchable")
