"""Client credentials, sign-in, and sessions and their exchange for tokens. A revoked right takes effect at once."""

import asyncio
import base64
from dataclasses import replace
from typing import Any

import httpx
import pytest

from countersign.kernel.security import passwords
from countersign.store import app as store_app
from countersign.store.auth import people, queries
from countersign.store.auth.oauth import clients
from countersign.store.context import Store
from tests.store.conftest import ROOT_URL
from tests.store.world import ALL_SCOPES, World

PASSWORD = "a long enough password"
ORIGIN = {"Origin": ROOT_URL}


@pytest.fixture
async def client(world: World) -> tuple[str, str]:
    """The id and the secret of an OAuth client of north that may read and publish."""
    org = await queries.organisation_with_slug(world.store.database, "north")
    assert org is not None
    async with world.store.database.transaction() as transaction:
        new_client, secret = await clients.create_client(transaction, org.id, "ci", ["read:products", "write:products"])
    return new_client.id, secret


async def test_a_token_shows_the_role_in_each_organisation(world: World) -> None:
    ann = await world.person("ann@example.com", north="owner", south="viewer")
    client_token = await world.client_token("north")

    role_lists = [(await world.call("GET", "/auth/me", token)).json()["roles"] for token in (ann, client_token)]

    assert role_lists == [{"north": "owner", "south": "viewer"}, {}]


async def exchange(world: World, *, path: str = "/auth/token", auth: Any = None, **form: str) -> httpx.Response:
    """Send a form to the token endpoint, and return the response. Members with the value "-" are not sent."""
    data = {"grant_type": "client_credentials", **form}
    return await world.http.post(f"/api/v1{path}", data={k: v for k, v in data.items() if v != "-"}, auth=auth)


async def person(world: World, email: str = "ann@example.com") -> str:
    """Create a person with a password, and return the id."""
    password_hash = await passwords.hash_password(PASSWORD)
    async with world.store.database.transaction() as transaction:
        return (await people.add_person(transaction, email, password_hash)).id


async def sign_in(world: World, email: str = "ann@example.com") -> dict[str, str]:
    """Sign in, and return the headers of a request from a page."""
    answer = await world.http.post("/auth/signin", data={"email": email, "password": PASSWORD}, headers=ORIGIN)
    assert answer.status_code == 303, answer.text
    world.http.cookies.clear()
    return {**ORIGIN, "Cookie": answer.headers["set-cookie"].split(";")[0]}


async def test_a_client_gets_a_token_by_basic_by_form_and_by_json(world: World, client: tuple[str, str]) -> None:
    name, secret = client
    by_basic = await exchange(world, auth=client)
    by_form = await exchange(world, client_id=name, client_secret=secret)
    body = {"grant_type": "client_credentials", "client_id": name, "client_secret": secret}
    by_json = await world.call("POST", "/auth/login", json=body)

    for answer in (by_basic, by_form, by_json):
        token = answer.json()
        assert set(token) == {"access_token", "token_type", "expires_in", "scope"}
        assert (token["token_type"], token["expires_in"]) == ("Bearer", 86400)
        assert token["scope"] == "read:products write:products"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["pragma"] == "no-cache"
        assert (await world.call("GET", "/auth/me", token["access_token"])).json()["sub"] == name


async def test_a_scope_narrows_and_never_widens(world: World, client: tuple[str, str]) -> None:
    narrow = await exchange(world, auth=client, scope="read:products")
    wide = await exchange(world, auth=client, scope="read:products admin:org")
    unknown_response = await exchange(world, auth=client, scope="everything")
    token = narrow.json()["access_token"]
    body = {"slug": "a", "title": "A", "kind": "game", "platforms": ["web"]}

    assert narrow.json()["scope"] == "read:products"
    assert (wide.status_code, wide.json()["error"]) == (400, "invalid_scope")
    assert (unknown_response.status_code, unknown_response.json()["error"]) == (400, "invalid_scope")
    assert (await world.call("POST", "/products", token, json=body)).json()["code"] == "insufficient_scope"


