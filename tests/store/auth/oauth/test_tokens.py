"""The token endpoint: its grants, the authentication of clients, and the audience of a token."""

import base64

import msgspec
import pytest

from countersign.store.auth import queries
from countersign.store.auth.agents import registrations
from countersign.store.auth.agents.registrations import Applicant
from countersign.store.auth.oauth import clients
from tests.store.auth.oauth.conftest import KnownClient, new_client, oauth_refusal
from tests.store.conftest import ROOT_URL
from tests.store.world import World

TOKEN = "/api/v1/auth/token"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
CLAIM = "urn:workos:agent-auth:grant-type:claim"
GRANT = {"grant_type": "client_credentials"}


async def assertion(world: World, **changes: object) -> str:
    """Return the store's assertion for an anonymous agent. With changes, it has claims that were never issued."""
    applicant = Applicant("an agent", "192.0.2.1", queries.PRE_CLAIM)
    async with world.store.database.transaction() as transaction:
        registration, _ = await registrations.add(transaction, "anonymous", applicant, claim_ttl_s=600, interval_s=5)
    text, _ = registrations.issue_assertion(world.store, registration, None)
    if not changes:
        return text
    claims = {**msgspec.json.decode(world.store.tokens.ring.open(text, registrations.TYP)), **changes}
    return world.store.tokens.ring.sign(msgspec.json.encode(claims), registrations.TYP)


def forged_jwt(payload: bytes) -> str:
    """Return a text with the format of a JWT and this payload."""
    encoded = [
        base64.urlsafe_b64encode(token_part).rstrip(b"=").decode()
        for token_part in (b'{"alg":"none"}', payload, b"x" * 64)
    ]
    return ".".join(encoded)


async def test_both_endpoints_accept_only_post(world: World) -> None:
    for path in (TOKEN, "/api/v1/auth/login"):
        for method in ("GET", "PUT", "DELETE"):
            answer = await world.http.request(method, path)
            assert answer.status_code == 405
            assert "POST" in answer.headers["allow"]


async def test_an_agent_exchanges_its_assertion_without_being_a_client(world: World) -> None:
    text = await assertion(world)

    by_form = await world.http.post(TOKEN, data={"grant_type": JWT_BEARER, "assertion": text})
    by_json = await world.http.post("/api/v1/auth/login", json={"grant_type": JWT_BEARER, "assertion": text})

    for answer in (by_form, by_json):
        assert answer.json()["scope"] == "read:products read:releases"
        assert "refresh_token" not in answer.json()
        assert (answer.headers["cache-control"], answer.headers["pragma"]) == ("no-store", "no-cache")


async def test_credentials_beside_our_own_assertion_must_hold(world: World, client: KnownClient) -> None:
    form = {"grant_type": JWT_BEARER, "assertion": await assertion(world)}

    assert oauth_refusal(await world.http.post(TOKEN, data=form, auth=(client.id, "wrong"))) == (401, "invalid_client")
    assert (await world.http.post(TOKEN, data=form, auth=client)).status_code == 200


async def test_only_an_authenticated_client_may_present_an_assertion_of_another_issuer(
    world: World, client: KnownClient
) -> None:
    form = {"grant_type": JWT_BEARER, "assertion": forged_jwt(b'{"iss":"https://idp.example"}')}

    assert oauth_refusal(await world.http.post(TOKEN, data=form)) == (401, "invalid_client")
    assert oauth_refusal(await world.http.post(TOKEN, data=form, auth=client)) == (400, "invalid_grant")


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "..",
        "a.b.c",
        forged_jwt(b"[]"),
        forged_jwt(b"1"),
        forged_jwt(b"{}"),
        forged_jwt(b'{"iss":1}'),
        forged_jwt(b'{"iss":["' + ROOT_URL.encode() + b'"]}'),
        forged_jwt(b"\xff\xfe"),
        forged_jwt(b"[" * 5_000),
        forged_jwt(b'{"iss":"' + ROOT_URL.encode() + b'","sub":"reg_x"}'),
    ],
)
async def test_t7_a_malformed_assertion_is_an_invalid_grant(world: World, text: str) -> None:
    assert oauth_refusal(await world.http.post(TOKEN, data={"grant_type": JWT_BEARER, "assertion": text})) == (
        400,
        "invalid_grant",
    )


