"""Clients that register themselves (RFC 7591): what they get, what they may not do, and which of them expire."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape

import httpx
import pytest

from countersign.kernel import clock
from countersign.kernel.clock import SECOND
from countersign.settings import Settings
from countersign.store import app as store_app
from countersign.store.auth import queries, tokens
from countersign.store.auth.oauth import clients
from countersign.store.auth.schemas import ClientMetadata
from countersign.store.context import Store
from tests.store.auth.oauth.conftest import (
    BACK,
    STATE,
    Browser,
    KnownClient,
    authorization_parameters,
    code_for,
    exchange,
    hidden_fields,
    link_parameters,
    new_client,
    oauth_refusal,
    redirect_parameters,
)
from tests.store.conftest import ROOT_URL
from tests.store.lock_waits import LockWaits
from tests.store.world import World

REGISTER = "/auth/clients"
AUTHORIZE = "/auth/authorize"
SERVER_METADATA = "/.well-known/oauth-authorization-server"
DAY_S = 86_400


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings in which registrations are limited only in the tests that need it."""
    return replace(settings, rate_register=1_000_000)


async def register(world: World, **members: object) -> httpx.Response:
    """Register a client for BACK, and return the response."""
    return await world.http.post(REGISTER, json={"redirect_uris": [BACK], **members})


async def new_dynamic(world: World, **members: object) -> KnownClient:
    """Create a client that registers itself."""
    answer = await register(world, **members)
    assert answer.status_code == 201, answer.text
    return KnownClient(answer.json()["client_id"], answer.json()["client_secret"])


async def count_unused(world: World) -> int:
    """Return the number of self-registered clients that no person has used yet."""
    row = await world.store.database.fetch_one("SELECT count(*) FROM dynamic_client WHERE used_at IS NULL")
    assert row is not None
    return int(row[0])


async def backdate_registration(world: World, client: KnownClient, days: int) -> None:
    """Date the registration of a client back by some days."""
    async with world.store.database.transaction() as transaction:
        time_moved = days * DAY_S * SECOND
        await transaction.run(
            "UPDATE dynamic_client SET created_at = created_at - $2 WHERE id = $1", client.id, time_moved
        )


