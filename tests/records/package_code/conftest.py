"""The service with the models of the example package `fleet`, on each database."""

import importlib.util
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType

import pytest

from tests import docs
from tests.records import inside
from tests.records.inside import InProcessService

PACKAGE = docs.ROOT / "examples/fleet/countersign_fleet/__init__.py"


@pytest.fixture(scope="session")
def fleet() -> ModuleType:
    """The example package, imported from its folder outside the source tree."""
    specification = importlib.util.spec_from_file_location("countersign_fleet", PACKAGE)
    assert specification is not None
    assert specification.loader is not None
    package = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = package
    specification.loader.exec_module(package)
    return package


@pytest.fixture
async def service(fleet: ModuleType, database_url: str, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """A service with the models of the package."""
    async with inside.open_service(database_url, tmp_path, *fleet.module.models) as service:
        yield service