async def test_token_errors_have_the_members_of_both_formats_and_do_not_reveal_which_credential_is_wrong(
    world: World, client: tuple[str, str]
) -> None:
    name, secret = client
    wrong_secret = await exchange(world, auth=(name, "wrong"))
    unknown_response = await exchange(world, auth=("cc_unknown", secret))
    empty_answer = await exchange(world)
    garbled_response = await world.http.post(
        "/api/v1/auth/token", data={"grant_type": "client_credentials"}, headers={"Authorization": "Basic !!!"}
    )
    repeated_answer = await exchange(world, auth=client, client_id=name, client_secret=secret)
    other_grant = await exchange(world, auth=client, grant_type="password")
    missing_response = await exchange(world, auth=client, grant_type="-")

    assert wrong_secret.json() == unknown_response.json()
    for answer in (wrong_secret, unknown_response, empty_answer, garbled_response):
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
        assert answer.headers["www-authenticate"].startswith("Basic ")
    assert (repeated_answer.status_code, repeated_answer.json()["error"]) == (400, "invalid_request")
    assert (other_grant.status_code, other_grant.json()["error"]) == (400, "unsupported_grant_type")
    assert (missing_response.status_code, missing_response.json()["error"]) == (400, "invalid_request")
    for answer in (wrong_secret, repeated_answer, other_grant, missing_response):
        body = answer.json()
        assert {"error", "error_description", "code", "message"} <= set(body)
        assert body["error_description"] == body["message"]
        assert answer.headers["content-type"] == "application/json"


async def test_a_parameter_that_is_sent_twice_is_refused(world: World, client: tuple[str, str]) -> None:
    content = b"grant_type=client_credentials&scope=read:products&scope=write:products"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}

    answer = await world.http.post("/api/v1/auth/token", content=content, headers=headers, auth=client)

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


async def test_the_token_endpoint_accepts_only_post(world: World) -> None:
    assert (await world.call("GET", "/auth/token")).status_code == 405


async def test_credentials_in_a_basic_header_are_form_decoded(world: World) -> None:
    org = await queries.organisation_with_slug(world.store.database, "north")
    assert org is not None
    async with world.store.database.transaction() as transaction:
        await clients.add_client(transaction, org.id, "a b", "s:+%", "odd", ["read:products"])
    encoded = base64.b64encode(b"a+b:s%3A%2B%25").decode()

    answer = await world.http.post(
        "/api/v1/auth/token",
        data={"grant_type": "client_credentials"},
        headers={"Authorization": f"Basic {encoded}"},
    )

    assert answer.status_code == 200


async def test_a_session_has_all_scopes_and_a_narrowed_token_has_only_the_requested_ones(world: World) -> None:
    await person(world)
    page_headers = await sign_in(world)

    session = (await world.http.post("/auth/session/token", json={}, headers=page_headers)).json()
    narrow = (
        await world.http.post("/auth/session/token", json={"scope": "read:products"}, headers=page_headers)
    ).json()
    wide = await world.http.post("/auth/session/token", json={"scope": "admin:org"}, headers=page_headers)

    assert (await world.call("GET", "/library", session["access_token"])).status_code == 200
    assert (await world.call("GET", "/library", narrow["access_token"])).json()["code"] == "insufficient_scope"
    assert (wide.status_code, wide.json()["code"]) == (400, "invalid_scope")


async def test_a_session_is_exchanged_only_by_pages_of_this_service(world: World) -> None:
    await person(world)
    page_headers = await sign_in(world)

    for origin in ("http://evil.example", "null", ""):
        answer = await world.http.post("/auth/session/token", json={}, headers={**page_headers, "Origin": origin})
        assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")
    sessionless = await world.http.post("/auth/session/token", json={}, headers=ORIGIN)
    assert (sessionless.status_code, sessionless.json()["code"]) == (401, "invalid_token")
    assert sessionless.headers["www-authenticate"].startswith("Bearer resource_metadata=")


@pytest.mark.parametrize("token", [None, "nonsense"])
async def test_a_401_names_the_page_that_describes_how_to_get_a_token(world: World, token: str | None) -> None:
    answer = await world.call("GET", "/library", token)

    assert answer.status_code == 401
    assert f"{world.store.root_url}/auth.md" in answer.json()["resolution"]


