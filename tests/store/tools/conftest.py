"""The MCP client of the records tests for a store: the same tests run for both."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from countersign.settings import Settings
from countersign.store import app as distribution
from tests.records.mcp.desk import McpDesk
from tests.records.office import Office
from tests.servers.countersign import MASTER_KEY
from tests.store.conftest import ROOT_URL, create_data_directory
from tests.store.world import World


@dataclass
class McpOffice:
    """The interface of an office for an MCP client: an HTTP client and callers. `alice` is an owner, and `carol` a
    customer."""

    world: World
    tokens: dict[str, str] = field(default_factory=lambda: dict[str, str]())

    @property
    def http(self) -> httpx.AsyncClient:
        """The HTTP client."""
        return self.world.http

    def headers(self, who: str) -> dict[str, str]:
        """Return the credential of the caller."""
        return {"Authorization": f"Bearer {self.tokens[who]}"}


async def create_client(world: World) -> McpDesk:
    """Create an MCP client in a world with an owner, a customer and a product."""
    counter = McpOffice(world)
    counter.tokens["alice"] = await world.person("alice@north.example", north="owner")
    counter.tokens["carol"] = await world.person("carol@example.com")
    counter.tokens["reader"] = await world.client_token("north", "read:products")
    await world.product("north", "saga")
    return McpDesk(cast("Office", counter))


def world_of(desk: McpDesk) -> World:
    """Return the world of the MCP client."""
    return cast("McpOffice", cast("Any", desk.office)).world


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[McpDesk]:
    async with distribution.open_store(settings, ROOT_URL, is_loopback=True) as store:
        transport = httpx.ASGITransport(distribution.create(store), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
            world = World(store, client)
            await world.org("north")
            yield await create_client(world)


@pytest.fixture
async def both(settings: Settings) -> AsyncIterator[McpDesk]:
    """An MCP client on each database."""
    async with _opened(settings) as opened_desk:
        yield opened_desk


def on_sqlite(data: Path, **changes: Any) -> Settings:
    """Return the settings of a store for tests that do not depend on the database."""
    free = {"rate_anonymous": 1_000_000, "rate_person": 1_000_000, "reserve_mib": 0, "master_key": MASTER_KEY}
    create_data_directory(data)
    return replace(Settings(data=str(data)), **{**free, **changes})


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[McpDesk]:
    """An MCP client on SQLite, for requests that do not reach the database."""
    async with _opened(on_sqlite(tmp_path / "desk")) as opened_desk:
        yield opened_desk


@pytest.fixture
async def modern_desk(tmp_path: Path) -> AsyncIterator[McpDesk]:
    """An MCP client of a store in which revision 2026-07-28 is enabled."""
    async with _opened(on_sqlite(tmp_path / "modern", mcp_2026=True)) as opened_desk:
        yield opened_desk


@pytest.fixture
async def limited_desk(tmp_path: Path) -> AsyncIterator[McpDesk]:
    """An MCP client of a store with a limit of ten requests per minute."""
    async with _opened(on_sqlite(tmp_path / "few", rate_anonymous=10)) as opened_desk:
        yield opened_desk
