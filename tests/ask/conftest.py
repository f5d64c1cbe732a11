"""A store with the catalog that the questions are about, at the moment they are asked."""

from collections.abc import Iterator

import pytest

from countersign.kernel import clock
from tests.ask.gauge import NOON
from tests.ask.stocked import stock
from tests.store.conftest import http, postgres_url, settings, store, world  # noqa: F401
from tests.store.world import World


@pytest.fixture
def friday_noon() -> Iterator[None]:
    """The moment at which every question is asked."""
    with clock.fixed(NOON):
        yield


@pytest.fixture
async def catalog(world: World, friday_noon: None) -> World:  # noqa: F811
    """A store with the whole of catalog.json, at the moment of the questions."""
    await stock(world.store)
    return world
