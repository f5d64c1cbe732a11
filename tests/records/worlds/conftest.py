"""Pairs of worlds on each database."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from tests.records.office import settings
from tests.records.worlds import building
from tests.records.worlds.building import Audience, World
from tests.servers.postgres import PostgresFactory

Pairs = Callable[[Audience], AbstractAsyncContextManager[tuple[World, World]]]


def _pairs(folder: Path, new_url: Callable[[], str]) -> Pairs:
    @asynccontextmanager
    async def pair(audience: Audience) -> AsyncGenerator[tuple[World, World]]:
        first = settings(str(folder / "a"), new_url())
        second = settings(str(folder / "b"), new_url())
        async with building.opened(first, "a", audience) as one, building.opened(second, "b", audience) as two:
            yield one, two

    return pair


@pytest.fixture
def sqlite_worlds(tmp_path: Path) -> Pairs:
    """Makes a pair of worlds on SQLite."""
    return _pairs(tmp_path, lambda: "sqlite")


@pytest.fixture(params=["sqlite", "postgres"])
def worlds(request: pytest.FixtureRequest, tmp_path: Path) -> Pairs:
    """Makes a pair of worlds on each engine."""
    if request.param == "sqlite":
        return _pairs(tmp_path, lambda: "sqlite")
    factory: PostgresFactory = request.getfixturevalue("new_postgres_url")
    return _pairs(tmp_path, factory)
