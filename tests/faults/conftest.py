"""What every fault test may ask for: a store that is killed and started again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.lives import Lives


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    """A store that is not started yet, in a directory of its own; nothing of it outlives the test."""
    made = Lives(tmp_path / "data")
    yield made
    made.kill()
