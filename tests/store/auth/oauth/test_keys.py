"""Rotation of the signing keys while workers run."""

import asyncio

import httpx

from countersign.kernel import clock
from countersign.kernel.security.jose import MAX_LIFE_S, RETIREMENT_S, SKEW_S
from countersign.store.auth import tokens
from countersign.store.auth.tokens import KeysChanged
from tests.store.auth.oauth.conftest import ORIGIN, Browser, KnownClient, code_for, exchange
from tests.store.auth.oauth.test_revocation import client_token, other_worker, status
from tests.store.auth.oauth.test_tokens import JWT_BEARER, TOKEN, assertion
from tests.store.world import World

__all__ = ["other_worker"]


async def rotate(world: World, *, drop_previous: bool = False) -> str:
    """Rotate the keys like the command does while the workers run, and return the id of the new key."""
    store = world.store
    return (await tokens.rotate_keys(store.database, store.master, drop_previous=drop_previous)).kid


async def published_key_ids(http: httpx.AsyncClient) -> list[str]:
    """Return the ids of the keys that a worker publishes."""
    return [key["kid"] for key in (await http.get("/.well-known/jwks.json")).json()["keys"]]


async def exchange_assertion(http: httpx.AsyncClient, text: str) -> httpx.Response:
    """Exchange an agent's assertion and return the response."""
    return await http.post(TOKEN, data={"grant_type": JWT_BEARER, "assertion": text})


async def every_token(world: World, client: KnownClient, browser: Browser) -> list[str]:
    """Return an access token of each kind: of a client, of a person through a client, of an agent, of a session, and of
    the command line."""
    store = world.store
    by_client = await exchange(world, client, await code_for(browser, client))
    by_agent = await exchange_assertion(world.http, await assertion(world))
    headers = {**browser.cookie, **ORIGIN}
    in_session = await world.http.post("/auth/session/token", json={"scope": "read:library"}, headers=headers)
    issued_here = tokens.issue(store, client.id, client.id, frozenset({"read:library"}))
    answers = [response.json() for response in (by_client, by_agent, in_session)]
    return [await client_token(world, client), *(answer["access_token"] for answer in answers), issued_here]


async def test_t10_three_rotations_within_a_tokens_life_end_no_token_of_any_kind(
    world: World, client: KnownClient, browser: Browser, other_worker: httpx.AsyncClient
) -> None:
    kids = await published_key_ids(world.http)
    signed_tokens = [await every_token(world, client, browser)]
    texts = [await assertion(world)]
    for _ in range(3):
        kids.insert(0, await rotate(world))
        signed_tokens.append(await every_token(world, client, browser))
        texts.append(await assertion(world))

    for worker in (world.http, other_worker):
        assert await published_key_ids(worker) == kids
        assert {await status(worker, token) for pair in signed_tokens for token in pair} == {200}
        assert {(await exchange_assertion(worker, text)).status_code for text in texts} == {200}


async def test_t10_a_key_is_unpublished_after_the_last_token_that_it_signed_has_ended(
    world: World, client: KnownClient, other_worker: httpx.AsyncClient
) -> None:
    at = clock.now()
    [first_key_id] = await published_key_ids(world.http)
    with clock.fixed(at):
        last_token = await client_token(world, client)
        second_key_id = await rotate(world)
    with clock.fixed(clock.later(at, seconds=MAX_LIFE_S + SKEW_S)):
        assert await status(world.http, last_token) == await status(other_worker, last_token) == 200
        third_key_id = await rotate(world)
        assert (
            await published_key_ids(world.http)
            == await published_key_ids(other_worker)
            == [third_key_id, second_key_id, first_key_id]
        )
    with clock.fixed(clock.later(at, seconds=RETIREMENT_S + 1)):
        assert (
            await published_key_ids(world.http)
            == await published_key_ids(other_worker)
            == [third_key_id, second_key_id]
        )
        assert await status(world.http, last_token) == 401
    with clock.fixed(clock.later(at, seconds=3 * RETIREMENT_S)):
        assert await published_key_ids(world.http) == await published_key_ids(other_worker) == [third_key_id]


async def test_t10_a_dropped_key_ends_its_tokens_on_every_worker_at_once(
    world: World, client: KnownClient, other_worker: httpx.AsyncClient
) -> None:
    old = await client_token(world, client)
    assert await status(world.http, old) == await status(other_worker, old) == 200

    fresh_key_id = await rotate(world, drop_previous=True)

    assert await status(other_worker, old) == await status(world.http, old) == 401
    assert await published_key_ids(world.http) == await published_key_ids(other_worker) == [fresh_key_id]
    token_answer = await other_worker.post("/api/v1/auth/token", data={"grant_type": "client_credentials"}, auth=client)
    assert await status(world.http, token_answer.json()["access_token"]) == 200


async def test_t10_a_worker_that_only_issues_signs_with_the_new_key(
    world: World, client: KnownClient, other_worker: httpx.AsyncClient
) -> None:
    await rotate(world, drop_previous=True)

    token_answer = await other_worker.post("/api/v1/auth/token", data={"grant_type": "client_credentials"}, auth=client)

    assert await status(world.http, token_answer.json()["access_token"]) == 200


async def test_of_rotations_at_once_each_is_whole(world: World) -> None:
    results = await asyncio.gather(*(rotate(world) for _ in range(4)), return_exceptions=True)

    kids = [result for result in results if isinstance(result, str)]
    assert kids
    assert all(isinstance(result, (str, KeysChanged)) for result in results)
    assert (await published_key_ids(world.http))[0] in kids


async def test_the_ring_is_kept_sealed(world: World) -> None:
    await rotate(world)

    [(sealed_ring,)] = await world.store.database.fetch("SELECT sealed FROM service_key")

    assert b'"d"' not in bytes(sealed_ring)
    assert b"P-256" not in bytes(sealed_ring)
