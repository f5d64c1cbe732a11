"""A store and a records service to measure, on SQLite, because only this process is measured."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from countersign.records import app as records
from countersign.settings import Settings
from countersign.store import app as distribution
from tests.records.conftest import SeededOffice, sqlite_office
from tests.records.office import ROOT_URL as OFFICE_URL
from tests.records.office import Office
from tests.records.office import settings as office_settings
from tests.servers.countersign import MASTER_KEY
from tests.store.conftest import ROOT_URL, create_data_directory
from tests.store.world import World

__all__ = ["office", "sqlite_office", "world"]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A store with the organisation `north`."""
    rates = {name: 1_000_000 for name in ("rate_anonymous", "rate_person", "rate_token")}
    settings = Settings(data=str(tmp_path / "data"), master_key=MASTER_KEY, reserve_mib=0, **rates)
    create_data_directory(Path(settings.data))
    async with distribution.open_store(settings, ROOT_URL, is_loopback=True) as store:
        transport = httpx.ASGITransport(distribution.create(store), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
            scaling_world = World(store, client)
            await scaling_world.org("north")
            yield scaling_world


@pytest.fixture
async def office(tmp_path: Path, sqlite_office: SeededOffice) -> AsyncIterator[Office]:
    """A copy of the seeded records service."""
    shutil.copytree(sqlite_office.place, tmp_path / "data")
    async with records.open_records(office_settings(str(tmp_path / "data")), OFFICE_URL, is_loopback=True) as service:
        transport = httpx.ASGITransport(records.create(service), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=OFFICE_URL) as client:
            yield Office(client, dict(sqlite_office.tokens), service)
