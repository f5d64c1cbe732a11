"""Attacks by reads that would hold up the loop that serves everybody."""

from dataclasses import replace

import pytest

from countersign.settings import Settings
from tests.distribution.world import World


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """No time at all for long reads: whatever is answered was read on the loop."""
    return replace(settings, read_deadline_s=0)


@pytest.mark.parametrize("path", ["/codes", "/org/usage"])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_counting_millions_of_codes_never_holds_up_the_others(world: World, path: str) -> None:
    answer = await world.call("GET", path, await world.client_token("north"))

    assert answer.status_code == 503
