"""A store whose catalog questions are asked about."""

import pytest

from countersign.distribution.context import Store
from tests.distribution.ask.shelf import stocked


@pytest.fixture
async def shelf(store: Store) -> Store:
    """The store with the shelf's products."""
    return await stocked(store)
