"""Attacks with old privileges: a token that outlives its session, a capability that outlives its purpose."""

import msgspec
import pytest

from countersign.kernel import clock
from countersign.kernel.security import passwords
from countersign.store.auth import people, queries
from tests.store.world import World

OWN_PAGE = {"Origin": "http://127.0.0.1:8480"}
EMAIL, PASSWORD = "owner@north.example", "a long password"


async def sign_in_owner(world: World) -> str:
    """Create an owner of `north`, sign in, and return the id of the person."""
    await world.person(EMAIL, north="owner")
    person = await queries.person_with_email(world.store.database, EMAIL)
    assert person is not None
    async with world.store.database.transaction() as transaction:
        await people.set_password(transaction, person.id, await passwords.hash_password(PASSWORD))
    form = {"email": EMAIL, "password": PASSWORD}
    answer = await world.call("POST", "/auth/signin", headers=OWN_PAGE, data=form)
    assert answer.status_code == 303
    return person.id


async def exchange_code(world: World, body: dict[str, str]) -> str:
    answer = await world.call("POST", "/auth/session/token", headers=OWN_PAGE, json=body)
    assert answer.status_code == 200
    return str(answer.json()["access_token"])


BODIES = [{}, {"scope": "admin:org"}]


@pytest.mark.parametrize("body", BODIES)
async def test_a_token_of_a_session_does_not_outlive_the_sign_out(world: World, body: dict[str, str]) -> None:
    await sign_in_owner(world)
    token = await exchange_code(world, body)
    assert (await world.call("GET", "/org", token)).status_code == 200

    await world.call("POST", "/auth/signout", headers=OWN_PAGE)

    assert (await world.call("GET", "/org", token)).status_code == 401


@pytest.mark.parametrize("body", BODIES)
async def test_a_token_of_a_session_does_not_outlive_the_password(world: World, body: dict[str, str]) -> None:
    person_id = await sign_in_owner(world)
    token = await exchange_code(world, body)

    async with world.store.database.transaction() as transaction:
        await people.set_password(transaction, person_id, await passwords.hash_password("another password"))

    assert (await world.call("GET", "/org", token)).status_code == 401


@pytest.mark.parametrize("body", BODIES)
async def test_a_token_of_a_session_ends_when_the_session_does(world: World, body: dict[str, str]) -> None:
    await sign_in_owner(world)
    life_s = world.store.settings.session_ttl_s
    near_its_end = clock.later(clock.now(), seconds=life_s - 600)

    with clock.fixed(near_its_end):
        token = await exchange_code(world, body)
        assert (await world.call("GET", "/org", token)).status_code == 200
    with clock.fixed(clock.later(near_its_end, seconds=700)):
        answer = await world.call("GET", "/org", token)

    assert answer.status_code == 401


async def test_a_limited_token_of_a_session_stays_limited(world: World) -> None:
    await sign_in_owner(world)
    token = await exchange_code(world, {"scope": "read:products"})

    answer = await world.call("GET", "/org", token)

    assert answer.status_code == 403
    assert msgspec.json.decode(answer.content, type=dict[str, object])["code"] == "insufficient_scope"


async def test_an_upload_address_brings_nothing_into_a_yanked_release(world: World) -> None:
    token = await world.client_token("north")
    await world.product("north", "quiet-harbour")
    path = "/products/quiet-harbour/releases"
    await world.call("POST", path, token, json={"version": "1.0.0", "channel": "stable", "notes_only": True})
    await world.call("POST", f"{path}/1.0.0/publish", token)
    announced_response = await world.call(
        "POST", f"{path}/1.0.0/artifacts", token, json={"filename": "late.bin", "size": 4}
    )
    await world.call("POST", f"{path}/1.0.0/yank", token, json={"reason": "it was not ours"})

    sent_response = await world.http.put(announced_response.json()["upload_url"], content=b"evil")

    assert sent_response.status_code == 404
    (release,) = (await world.call("GET", path, token)).json()
    assert release["artifacts"] == []


async def test_an_upload_address_ends_with_the_right_of_its_announcer(world: World) -> None:
    owner = await world.person("boss@north.example", north="owner")
    publisher = await world.person("leaver@north.example", north="publisher")
    client = await world.client_token("north")
    await world.product("north", "one")
    await world.call("POST", "/products/one/releases", owner, json={"version": "1.0.0", "channel": "beta"})
    addresses: list[str] = []
    for number, token in enumerate((publisher, client)):
        body = {"filename": f"{number}.zip", "size": 3}
        announced_response = await world.call("POST", "/products/one/releases/1.0.0/artifacts", token, json=body)
        addresses.append(announced_response.json()["upload_url"])
        assert (await world.http.get(addresses[-1])).status_code == 200

    await world.call("DELETE", "/org/members", owner, params={"email": "leaver@north.example"})
    client_id = world.store.tokens.verify(client).client_id
    await world.call("DELETE", "/org/clients", owner, params={"client_id": client_id})

    for address in addresses:
        answer = await world.http.put(address, content=b"bad")
        assert (answer.status_code, answer.json()["code"]) == (404, "upload_not_found")


async def test_a_pending_sign_in_with_the_old_password_opens_no_session_after_the_change(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, verify = world.store, passwords.verify
    async with store.database.transaction() as transaction:
        person = await people.create_person(transaction, "pat@example.com", "the old password")

    async def verified_just_before_the_change(password: str, stored_hash: str | None) -> bool:
        is_right = await verify(password, stored_hash)
        password_hash = await passwords.hash_password("the new password")
        async with store.database.transaction() as transaction:
            await people.set_password(transaction, person.id, password_hash)
        return is_right

    monkeypatch.setattr(passwords, "verify", verified_just_before_the_change)
    form = {"email": "pat@example.com", "password": "the old password"}
    await world.http.post("/auth/signin", data=form, headers={"Origin": "http://127.0.0.1:8480"})

    assert await store.database.fetch("SELECT person_id FROM session") == []
