"""Attacks by reads that would block the event loop for all requests."""

from dataclasses import replace

import pytest

from countersign.kernel.database import sqlite
from countersign.settings import Settings
from tests.store.world import World


@pytest.fixture
def settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings that allow no time on the loop and no time for long reads, so that only unbounded reads would
    succeed."""
    monkeypatch.setattr(sqlite, "BUDGET_CHECKS", 0)
    monkeypatch.setattr(sqlite, "STEPS_BETWEEN_CHECKS", 1)
    return replace(settings, read_deadline_s=0)


@pytest.mark.parametrize("path", ["/codes", "/org/usage"])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_counting_millions_of_codes_delays_no_other_request(world: World, path: str) -> None:
    answer = await world.call("GET", path, await world.client_token("north"))

    assert answer.status_code == 503
