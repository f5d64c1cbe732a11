"""A caller who may announce a file may upload it, also an agent or a program that acts for a person, until the right is
revoked."""

from collections.abc import Awaitable, Callable

import pytest

from countersign.store.auth import people
from tests.store.auth.agents.people import RegisteredAgent, Visitor
from tests.store.auth.oauth.conftest import (
    BACK,
    Browser,
    KnownClient,
    code_for,
    exchange,
    hidden_fields,
    new_client,
    new_person,
)
from tests.store.files import Shop, pattern

DATA = pattern(100)
SCOPE = "read:products write:products write:releases"
PICTURE = {"kind": "icon", "filename": "a.png", "size": 100, "alt": "A river."}


async def by_agent(shop: Shop) -> tuple[Visitor, str]:
    """Return a member of the publisher, and the token of an agent that acts for the member."""
    world = shop.world
    person = await Visitor.signed_in(world, "other@north.example", north="publisher")
    agent = await RegisteredAgent.by_email(world, person.email, SCOPE)
    assert (await person.decide(agent.link, user_code=agent.code)).status_code == 200
    assertion = (await agent.poll()).json()["identity_assertion"]
    return person, (await agent.exchange(assertion)).json()["access_token"]


async def by_program(shop: Shop) -> tuple[Browser, str]:
    """Return a member of the publisher, and the token of a program that acts for the member."""
    return await client_of_member(shop, await new_client(shop.world, scope=SCOPE))


async def by_registered(shop: Shop) -> tuple[Browser, str]:
    """Return the same with a program that registered itself."""
    created_response = await shop.world.http.post("/auth/clients", json={"redirect_uris": [BACK], "scope": SCOPE})
    return await client_of_member(
        shop, KnownClient(created_response.json()["client_id"], created_response.json()["client_secret"])
    )


async def client_of_member(shop: Shop, client: KnownClient) -> tuple[Browser, str]:
    """Return a member of the publisher, and the token of a self-registered client that acts for the member."""
    world = shop.world
    await new_person(world, "other@north.example")
    async with world.store.database.transaction() as transaction:
        row = await transaction.fetch_one("SELECT id FROM organisation WHERE slug = 'north'")
        assert row is not None
        await people.set_role(transaction, row[0], "other@north.example", "publisher")
    browser = Browser(world)
    await browser.sign_in("other@north.example")
    code = await code_for(browser, client, scope=SCOPE)
    return browser, (await exchange(world, client, code)).json()["access_token"]


@pytest.mark.parametrize("acting", [by_agent, by_program, by_registered])
async def test_the_announcer_of_an_upload_may_send_it(
    shop: Shop, acting: Callable[[Shop], Awaitable[tuple[object, str]]]
) -> None:
    _, token = await acting(shop)
    announcer = shop._replace(token=token)

    artifact = await announcer.upload(DATA)
    picture = await shop.world.call("POST", f"/products/{shop.product_id}/media", token, json=PICTURE)
    response = await shop.world.http.get(picture.json()["upload_url"])

    assert artifact["status"] == "ready"
    assert response.status_code == 200, response.text


async def test_an_address_ends_with_the_agent(shop: Shop) -> None:
    person, token = await by_agent(shop)
    address = await shop._replace(token=token).address(100)
    page = await person.get("/auth/agents")

    await person.send("/auth/agents", **hidden_fields(page))

    assert (await shop.put(address, DATA)).json()["code"] == "upload_not_found"


@pytest.mark.parametrize("acting", [by_program, by_registered])
async def test_an_address_ends_with_the_consent(
    shop: Shop, acting: Callable[[Shop], Awaitable[tuple[Browser, str]]]
) -> None:
    browser, token = await acting(shop)
    address = await shop._replace(token=token).address(100)

    await browser.post("/auth/agents", hidden_fields(await browser.get("/auth/agents")))

    assert (await shop.put(address, DATA)).json()["code"] == "upload_not_found"


async def test_an_address_of_an_agent_ends_with_its_persons_role(shop: Shop) -> None:
    person, token = await by_agent(shop)
    address = await shop._replace(token=token).address(100)
    async with shop.store.database.transaction() as transaction:
        row = await transaction.fetch_one("SELECT id FROM organisation WHERE slug = 'north'")
        assert row is not None
        await people.set_role(transaction, row[0], person.email, "viewer")

    assert (await shop.put(address, DATA)).json()["code"] == "upload_not_found"
