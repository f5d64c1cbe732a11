"""Attacks with the public passwords and secrets in the documentation of the demonstration."""

from dataclasses import replace

import pytest

from countersign.cli.server import store_service
from countersign.kernel.security import passwords
from countersign.settings import BadSetting
from countersign.store import demo
from countersign.store.auth import people, queries
from countersign.store.auth.oauth import clients
from tests.store.world import World


async def test_a_store_with_well_known_passwords_is_not_served_to_other_machines(demo_world: World) -> None:
    with pytest.raises(BadSetting, match="well-known"):
        await store_service.prepare(replace(demo_world.store, is_loopback=False), is_demo=False)


async def test_the_service_starts_after_well_known_passwords_are_replaced(demo_world: World) -> None:
    store = demo_world.store
    async with store.database.transaction() as transaction:
        org = await queries.organisation_with_slug(transaction, demo.ORGANISATIONS[0][0])
        assert org is not None
        await clients.delete_client(transaction, org.id, demo.CLIENT_ID)
        for email in (demo.PLAYER, demo.PUBLISHER):
            person = await queries.person_with_email(transaction, email)
            assert person is not None
            password_hash = await passwords.hash_password("a password of my own")
            await people.set_password(transaction, person.id, password_hash)

    assert "Sign in" in await store_service.prepare(replace(store, is_loopback=False), is_demo=False)


async def test_a_store_with_well_known_passwords_is_served_to_this_machine(demo_world: World) -> None:
    assert "Sign in" in await store_service.prepare(demo_world.store, is_demo=False)
