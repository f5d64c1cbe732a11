"""Attacks with a set-up link that was printed and never used."""

import pytest
from httpx import AsyncClient

from countersign.store.auth import people
from countersign.store.context import Store
from tests.store.world import World

OWN_PAGE = {"Origin": "http://127.0.0.1:8480"}


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_set_up_link_is_invalid_once_a_person_exists(world: World, method: str) -> None:
    link = await people.create_setup_link(world.store)
    assert link is not None
    token = link.partition("token=")[2]
    async with world.store.database.transaction() as transaction:
        await people.add_person(transaction, "owner@example.com", None)
    form = {"token": token, "slug": "mine", "name": "Mine", "email": "me@example.com", "password": "a long password"}

    answer = await world.call(method, f"/auth/setup?token={token}", headers=OWN_PAGE, data=form)

    assert answer.status_code == 404
    assert "Sign in with your e-mail and password." in answer.text
    assert '<a href="/auth/signin">Sign in</a>' in answer.text


async def test_an_invalid_set_up_link_is_refused_with_the_command_for_a_new_link(
    store: Store, http: AsyncClient
) -> None:
    page = await http.get("/auth/setup?token=none")

    assert page.status_code == 404
    assert "Restart the store: it prints a new link" in page.text
    assert "/auth/signin" not in page.text
    assert store.settings.data
