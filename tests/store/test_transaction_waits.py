"""The check of `transaction_waits` finds a wait inside of a request's transaction, and reports no other wait."""

import asyncio
from typing import Any

import pytest

from countersign.store import library
from tests.servers.transaction_waits import TransactionWaits
from tests.store.world import World

WAIT_TEXT = "the transaction waits in "


async def issue_code(world: World, owner: str) -> str:
    """Issue a code for a new product."""
    await world.product("north", "one")
    body = {"kind": "license", "products": ["one"], "count": 1}
    (code,) = (await world.call("POST", "/codes", owner, json=body)).json()["codes"]
    assert isinstance(code, str)
    return code


@pytest.mark.parametrize("is_batch", [False, True])
async def test_a_wait_inside_of_a_transaction_is_found(
    world: World, transaction_waits: TransactionWaits, monkeypatch: pytest.MonkeyPatch, is_batch: bool
) -> None:
    owner = await world.person("owner@north.example", north="owner")
    code = await issue_code(world, owner)
    original_grant = library.grant

    async def grant_after_a_wait(*arguments: Any) -> int:
        await world.store.counters.peek("any", 1, 1)
        return await original_grant(*arguments)

    monkeypatch.setattr(library, "grant", grant_after_a_wait)
    assert not transaction_waits.found
    redeem: dict[str, Any] = {"method": "POST", "path": "/redeem", "body": {"code": code}}
    if is_batch:
        answer = await world.call("POST", "/batch", owner, json={"mode": "atomic", "operations": [redeem]})
    else:
        answer = await world.call("POST", "/redeem", owner, json=redeem["body"])
    waits = transaction_waits.found.copy()
    transaction_waits.found.clear()

    assert answer.status_code == 200
    assert len(waits) == 1
    route, _, wait_place = waits[0].partition(WAIT_TEXT)
    assert route == f"POST /api/v1/{'batch' if is_batch else 'redeem'}: "
    assert wait_place.endswith("store/redeem/redeem.py:redeem")


async def test_a_wait_before_a_transaction_and_a_loop_turn_inside_a_transaction_are_not_reported(
    world: World, transaction_waits: TransactionWaits, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await world.person("owner@north.example", north="owner")
    code = await issue_code(world, owner)
    original_grant = library.grant

    async def grant_after_a_loop_turn(*arguments: Any) -> int:
        await asyncio.sleep(0)
        return await original_grant(*arguments)

    monkeypatch.setattr(library, "grant", grant_after_a_loop_turn)
    refused_response = await world.call("POST", "/redeem", owner, json={"code": "WRONG"})
    redeemed_response = await world.call("POST", "/redeem", owner, json={"code": code})

    assert (refused_response.status_code, redeemed_response.status_code) == (404, 200)
    assert not transaction_waits.found
