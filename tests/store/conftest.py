"""A store on each database, and a client of its real application."""

import asyncio
import atexit
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import httpx
import pytest

from countersign.kernel.database.migrate import upgrade
from countersign.kernel.database.open import open_database
from countersign.kernel.jobs.open import open_engine
from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store import demo, lifespan
from countersign.store.context import Store
from tests.peers import identity_provider
from tests.peers.identity_provider import IdentityProvider
from tests.servers.countersign import MASTER_KEY
from tests.servers.memory import memory_folder
from tests.servers.postgres import Cluster, PostgresFactory
from tests.store.ask.shelf import stock_store
from tests.store.lock_waits import LockWaits
from tests.store.world import World

WATCHED = (
    *("apidocs", "auth", "batch", "catalog", "jobs", "library", "personal", "redeem", "releases"),
    *("signing_keys", "statistics", "tools", "webhooks"),
)
"""The folders of tests in which a request must not wait inside a transaction."""
ROOT_URL = "http://127.0.0.1:8480"
Result = TypeVar("Result")
FILLED: Mapping[str, Callable[[Store], Awaitable[object]]] = {"demo_world": demo.seed, "shelf": stock_store}
"""Maps a fixture to the function that fills its store. The store is filled once for each database, and each test gets a
copy."""


class OriginalStore(NamedTuple):
    """A store that is copied for tests: its directory and the name of its PostgreSQL database."""

    data: Path
    database: str


@cache
def migrated_database(cluster: Cluster) -> str:
    """Create a database with the store's tables once. The databases of tests are copies, which takes a tenth of the
    time."""
    name = f"store_{os.getpid()}"
    asyncio.run(migrate(cluster.create(name)))
    return name


@cache
def migrated_file() -> bytes:
    """Create an SQLite file with the store's tables once."""
    with TemporaryDirectory() as folder, ThreadPoolExecutor(1) as thread:
        file = Path(folder, lifespan.DATABASE_FILE)
        # The caller may run in an event loop, so the coroutine runs in another thread.
        thread.submit(asyncio.run, migrate(f"sqlite:///{file}")).result()
        return file.read_bytes()


async def migrate(url: str) -> None:
    """Create the store's tables in an empty database."""
    database = await open_database(url, schema=lifespan.SCHEMA, pool=1)
    await upgrade(database, lifespan.MIGRATIONS)
    await open_engine("auto", database, url, lifespan.SCHEMA, lease_s=15)
    await database.close()


def create_data_directory(data: Path) -> None:
    """Create the data directory of an SQLite store with its tables."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = data / lifespan.DATABASE_FILE
    if not file.exists():
        file.touch(mode=0o600)
        file.write_bytes(migrated_file())


def original(
    name: str, cluster: Cluster | None, prepare: Callable[[Settings], Coroutine[Any, Any, Result]]
) -> tuple[OriginalStore, Result]:
    """Prepare an empty store on PostgreSQL or, without a cluster, on SQLite. Return it with the result of `prepare`."""
    folder = TemporaryDirectory(prefix=f"countersign-{name}-", dir=memory_folder())
    atexit.register(folder.cleanup)
    data = Path(folder.name)
    database = f"{name}_{os.getpid()}"
    url = "" if cluster is None else cluster.create(database, migrated_database(cluster))
    if not url:
        create_data_directory(data)
    with ThreadPoolExecutor(1) as thread:
        # The test may run in an event loop, so the coroutine runs in another thread.
        prepared = thread.submit(asyncio.run, prepare(settings_of(data, url))).result()
    return OriginalStore(data, database), prepared


@cache
def filled_store(fixture: str, cluster: Cluster | None) -> OriginalStore:
    """Return a store with the content that the fixture names."""
    return original(fixture, cluster, partial(fill_store, filling=FILLED[fixture]))[0]


async def fill_store(wanted_settings: Settings, filling: Callable[[Store], Awaitable[object]]) -> None:
    """Fill an empty store."""
    async with distribution.open_store(wanted_settings, ROOT_URL, is_loopback=True) as opened_store:
        assert await filling(opened_store)


def filling_of(request: pytest.FixtureRequest) -> str | None:
    """Return the fixture of the test that determines the content of its store."""
    return next((name for name in FILLED if name in request.fixturenames), None)


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest, new_postgres_url: PostgresFactory, postgres_cluster: Cluster) -> str:
    """The address of a PostgreSQL database for this test with the store's tables, filled if a fixture says so."""
    filling = filling_of(request)
    return new_postgres_url(
        migrated_database(postgres_cluster) if filling is None else filled_store(filling, postgres_cluster).database
    )


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    """The settings of a store for this test, with very high rate limits."""
    return settings_of(tmp_path / "data", "" if database_url.startswith("sqlite") else database_url)


def settings_of(data: Path, database_url: str = "") -> Settings:
    """Return the settings of a store in this directory, or with this PostgreSQL database, with very high rate
    limits."""
    return Settings(
        data=str(data),
        database_url=database_url,
        database_pool=5,
        master_key=MASTER_KEY,
        reserve_mib=0,
        rate_anonymous=1_000_000,
        rate_person=1_000_000,
        rate_token=1_000_000,
        catalog_max_age_s=0,
        private_issuers=True,
    )


@pytest.fixture
async def store(request: pytest.FixtureRequest, settings: Settings) -> AsyncIterator[Store]:
    """A store, which is empty unless a fixture fills it."""
    data = Path(settings.data)
    filling = filling_of(request)
    if filling is not None:
        cluster = request.getfixturevalue("postgres_cluster") if settings.database_url else None
        shutil.copytree(filled_store(filling, cluster).data, data, ignore=shutil.ignore_patterns("counters.*"))
    elif not settings.database_url:
        create_data_directory(data)
    async with distribution.open_store(settings, ROOT_URL, is_loopback=True) as opened_store:
        yield opened_store


@pytest.fixture(autouse=True)
def watched_transactions(request: pytest.FixtureRequest) -> None:
    """Fail the test if the transaction of a request waits."""
    if request.path.relative_to(Path(__file__).parent).parts[0] in WATCHED:
        request.getfixturevalue("transaction_waits")


@pytest.fixture
async def http(store: Store) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the store's application in the same process."""
    transport = httpx.ASGITransport(distribution.create(store), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
        yield client


@pytest.fixture
async def world(store: Store, http: httpx.AsyncClient) -> World:
    """A store with two organisations, `north` and `south`."""
    store_world = World(store, http)
    await store_world.org("north")
    await store_world.org("south")
    return store_world


@pytest.fixture
async def demo_world(store: Store, http: httpx.AsyncClient) -> World:
    """A store with the demonstration data."""
    return World(store, http)


@pytest.fixture
def lock_waits(store: Store, monkeypatch: pytest.MonkeyPatch) -> LockWaits:
    """Counts the transactions that wait for another transaction."""
    return LockWaits(store.database, monkeypatch)


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    """An identity provider, which is not trusted yet."""
    with identity_provider.serve_provider() as running:
        yield running


def with_settings(settings: Settings, **changes: object) -> Settings:
    """Return the settings with some changes."""
    return replace(settings, **changes)