async def test_t8_an_access_token_is_no_assertion_and_an_assertion_no_access_token(world: World) -> None:
    text = await assertion(world)
    access = (await world.http.post(TOKEN, data={"grant_type": JWT_BEARER, "assertion": text})).json()["access_token"]

    as_assertion = await world.http.post(TOKEN, data={"grant_type": JWT_BEARER, "assertion": access})
    as_token = await world.call("GET", "/library", text)

    assert oauth_refusal(as_assertion) == (400, "invalid_grant")
    assert as_token.status_code == 401


async def test_an_assertion_of_an_older_generation_is_dead(world: World) -> None:
    old = await assertion(world, gen=0)

    assert oauth_refusal(await world.http.post(TOKEN, data={"grant_type": JWT_BEARER, "assertion": old})) == (
        400,
        "invalid_grant",
    )


async def test_the_claim_grant_is_known_by_its_configured_name(world: World) -> None:
    unknown_response = await world.http.post(TOKEN, data={"grant_type": CLAIM, "claim_token": "clm_unknown"})
    tokenless = await world.http.post(TOKEN, data={"grant_type": CLAIM})
    short = await world.http.post(TOKEN, data={"grant_type": "claim", "claim_token": "clm_unknown"})

    assert oauth_refusal(unknown_response) == (400, "expired_token")
    assert oauth_refusal(tokenless) == (400, "invalid_request")
    assert oauth_refusal(short) == (400, "unsupported_grant_type")


@pytest.mark.parametrize(
    "grant", ["password", "refresh_token", "implicit", "urn:ietf:params:oauth:grant-type:saml2-bearer"]
)
async def test_other_grants_are_not_supported(world: World, client: KnownClient, grant: str) -> None:
    answer = await world.http.post(TOKEN, data={"grant_type": grant}, auth=client)

    assert oauth_refusal(answer) == (400, "unsupported_grant_type")


@pytest.mark.parametrize(
    ("resource", "status"),
    [
        (ROOT_URL, 200),
        (f"{ROOT_URL}/", 200),
        (f"{ROOT_URL}/api/v1", 200),
        (f"{ROOT_URL}/api/v1/library?limit=1", 200),
        (f"{ROOT_URL}.evil.example", 400),
        (f"{ROOT_URL}@evil.example/", 400),
        (f"{ROOT_URL}1/", 400),
        (f"{ROOT_URL}/#part", 400),
        ("https://other.example", 400),
        ("/api/v1", 400),
    ],
)
async def test_a_token_is_valid_only_for_this_service(
    world: World, client: KnownClient, resource: str, status: int
) -> None:
    by_form = await world.http.post(TOKEN, data={**GRANT, "resource": resource}, auth=client)
    by_json = await world.http.post(TOKEN, json={**GRANT, "resource": [ROOT_URL, resource]}, auth=client)

    for answer in (by_form, by_json):
        assert answer.status_code == status
        if status == 200:
            assert world.store.tokens.verify(answer.json()["access_token"]).aud == ROOT_URL
        else:
            assert oauth_refusal(answer) == (400, "invalid_target")


async def test_t39_a_client_authenticates_with_one_method_only(world: World, client: KnownClient) -> None:
    form = {**GRANT, "client_id": client.id, "client_secret": client.secret}

    double_answer = await world.http.post(TOKEN, data=form, auth=client)
    jwt_too = await world.http.post(TOKEN, data={**form, "client_assertion": "x"})
    another = await world.http.post(TOKEN, data={**GRANT, "client_id": "cc_other"}, auth=client)
    named_response = await world.http.post(TOKEN, data={**GRANT, "client_id": client.id}, auth=client)

    for answer in (double_answer, jwt_too, another):
        assert oauth_refusal(answer) == (400, "invalid_request")
    assert named_response.status_code == 200


