"""A shop whose artifacts are processed."""

from pathlib import Path

import pytest

from tests.store.files import Shop, open_shop
from tests.store.releases.processing.works import JobRunner
from tests.store.world import World


@pytest.fixture
async def shop(world: World) -> Shop:
    """A shop with a free product."""
    return await open_shop(world, access="free")


@pytest.fixture
def works(shop: Shop, tmp_path: Path) -> JobRunner:
    """Runs the jobs of the shop."""
    return JobRunner(shop, tmp_path / "scratch")
