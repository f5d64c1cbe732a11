"""The authorization endpoint: which people it asks, what it grants, and to which addresses it never redirects."""

import pytest

from countersign.kernel.database import versions
from countersign.store.context import Store
from tests.store.auth.oauth.conftest import (
    BACK,
    CHALLENGE,
    ORIGIN,
    STATE,
    Browser,
    KnownClient,
    authorization_parameters,
    code_for,
    exchange,
    hidden_fields,
    link_parameters,
    new_client,
    new_person,
    oauth_refusal,
    redirect_parameters,
)
from tests.store.conftest import ROOT_URL
from tests.store.world import World

ASK = "/auth/authorize"


async def test_a_client_allowed_by_a_person_acts_for_them_with_only_the_allowed_scopes(
    world: World, browser: Browser, client: KnownClient, ann: str
) -> None:
    page = await browser.get(ASK, authorization_parameters(client))

    for expected_text in (
        "App",
        "North",
        "ann@example.com",
        "see your library",
        "https://app.example",
        "Allow",
        "Deny",
    ):
        assert expected_text in page.text
    assert "see listings" not in page.text
    assert "<script" not in page.text
    answer = await browser.decide(page, "allow")
    members = redirect_parameters(answer)
    assert members.keys() == {"code", "state", "iss"}
    assert (members["state"], members["iss"]) == (STATE, ROOT_URL)
    assert (answer.headers["cache-control"], answer.headers["referrer-policy"]) == ("no-store", "no-referrer")
    token = (await exchange(world, client, members["code"])).json()
    assert token.keys() == {"access_token", "token_type", "expires_in", "scope"}
    assert token["scope"] == "read:library"
    me = (await world.call("GET", "/auth/me", token["access_token"])).json()
    assert (me["sub"], me["client_id"]) == (ann, client.id)
    assert (await world.call("GET", "/library", token["access_token"])).status_code == 200


async def test_consent_is_not_requested_again_until_the_client_wants_more(
    browser: Browser, client: KnownClient
) -> None:
    await code_for(browser, client)

    second_response = await browser.get(ASK, authorization_parameters(client))
    further_response = await browser.get(ASK, authorization_parameters(client, scope="read:library read:products"))

    assert "code" in redirect_parameters(second_response)
    assert further_response.status_code == 200
    await browser.decide(further_response, "allow")
    assert "code" in redirect_parameters(
        await browser.get(ASK, authorization_parameters(client, scope="read:products"))
    )


async def test_a_denial_redirects_the_client_and_is_not_remembered(browser: Browser, client: KnownClient) -> None:
    page = await browser.get(ASK, authorization_parameters(client))

    for decision in ("deny", "", "anything"):
        members = redirect_parameters(await browser.decide(page, decision))
        assert (members["error"], members["state"], members["iss"]) == ("access_denied", STATE, ROOT_URL)
        assert "code" not in members
    assert (await browser.get(ASK, authorization_parameters(client))).status_code == 200


async def test_both_buttons_look_the_same(browser: Browser, client: KnownClient) -> None:
    text = (await browser.get(ASK, authorization_parameters(client))).text

    assert '<button name="decision" value="allow">Allow</button>' in text
    assert '<button name="decision" value="deny">Deny</button>' in text


async def test_an_anonymous_person_returns_to_the_consent_page_after_signing_in(
    world: World, client: KnownClient, ann: str
) -> None:
    stranger = Browser(world)

    redirect = await stranger.get(ASK, authorization_parameters(client))
    form = {"email": "ann@example.com", "password": "a long enough password"}
    signin = redirect.headers["location"]
    page = await stranger.get(signin)
    signed_in = await world.http.post("/auth/signin", data={**form, **hidden_fields(page)}, headers=ORIGIN)
    world.http.cookies.clear()

    assert (redirect.status_code, signin.partition("?")[0]) == (303, "/auth/signin")
    # The response to a form may not redirect to another site, so it is a page with a link.
    assert signed_in.status_code == 200
    assert 'http-equiv="refresh" content="0; url=/auth/authorize?' in signed_in.text
    assert "set-cookie" in signed_in.headers


async def test_a_cookie_withheld_on_a_cross_site_request_is_sent_after_a_refresh(
    world: World, client: KnownClient
) -> None:
    from_outside = await Browser(world).get(ASK, authorization_parameters(client), Sec_Fetch_Site="cross-site")
    second_redirect = await Browser(world).get(ASK, authorization_parameters(client), Sec_Fetch_Site="same-origin")

    assert from_outside.status_code == 200
    assert 'http-equiv="refresh" content="0; url=/auth/authorize?' in from_outside.text
    assert "form-action 'self'" in from_outside.headers["content-security-policy"]
    assert second_redirect.status_code == 303


