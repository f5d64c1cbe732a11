"""MCP clients: one on each database, and one for tests that do not depend on the database."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from countersign.records import app
from tests.records.conftest import SeededOffice
from tests.records.mcp.desk import McpDesk
from tests.records.office import ROOT_URL, Office, settings


@asynccontextmanager
async def _opened(furnished: SeededOffice, data: Path, *, mcp_2026: bool) -> AsyncIterator[McpDesk]:
    shutil.copytree(furnished.place, data)
    mcp_settings = replace(settings(str(data)), mcp_2026=mcp_2026)
    async with app.open_records(mcp_settings, ROOT_URL, is_loopback=True) as service:
        transport = httpx.ASGITransport(app.create(service), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
            yield McpDesk(Office(client, dict(furnished.tokens), service))


@pytest.fixture
def both(office: Office) -> McpDesk:
    """An MCP client of an office on each database."""
    return McpDesk(office)


@pytest.fixture
async def desk(sqlite_office: SeededOffice, tmp_path: Path) -> AsyncIterator[McpDesk]:
    """An MCP client of an office on SQLite, for requests that do not reach the database."""
    async with _opened(sqlite_office, tmp_path / "data", mcp_2026=False) as opened_desk:
        yield opened_desk


@pytest.fixture
async def modern(sqlite_office: SeededOffice, tmp_path: Path) -> AsyncIterator[McpDesk]:
    """An MCP client of an office in which revision 2026-07-28 is enabled."""
    async with _opened(sqlite_office, tmp_path / "modern", mcp_2026=True) as opened_desk:
        yield opened_desk