async def test_a_client_registers_itself_and_gets_a_token_when_a_person_allows_it(
    world: World, browser: Browser, ann: str
) -> None:
    registration_url = (await world.http.get(SERVER_METADATA)).json()["registration_endpoint"]
    metadata = {
        "client_name": "Editor",
        "redirect_uris": [BACK],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "scope": "read:products read:library admin:org openid",
        "software_id": "unknown members are ignored",
    }

    answer = await world.http.post(registration_url, json=metadata)

    body = answer.json()
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    assert registration_url == ROOT_URL + REGISTER
    assert body["client_secret"].startswith("ccs_")
    assert body["client_secret_expires_at"] == 0
    assert abs(body["client_id_issued_at"] - clock.now() // SECOND) < 60
    assert body["grant_types"] == ["authorization_code"]
    assert body["response_types"] == ["code"]
    assert body["token_endpoint_auth_method"] == "client_secret_post"
    assert (body["scope"], body["redirect_uris"]) == ("read:products read:library", [BACK])
    client = KnownClient(body["client_id"], body["client_secret"])
    token = (await exchange(world, client, await code_for(browser, client))).json()
    assert token["scope"] == "read:library"
    me = (await world.call("GET", "/auth/me", token["access_token"])).json()
    assert (me["sub"], me["client_id"]) == (ann, client.id)
    assert (await world.call("GET", "/library", token["access_token"])).status_code == 200


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_client_keeps_its_named_authentication_method(world: World, method: str) -> None:
    assert (await register(world, token_endpoint_auth_method=method)).json()["token_endpoint_auth_method"] == method


async def test_a_client_registered_without_scopes_may_request_all_scopes_except_administration(world: World) -> None:
    scopes = set((await register(world)).json()["scope"].split())

    assert scopes == {"read:products", "write:products", "read:releases", "write:releases", "read:library"}


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"redirect_uris": None}, "invalid_redirect_uri"),
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": [BACK] * 11}, "invalid_redirect_uri"),
        ({"redirect_uris": [BACK, "http://app.example/back"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["data:text/html,x"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["com.example.app:/back"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://app.example/back#part"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://app.example@evil.example/back"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://app.example\\@evil.example/"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://*.example/back"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://аpp.example/back"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://127.0.0.1.evil.example/cb"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://127.0.0.1:1@evil.example/cb"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://app.example/back\r\nX: y"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [f"{ROOT_URL}/auth/claim"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [f"{ROOT_URL.replace('127.0.0.1', 'localhost')}/cb"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [f"{ROOT_URL.replace('127.0.0.1', '[::1]')}/cb"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["//app.example/back"]}, "invalid_redirect_uri"),
        ({"grant_types": ["client_credentials"]}, "invalid_client_metadata"),
        ({"grant_types": ["implicit"], "response_types": ["token"]}, "invalid_client_metadata"),
        ({"grant_types": ["urn:ietf:params:oauth:grant-type:jwt-bearer"]}, "invalid_client_metadata"),
        ({"response_types": ["token"]}, "invalid_client_metadata"),
        ({"scope": "admin:org"}, "invalid_client_metadata"),
        ({"scope": "openid"}, "invalid_client_metadata"),
        ({"client_name": 7}, "invalid_request"),
        ({"redirect_uris": BACK}, "invalid_request"),
    ],
)
async def test_invalid_client_metadata_is_refused_and_not_stored(
    world: World, members: dict[str, object], error: str
) -> None:
    answer = await register(world, **members)

    assert oauth_refusal(answer) == (400, error)
    assert await count_unused(world) == 0


@pytest.mark.parametrize("uri", ["https://store.example./cb", "https://STORE.example:443/cb"])
async def test_another_spelling_of_the_services_host_is_refused_too(world: World, uri: str) -> None:
    store = replace(world.store, root_url="https://store.example")

    with pytest.raises(clients.InvalidRedirectUri, match="must not be an address of this service"):
        await clients.register_client(store, ClientMetadata(redirect_uris=[uri]), "127.0.0.1")


@pytest.mark.parametrize(
    ("name", "shown_text"),
    [
        ("Editor 2.0", "“Editor 2 0”"),
        ("Jürgen's & Co", "“Jurgen's & Co”"),
        ("Coun\u200btersign\u202e evil\u2069\x07", "“Coun tersign evil”"),
        ("\u0421ountersign", "“ountersign”"),
        ("Ｃｏｕｎｔｅｒｓｉｇｎ", "“Countersign”"),
        ("G\u0301\u0301oogle", "“Google”"),
        ("App”, verified by “North", "“App verified by North”"),
        ("App<script>alert(1)</script>", "“App script alert 1 script”"),
        ("https://countersign.example/signin", "“https countersign example signin”"),
        ("\u0410\u0440\u0440\u04cf\u0435", "without a name"),
        ("\u2800\u3164\u00ad", "without a name"),
        ("", "without a name"),
        ("x" * 2_000, f"“{'x' * 60}”"),
    ],
)
async def test_the_consent_page_shows_the_host_and_a_name_that_cannot_deceive(
    world: World, browser: Browser, name: str, shown_text: str
) -> None:
    client = await new_dynamic(world, client_name=name)

    page = await browser.get(AUTHORIZE, authorization_parameters(client))

    text = unescape(re.sub(r"<[^>]+>", "", page.text))
    assert page.status_code == 200
    assert shown_text in text
    for expected_text in ("not verified", "https://app.example", "registered itself", "Allow app.example?"):
        assert expected_text in text
    body = page.text.partition("<body")[2].replace("“", "").replace("”", "")
    assert body.isascii()
    assert "<script" not in page.text


async def test_the_page_names_a_program_on_the_persons_own_computer(world: World, browser: Browser) -> None:
    address = "http://localhost:3030/callback"
    client = await new_dynamic(world, redirect_uris=[address])

    page = await browser.get(AUTHORIZE, authorization_parameters(client, redirect_uri=address))

    assert "a program on your own computer (<strong>http://localhost:3030</strong>)" in page.text


async def test_the_host_of_a_client_is_shown_in_lower_case(world: World, browser: Browser) -> None:
    address = "https://paypaI.example/back"
    client = await new_dynamic(world, redirect_uris=[address])

    page = await browser.get(AUTHORIZE, authorization_parameters(client, redirect_uri=address))

    assert "https://paypai.example" in page.text
    assert "paypaI.example</" not in page.text


@pytest.mark.parametrize(
    "address",
    [
        f"{BACK}/",
        f"{BACK}?more=1",
        "https://APP.example/back",
        "https://app.example:443/back",
        "http://127.0.0.1:3031/cb",
        "http://127.0.0.1/cb",
        "http://localhost:3030/cb",
        "http://127.0.0.1:3030/other",
    ],
)
async def test_people_are_redirected_only_to_the_exact_registered_address(
    world: World, browser: Browser, address: str
) -> None:
    client = await new_dynamic(world, redirect_uris=[BACK, "http://127.0.0.1:3030/cb"])
    await code_for(browser, client, redirect_uri="http://127.0.0.1:3030/cb")

    answer = await browser.get(AUTHORIZE, authorization_parameters(client, redirect_uri=address))

    assert answer.status_code == 400
    assert "location" not in answer.headers


async def test_every_consent_is_requested_again(world: World, browser: Browser) -> None:
    client = await new_dynamic(world)
    organisation_client = await new_client(world)
    await code_for(browser, client)
    await code_for(browser, organisation_client)

    second_response = await browser.get(AUTHORIZE, authorization_parameters(client))
    known_response = await browser.get(AUTHORIZE, authorization_parameters(organisation_client))

    assert second_response.status_code == 200
    assert "not verified" in second_response.text
    assert "code" in redirect_parameters(known_response)


async def test_a_client_cannot_exceed_its_registered_and_allowed_scopes(
    world: World, browser: Browser
) -> None:
    client = await new_dynamic(world, scope="read:library read:products")

    wider = await browser.get(
        AUTHORIZE, authorization_parameters(client, scope="read:library write:products admin:org")
    )
    beyond_response = await browser.get(AUTHORIZE, authorization_parameters(client, scope="write:products"))
    code = redirect_parameters(await browser.decide(wider, "allow"))["code"]
    wider_answer = await exchange(world, client, code, scope="read:library read:products")

    assert "publish" not in wider.text
    assert "administer" not in wider.text
    assert link_parameters(beyond_response)["error"] == "invalid_scope"
    assert wider_answer.json()["scope"] == "read:library"


async def test_a_code_is_its_only_grant(world: World, browser: Browser) -> None:
    client = await new_dynamic(world)
    token_path = "/api/v1/auth/token"
    bearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

    credentials = await world.http.post(token_path, data={"grant_type": "client_credentials"}, auth=client)
    assertion = await world.http.post(token_path, data={"grant_type": bearer, "assertion": "a.e30.c"}, auth=client)
    implicit = await browser.get(AUTHORIZE, authorization_parameters(client, response_type="token"))
    without_proof = await browser.get(
        AUTHORIZE, authorization_parameters(client, code_challenge="", code_challenge_method="")
    )
    code = await code_for(browser, client)
    without_secret = {"grant_type": "authorization_code", "code": code, "redirect_uri": BACK, "client_id": client.id}

    assert oauth_refusal(credentials) == (400, "unauthorized_client")
    assert assertion.status_code == 400
    assert link_parameters(implicit, mark="#")["error"] == "unauthorized_client"
    assert link_parameters(without_proof)["error"] == "invalid_request"
    assert oauth_refusal(await world.http.post(token_path, data=without_secret)) == (401, "invalid_client")
    assert oauth_refusal(await exchange(world, client, code, code_verifier="w" * 43)) == (400, "invalid_grant")


async def test_a_token_issued_for_the_client_itself_is_refused(world: World) -> None:
    client = await new_dynamic(world)
    forged_token = tokens.issue(world.store, client.id, client.id, frozenset({"read:products"}))

    assert (await world.call("GET", "/auth/me", forged_token)).status_code == 401


async def test_one_address_registers_20_clients_an_hour(world: World) -> None:
    store = replace(world.store, settings=replace(world.store.settings, rate_register=0))
    transport = httpx.ASGITransport(store_app.create(store), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as http:
        answers = [(await http.post(REGISTER, json={"redirect_uris": [BACK]})).status_code for _ in range(21)]

    assert answers == [201] * 20 + [429]


async def test_the_oldest_of_too_many_unused_clients_end(
    world: World, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "MAX_UNUSED", 3)
    used_client = await new_dynamic(world)
    await code_for(browser, used_client)
    first_client, *other_clients = [await new_dynamic(world) for _ in range(3)]

    last_client = await new_dynamic(world)

    assert await count_unused(world) == 3
    assert (await browser.get(AUTHORIZE, authorization_parameters(first_client))).status_code == 400
    for client in (used_client, *other_clients, last_client):
        assert (await browser.get(AUTHORIZE, authorization_parameters(client))).status_code == 200


async def test_concurrent_registrations_leave_at_most_the_allowed_number_of_unused_clients(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "MAX_UNUSED", 3)

    flood = await asyncio.gather(*(register(world) for _ in range(16)))
    await new_dynamic(world)

    assert [answer.status_code for answer in flood] == [201] * 16
    assert await count_unused(world) == 3


async def test_an_unused_client_ends_after_30_days(world: World, browser: Browser) -> None:
    used_client, fresh_client, old = [await new_dynamic(world) for _ in range(3)]
    await code_for(browser, used_client)
    for client, days in ((used_client, 31), (fresh_client, 29), (old, 31)):
        await backdate_registration(world, client, days)

    statuses = [
        (await browser.get(AUTHORIZE, authorization_parameters(client))).status_code
        for client in (used_client, fresh_client, old)
    ]
    async with world.store.database.transaction() as transaction:
        ended_count = await clients.delete_unused(transaction)

    # The service refuses an expired client at once, although maintenance removes its row later.
    assert statuses == [200, 200, 400]
    assert ended_count == 1
    assert await queries.client(world.store.database, old.id) is None


async def age(world: World, client: KnownClient, days: int) -> None:
    """Date everything about a client back by some days."""
    time_moved = days * DAY_S * SECOND
    async with world.store.database.transaction() as transaction:
        for statement in (
            "UPDATE dynamic_client SET created_at = created_at - $2, used_at = used_at - $2 WHERE id = $1",
            "UPDATE consent SET created_at = created_at - $2, used_at = used_at - $2 WHERE client_id = $1",
        ):
            await transaction.run(statement, client.id, time_moved)


async def test_an_unused_client_is_removed_with_its_grants(
    world: World, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    exchanged, allowed_again, used_client, old = [await new_dynamic(world) for _ in range(4)]
    organisation_client = await new_client(world)
    tokens_of = {
        client.id: (await exchange(world, client, await code_for(browser, client))).json()["access_token"]
        for client in (exchanged, allowed_again, used_client, old, organisation_client)
    }
    for client in (exchanged, allowed_again, used_client, old):
        await age(world, client, 181)
    await age(world, exchanged, -2)
    await code_for(browser, allowed_again)
    await world.call("GET", "/library", tokens_of[used_client.id])
    capsys.readouterr()

    await store_app.run_maintenance(world.store)

    statuses = [
        (await browser.get(AUTHORIZE, authorization_parameters(client))).status_code
        for client in (exchanged, allowed_again, used_client, old)
    ]
    assert statuses == [200, 200, 200, 400]
    logged = [line for line in capsys.readouterr().err.splitlines() if '"client ended"' in line]
    assert [old.id in line for line in logged] == [True]
    assert (await world.call("GET", "/library", tokens_of[old.id])).status_code == 401
    assert (await world.call("GET", "/library", tokens_of[organisation_client.id])).status_code == 200
    for table in ("consent", "authorization_code"):
        row = await world.store.database.fetch_one(f"SELECT count(*) FROM {table} WHERE client_id = $1", old.id)
        assert row == (0,), table


@pytest.mark.parametrize(("days", "status"), [(29, 200), (31, 400)])
async def test_a_client_without_consents_ends_30_days_after_its_last_use(
    world: World, browser: Browser, days: int, status: int
) -> None:
    taken_back, wanted_client = await new_dynamic(world), await new_dynamic(world, redirect_uris=[f"{BACK}/2"])
    await exchange(world, taken_back, await code_for(browser, taken_back))
    await browser.post("/auth/agents", hidden_fields(await browser.get("/auth/agents")))
    await exchange(world, wanted_client, await code_for(browser, wanted_client, redirect_uri=f"{BACK}/2"))
    for client in (taken_back, wanted_client):
        await age(world, client, days)

    await store_app.run_maintenance(world.store)

    assert (await browser.get(AUTHORIZE, authorization_parameters(taken_back))).status_code == status
    assert (
        await browser.get(AUTHORIZE, authorization_parameters(wanted_client, redirect_uri=f"{BACK}/2"))
    ).status_code == 200


async def test_a_setting_limits_how_long_an_idle_client_exists(world: World, browser: Browser) -> None:
    store = replace(world.store, settings=replace(world.store.settings, dynamic_client_days=7))
    client = await new_dynamic(world)
    await exchange(world, client, await code_for(browser, client))
    ended_counts: list[int] = []

    for days in (6, 8):
        with clock.fixed(clock.later(clock.now(), seconds=days * DAY_S)):
            async with store.database.transaction() as transaction:
                ended_counts.append(await clients.delete_idle(transaction, store.settings.dynamic_client_days))

    assert ended_counts == [0, 1]


async def test_a_client_removed_during_a_consent_gets_no_grant(
    world: World, browser: Browser, lock_waits: LockWaits
) -> None:
    client = await new_dynamic(world)
    page = await browser.get(AUTHORIZE, authorization_parameters(client))

    async with world.store.database.transaction() as transaction:
        await transaction.run("DELETE FROM dynamic_client WHERE id = $1", client.id)
        decision = asyncio.create_task(browser.decide(page, "allow"))
        # The request has found the client, which exists for other transactions until this one ends.
        await lock_waits.reach(1)
    answer = await decision

    assert answer.status_code == 400
    assert "location" not in answer.headers
    assert list(await world.store.database.fetch("SELECT 1 FROM consent")) == []


async def test_a_registered_client_is_shown_and_removed_on_the_page_of_connected_agents(
    world: World, browser: Browser
) -> None:
    client = await new_dynamic(world, client_name="Editor")
    token = (await exchange(world, client, await code_for(browser, client))).json()["access_token"]

    page = await browser.get("/auth/agents")
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.text))
    status_before = (await world.call("GET", "/library", token)).status_code
    await browser.post("/auth/agents", fields)

    assert "<h2>app.example</h2>" in page.text
    assert "https://app.example that registered itself and calls itself “Editor” (not verified)" in page.text
    assert status_before == 200
    assert (await world.call("GET", "/library", token)).status_code == 401


@pytest.mark.parametrize(("name", "claim"), [("GitHub", "calls itself “GitHub”"), ("", "has no name")])
async def test_a_client_is_listed_only_under_the_site_of_its_consent(
    world: World, browser: Browser, name: str, claim: str
) -> None:
    good_address, evil = "https://github.com/cb", "https://evil.example/cb"
    client = await new_dynamic(world, client_name=name, redirect_uris=[good_address, evil])
    await code_for(browser, client, redirect_uri=evil)

    of_one = (await browser.get("/auth/agents")).text
    await code_for(browser, client, redirect_uri=good_address)
    of_both = (await browser.get("/auth/agents")).text

    assert "<h2>evil.example</h2>" in of_one
    assert f"https://evil.example that registered itself and {claim} (not verified)" in of_one
    assert "github.com" not in of_one
    assert "<h2>evil.example, github.com</h2>" in of_both


async def test_a_site_is_forgotten_when_the_person_revokes_its_consent(world: World, browser: Browser) -> None:
    other_site = "https://other.example/cb"
    client = await new_dynamic(world, redirect_uris=[BACK, other_site])
    await code_for(browser, client)
    await browser.post("/auth/agents", hidden_fields(await browser.get("/auth/agents")))

    await code_for(browser, client, redirect_uri=other_site)

    assert "<h2>other.example</h2>" in (await browser.get("/auth/agents")).text


async def test_a_consent_stored_without_a_site_names_every_possible_site(
    world: World, browser: Browser
) -> None:
    client = await new_dynamic(world, redirect_uris=["https://github.com/cb", BACK])
    await code_for(browser, client)
    async with world.store.database.transaction() as transaction:
        await transaction.run("UPDATE consent SET sites = '[]'")

    assert "<h2>app.example or github.com</h2>" in (await browser.get("/auth/agents")).text


async def test_a_consent_stored_without_a_site_stays_without_a_site_when_repeated(
    world: World, browser: Browser
) -> None:
    client = await new_dynamic(world, redirect_uris=["https://github.com/cb", BACK])
    await code_for(browser, client)
    async with world.store.database.transaction() as transaction:
        await transaction.run("UPDATE consent SET sites = '[]'")

    await code_for(browser, client, redirect_uri="https://github.com/cb")

    assert "<h2>app.example or github.com</h2>" in (await browser.get("/auth/agents")).text


REQUEST_VARIATIONS = [
    {"response_type": kind, "scope": scope, "code_challenge_method": method, "resource": resource, "prompt": prompt}
    for kind in ("code", "token", "id_token", "")
    for scope in ("read:library", "write:products", "openid", "admin:org")
    for method in ("S256", "plain")
    for resource in ("", "https://other.example")
    for prompt in ("", "none")
]


@pytest.mark.parametrize(
    "address", [BACK, "http://127.0.0.1:3030/cb", "http://localhost:3030/cb?a=b", "http://[::1]:3/cb"]
)
async def test_no_person_is_redirected_to_an_unverified_client_before_they_decide(
    world: World, browser: Browser, address: str
) -> None:
    client = await new_dynamic(world, redirect_uris=[address])
    await browser.decide(await browser.get(AUTHORIZE, authorization_parameters(client, redirect_uri=address)), "allow")
    stranger = Browser(world)

    for changes in (*REQUEST_VARIATIONS, {"prompt": "none"}, {"response_mode": "fragment"}, {"code_challenge": ""}):
        parameters = {**authorization_parameters(client, redirect_uri=address), **changes}
        signed_out = await stranger.get(AUTHORIZE, parameters)
        signed_in = await browser.get(AUTHORIZE, parameters)
        posted_response = await browser.post(AUTHORIZE, {**parameters, "decision": "deny"})

        assert signed_out.headers["location"].startswith("/auth/signin?")
        for answer in (signed_in, posted_response):
            assert "location" not in answer.headers, changes
            assert "refresh" not in answer.text


@pytest.mark.parametrize("address", [BACK, "http://127.0.0.1:3030/cb"])
async def test_the_page_of_a_wrong_request_names_the_host_and_leads_back_by_a_click(
    world: World, browser: Browser, address: str
) -> None:
    client = await new_dynamic(world, redirect_uris=[address])

    page = await browser.get(AUTHORIZE, authorization_parameters(client, redirect_uri=address, code_challenge=""))
    denied_answer = await browser.decide(
        await browser.get(AUTHORIZE, authorization_parameters(client, redirect_uri=address)), "deny"
    )

    link = link_parameters(page, address)
    assert (link["error"], link["state"], link["iss"]) == ("invalid_request", STATE, ROOT_URL)
    assert "not verified" in page.text
    assert "<script" not in page.text
    assert redirect_parameters(denied_answer, address)["error"] == "access_denied"


async def test_disabled_registration_is_not_offered_and_ends_existing_clients(
    world: World, browser: Browser, opened_with: Callable[[Store], httpx.AsyncClient]
) -> None:
    client = await new_dynamic(world)
    code = await code_for(browser, client)
    closed_store = replace(world.store, settings=replace(world.store.settings, dynamic_clients=False))
    async with opened_with(closed_store) as http:
        server = (await http.get(SERVER_METADATA)).json()
        registration = await http.post(REGISTER, json={"redirect_uris": [BACK]})
        response = await http.get(AUTHORIZE, params=authorization_parameters(client), headers=browser.cookie)
        exchanged_response = await exchange(World(closed_store, http), client, code)

    assert "registration_endpoint" not in server
    assert oauth_refusal(registration) == (403, "dynamic_clients_not_enabled")
    assert response.status_code == 400
    assert oauth_refusal(exchanged_response) == (401, "invalid_client")


@pytest.fixture
def opened_with() -> Callable[[Store], httpx.AsyncClient]:
    """Return a function that returns an HTTP client for the application of a given store."""

    def open_client(store: Store) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(store_app.create(store), raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url=ROOT_URL)

    return open_client
