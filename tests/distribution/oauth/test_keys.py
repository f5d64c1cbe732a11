"""Rotation of the signing keys, while workers run."""

import asyncio

import httpx

from countersign.distribution.identity import keys
from countersign.distribution.identity.keys import KeysChanged
from tests.distribution.oauth.conftest import Known
from tests.distribution.oauth.test_revocation import client_token, other_worker, status
from tests.distribution.world import World

__all__ = ["other_worker"]


async def rotate(world: World, *, drop_previous: bool = False) -> str:
    """Rotate as the command does, beside the running workers; the new key's id."""
    store = world.store
    return (await keys.rotate(store.database, store.master, drop_previous=drop_previous)).kid


async def shown(http: httpx.AsyncClient) -> list[str]:
    """The ids of the keys a worker shows."""
    return [key["kid"] for key in (await http.get("/.well-known/jwks.json")).json()["keys"]]


async def test_t10_tokens_of_the_previous_key_hold_and_those_of_a_removed_one_do_not(
    world: World, client: Known, other_worker: httpx.AsyncClient
) -> None:
    [first] = await shown(world.http)
    old = await client_token(world, client)
    assert await status(world.http, old) == await status(other_worker, old) == 200

    second = await rotate(world)

    for worker in (world.http, other_worker):
        assert await shown(worker) == [second, first]
        assert await status(worker, old) == 200
    newer = await client_token(world, client)
    assert await status(other_worker, newer) == 200

    third = await rotate(world)

    for worker in (world.http, other_worker):
        assert await status(worker, old) == 401
        assert await status(worker, newer) == 200
        assert await shown(worker) == [third, second]


async def test_t10_a_dropped_key_ends_its_tokens_on_every_worker_at_once(
    world: World, client: Known, other_worker: httpx.AsyncClient
) -> None:
    old = await client_token(world, client)
    assert await status(world.http, old) == await status(other_worker, old) == 200

    fresh = await rotate(world, drop_previous=True)

    assert await status(other_worker, old) == await status(world.http, old) == 401
    assert await shown(world.http) == await shown(other_worker) == [fresh]
    issued = await other_worker.post("/api/v1/auth/token", data={"grant_type": "client_credentials"}, auth=client)
    assert await status(world.http, issued.json()["access_token"]) == 200


async def test_t10_a_worker_that_only_issues_signs_with_the_new_key(
    world: World, client: Known, other_worker: httpx.AsyncClient
) -> None:
    await rotate(world, drop_previous=True)

    issued = await other_worker.post("/api/v1/auth/token", data={"grant_type": "client_credentials"}, auth=client)

    assert await status(world.http, issued.json()["access_token"]) == 200


async def test_of_rotations_at_once_each_is_whole(world: World) -> None:
    results = await asyncio.gather(*(rotate(world) for _ in range(4)), return_exceptions=True)

    kids = [result for result in results if isinstance(result, str)]
    assert kids
    assert all(isinstance(result, (str, KeysChanged)) for result in results)
    assert (await shown(world.http))[0] in kids


async def test_the_ring_is_kept_sealed(world: World) -> None:
    await rotate(world)

    [(sealed,)] = await world.store.database.fetch("SELECT sealed FROM service_key")

    assert b'"d"' not in bytes(sealed)
    assert b"P-256" not in bytes(sealed)
