"""Fixtures for all fault tests: a store that is killed and started again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import places
from tests.faults.lives import Lives
from tests.faults.places import Place


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    """A store that is not started yet, in a directory of its own; its processes end with the test."""
    made = Lives(tmp_path / "data")
    yield made
    made.kill()


@pytest.fixture(params=["distribution", "records"])
def place(request: pytest.FixtureRequest) -> Place:
    """A filled data directory of each service on SQLite, which tests copy."""
    return places.to_copy(request.param)
