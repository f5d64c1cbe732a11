"""Tokens of connected tables resolve for the agent that has read them, as long as it sees their value, and in no other
way."""

import random
from dataclasses import replace
from typing import Any

import pytest

from countersign.declare import Grant, where
from countersign.records.access.view import Caller
from countersign.records.commands import unmask_input
from countersign.records.commands.errors import BadInput
from countersign.records.masking import seen_values
from tests.adopted.shop import MARK, MODELS, Shop

MASKED = tuple(Grant(model=name, commands="*", masked="*") for name in MODELS)
BOB = f"bob{MARK}@example.com"


async def resolve(shop: Shop, caller: Caller, text: str) -> str:
    """Return the text behind a token that the caller sends."""
    run = shop.inside.run(caller)
    (token,) = run.engine.grammar.tokens(text)
    return (await unmask_input.resolve(run, token))[1]


async def is_unknown(shop: Shop, caller: Caller, text: str) -> bool:
    """Return whether a token means nothing to the caller."""
    with pytest.raises(BadInput) as refused:
        await resolve(shop, caller, text)
    return refused.value.detail.startswith(f"unknown token {text}")


async def _bob(shop: Shop, agent: Caller) -> dict[str, Any]:
    return (await shop.inside.value(agent, "customer", "list"))[1]


async def test_a_token_resolves_for_the_agent_that_has_read_it(shop: Shop) -> None:
    agent = await shop.inside.agent("scout", *MASKED)

    bob = await _bob(shop, agent)

    assert await resolve(shop, agent, bob["email"]) == BOB
    assert await resolve(shop, agent, bob["first_name"]) == f"Bob {MARK}"


async def test_another_agent_and_the_same_agent_of_another_person_cannot_resolve_it(shop: Shop) -> None:
    agent = await shop.inside.agent("scout", *MASKED)
    bob = await _bob(shop, agent)

    for other in (
        await shop.inside.agent("other", *MASKED),
        await shop.inside.agent("scout", *MASKED, user_id="c" * 24),
    ):
        await shop.inside.value(other, "customer", "list")
        assert await is_unknown(shop, other, bob["email"])


async def test_a_value_is_not_resolved_for_an_agent_that_has_not_read_it(shop: Shop) -> None:
    reading = await shop.inside.agent("scout", *MASKED)
    bob = await _bob(shop, reading)
    run = shop.inside.run(reading)
    assert run.masks is not None
    value_id = run.masks.value_id(int(bob["email"].removeprefix("EMAIL_")))
    other = await shop.inside.agent("other", *MASKED)
    masks = shop.inside.run(other).masks
    assert masks is not None

    assert await is_unknown(shop, other, f"EMAIL_{masks.numbers([value_id])[0]}")


@pytest.mark.parametrize(
    "grants",
    [
        (Grant(model="customer", commands="*", masked="*", rows=(where("visits", eq=7),)),),
        (Grant(model="customer", commands="*", masked=("first_name",)),),
        (Grant(model="order", commands="*", masked="*"), Grant(model="customer", masked="*", commands=("create",))),
        (Grant(model="country", commands="*", clear="*"), Grant(model="line", commands="*", masked="*")),
    ],
    ids=["a hidden row", "a hidden field", "a model that is only created", "a hidden model"],
)
async def test_what_the_agent_no_longer_sees_does_not_resolve(shop: Shop, grants: tuple[Grant, ...]) -> None:
    agent = await shop.inside.agent("scout", *MASKED)
    bob = await _bob(shop, agent)
    limited = await shop.inside.agent("scout", *grants)

    assert await is_unknown(shop, replace(limited, domain=agent.domain), bob["email"])


async def test_guessed_numbers_and_other_labels_do_not_resolve(shop: Shop) -> None:
    agent = await shop.inside.agent("scout", *MASKED)
    bob = await _bob(shop, agent)
    number = int(bob["email"].removeprefix("EMAIL_"))
    guesses = [f"EMAIL_{number ^ 1}", f"EMAIL_{number + 10}", f"PERSON_{number}", f"TEXT_{number}", "EMAIL_0"]
    guesses += [f"EMAIL_{random.getrandbits(48)}" for _ in range(10)]

    assert all([await is_unknown(shop, agent, guess) for guess in guesses])


async def test_a_row_with_another_value_does_not_lend_it_to_the_token(shop: Shop) -> None:
    agent = await shop.inside.agent("scout", *MASKED)
    bob = await _bob(shop, agent)
    shop.change("UPDATE customer SET email = 'another@example.com' WHERE customer_id = 2")

    assert await is_unknown(shop, agent, bob["email"])
    shop.change(f"UPDATE customer SET email = '{BOB}' WHERE customer_id = 2")
    assert await resolve(shop, agent, bob["email"]) == BOB


async def test_an_erased_row_is_not_brought_back_by_a_token(shop: Shop) -> None:
    agent = await shop.inside.agent("scout", *MASKED)
    shop.change("UPDATE customer SET note = 'private' WHERE customer_id = 3")
    zoe = (await shop.inside.value(agent, "customer", "list"))[2]
    assert await resolve(shop, agent, zoe["note"]) == "private"

    shop.change("DELETE FROM customer WHERE customer_id = 3")

    assert await is_unknown(shop, agent, zoe["note"])
    assert await is_unknown(shop, agent, zoe["first_name"])
    shop.change("INSERT INTO customer (customer_id, first_name, note) VALUES (3, 'Eve', 'other')")
    assert await is_unknown(shop, agent, zoe["note"])


async def test_people_see_tokens_and_leave_no_trace_of_what_they_read(shop: Shop) -> None:
    person = await shop.inside.person(*MASKED)

    await shop.inside.value(person, "customer", "list")

    assert await shop.inside.rows("SELECT record_id FROM seen_place") == []


async def test_a_read_of_many_rows_runs_one_lookup_and_one_insertion_of_each_kind(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for name in ("_find", "_insert"):
        real = getattr(seen_values, name)

        def counted(*args: Any, name: str = name, real: Any = real) -> Any:
            calls.append(name)
            return real(*args)

        monkeypatch.setattr(seen_values, name, counted)
    rows = ", ".join(f"({number}, 'Name {number}', 'mail{number}@example.com')" for number in range(10, 1_010))
    shop.change(f"INSERT INTO customer (customer_id, first_name, email) VALUES {rows}")
    agent = await shop.inside.agent("scout", *MASKED)

    found = await shop.inside.value(agent, "customer", "list", limit=1_000)
    first = list(calls)
    again = await shop.inside.value(agent, "customer", "list", limit=1_000)

    assert again == found
    lookups = 1 if shop.inside.service.records.database.dialect == "postgres" else 2
    assert (first.count("_find"), first.count("_insert")) == (lookups, 2)
    assert calls == first, "a repeated read needs no statement"
