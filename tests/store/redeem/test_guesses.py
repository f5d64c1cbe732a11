"""Guesses of codes: their limits, and the responses above the limit."""

import asyncio
import uuid
from dataclasses import replace
from typing import Any

import pytest

from countersign.kernel import clock
from countersign.settings import Settings
from countersign.store.redeem import codes
from tests.contract.scenes import all_rows
from tests.store.world import World


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings without a limit for addresses, so that the test reaches the limit for people."""
    return replace(settings, code_failures_address=1_000_000)


@pytest.fixture
async def code(world: World) -> str:
    """A code with a hundred uses."""
    await world.product("north", "one")
    owner = await world.person("owner@north.example", north="owner")
    body = {"kind": "promo", "products": ["one"], "count": 1, "max_uses": 100}
    return (await world.call("POST", "/codes", owner, json=body)).json()["codes"][0]


async def redeem(world: World, token: str, typed_code: str, **headers: str) -> Any:
    """Redeem a code in this spelling, and return the response."""
    return await world.call("POST", "/redeem", token, json={"code": typed_code}, headers=headers)


async def test_simultaneous_guesses_do_not_exceed_the_limit(world: World, code: str) -> None:
    for person in range(10):
        token = await world.person(f"p{person}@example.com")
        for number in range(9):
            assert (await redeem(world, token, f"WRONG-{number}")).status_code == 404

        answers = await asyncio.gather(*(redeem(world, token, f"ALSO-WRONG-{number}") for number in range(10)))

        assert sorted(answer.status_code for answer in answers) == [404] + [429] * 9


async def test_the_refusal_has_a_retry_time_after_which_a_redemption_works(world: World, code: str) -> None:
    token = await world.person("a@example.com")
    for number in range(10):
        await redeem(world, token, f"WRONG-{number}")
    rows_before = await all_rows(world.store)

    limited_response = await redeem(world, token, "ONE-MORE-GUESS")

    assert (limited_response.status_code, limited_response.json()["code"]) == (429, "rate_limit_exceeded")
    assert 1 <= int(limited_response.headers["retry-after"]) <= 600
    assert (limited_response.headers["ratelimit-limit"], limited_response.headers["ratelimit-remaining"]) == ("10", "0")
    assert limited_response.headers["ratelimit-reset"] == limited_response.headers["retry-after"]
    assert await all_rows(world.store) == rows_before
    with clock.fixed(clock.later(clock.now(), seconds=int(limited_response.headers["retry-after"]) + 1)):
        later_token = await world.person_token("a@example.com", "read:library")
        assert (await redeem(world, later_token, "ONE-MORE-GUESS")).status_code == 404
        assert (await redeem(world, later_token, code)).is_success


async def test_a_new_token_does_not_reset_the_guess_limit(world: World, code: str) -> None:
    await world.person("a@example.com")
    for number in range(10):
        token = await world.person_token("a@example.com", "read:library")
        assert (await redeem(world, token, f"WRONG-{number}")).status_code == 404

    token = await world.person_token("a@example.com", "read:library")
    assert (await redeem(world, token, "WRONG-AGAIN")).status_code == 429


def over_batch(code: str) -> tuple[str, dict[str, Any]]:
    """Redeem a code in a batch."""
    return "/batch", {"operations": [{"method": "POST", "path": "/redeem", "body": {"code": code}}]}


def over_mcp(code: str) -> tuple[str, dict[str, Any]]:
    """Redeem a code with the MCP tool."""
    params = {"name": "redeem_code", "arguments": {"code": code}}
    return "http://127.0.0.1:8480/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


WAYS = {"rest": lambda code: ("/redeem", {"code": code}), "batch": over_batch, "mcp": over_mcp}


@pytest.mark.parametrize("redeem_way", WAYS)
async def test_a_correct_code_is_redeemed_while_guesses_are_limited(world: World, code: str, redeem_way: str) -> None:
    token = await world.person("a@example.com")
    for number in range(11):
        last_answer = await redeem(world, token, f"WRONG-{number}")
    assert last_answer.status_code == 429

    path, body = WAYS[redeem_way](f" {code.lower().replace('-', ' ')} ")
    answers = await asyncio.gather(*(world.call("POST", path, token, json=body) for _ in range(3)))

    assert all(answer.is_success and '"success' in answer.text for answer in answers), answers[0].text
    assert [product["slug"] for product in (await world.call("GET", "/library", token)).json()] == ["one"]
    count_uses = "SELECT uses FROM code WHERE uses > 0"
    assert await world.store.database.fetch(count_uses) == [(1,)]
    assert (await redeem(world, token, "WRONG-AGAIN")).status_code == 429


async def test_a_short_code_waits_like_a_guess(world: World) -> None:
    product = await world.product("north", "one")
    org = (await world.store.database.fetch("SELECT id FROM organisation WHERE slug = 'north'"))[0][0]
    async with world.store.database.transaction() as transaction:
        await codes.add_batch(transaction, org, "promo", [product], ["SHORT-1234"], 100)
    token = await world.person("a@example.com")
    for number in range(10):
        await redeem(world, token, f"WRONG-{number}")

    assert (await redeem(world, token, "SHORT-1234")).status_code == 429
    assert (await redeem(world, await world.person("b@example.com"), "SHORT-1234")).is_success


async def test_a_repeated_call_does_not_count_as_another_guess(world: World, code: str) -> None:
    token = await world.person("a@example.com")
    key = {"Idempotency-Key": str(uuid.uuid4())}

    for _ in range(12):
        assert (await redeem(world, token, "WRONG", **key)).status_code == 404

    assert (await redeem(world, token, code)).is_success


@pytest.mark.parametrize(
    "typed_text", ["x", "-", " ", "DEMO0-LICEN-SE000-00001", "é" * 128, "0" * 128, "\u212a", "\u0130"]
)
async def test_any_text_of_up_to_128_characters_that_is_not_a_code_is_unknown(
    world: World, code: str, typed_text: str
) -> None:
    answer = await redeem(world, await world.person("a@example.com"), typed_text)

    assert (answer.status_code, answer.json()["code"]) == (404, "code_not_found")
    assert typed_text not in answer.json()["detail"] or len(typed_text) == 1


async def test_a_used_up_code_does_not_count_as_a_guess(world: World) -> None:
    await world.product("north", "one")
    owner = await world.person("owner@north.example", north="owner")
    body = {"kind": "license", "products": ["one"], "count": 1}
    used_code = (await world.call("POST", "/codes", owner, json=body)).json()["codes"][0]
    await redeem(world, await world.person("a@example.com"), used_code)
    token = await world.person("b@example.com")

    statuses = {(await redeem(world, token, used_code)).status_code for _ in range(15)}

    assert statuses == {409}


async def test_the_same_person_gets_the_same_answer_after_any_change_of_the_code(world: World) -> None:
    await world.product("north", "one")
    owner = await world.person("owner@north.example", north="owner")
    body = {"kind": "license", "products": ["one"], "count": 1, "expires_at": "2999-01-01T00:00:00Z"}
    issued_body = (await world.call("POST", "/codes", owner, json=body)).json()
    token = await world.person("a@example.com")
    first_answer = await redeem(world, token, issued_body["codes"][0])

    await world.call("POST", f"/codes/{issued_body['batch_id']}/revoke", owner, json={})
    second_answer = await redeem(world, token, issued_body["codes"][0])

    assert (second_answer.status_code, second_answer.json()) == (200, first_answer.json())
    assert (await world.call("GET", "/codes", owner)).json()[0]["uses"] == 1
