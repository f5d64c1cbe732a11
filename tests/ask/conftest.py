"""A store with the catalog that the questions are about, at the moment they are asked."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from countersign.distribution.ask import budget
from countersign.kernel import clock
from tests.ask.stocked import stock
from tests.distribution.conftest import http, postgres_url, settings, store, world  # noqa: F401
from tests.distribution.world import World

NOON = clock.from_datetime(datetime(2026, 11, 20, 12, tzinfo=UTC))


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


@pytest.fixture(autouse=True)
def steps_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted steps bound a question here, so that a busy machine changes no answer."""
    monkeypatch.setattr(budget, "MAX_CPU_S", 60.0)
