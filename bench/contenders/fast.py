"""One lead as a tool of a stateless FastMCP server that answers with JSON. It runs SQL by hand, without rights, masks
or audit."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from fastmcp import FastMCP

from contenders.records import COLUMNS, GET
from contenders.wanted import Wanted
from countersign.kernel.database.open import open_database
from countersign.kernel.http.server import ASGIApp
from countersign.records import app

_names = [column.strip() for column in COLUMNS.split(",")]


@asynccontextmanager
async def opened(config: Wanted) -> AsyncGenerator[ASGIApp]:
    """Provide the server on the seeded database, through the same port as the floor."""
    database = await open_database(config.database_url, schema=app.SCHEMA)
    server = FastMCP("bench")

    @server.tool(name="lead__get")
    async def get(id: str) -> dict[str, Any]:
        """Read one lead by its id."""
        row = await database.fetch_one(GET, id)
        return {"denied": [], "value": dict(zip(_names, row or (), strict=True))}

    application = server.http_app(path="/mcp", stateless_http=True, json_response=True)
    async with application.router.lifespan_context(application):
        yield application
    await database.close()
