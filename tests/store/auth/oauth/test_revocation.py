"""Revocation: the holder of a token may revoke it, with effect everywhere at once. A client cannot revoke tokens of
another client."""

from collections.abc import AsyncIterator

import httpx
import pytest

from countersign.kernel.clock import Instant
from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store.auth import queries
from tests.store.auth.oauth.conftest import Browser, KnownClient, code_for, exchange, new_client, oauth_refusal
from tests.store.auth.oauth.test_tokens import JWT_BEARER, TOKEN, assertion
from tests.store.conftest import ROOT_URL
from tests.store.world import World

REVOKE = "/auth/revoke"


@pytest.fixture
async def other_worker(world: World, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client of another worker on the same database."""
    assert world.http
    async with distribution.open_store(settings, ROOT_URL, is_loopback=True) as store:
        transport = httpx.ASGITransport(distribution.create(store), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
            yield client


async def client_token(world: World, client: KnownClient) -> str:
    """Return a token of the client itself."""
    answer = await world.http.post(TOKEN, data={"grant_type": "client_credentials"}, auth=client)
    return answer.json()["access_token"]


async def status(http: httpx.AsyncClient, token: str) -> int:
    """Return the status of a protected route with this token."""
    return (await http.get("/api/v1/auth/me", headers={"Authorization": f"Bearer {token}"})).status_code


async def test_t41_a_revoked_token_is_refused_at_once_on_every_worker(
    world: World, browser: Browser, client: KnownClient, other_worker: httpx.AsyncClient
) -> None:
    of_person = (await exchange(world, client, await code_for(browser, client))).json()["access_token"]
    of_agent = (
        await world.http.post(TOKEN, data={"grant_type": JWT_BEARER, "assertion": await assertion(world)})
    ).json()["access_token"]
    other_token = await client_token(world, client)
    for token in (of_person, of_agent, await client_token(world, client)):
        assert await status(world.http, token) == await status(other_worker, token) == 200

        answer = await world.http.post(REVOKE, data={"token": token, "token_type_hint": "access_token"})

        assert (answer.status_code, answer.content) == (200, b"{}")
        assert await status(world.http, token) == await status(other_worker, token) == 401
    challenge = (await world.call("GET", "/library", of_person)).headers["www-authenticate"]
    assert 'error="invalid_token"' in challenge
    assert await status(world.http, other_token) == 200, "no other token ends"


async def test_t41_a_client_does_not_end_the_token_of_another_client(world: World, client: KnownClient) -> None:
    other_client = await new_client(world, name="Other")
    token = await client_token(world, client)

    answer = await world.http.post(REVOKE, data={"token": token}, auth=other_client)

    assert (answer.status_code, answer.content) == (200, b"{}")
    assert await status(world.http, token) == 200
    assert (await world.http.post(REVOKE, data={"token": token}, auth=client)).status_code == 200
    assert await status(world.http, token) == 401


async def test_t41_a_client_does_not_end_an_agent_by_its_assertion(world: World, client: KnownClient) -> None:
    text = await assertion(world)

    await world.http.post(REVOKE, data={"token": text}, auth=client)

    assert (await world.http.post(TOKEN, data={"grant_type": JWT_BEARER, "assertion": text})).status_code == 200


async def test_credentials_in_the_request_must_be_valid(world: World, client: KnownClient) -> None:
    token = await client_token(world, client)

    wrong_secret = await world.http.post(REVOKE, data={"token": token}, auth=(client.id, "wrong"))
    in_form = await world.http.post(REVOKE, data={"token": token, "client_id": client.id, "client_secret": "x"})

    assert oauth_refusal(wrong_secret) == oauth_refusal(in_form) == (401, "invalid_client")
    assert await status(world.http, token) == 200


@pytest.mark.parametrize("token", ["unknown", "a.b.c", "clm_x", "ä", '"', "x" * 10_000])
async def test_revoking_an_unknown_token_succeeds(world: World, token: str) -> None:
    answer = await world.http.post(REVOKE, data={"token": token, "token_type_hint": "nonsense"})

    assert (answer.status_code, answer.content) == (200, b"{}")
    assert answer.headers["cache-control"] == "no-store"


async def test_json_is_read_too_and_a_missing_token_is_reported(world: World, client: KnownClient) -> None:
    token = await client_token(world, client)

    by_json = await world.http.post(REVOKE, json={"token": token})
    missing = [
        await world.http.post(REVOKE, data={"token_type_hint": "access_token"}),
        await world.http.post(REVOKE, data={"token": ""}),
        await world.http.post(REVOKE),
    ]

    assert by_json.status_code == 200
    assert await status(world.http, token) == 401
    for answer in missing:
        assert oauth_refusal(answer) == (400, "invalid_request")


async def test_an_assertion_given_back_ends_the_whole_registration(
    world: World, other_worker: httpx.AsyncClient
) -> None:
    text = await assertion(world)
    form = {"grant_type": JWT_BEARER, "assertion": text}
    token = (await world.http.post(TOKEN, data=form)).json()["access_token"]
    assert await status(other_worker, token) == 200

    answer = await world.http.post(REVOKE, data={"token": text})

    assert (answer.status_code, answer.content) == (200, b"{}")
    assert await status(other_worker, token) == 401
    assert oauth_refusal(await other_worker.post("/api/v1/auth/token", data=form)) == (400, "invalid_grant")


async def test_a_revocation_is_remembered_for_as_long_as_the_token_would_have_lived(
    world: World, client: KnownClient
) -> None:
    token = await client_token(world, client)
    claims = world.store.tokens.verify(token)
    await world.http.post(REVOKE, data={"token": token})

    [(ends_at,)] = await world.store.database.fetch("SELECT expires_at FROM revoked_token WHERE jti = $1", claims.jti)

    assert ends_at > Instant(claims.exp * 1_000_000)
    assert await queries.is_revoked(world.store.database, claims.jti)
