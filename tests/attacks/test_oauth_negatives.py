"""Forbidden requests to the pages for sign-in and consent. Each has a control: the same request without its one fault
succeeds."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from countersign.store.app import ROUTES
from tests.contract.scenes import all_rows
from tests.store.auth.agents.people import RegisteredAgent, Visitor, csrf_of
from tests.store.auth.oauth.conftest import (
    BACK,
    ORIGIN,
    Browser,
    KnownClient,
    authorization_parameters,
    code_for,
    hidden_fields,
    new_client,
    new_person,
)
from tests.store.auth.oauth.conftest import redirect_parameters as sent_back
from tests.store.conftest import ROOT_URL
from tests.store.world import World

PAT = "pat@example.com"
ASK, CLAIM, AGENTS = "/auth/authorize", "/auth/claim", "/auth/agents"
FORMS = sorted(
    route.path for route in ROUTES if route.method == "POST" and route.at_root and "text/html" in route.produces
)
FOREIGN: list[list[tuple[str, str]]] = [
    [("Sec-Fetch-Site", "cross-site")],
    [("Sec-Fetch-Site", "same-site")],
    [("Sec-Fetch-Site", "cross-site"), ("Origin", ROOT_URL)],
    [("Sec-Fetch-Site", "same-site"), ("Origin", ROOT_URL)],
    [("Sec-Fetch-Site", "same-origin"), ("Origin", "https://evil.example")],
    [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "cross-site"), ("Origin", ROOT_URL)],
    [("Sec-Fetch-Site", "none")],
]


async def sessions_of(world: World) -> int:
    """Return the count of sessions."""
    row = await world.store.database.fetch_one("SELECT count(*) FROM session")
    assert row is not None
    return int(row[0])


def cookie_of(visitor: Visitor) -> str:
    """Return the cookie that the person's browser sends."""
    return "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())


async def attempts_of(world: World) -> list[Any]:
    """Return every attempt of a claim, and the owner of the registration."""
    select_attempts = (
        "SELECT a.*, r.status, r.person_id FROM claim_attempt a JOIN registration r ON r.id = a.registration_id"
    )
    return [tuple(row) for row in await world.store.database.fetch(f"{select_attempts} ORDER BY a.id")]


def test_every_form_is_tested() -> None:
    assert {ASK, CLAIM, AGENTS, "/auth/signin", "/auth/signout", "/auth/signup", "/auth/reset"} <= set(FORMS)


@pytest.mark.parametrize("path", [*FORMS, "/auth/session/token"])
async def test_sec_fetch_site_a_form_that_another_site_sends_does_nothing(world: World, path: str) -> None:
    person = await Visitor.signed_in(world, PAT)
    agent = await RegisteredAgent.by_email(world, PAT)
    client = await new_client(world)
    page = await person.get(agent.link)
    forms: dict[str, dict[str, str]] = {
        ASK: {**authorization_parameters(client), "csrf": csrf_of(page), "decision": "allow"},
        CLAIM: {"csrf": csrf_of(page), "user_code": agent.code, "confirm": "yes"},
        AGENTS: {"csrf": csrf_of(page), "id": agent.answer["registration_id"]},
        "/auth/signin": {"email": PAT, "password": "correct horse battery"},
        "/auth/setup": {"token": "none"},
        "/auth/signout": {},
    }
    target = {CLAIM: agent.link, "/auth/setup": f"{path}?token=none"}.get(path, path)
    request_body: dict[str, Any] = {
        "data": forms.get(path, {"email": PAT} if path != "/auth/prove" else {"token": "none"})
    }
    if path == "/auth/session/token":
        request_body = {"json": {"scope": "read:library"}}
    rows_before, signed_in = await all_rows(world.store), await sessions_of(world)

    for headers in FOREIGN:
        answer = await world.http.post(target, headers=[*headers, ("Cookie", cookie_of(person))], **request_body)
        assert answer.status_code == 403, (headers, answer.text)
        assert "set-cookie" not in answer.headers
        assert "location" not in answer.headers
    assert await all_rows(world.store) == rows_before
    assert await sessions_of(world) == signed_in
    own_headers = [("Sec-Fetch-Site", "same-origin"), ("Origin", ROOT_URL), ("Cookie", cookie_of(person))]
    assert (await world.http.post(target, headers=own_headers, **request_body)).status_code != 403


@pytest.mark.parametrize("page", ["typed", "shown"])
async def test_csrf_an_attempt_is_untouched_by_a_form_without_its_token_and_works_afterwards(
    world: World, page: str
) -> None:
    person, eve = await Visitor.signed_in(world, PAT), await Visitor.signed_in(world, "eve@example.com")
    agent = await RegisteredAgent.by_email(world, PAT)
    link = agent.link if page == "typed" else agent.other_link
    of_eve = csrf_of(await eve.get((await RegisteredAgent.by_email(world, eve.email)).link))
    attempts_before = await attempts_of(world)

    for decision in ({"confirm": "yes"}, {"decline": "yes"}):
        # More often than a code may be mistyped.
        for csrf in ("", "x", of_eve, csrf_of(await person.get(link))[:-2], "ä", "=" * 8):
            answer = await person.send(link, csrf=csrf, user_code=agent.code, **decision)
            assert (answer.status_code, answer.json()["code"]) == (403, "form_expired")
            assert await attempts_of(world) == attempts_before
    assert (await agent.poll()).json()["status"] == "pending"
    allowed_response = await person.decide(link, user_code=agent.code)

    assert allowed_response.status_code == 200
    assert await attempts_of(world) != attempts_before


