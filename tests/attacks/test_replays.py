"""Attacks with an Idempotency-Key: answers that belong to another request."""

from countersign.store.auth import people, queries
from tests.store.world import World

KEY = {"Idempotency-Key": "0192f0c1-2b7e-7c3e-8d57-0a4f6f1f0b11"}
BODY = {"name": "deploy", "scopes": ["read:products"]}


async def test_a_key_used_for_one_organisation_is_refused_for_another_organisation(world: World) -> None:
    token = await world.person("owner@example.com", north="owner")
    async with world.store.database.transaction() as transaction:
        south = await queries.organisation_with_slug(transaction, "south")
        assert south is not None
        await people.set_role(transaction, south.id, "owner@example.com", "owner")
    first_response = await world.call("POST", "/org/clients?org=north", token, json=BODY, headers=KEY)
    assert first_response.status_code == 201

    second_response = await world.call("POST", "/org/clients?org=south", token, json=BODY, headers=KEY)

    assert second_response.status_code == 422
    assert "client_secret" not in second_response.text
