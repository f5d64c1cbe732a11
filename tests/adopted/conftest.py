"""A shop in a database of others, on each engine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.adopted.shop import Shop, make_postgres, make_sqlite, open_shop


@pytest.fixture(params=["sqlite", "postgres"])
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a shop that others write."""
    if request.param == "sqlite":
        url = make_sqlite(tmp_path / "theirs.sqlite")
    else:
        url = make_postgres(request.getfixturevalue("postgres_cluster"), request.getfixturevalue("postgres_url"))
    async with open_shop(url, tmp_path) as opened:
        yield opened