async def test_signing_out_ends_the_session_and_its_tokens(world: World) -> None:
    await person(world)
    page_headers = await sign_in(world)
    tokens = [
        (await world.http.post("/auth/session/token", json=body, headers=page_headers)).json()["access_token"]
        for body in ({}, {"scope": "read:library"})
    ]
    for token in tokens:
        assert (await world.call("GET", "/library", token)).status_code == 200

    assert (await world.http.post("/auth/signout", headers=page_headers)).status_code == 303

    for token in tokens:
        assert (await world.call("GET", "/library", token)).status_code == 401
    assert (await world.http.post("/auth/session/token", json={}, headers=page_headers)).status_code == 401


async def test_sign_in_reveals_nothing_about_who_exists_and_slows_guessing_down(world: World) -> None:
    await person(world)
    wrong_password = await world.http.post(
        "/auth/signin", data={"email": "ann@example.com", "password": "x"}, headers=ORIGIN
    )
    unknown_response = await world.http.post(
        "/auth/signin", data={"email": "bob@example.com", "password": "x"}, headers=ORIGIN
    )
    for _ in range(4):
        await world.http.post("/auth/signin", data={"email": "ANN@example.com ", "password": "x"}, headers=ORIGIN)
    right = {"email": "ann@example.com", "password": PASSWORD}
    limited_response = await world.http.post("/auth/signin", data=right, headers=ORIGIN)

    assert wrong_password.status_code == unknown_response.status_code == 401
    assert wrong_password.text == unknown_response.text.replace("bob@example.com", "ann@example.com")
    assert limited_response.status_code == 429


