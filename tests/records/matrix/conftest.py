"""The company of the matrix test. It is built once for each database, because no cell changes what another cell
reads."""

import shutil
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from countersign.records import app
from tests.records.conftest import OfficeSettings, SeededOffice
from tests.records.matrix.scene import MatrixScene, build_scene
from tests.records.office import ROOT_URL, Office, settings
from tests.servers.postgres import Cluster

MATRIX = "matrix"


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.full)])
def office_settings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> OfficeSettings:
    """A copy of the seeded office on SQLite, and with --full also on PostgreSQL."""
    data = tmp_path_factory.mktemp(MATRIX) / "data"
    seeded_office: SeededOffice = request.getfixturevalue(f"{request.param}_office")
    if request.param == "sqlite":
        shutil.copytree(seeded_office.place, data)
        return OfficeSettings(settings(str(data)), dict(seeded_office.tokens))
    cluster: Cluster = request.getfixturevalue("postgres_cluster")
    return OfficeSettings(settings(str(data), cluster.create(MATRIX, seeded_office.place)), dict(seeded_office.tokens))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(office_settings: OfficeSettings) -> AsyncIterator[MatrixScene]:
    """The company, with a client of its real application."""
    async with app.open_records(office_settings.settings, ROOT_URL, is_loopback=True) as service:
        transport = httpx.ASGITransport(app.create(service), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
            yield await build_scene(Office(client, office_settings.tokens, service))
