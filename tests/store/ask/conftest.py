"""A store with a catalog for questions."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store.context import Store
from tests.store.conftest import ROOT_URL
from tests.store.world import World


@pytest.fixture
def shelf(store: Store) -> Store:
    """The store with the products of the shelf."""
    return store


@pytest.fixture
def shop(world: World, shelf: Store) -> World:
    """The shelf over HTTP."""
    assert world.store is shelf
    return world


@pytest.fixture
async def other_store(settings: Settings, tmp_path: Path) -> AsyncIterator[Store]:
    """A second, empty store."""
    apart = replace(settings, data=str(tmp_path / "other"), database_url="")
    async with distribution.open_store(apart, ROOT_URL, is_loopback=True) as opened_store:
        yield opened_store