@pytest.mark.parametrize(
    ("target", "location"),
    [
        ("/products/a?b=1", "/products/a?b=1"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("https:evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/a\r\nSet-Cookie: x=y", "/"),
        ("", "/"),
    ],
)
async def test_t40_signing_in_redirects_only_to_pages_of_this_service(world: World, target: str, location: str) -> None:
    await person(world)
    form = {"email": "ann@example.com", "password": PASSWORD, "return_to": target}

    answer = await world.http.post("/auth/signin", data=form, headers=ORIGIN)

    assert (answer.status_code, answer.headers["location"]) == (303, location)


async def client_at(store: Store, root_url: str, *, is_loopback: bool) -> httpx.AsyncClient:
    """Return an HTTP client that reaches the same store at another address."""
    moved_store = replace(store, root_url=root_url, is_loopback=is_loopback)
    return httpx.AsyncClient(transport=httpx.ASGITransport(store_app.create(moved_store)), base_url=root_url)


async def test_the_cookie_is_bound_to_the_host_over_https(world: World) -> None:
    await person(world)
    form = {"email": "ann@example.com", "password": PASSWORD}
    plain_response = await world.http.post("/auth/signin", data=form, headers=ORIGIN)
    async with await client_at(world.store, "https://store.example", is_loopback=False) as secure:
        safe = await secure.post("/auth/signin", data=form, headers={"Origin": "https://store.example"})

    for response in (plain_response, safe):
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(response.headers["set-cookie"].split("; "))
    assert plain_response.headers["set-cookie"].startswith("countersign=")
    assert safe.headers["set-cookie"].startswith("__Host-countersign=")
    assert safe.headers["set-cookie"].endswith("; Secure")


@pytest.mark.parametrize("space", [b"\xa0", b"\x85"])
async def test_a_cookie_name_with_leading_white_space_does_not_match(world: World, space: bytes) -> None:
    # Any subdomain may set such a cookie. Browsers bind only cookies whose names begin with __Host- to the host.
    await person(world)
    form = {"email": "ann@example.com", "password": PASSWORD}
    origin = "https://store.example"
    async with await client_at(world.store, origin, is_loopback=False) as secure:
        signed_in = await secure.post("/auth/signin", data=form, headers={"Origin": origin})
        cookie = signed_in.headers["set-cookie"].partition(";")[0].encode()
        secure.cookies.clear()
        statuses: list[int] = []
        for header in (cookie, b"a=1;\t" + cookie, b"a=1;" + space + cookie):
            headers = [(b"cookie", header), (b"origin", origin.encode())]
            statuses.append((await secure.post("/auth/session/token", json={}, headers=headers)).status_code)

    assert statuses == [200, 200, 401]


async def test_sign_in_over_plain_http_is_refused_except_on_loopback(world: World) -> None:
    await person(world)
    root_url = "http://store.example"
    async with await client_at(world.store, root_url, is_loopback=False) as remote_client:
        form = {"email": "ann@example.com", "password": PASSWORD}
        post_answer = await remote_client.post("/auth/signin", data=form, headers={"Origin": root_url})
        sign_in_page = await remote_client.get("/auth/signin")

    assert {post_answer.json()["code"], sign_in_page.json()["code"]} == {"insecure_sign_in"}


async def test_issued_tokens_lose_a_revoked_role(world: World) -> None:
    owner = await world.person("owner@north.example", north="owner")
    publisher = await world.person("pub@north.example", north="publisher")
    body = {"slug": "a", "title": "A", "kind": "game", "platforms": ["web"]}
    assert (await world.call("POST", "/products", publisher, json=body)).status_code == 201

    await world.call("POST", "/org/members", owner, json={"email": "pub@north.example", "role": "viewer"})
    viewer_response = await world.call("POST", "/products", publisher, json={**body, "slug": "b"})
    read_answer = await world.call("GET", "/products/a", publisher)
    await world.call("DELETE", "/org/members", owner, params={"email": "pub@north.example"})
    removed_response = await world.call("GET", "/products/a", publisher)

    assert (viewer_response.status_code, read_answer.status_code, removed_response.status_code) == (403, 200, 404)


async def test_an_organisation_keeps_an_owner_even_if_both_owners_are_removed_at_once(world: World) -> None:
    first_owner = await world.person("first@north.example", north="owner")
    second_owner = await world.person("second@north.example", north="owner")

    answers = await asyncio.gather(
        world.call("DELETE", "/org/members", first_owner, params={"email": "second@north.example"}),
        world.call("DELETE", "/org/members", second_owner, params={"email": "first@north.example"}),
    )

    assert sorted(answer.status_code for answer in answers)[0] == 204
    assert sorted(answer.status_code for answer in answers)[1] in (401, 403, 409)
    roles = await world.store.database.fetch("SELECT role FROM membership")
    assert [tuple(row) for row in roles] == [("owner",)]


async def test_the_set_up_link_creates_only_one_owner(store: Store, http: httpx.AsyncClient) -> None:
    link = await people.create_setup_link(store)
    assert link is not None
    token = link.partition("token=")[2]
    assert (await http.get(link.removeprefix(ROOT_URL))).status_code == 200
    forms = [
        {"token": token, "slug": f"org-{n}", "name": "O", "email": f"o{n}@example.com", "password": PASSWORD}
        for n in range(5)
    ]

    weak_password = await http.post(
        f"/auth/setup?token={token}", data={**forms[0], "password": "short"}, headers=ORIGIN
    )
    answers = await asyncio.gather(
        *(http.post(f"/auth/setup?token={token}", data=form, headers=ORIGIN) for form in forms)
    )

    assert weak_password.status_code == 400
    assert sorted(answer.status_code for answer in answers) == [200, 404, 404, 404, 404]
    assert len(await store.database.fetch("SELECT id FROM organisation")) == 1
    assert await people.create_setup_link(store) is None


async def test_every_scope_can_be_granted(world: World) -> None:
    token = await world.client_token("north", ALL_SCOPES)

    assert set((await world.call("GET", "/auth/me", token)).json()["scope"].split()) == set(ALL_SCOPES.split())


async def test_a_person_who_is_added_several_times_at_once_is_one_member(world: World) -> None:
    owner = await world.person("owner@north.example", north="owner")
    for number in range(3):
        body = {"email": f"new{number}@north.example", "role": "viewer"}

        answers = await asyncio.gather(*(world.call("POST", "/org/members", owner, json=body) for _ in range(4)))

        assert [answer.status_code for answer in answers] == [201] * 4
    assert len((await world.call("GET", "/org/members", owner)).json()) == 4
