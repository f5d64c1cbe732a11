"""A store with its sandbox. The template of all data sets is built once, and each test starts with a copy of it."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from countersign.settings import Settings
from countersign.store import app as store_app
from countersign.store import lifespan
from countersign.store.context import Store
from countersign.store.sandbox import folders
from countersign.store.sandbox.router import SandboxRouter
from tests.store.conftest import ROOT_URL
from tests.store.sandbox.data import SandboxCaller
from tests.store.world import World


@pytest.fixture(scope="session")
def template_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template, built by the process that builds it in production."""
    folder = tmp_path_factory.mktemp("template")
    folders.template_of(lifespan.MIGRATIONS).fill(folder)
    return folder


def link_template(data: Path, template: Path) -> None:
    """Let a store start with an existing template."""
    target = folders.template_folder(data, folders.template_of(lifespan.MIGRATIONS))
    target.mkdir(parents=True)
    for path in template.rglob("*"):
        copy = target / path.relative_to(template)
        if path.is_dir():
            copy.mkdir(parents=True, exist_ok=True)
        else:
            copy.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, copy)


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """SQLite only: data sets are SQLite files, whichever database the service uses. `test_isolation` runs with both."""
    return f"sqlite:///{tmp_path}/test.db"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """The settings of a store for this test, with a limit that lets one address create many keys."""
    return replace(settings, rate_keys=1_000)


@pytest.fixture
async def front(store: Store, template_folder: Path) -> AsyncIterator[SandboxRouter]:
    """The application of the store with a sandbox."""
    await asyncio.to_thread(link_template, Path(store.settings.data), template_folder)
    application = store_app.create(store)
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