async def test_a_caller_grants_only_own_scopes_and_never_administration(world: World) -> None:
    client = await new_client(world, scope="read:library write:products admin:org")
    owner, viewer = Browser(world), Browser(world)
    for email, role in (("owner@north.example", "owner"), ("viewer@north.example", "viewer")):
        await new_person(world, email)
        admin = await world.person(f"admin-of-{email}", north="owner")
        body = {"email": email, "role": role}
        assert (await world.call("POST", "/org/members", admin, json=body)).status_code == 201
    await owner.sign_in("owner@north.example")
    await viewer.sign_in("viewer@north.example")

    forbidden = await owner.get(ASK, authorization_parameters(client, scope="admin:org"))
    unknown = await owner.get(ASK, authorization_parameters(client, scope="openid"))
    over_wide = await exchange(world, client, await code_for(owner, client, scope="read:library admin:org openid"))
    all_of_owner = await exchange(world, client, await code_for(owner, client, scope=""))
    all_of_viewer = await exchange(world, client, await code_for(viewer, client, scope=""))
    refused_redirect = await viewer.get(ASK, authorization_parameters(client, scope="write:products"))

    for answer in (forbidden, unknown):
        assert redirect_parameters(answer)["error"] == "invalid_scope"
    assert link_parameters(refused_redirect)["error"] == "invalid_scope"
    assert over_wide.json()["scope"] == "read:library"
    assert all_of_owner.json()["scope"] == "write:products read:library"
    assert all_of_viewer.json()["scope"] == "read:library"


async def test_a_client_learns_what_an_account_lacks_only_when_the_person_continues(world: World) -> None:
    client = await new_client(world, scope="read:library write:products")
    await new_person(world, "viewer@example.com")
    browser = Browser(world)
    await browser.sign_in("viewer@example.com")

    response = await browser.get(ASK, authorization_parameters(client, scope="read:library write:products"))
    none_response = await browser.get(ASK, authorization_parameters(client, scope="write:products"))
    token = (await exchange(world, client, redirect_parameters(await browser.decide(response, "allow"))["code"])).json()

    granted_text, _, lacking = response.text.partition("Your account does not have these permissions")
    assert "see your library" in granted_text
    assert "publish" not in granted_text
    assert "publish and edit listings" in lacking
    assert link_parameters(none_response)["error"] == "invalid_scope"
    assert "<h1>Nothing was allowed</h1>" in none_response.text
    assert "Your account has none of the permissions that <strong>app.example</strong> asked for." in none_response.text
    assert token["scope"] == "read:library"


@pytest.mark.parametrize(
    "changes",
    [{"code_challenge": ""}, {"scope": "openid"}, {"response_type": "id_token"}, {"resource": "https://other.example"}],
)
async def test_the_person_signs_in_before_any_client_is_informed_of_its_mistake(
    world: World, browser: Browser, client: KnownClient, changes: dict[str, str]
) -> None:
    wrong_request = authorization_parameters(client, **changes)

    answer = await Browser(world).get(ASK, wrong_request)

    assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/auth/signin")
    assert "error" in redirect_parameters(await browser.get(ASK, wrong_request))


@pytest.mark.parametrize(
    "change", ["role", "scope", "redirect_uri", "state", "code_challenge", "resource", "client_id"]
)
async def test_the_granted_scopes_are_the_shown_scopes(world: World, change: str) -> None:
    client = await new_client(world, BACK, f"{BACK}/2", scope="read:library read:products write:products")
    other_client = await new_client(world, BACK, scope="read:library read:products write:products")
    await new_person(world, "pat@example.com")
    browser = Browser(world)
    await browser.sign_in("pat@example.com")
    parameters = authorization_parameters(client, scope="read:library write:products", resource=ROOT_URL)
    fields = hidden_fields(await browser.get(ASK, parameters))
    changes = {
        "scope": "read:products",
        "redirect_uri": f"{BACK}/2",
        "state": "another",
        "code_challenge": "A" * 43,
        "resource": f"{ROOT_URL}/mcp",
        "client_id": other_client.id,
    }
    if change == "role":
        admin = await world.person("admin@north.example", north="owner")
        await world.call("POST", "/org/members", admin, json={"email": "pat@example.com", "role": "publisher"})

    decision_form = {**fields, **({change: changes[change]} if change in changes else {}), "decision": "allow"}
    second_response = await browser.post(ASK, decision_form)
    grants = await world.store.database.fetch("SELECT 1 FROM consent UNION ALL SELECT 1 FROM authorization_code")

    assert second_response.status_code == 400
    assert "This has changed since you saw it" in second_response.text
    assert list(grants) == []
    allowed_response = await browser.post(ASK, {**hidden_fields(second_response), "decision": "allow"})
    assert "code" in redirect_parameters(allowed_response, decision_form["redirect_uri"])


