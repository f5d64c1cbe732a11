"""Fixtures of the contract's tests."""

import pytest

from tests.contract.scenes import Scene, staged
from tests.distribution.conftest import http, postgres_url, settings, store, world  # noqa: F401
from tests.distribution.world import World


@pytest.fixture
async def scene(world: World) -> Scene:  # noqa: F811
    """Two organisations with products, and every kind of caller."""
    return await staged(world)
