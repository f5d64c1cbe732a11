"""Idempotency-Key (decisions 6): the first response is always returned, for any kind of caller and after any
failure."""

import asyncio
import uuid

import pytest

from countersign.kernel import clock
from tests.store.world import World

PRODUCT = {"slug": "made", "title": "Made", "kind": "tool", "platforms": ["linux"]}


@pytest.fixture
async def owner(world: World) -> str:
    """A token of the owner of north."""
    return await world.person("owner@north.example", north="owner")


def new_key() -> dict[str, str]:
    """Return a new key."""
    return {"Idempotency-Key": str(uuid.uuid4())}


async def test_a_repeated_call_gets_the_first_answer_and_does_nothing(world: World, owner: str) -> None:
    key = new_key()

    first_response = await world.call("POST", "/products", owner, json=PRODUCT, headers=key)
    second_response = await world.call("POST", "/products", owner, json=PRODUCT, headers=key)
    keyless_answer = await world.call("POST", "/products", owner, json=PRODUCT)

    assert (first_response.status_code, first_response.json(), first_response.headers["location"]) == (
        second_response.status_code,
        second_response.json(),
        second_response.headers["location"],
    )
    assert "idempotency-replayed" not in first_response.headers
    assert second_response.headers["idempotency-replayed"] == "true"
    assert keyless_answer.json()["code"] == "slug_taken"


async def test_a_key_may_be_in_quotes_and_in_capitals(world: World, owner: str) -> None:
    key = str(uuid.uuid4())
    await world.call("POST", "/products", owner, json=PRODUCT, headers={"Idempotency-Key": key})

    for spelling in (f'"{key}"', key.upper(), f'  "{key.upper()}" '):
        answer = await world.call("POST", "/products", owner, json=PRODUCT, headers={"Idempotency-Key": spelling})
        assert (answer.status_code, answer.headers["idempotency-replayed"]) == (201, "true")


async def test_a_key_with_another_body_is_refused(world: World, owner: str) -> None:
    key = new_key()
    await world.call("POST", "/products", owner, json=PRODUCT, headers=key)

    other_response = await world.call("POST", "/products", owner, json={**PRODUCT, "slug": "other"}, headers=key)

    assert (other_response.status_code, other_response.json()["code"]) == (422, "idempotency_key_reused")
    assert (await world.call("GET", "/products/other", owner)).status_code == 404


async def test_a_key_belongs_to_its_caller_its_method_and_its_path(world: World, owner: str) -> None:
    key = new_key()
    south = await world.person("owner@south.example", south="owner")
    await world.call("POST", "/products", owner, json=PRODUCT, headers=key)

    other_response = await world.call("POST", "/products", south, json={**PRODUCT, "slug": "souths"}, headers=key)
    foreign_response = await world.call("PUT", "/products/made", owner, json=PRODUCT, headers=key)

    assert other_response.status_code == 201
    assert foreign_response.status_code == 200
    assert "idempotency-replayed" not in other_response.headers
    assert "idempotency-replayed" not in foreign_response.headers


async def test_a_refusal_is_an_answer_too(world: World, owner: str) -> None:
    key = new_key()
    refused_response = await world.call(
        "POST", "/products/made/releases", owner, json={"version": "1", "channel": "beta"}, headers=key
    )
    await world.call("POST", "/products", owner, json=PRODUCT)

    second_response = await world.call(
        "POST", "/products/made/releases", owner, json={"version": "1", "channel": "beta"}, headers=key
    )

    assert refused_response.status_code == second_response.status_code == 404
    assert refused_response.json() == second_response.json()
    assert second_response.headers["idempotency-replayed"] == "true"


async def test_a_limit_is_not_remembered(world: World, owner: str) -> None:
    await world.product("north", "one")
    code = (await world.call("POST", "/codes", owner, json={"kind": "license", "products": ["one"], "count": 1})).json()
    person = await world.person("a@example.com")
    for number in range(10):
        await world.call("POST", "/redeem", person, json={"code": f"WRONG-{number}"})
    key = new_key()

    limited_response = await world.call("POST", "/redeem", person, json={"code": "WRONG"}, headers=key)
    with clock.fixed(clock.later(clock.now(), seconds=700)):
        later_response = await world.call("POST", "/redeem", person, json={"code": "WRONG"}, headers=key)
        right = await world.call("POST", "/redeem", person, json={"code": code["codes"][0]}, headers=new_key())

    assert limited_response.status_code == 429
    assert (later_response.status_code, later_response.headers.get("idempotency-replayed")) == (404, None)
    assert right.status_code == 200


async def test_a_key_is_forgotten_after_a_day(world: World, owner: str) -> None:
    key = new_key()
    await world.call("POST", "/products", owner, json=PRODUCT, headers=key)

    with clock.fixed(clock.later(clock.now(), seconds=24 * 3600 + 1)):
        token = await world.person_token("owner@north.example", "read:products write:products")
        late_response = await world.call("POST", "/products", token, json=PRODUCT, headers=key)

    assert late_response.json()["code"] == "slug_taken"


async def test_only_one_of_many_concurrent_calls_with_one_key_runs(world: World, owner: str) -> None:
    for number in range(20):
        key = new_key()
        body = {**PRODUCT, "slug": f"made-{number}"}
        answers = await asyncio.gather(
            *(world.call("POST", "/products", owner, json=body, headers=key) for _ in range(8))
        )

        assert {answer.status_code for answer in answers} <= {201, 409}
        assert {answer.json()["code"] for answer in answers if answer.status_code == 409} <= {"idempotency_in_progress"}
        assert all(answer.headers["retry-after"] for answer in answers if answer.status_code == 409)
        ids = {answer.json()["id"] for answer in answers if answer.status_code == 201}
        assert len(ids) == 1


async def test_an_answer_with_a_secret_is_kept_sealed(world: World, owner: str) -> None:
    key = new_key()
    body = {"name": "ci", "scopes": ["read:products"]}
    created_response = await world.call("POST", "/org/clients", owner, json=body, headers=key)
    second_response = await world.call("POST", "/org/clients", owner, json=body, headers=key)
    rows = await world.store.database.fetch("SELECT body, headers FROM idempotency")

    secret = created_response.json()["client_secret"]
    assert second_response.json()["client_secret"] == secret
    assert all(secret.encode() not in bytes(stored_body) for stored_body, _ in rows)
    assert key["Idempotency-Key"] not in str(rows)


async def test_reads_take_no_notice_of_a_key(world: World, owner: str) -> None:
    answer = await world.call("GET", "/products", owner, headers={"Idempotency-Key": "no uuid"})

    assert answer.status_code == 200
