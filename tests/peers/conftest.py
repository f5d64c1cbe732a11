"""Fixtures for peers: a records service started as users start it, with revision 2026-07-28 of MCP off and on."""

import asyncio
import shutil
from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest

from countersign.records.commands.command import is_tool
from tests.peers.node import Node, node
from tests.records.conftest import SeededOffice, sqlite_office
from tests.records.office import Office
from tests.servers.countersign import MASTER_KEY, served

__all__ = ["Node", "node", "sqlite_office"]


class RunningService(NamedTuple):
    """A running service, and an agent of alice on it."""

    url: str
    token: str
    lead: str
    tools: list[str]
    newest: str


@pytest.fixture(scope="session", params=["2025-11-25", "2026-07-28"])
def peer(
    request: pytest.FixtureRequest, sqlite_office: SeededOffice, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """The service whose newest revision is this one."""
    data = tmp_path_factory.mktemp("peer") / "data"
    shutil.copytree(sqlite_office.place, data)
    variables = {
        "COUNTERSIGN_MASTER_KEY": MASTER_KEY,
        "COUNTERSIGN_RESERVE_MIB": "0",
        "COUNTERSIGN_MCP_2026": str(request.param == "2026-07-28"),
    }
    with served(data, service="records", settings=variables) as running:
        yield asyncio.run(_peer(running.url, dict(sqlite_office.tokens), request.param))


async def _peer(url: str, tokens: dict[str, str], newest: str) -> RunningService:
    async with httpx.AsyncClient(base_url=url) as client:
        office = Office(client, tokens)
        agent = await office.agent("alice", "lead.*", label="peer")
        answer = await client.get("/api/commands", headers=office.headers(agent))
        ids = [command["id"] for command in answer.json()["commands"]]
        tools = [id_.replace(".", "__") for id_ in ids if is_tool(*id_.split("."))]
        return RunningService(f"{url}/mcp", tokens[agent], (await office.first_record("lead"))["id"], tools, newest)
