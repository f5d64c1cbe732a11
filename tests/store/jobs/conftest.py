"""A store with test jobs (errands) on each engine, and a worker in this process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from countersign.kernel.http.routing import Route
from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store.context import Store
from countersign.store.jobs import routes, worker_process
from countersign.store.jobs.job_types import AnyJobType
from tests.servers.countersign import MASTER_KEY
from tests.store.conftest import ROOT_URL
from tests.store.jobs.kinds import TYPES, make_effects
from tests.store.world import World

Working = Callable[[], AbstractAsyncContextManager[None]]


@pytest.fixture(params=["sqlite-embedded", "postgres-embedded", "postgres-procrastinate"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """The settings of a store for this test, with short leases."""
    database, engine = request.param.split("-")
    return Settings(
        data=str(tmp_path / "data"),
        database_url="" if database == "sqlite" else request.getfixturevalue("postgres_url"),
        database_pool=5,
        master_key=MASTER_KEY,
        reserve_mib=0,
        rate_anonymous=1_000_000,
        rate_person=1_000_000,
        rate_token=1_000_000,
        job_engine=engine,
        job_lease_s=2,
        grace_s=1,
    )


@pytest.fixture
async def http(store: Store) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a store that accepts errands."""
    await make_effects(store.database)
    application = distribution.create(store, routes_with(TYPES))
    transport = httpx.ASGITransport(application, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
        yield client


def routes_with(types: Sequence[AnyJobType]) -> tuple[Route[Store], ...]:
    """Return the routes of the store, with which jobs of these types can be requested."""
    other_routes = (route for route in distribution.ROUTES if not route.path.startswith("/jobs"))
    return (*other_routes, *routes.routes(types))


@pytest.fixture
async def owner(world: World) -> str:
    """A token of the owner of north."""
    return await world.person("owner@north.example", north="owner")


@pytest.fixture
def working(store: Store) -> Working:
    """Run a worker of the store until the block ends."""
    return lambda: working_on(store)


@asynccontextmanager
async def working_on(store: Store) -> AsyncIterator[None]:
    """Run a worker of the store in this process until the block ends."""
    stop_event = asyncio.Event()
    task = asyncio.create_task(worker_process.run_jobs(store, TYPES, stop_event))
    try:
        yield
    finally:
        stop_event.set()
        await task


def with_changes(store: Store, **changes: object) -> Store:
    """Return the store with other settings."""
    return replace(store, settings=replace(store.settings, **changes))
