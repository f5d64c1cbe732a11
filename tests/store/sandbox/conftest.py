"""A store with its sandbox. The template of all data sets is built once, and each test starts with a copy of it."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store import lifespan
from countersign.store.context import Store
from countersign.store.sandbox import folders
from countersign.store.sandbox.router import SandboxRouter
from tests.store.conftest import ROOT_URL
from tests.store.sandbox.data import SandboxCaller
from tests.store.world import World


@pytest.fixture(scope="session")
def original_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template, built by the process that builds it in production."""
    folder = tmp_path_factory.mktemp("original")
    folders.template_of(lifespan.MIGRATIONS).fill(folder)
    return folder


def given_original(data: Path, original: Path) -> None:
    """Let a store start with an existing template."""
    target = folders.template_folder(data, folders.template_of(lifespan.MIGRATIONS))
    target.mkdir(parents=True)
    for path in original.rglob("*"):
        copy = target / path.relative_to(original)
        if path.is_dir():
            copy.mkdir(parents=True, exist_ok=True)
        else:
            copy.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, copy)


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """Data sets are SQLite files for any database of the service. `test_isolation` uses both databases."""
    return f"sqlite:///{tmp_path}/test.db"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """The settings of a store for this test, in which keys can be created."""
    return replace(settings, rate_keys=1_000)


@pytest.fixture
async def front(store: Store, original_folder: Path) -> AsyncIterator[SandboxRouter]:
    """The application of the store with a sandbox."""
    await asyncio.to_thread(given_original, Path(store.settings.data), original_folder)
    application = distribution.create(store)
    yield application
    await application.close()


@pytest.fixture
async def http(front: SandboxRouter) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application in the same process."""
    transport = httpx.ASGITransport(front, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
        yield client


@pytest.fixture
async def sandbox(world: World, front: SandboxRouter) -> SandboxCaller:
    """A data set with its key."""
    return await SandboxCaller.create(world, front)
