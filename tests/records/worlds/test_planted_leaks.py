"""The comparison of two worlds detects leaks: each leak is planted, and must be detected within a number of
requests."""

import pytest

from tests.records.worlds.asking import RequestSequence
from tests.records.worlds.comparing import ResponsesDiffer, compare
from tests.records.worlds.conftest import WorldPairs
from tests.records.worlds.leaking import LEAKS, PatchedLeak
from tests.records.worlds.leaking_over_mcp import MCP_LEAKS
from tests.records.worlds.transports import MCP, REST, Transport

MOST_PAIRS = 10_000
"""The maximum number of requests, as in the comparison itself. Nearly all leaks are detected within the first
hundred."""
SEED = 3
"""With --full, the seed of the requests for every leak."""

PLANTED: list[tuple[PatchedLeak, Transport]] = [*((leak, REST) for leak in LEAKS), *((leak, MCP) for leak in MCP_LEAKS)]


@pytest.mark.parametrize(
    ("leak", "transport"), PLANTED, ids=[f"{leak.name}{' over MCP' * (used is MCP)}" for leak, used in PLANTED]
)
async def test_a_planted_leak_is_caught(
    sqlite_worlds: WorldPairs, leak: PatchedLeak, transport: Transport, monkeypatch: pytest.MonkeyPatch, is_full: bool
) -> None:
    await sqlite_worlds.build(leak.audience)
    if leak.is_early:
        leak.patch(monkeypatch)
    async with sqlite_worlds.copy_pair(leak.audience) as (first, second):
        if not leak.is_early:
            leak.patch(monkeypatch)
        seed = SEED if is_full else leak.seed
        requests = RequestSequence(first.service.records.registry, seed, is_agent=leak.who == "agent")

        with pytest.raises(ResponsesDiffer):
            await compare((first, second), leak.who, requests, MOST_PAIRS, transport)
