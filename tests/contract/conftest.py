"""Fixtures for the contract tests: the scene is created once for each database, and each test has a copy of it."""

import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store.context import Store
from tests.contract.scenes import Scene, create_scene
from tests.servers.postgres import Cluster, PostgresFactory
from tests.store.conftest import (  # noqa: F401
    ROOT_URL,
    create_data_directory,
    http,
    migrated_database,
    original,
    settings,
    settings_of,
    world,
)
from tests.store.world import World

TOKENS_LAST_S = 86_400
"""Longer than a test run."""


class StoreWithScene(NamedTuple):
    """A store with the scene: its directory, the name of its PostgreSQL database, the callers' tokens."""

    data: Path
    database: str
    tokens: dict[str, str | None]


@cache
def stage(cluster: Cluster | None) -> StoreWithScene:
    """Return the scene on PostgreSQL, or on SQLite without a cluster. Tests only copy it."""
    original_store, tokens = original(
        "stage", cluster, lambda stage_settings: tokens_of(replace(stage_settings, token_ttl_s=TOKENS_LAST_S))
    )
    return StoreWithScene(*original_store, tokens)


async def tokens_of(stage_settings: Settings) -> dict[str, str | None]:
    """Create the scene in an empty store, and return its callers' tokens."""
    async with distribution.open_store(stage_settings, ROOT_URL, is_loopback=True) as opened_store:
        transport = httpx.ASGITransport(distribution.create(opened_store), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
            stage_world = World(opened_store, client)
            await stage_world.org("north")
            await stage_world.org("south")
            return (await create_scene(stage_world)).tokens


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest, new_postgres_url: PostgresFactory, postgres_cluster: Cluster) -> str:
    """The address of a PostgreSQL database for one test: with the scene when the test uses it, else empty."""
    on_stage = "scene" in request.fixturenames
    return new_postgres_url(stage(postgres_cluster).database if on_stage else migrated_database(postgres_cluster))


@pytest.fixture
async def store(request: pytest.FixtureRequest, settings: Settings) -> AsyncIterator[Store]:  # noqa: F811
    """A store: with the scene when the test uses it, else empty."""
    data = Path(settings.data)
    if "scene" in request.fixturenames:
        shutil.copytree(stage_of(request, settings).data, data, ignore=shutil.ignore_patterns("counters.*"))
    elif not settings.database_url:
        create_data_directory(data)
    async with distribution.open_store(settings, ROOT_URL, is_loopback=True) as opened_store:
        yield opened_store


def stage_of(request: pytest.FixtureRequest, wanted_settings: Settings) -> StoreWithScene:
    """Return the scene of which the store with these settings is a copy."""
    return stage(request.getfixturevalue("postgres_cluster") if wanted_settings.database_url else None)


@pytest.fixture
def scene(
    request: pytest.FixtureRequest,
    settings: Settings,  # noqa: F811
    store: Store,
    http: httpx.AsyncClient,  # noqa: F811
) -> Scene:
    """Two organisations with products, and every kind of caller."""
    return Scene(World(store, http), dict(stage_of(request, settings).tokens))
