"""The key of an organisation is created once, and replaced only by keys that it names."""

import asyncio

from countersign.store import signing_keys
from countersign.store.context import Store
from countersign.updates import trust
from tests.store.world import World


async def test_concurrent_callers_get_the_same_first_key(store: Store, world: World) -> None:
    org = await world.org("east")

    results = await asyncio.gather(*(signing_keys.ensure_key(store, org) for _ in range(8)))

    assert len({key.public.keyid for key in results}) == 1


async def test_a_private_key_is_always_encrypted_in_the_database(store: Store, world: World) -> None:
    org = await world.org("east")

    key = await signing_keys.ensure_key(store, org)

    rows = await store.database.fetch("SELECT sealed FROM signing_key WHERE org_id = $1", org)
    assert key.private not in bytes(rows[0][0])


async def test_a_rotation_is_named_by_the_previous_key(world: World) -> None:
    token = await world.person("olga@north.example", north="owner")

    first_key = (await world.call("POST", "/org/signing-keys", token)).json()
    second_key = (await world.call("POST", "/org/signing-keys", token)).json()

    listed_body = (await world.call("GET", "/org/signing-keys", token)).json()
    assert listed_body == [first_key, second_key]
    row = await world.store.database.fetch_one("SELECT id FROM organisation WHERE slug = 'north'")
    assert row is not None
    chain, rotations = await signing_keys.chain(world.store.database, row[0])
    assert trust.follow_rotations("north", chain[0], chain[0], rotations) == chain[1]
    assert (await signing_keys.ensure_key(world.store, row[0])).public == chain[1]


async def test_two_concurrent_rotations_are_both_kept_in_an_unbroken_chain(world: World) -> None:
    token = await world.person("olga@north.example", north="owner")
    await world.call("POST", "/org/signing-keys", token)

    answers = await asyncio.gather(*(world.call("POST", "/org/signing-keys", token) for _ in range(5)))

    created_keys = [answer.json() for answer in answers if answer.status_code == 201]
    assert all(answer.status_code in (201, 409) for answer in answers)
    assert all(answer.json()["code"] == "key_just_rotated" for answer in answers if answer.status_code == 409)
    row = await world.store.database.fetch_one("SELECT id FROM organisation WHERE slug = 'north'")
    assert row is not None
    chain, rotations = await signing_keys.chain(world.store.database, row[0])
    assert len(chain) == 1 + len(created_keys) == 1 + len(rotations)
    assert trust.follow_rotations("north", chain[0], chain[0], rotations) == chain[-1]


async def test_only_administrators_of_the_organisation_see_and_rotate_keys(world: World) -> None:
    token = await world.person("pat@north.example", north="publisher")

    assert (await world.call("GET", "/org/signing-keys", token)).status_code == 403
    assert (await world.call("POST", "/org/signing-keys", token)).status_code == 403
    assert (await world.call("POST", "/org/signing-keys")).status_code == 401