async def test_a_seal_of_another_sign_in_is_refused(world: World, browser: Browser, client: KnownClient) -> None:
    await new_person(world, "eve@example.com")
    eve = Browser(world)
    await eve.sign_in("eve@example.com")
    of_eve = hidden_fields(await eve.get(ASK, authorization_parameters(client)))["shown"]
    fields = hidden_fields(await browser.get(ASK, authorization_parameters(client)))

    for shown_seal in (of_eve, "", "x", "ä", fields["csrf"]):
        answer = await browser.post(ASK, {**fields, "shown": shown_seal, "decision": "allow"})
        assert (answer.status_code, "Check it again" in answer.text) == (400, True)
    assert "code" in redirect_parameters(await browser.post(ASK, {**fields, "decision": "allow"}))


async def test_an_organisation_that_was_renamed_meanwhile_is_shown_again(
    world: World, browser: Browser, client: KnownClient
) -> None:
    page = await browser.get(ASK, authorization_parameters(client))
    admin = await world.person("admin@north.example", north="owner")
    assert (await world.call("PUT", "/org", admin, json={"name": "Elsewhere"})).status_code == 200

    second_answer = await browser.decide(page, "allow")

    assert second_answer.status_code == 400
    assert "Elsewhere" in second_answer.text


@pytest.mark.parametrize(
    "address",
    [
        "",
        "https://evil.example/back",
        f"{BACK}/",
        f"{BACK}/more",
        f"{BACK}?more=1",
        f"{BACK}#part",
        f"{BACK}%00",
        "https://APP.example/back",
        "https://app.example:443/back",
        "https://app.example@evil.example/back",
        "https://app.example\\@evil.example/back",
        "http://app.example/back",
        "//app.example/back",
        "javascript:alert(1)",
        "data:text/html,x",
        "http://127.0.0.1:1@evil.example/cb",
        "http://127.0.0.1.evil.example/cb",
        "http://127.0.0.1:8000/other",
        "http://127.0.0.1:/cb",
        "http://127.0.0.1:99999/cb",
        "http://[::1]:8000/cb",
        "http://localhost:8000/cb",
    ],
)
async def test_t35_no_user_is_redirected_to_an_address_that_is_not_registered(
    world: World, browser: Browser, address: str
) -> None:
    client = await new_client(world, BACK, "http://127.0.0.1/cb", "http://localhost/cb")
    await code_for(browser, client)

    answer = await browser.get(ASK, {**authorization_parameters(client), "redirect_uri": address})
    posted_response = await browser.post(
        ASK, {**authorization_parameters(client), "redirect_uri": address, "decision": "allow"}
    )

    for response in (answer, posted_response):
        assert response.status_code == 400
        assert "location" not in response.headers
        assert "evil" not in response.text


async def test_t35_an_unknown_client_redirects_no_user(browser: Browser, client: KnownClient) -> None:
    answer = await browser.get(ASK, {**authorization_parameters(client), "client_id": "cc_nobody"})

    assert answer.status_code == 400
    assert "location" not in answer.headers


@pytest.mark.parametrize("address", ["http://127.0.0.1/cb", "http://127.0.0.1:1/cb", "http://127.0.0.1:65535/cb"])
async def test_a_program_on_the_persons_machine_listens_on_any_port(
    world: World, browser: Browser, address: str
) -> None:
    client = await new_client(world, "http://127.0.0.1:9/cb")

    code = await code_for(browser, client, redirect_uri=address)

    assert (await exchange(world, client, code, redirect_uri=address)).status_code == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"code_challenge": ""},
        {"code_challenge": "", "code_challenge_method": ""},
        {"code_challenge_method": ""},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": "s256"},
        {"code_challenge": CHALLENGE[:-1]},
        {"code_challenge": CHALLENGE + "="},
    ],
)
async def test_t37_a_code_is_issued_only_for_an_s256_challenge(
    browser: Browser, client: KnownClient, changes: dict[str, str]
) -> None:
    await code_for(browser, client)

    members = redirect_parameters(await browser.get(ASK, authorization_parameters(client, **changes)))

    assert (members["error"], members["state"], members["iss"]) == ("invalid_request", STATE, ROOT_URL)
    assert "code" not in members


@pytest.mark.parametrize("name", ["client_id", "redirect_uri", "state", "scope", "code_challenge"])
async def test_t38_a_parameter_that_is_sent_twice_is_refused(browser: Browser, client: KnownClient, name: str) -> None:
    parameters = authorization_parameters(client)

    answer = await browser.http.get(ASK, params=[*parameters.items(), (name, parameters[name])], headers=browser.cookie)

    assert answer.status_code == 400
    assert "location" not in answer.headers


