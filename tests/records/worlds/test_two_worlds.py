"""What a caller learns depends only on what it may see: two worlds that differ only in hidden data have the same
responses."""

from collections import Counter
from time import perf_counter

import pytest

from tests.figures import Figures
from tests.records.worlds.asking import BOOKS, RequestSequence
from tests.records.worlds.building import Audience
from tests.records.worlds.comparing import compare
from tests.records.worlds.conftest import WorldPairs
from tests.records.worlds.transports import MCP, REST, Transport

PAIRS = 50
ALL_PAIRS = 10_000
PAIRS_OF_WORLDS = 20
CALLERS: list[tuple[Audience, str]] = [
    ("bob", "agent"),
    ("alice", "agent"),
    ("carol", "agent"),
    ("dan", "agent"),
    ("dan", "person"),
]
callers = pytest.mark.parametrize(
    ("audience", "who"), CALLERS, ids=[f"{who} of {audience}" for audience, who in CALLERS]
)


transports = pytest.mark.parametrize("transport", [REST, MCP], ids=["REST", "MCP"])


@callers
@transports
async def test_two_worlds_answer_the_same(
    worlds: WorldPairs, audience: Audience, who: str, transport: Transport
) -> None:
    async with worlds.copy_pair(audience) as (first, second):
        requests = RequestSequence(first.service.records.registry, seed=1, is_agent=who == "agent")

        counts = await compare((first, second), who, requests, PAIRS, transport)

    assert counts.carried_out > PAIRS / 10, "hardly any request was a good one"
    assert counts.tokens > 20 or audience == "carol"


@callers
@transports
async def test_two_worlds_answer_the_same_about_the_books(
    worlds: WorldPairs, audience: Audience, who: str, transport: Transport
) -> None:
    async with worlds.copy_pair(audience) as (first, second):
        requests = RequestSequence(first.service.records.registry, seed=18, is_agent=who == "agent", models=BOOKS)

        counts = await compare((first, second), who, requests, PAIRS, transport)

    assert counts.carried_out > PAIRS / 10, "hardly any request was a good one"


@pytest.mark.full
@callers
@transports
async def test_two_worlds_answer_the_same_to_ten_thousand_requests(
    worlds: WorldPairs, audience: Audience, who: str, transport: Transport, figures: Figures
) -> None:
    statuses: Counter[int] = Counter()
    tokens, took_s = 0, 0.0
    for seed in range(2, 2 + PAIRS_OF_WORLDS):
        async with worlds.copy_pair(audience) as (first, second):
            requests = RequestSequence(first.service.records.registry, seed, is_agent=who == "agent")
            started_s = perf_counter()
            counts = await compare((first, second), who, requests, ALL_PAIRS // PAIRS_OF_WORLDS, transport)
        took_s += perf_counter() - started_s
        statuses += counts.statuses
        tokens += counts.tokens
    counted = {str(status): count for status, count in sorted(statuses.items())}
    figures |= {"pairs": statuses.total(), "different": 0, "tokens": tokens, "statuses": counted}
    figures["pairs_per_s"] = round(statuses.total() / took_s)
