"""Attacks by requests that no rate limit counts."""

from dataclasses import replace

import pytest

from countersign.settings import Settings
from tests.store.world import World


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Three requests a minute."""
    return replace(settings, rate_anonymous=3)


@pytest.mark.parametrize(("method", "path"), [("PATCH", "/products"), ("OPTIONS", "/info"), ("GET", "/products/%ff")])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_requests_that_match_no_endpoint_are_counted_too(world: World, method: str, path: str) -> None:
    answers = [await world.call(method, path) for _ in range(4)]

    assert [answer.status_code for answer in answers][-1] == 429
