"""What a caller is told depends only on what it may see: two worlds that differ in nothing else answer the same."""

import pytest

from tests.records.worlds.asking import Requests
from tests.records.worlds.building import Audience
from tests.records.worlds.comparing import compare
from tests.records.worlds.conftest import Pairs

PAIRS = 200
ALL_PAIRS = 10_000
CALLERS: list[tuple[Audience, str]] = [("bob", "agent"), ("dan", "agent"), ("dan", "person"), ("carol", "agent")]


@pytest.mark.parametrize(("audience", "who"), CALLERS, ids=[f"{who} of {audience}" for audience, who in CALLERS])
async def test_two_worlds_answer_the_same(worlds: Pairs, audience: Audience, who: str) -> None:
    async with worlds(audience) as (first, second):
        requests = Requests(first.service.records.registry, seed=1, deletes=who == "agent")

        carried_out = await compare((first, second), who, requests, PAIRS)

    assert carried_out > PAIRS / 10, "hardly any request was a good one"


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize(("audience", "who"), CALLERS, ids=[f"{who} of {audience}" for audience, who in CALLERS])
async def test_two_worlds_answer_the_same_to_ten_thousand_requests(
    worlds: Pairs, audience: Audience, who: str, seed: int
) -> None:
    async with worlds(audience) as (first, second):
        requests = Requests(first.service.records.registry, seed, deletes=who == "agent")

        assert await compare((first, second), who, requests, ALL_PAIRS // 40)