async def test_t38_state_is_returned_unchanged_and_unknown_parameters_are_ignored(
    browser: Browser, client: KnownClient
) -> None:
    for state in ("null", "a+b %&=#/?é", "\r\nLocation: https://evil.example", '"><script>'):
        page = await browser.get(
            ASK, {**authorization_parameters(client, state=state, scope="read:products"), "display": "page"}
        )
        answer = await browser.decide(page, "deny")

        assert redirect_parameters(answer)["state"] == state
        assert "\n" not in answer.headers["location"]
        assert "<script>" not in page.text
    stateless = redirect_parameters(
        await browser.decide(await browser.get(ASK, authorization_parameters(client, state="")), "deny")
    )
    assert "state" not in stateless


async def test_t38_other_kinds_of_answer_and_other_targets_are_refused_to_the_client(
    browser: Browser, client: KnownClient
) -> None:
    for changes, error in (
        ({"response_type": "token"}, "unauthorized_client"),
        ({"response_type": "id_token"}, "unsupported_response_type"),
        ({"response_type": ""}, "invalid_request"),
        ({"resource": "https://other.example"}, "invalid_target"),
    ):
        mark = "#" if changes.get("response_type") == "token" else "?"
        assert (
            redirect_parameters(await browser.get(ASK, authorization_parameters(client, **changes)), mark=mark)["error"]
            == error
        )
    assert (
        await browser.get(ASK, authorization_parameters(client, resource=f"{ROOT_URL}/api/v1/library"))
    ).status_code == 200


async def test_a_client_registered_for_the_implicit_grant_gets_a_token_in_the_fragment(
    world: World, browser: Browser
) -> None:
    client = await new_client(world, is_implicit=True)
    parameters = authorization_parameters(client, response_type="token", code_challenge="", code_challenge_method="")

    answer = await browser.decide(await browser.get(ASK, parameters), "allow")

    members = redirect_parameters(answer, mark="#")
    assert members.keys() == {"access_token", "token_type", "expires_in", "scope", "state", "iss"}
    assert "?" not in answer.headers["location"]
    assert (await world.call("GET", "/library", members["access_token"])).status_code == 200


async def test_t29_a_consent_is_accepted_only_from_a_page_of_the_same_sign_in(
    world: World, browser: Browser, client: KnownClient
) -> None:
    await new_person(world, "eve@example.com")
    eve = Browser(world)
    await eve.sign_in("eve@example.com")
    fields = {**hidden_fields(await browser.get(ASK, authorization_parameters(client))), "decision": "allow"}
    of_eve = hidden_fields(await eve.get(ASK, authorization_parameters(client)))["csrf"]

    for csrf in ("", "x", "ä", of_eve):
        answer = await browser.post(ASK, {**fields, "csrf": csrf})
        assert (answer.status_code, answer.json()["code"]) == (403, "form_expired")
    foreign_response = await world.http.post(
        ASK, data=fields, headers={**browser.cookie, "Origin": "https://evil.example"}
    )
    assert (foreign_response.status_code, foreign_response.json()["code"]) == (403, "foreign_origin")
    assert (await browser.get(ASK, authorization_parameters(client))).status_code == 200


async def test_t29_the_consent_page_cannot_be_framed_or_cached(browser: Browser, client: KnownClient) -> None:
    page = await browser.get(ASK, authorization_parameters(client))

    policy = page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert "form-action 'self' https://app.example" in policy
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in page.headers


async def test_the_page_shows_client_data_as_text(world: World, browser: Browser, store: Store) -> None:
    client = await new_client(world, name="<img src=x onerror=alert(1)>")

    page = await browser.get(ASK, authorization_parameters(client))

    assert "<img" not in page.text
    assert "&lt;img" in page.text
    assert store.settings.resource_name in page.text


async def test_a_scope_that_the_person_lost_before_the_exchange_is_refused(world: World) -> None:
    client = await new_client(world, scope="read:library write:products")
    await new_person(world, "owner@north.example")
    admin = await world.person("admin@north.example", north="owner")
    for_owner = {"email": "owner@north.example", "role": "owner"}
    assert (await world.call("POST", "/org/members", admin, json=for_owner)).status_code == 201
    browser = Browser(world)
    await browser.sign_in("owner@north.example")
    codes = [await code_for(browser, client, scope="") for _ in range(2)]

    async with world.store.database.transaction() as transaction:
        await transaction.run("UPDATE membership SET role = 'viewer' WHERE role = 'owner'")
        await versions.bump(transaction, "identity")
    lost_answer = await exchange(world, client, codes[0])
    second_exchange = await exchange(world, client, codes[0])

    assert oauth_refusal(lost_answer) == (400, "invalid_scope")
    assert oauth_refusal(second_exchange) == (400, "invalid_grant")
