"""FastMCP as a client: lists, calls, is refused, and gets a plan."""

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from mcp.shared.exceptions import MCPError


async def main(url: str, token: str, lead: str, _: str) -> None:
    """Print what was seen as one JSON object."""
    async with Client(url, auth=token) as client:
        seen: dict[str, Any] = {}
        seen["tools"] = [each.name for each in await client.list_tools()]
        got = await client.call_tool("lead__get", {"id": lead})
        seen["got"] = got.structured_content
        refused = await client.call_tool("lead__get", {"id": "x"}, raise_on_error=False)
        seen["refused"] = [refused.is_error, refused.content[0].model_dump()["text"]]
        proposed = await client.call_tool("lead__delete", {"id": lead})
        seen["proposed"] = [proposed.is_error, proposed.structured_content]
        try:
            await client.call_tool("lead__fly", {})
        except MCPError as error:
            seen["unknown"] = [error.error.code, error.error.message]
    sys.stdout.write(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
