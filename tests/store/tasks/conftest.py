"""A store with the demonstration catalog and a sandbox that runs jobs, as an agent finds it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from countersign.cli.server import worker
from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store.context import Store
from countersign.store.sandbox.router import SandboxRouter
from tests.store.conftest import ROOT_URL, with_settings
from tests.store.conftest import settings as settings_of_the_store  # noqa: F401
from tests.store.sandbox.conftest import database_url, http, link_template, template_folder  # noqa: F401
from tests.store.tasks.agent import OverviewAgent
from tests.store.world import World


@pytest.fixture
def settings(settings_of_the_store: Settings) -> Settings:  # noqa: F811
    """Settings in which keys can be created and webhook receivers may be on this machine."""
    return with_settings(settings_of_the_store, rate_keys=1_000, private_webhooks=True)


@pytest.fixture
async def front(store: Store, template_folder: Path) -> AsyncIterator[SandboxRouter]:  # noqa: F811
    """The application of the store, whose sandbox has workers."""
    await asyncio.to_thread(link_template, Path(store.settings.data), template_folder)
    application = distribution.create(store, workers=worker.COMMAND)
    yield application
    await application.close()


@pytest.fixture
def agent(demo_world: World) -> OverviewAgent:
    """An agent that knows only the base address."""
    return OverviewAgent(demo_world.http, ROOT_URL)
