"""Fixtures for all fault tests: a store that is killed and started again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import places
from tests.faults.lives import RestartableService
from tests.faults.places import FilledDirectory


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[RestartableService]:
    """A store that is not started yet, in a directory of its own; its processes end with the test."""
    service = RestartableService(tmp_path / "data")
    yield service
    service.kill()


@pytest.fixture(params=["distribution", "records"])
def place(request: pytest.FixtureRequest) -> FilledDirectory:
    """A filled data directory of each service on SQLite, which tests copy."""
    return places.to_copy(request.param)
