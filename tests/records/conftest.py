"""An office on each database: seeded once for the run, and copied for every test."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from countersign.records import app
from countersign.settings import Settings
from tests.records.office import ROOT_URL, Office, furnish, settings
from tests.servers.postgres import Cluster
from tests.servers.transaction_waits import TransactionWaits

_numbers = count(1)


class SeededOffice(NamedTuple):
    """A seeded office that tests only copy: its folder or the name of its database, and the tokens of its people."""

    place: str
    tokens: dict[str, str]


@pytest.fixture(scope="session")
def sqlite_office(tmp_path_factory: pytest.TempPathFactory) -> SeededOffice:
    """The seeded office on SQLite."""
    folder = tmp_path_factory.mktemp("office")
    return SeededOffice(str(folder), asyncio.run(furnish(settings(str(folder)))))


@pytest.fixture(scope="session")
def postgres_office(postgres_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> SeededOffice:
    """The seeded office on PostgreSQL."""
    name = f"office_{next(_numbers)}"
    url = postgres_cluster.create(name)
    folder = tmp_path_factory.mktemp("office")
    return SeededOffice(name, asyncio.run(furnish(settings(str(folder), url))))


class OfficeSettings(NamedTuple):
    """The settings of an office for one test, and the tokens of its people."""

    settings: Settings
    tokens: dict[str, str]


@pytest.fixture(params=["sqlite", "postgres"])
def office_settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OfficeSettings]:
    """A copy of the seeded office, once on SQLite and once on PostgreSQL."""
    data = tmp_path / "data"
    if request.param == "sqlite":
        seeded_office: SeededOffice = request.getfixturevalue("sqlite_office")
        shutil.copytree(seeded_office.place, data)
        yield OfficeSettings(settings(str(data)), dict(seeded_office.tokens))
        return
    seeded_office = request.getfixturevalue("postgres_office")
    cluster: Cluster = request.getfixturevalue("postgres_cluster")
    name = f"{seeded_office.place}_{next(_numbers)}"
    yield OfficeSettings(settings(str(data), cluster.create(name, seeded_office.place)), dict(seeded_office.tokens))
    cluster.drop(name)


@pytest.fixture(autouse=True)
def statements_alone(transaction_waits: TransactionWaits) -> None:
    """A request's transaction waits for its statements alone."""


@pytest.fixture
async def office(office_settings: OfficeSettings) -> AsyncIterator[Office]:
    """An office for one test, with a client of the real application."""
    async with app.open_records(office_settings.settings, ROOT_URL, is_loopback=True) as service:
        transport = httpx.ASGITransport(app.create(service), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
            yield Office(client, office_settings.tokens, service)