async def test_csrf_a_consent_is_not_given_by_a_form_without_its_token_and_is_asked_for_afterwards(
    world: World,
) -> None:
    client = await new_client(world)
    browser = await sign_in_pat(world)
    fields = hidden_fields(await browser.get(ASK, authorization_parameters(client)))

    for csrf in ("", "x", fields["csrf"][:-2]):
        answer = await browser.post(ASK, {**fields, "csrf": csrf, "decision": "allow"})
        assert (answer.status_code, answer.json()["code"]) == (403, "form_expired")
    grants = await world.store.database.fetch("SELECT 1 FROM consent UNION ALL SELECT 1 FROM authorization_code")

    assert list(grants) == []
    assert (await browser.get(ASK, authorization_parameters(client))).status_code == 200
    assert "code" in sent_back(await browser.post(ASK, {**fields, "decision": "allow"}))


async def test_fixation_a_cookie_from_before_the_sign_in_is_invalid_after_the_sign_in(world: World) -> None:
    client = await new_client(world)
    eve = await Visitor.signed_in(world, "eve@example.com")
    await Visitor.signed_in(world, PAT)
    name = next(iter(eve.cookies))
    made_up = f"css_{'0' * 49}"
    for planted_cookie in (eve.cookies[name], made_up, "x"):
        form = {"email": PAT, "password": "correct horse battery"}
        signed_in = await world.http.post(
            "/auth/signin", data=form, headers={**ORIGIN, "Cookie": f"{name}={planted_cookie}"}
        )
        world.http.cookies.clear()

        new_cookie = signed_in.headers["set-cookie"].partition(";")[0]
        assert signed_in.status_code == 303
        assert new_cookie.partition("=")[2] not in ("", planted_cookie)
        assert PAT in (await seen_with(world, client, new_cookie)).text
        answer = await seen_with(world, client, f"{name}={planted_cookie}")
        assert PAT not in answer.text
        if planted_cookie == eve.cookies[name]:
            assert eve.email in answer.text
        else:
            assert answer.headers["location"].startswith("/auth/signin")


async def test_fixation_a_form_from_before_the_sign_in_is_refused_after_the_sign_in(world: World) -> None:
    client = await new_client(world)
    browser = await sign_in_pat(world)
    old = dict(browser.cookie)
    fields = hidden_fields(await browser.get(ASK, authorization_parameters(client)))
    await browser.sign_in(PAT)
    new_cookie = dict(browser.cookie)

    with_new_cookie = await browser.post(ASK, {**fields, "decision": "allow"})
    await browser.post("/auth/signout", {})
    signed_out = await browser.post(ASK, {**fields, "decision": "allow"})
    browser.cookie = old
    with_its_own = await browser.post(ASK, {**fields, "decision": "allow"})

    assert new_cookie != old
    assert (with_new_cookie.status_code, with_new_cookie.json()["code"]) == (403, "form_expired")
    assert signed_out.headers["location"].startswith("/auth/signin")
    assert "code" in sent_back(with_its_own)


@pytest.mark.parametrize("prompt", ["none", "none consent", "NONE", ""])
async def test_prompt_none_gets_no_code_that_the_person_did_not_allow(world: World, prompt: str) -> None:
    of_north = await new_client(world)
    created_body = (await world.http.post("/auth/clients", json={"redirect_uris": [BACK]})).json()
    stranger, browser = Browser(world), await sign_in_pat(world)
    for client in (of_north, KnownClient(created_body["client_id"], created_body["client_secret"])):
        authorization = {**authorization_parameters(client), "prompt": prompt}

        unknown = await stranger.get(ASK, authorization)
        known_response = await browser.get(ASK, authorization)
        posted_response = await browser.post(ASK, {**authorization, "decision": "allow"})

        assert unknown.headers["location"].startswith("/auth/signin")
        assert BACK not in unknown.headers["location"].partition("?")[0]
        assert known_response.status_code == 200
        assert "Deny" in known_response.text
        assert "location" not in known_response.headers
        assert (posted_response.status_code, posted_response.json()["code"]) == (403, "form_expired")
    grants = await world.store.database.fetch("SELECT 1 FROM consent UNION ALL SELECT 1 FROM authorization_code")
    assert list(grants) == []


async def test_prompt_none_widens_no_consent_that_was_given(world: World) -> None:
    client = await new_client(world)
    browser = await sign_in_pat(world)
    await code_for(browser, client, scope="read:library")

    wider = await browser.get(
        ASK, {**authorization_parameters(client, scope="read:library read:products"), "prompt": "none"}
    )
    same_response = await browser.get(ASK, {**authorization_parameters(client, scope="read:library"), "prompt": "none"})

    assert wider.status_code == 200
    assert "see listings" in wider.text
    assert parse_qs(urlsplit(same_response.headers["location"]).query)["code"]


async def sign_in_pat(world: World) -> Browser:
    """Return Pat's browser, which is signed in."""
    await new_person(world, PAT)
    browser = Browser(world)
    await browser.sign_in(PAT)
    return browser


async def seen_with(world: World, client: KnownClient, cookie: str) -> httpx.Response:
    """Return the consent page, as a browser with this cookie sees it."""
    return await world.http.get(ASK, params=authorization_parameters(client), headers={"Cookie": cookie})
