"""The product: the whole application as `countersign serve` has it, limits counted but never reached."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import seed

from contenders.wanted import Wanted
from countersign.cli.server import store_service
from countersign.kernel.http.server import ASGIApp
from countersign.store import app


@asynccontextmanager
async def opened(config: Wanted) -> AsyncGenerator[ASGIApp]:
    """Provide the store on the seeded database."""
    settings = seed.settings_of(seed.Seeded(config.database_url, Path(config.data)))
    async with (
        app.open_store(settings, seed.ROOT_URL, is_loopback=True) as store,
        store_service.application(store, tends=False) as application,
    ):
        yield application