async def test_t39_an_unknown_client_and_a_wrong_secret_get_the_same_answer(world: World, client: KnownClient) -> None:
    other_client = await new_client(world)
    secret = client.secret

    wrong_secret, unknown, anothers, secretless = [
        await world.http.post(TOKEN, data=GRANT, auth=auth)
        for auth in ((client.id, "wrong"), ("cc_unknown", secret), (other_client.id, secret), (client.id, ""))
    ]

    for answer in (wrong_secret, unknown, anothers, secretless):
        assert oauth_refusal(answer) == (401, "invalid_client")
        assert answer.json() == wrong_secret.json()
        assert answer.headers["www-authenticate"] == 'Basic realm="token"'


@pytest.mark.parametrize("header", ["Basic", "Basic !!!", "Basic YQ==", "Digest x", "Bearer x", "Basic /w==", "x"])
async def test_t39_a_garbled_authorization_header_is_no_client(world: World, client: KnownClient, header: str) -> None:
    answer = await world.http.post(TOKEN, data=GRANT, headers={"Authorization": header})

    assert oauth_refusal(answer) == (401, "invalid_client")
    assert client.id not in answer.text


async def test_t39_a_secret_in_the_address_is_refused_and_not_repeated(world: World, client: KnownClient) -> None:
    query = {"client_id": client.id, "client_secret": client.secret}

    answer = await world.http.post(TOKEN, params=query, data=GRANT)

    assert answer.status_code == 400
    assert client.secret not in answer.text


async def test_t39_basic_is_form_encoded_first(world: World) -> None:
    org = await queries.organisation_with_slug(world.store.database, "north")
    assert org is not None
    async with world.store.database.transaction() as transaction:
        await clients.add_client(transaction, org.id, "a b", "s:+%", "odd", ["read:products"])

    for encoded in (b"a+b:s%3A%2B%25", b"a%20b:s%3a%2B%25", b"a b:s:%2B%25"):
        header = f"Basic {base64.b64encode(encoded).decode()}"
        answer = await world.http.post(TOKEN, data=GRANT, headers={"Authorization": header})
        assert answer.status_code == 200, encoded


async def test_t45_several_tokens_and_tokens_in_the_address_give_no_access(world: World) -> None:
    token = await world.person("ann@example.com")
    bearer_header = ("Authorization", f"Bearer {token}")

    double_answer = await world.http.get("/api/v1/library", headers=[bearer_header, bearer_header])
    listed_response = await world.http.get(
        "/api/v1/library", headers={"Authorization": f"Bearer {token}, Bearer {token}"}
    )
    by_key = await world.http.get("/api/v1/library", headers=[bearer_header, ("X-API-Key", "csk_x")])
    in_address = await world.http.get("/api/v1/library", params={"access_token": token})

    assert (double_answer.status_code, double_answer.json()["error"]) == (400, "invalid_request")
    assert (listed_response.status_code, listed_response.json()["error"]) == (401, "invalid_token")
    assert by_key.status_code == 400
    assert in_address.status_code == 401
    assert token not in in_address.text


async def test_t46_no_sent_value_is_returned_in_a_header(world: World, client: KnownClient) -> None:
    evil = 'read:x"\r\nSet-Cookie: a=b, Bearer x="'

    answers = [
        await world.http.post(TOKEN, data={**GRANT, "scope": evil}, auth=client),
        await world.http.post(TOKEN, data={"grant_type": evil}, auth=client),
        await world.http.post(TOKEN, data={**GRANT, "resource": evil}, auth=client),
        await world.http.post(TOKEN, data={**GRANT, "client_id": evil, "client_secret": "x"}),
        await world.http.post("/auth/revoke", data={"token": evil, "token_type_hint": evil}),
        await world.call("GET", "/library", 'x", error="none'),
    ]

    for answer in answers:
        assert answer.status_code in (200, 400, 401)
        assert "set-cookie" not in answer.headers
        for name, value in answer.headers.items():
            assert "a=b" not in value, name
            assert "none" not in value, name


async def test_a_body_may_not_be_large(world: World, client: KnownClient) -> None:
    answer = await world.http.post(TOKEN, data={**GRANT, "x": "y" * 70_000}, auth=client)

    assert (answer.status_code, answer.json()["error"]) == (413, "content_too_large")
