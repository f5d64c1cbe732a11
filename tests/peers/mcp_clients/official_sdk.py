"""The official Python SDK as a client: lists, calls, is refused, and gets a plan. `mode` is legacy or auto."""

import asyncio
import json
import sys
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError


async def main(url: str, token: str, lead: str, mode: str) -> None:
    """Print what was seen as one JSON object."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        seen: dict[str, Any] = {"revision": client.protocol_version}
        seen["tools"] = [each.name for each in (await client.list_tools()).tools]
        got = await client.call_tool("lead__get", {"id": lead})
        seen["got"] = got.structured_content
        refused = await client.call_tool("lead__get", {"id": "x"})
        seen["refused"] = [refused.is_error, refused.content[0].model_dump()["text"]]
        proposed = await client.call_tool("lead__delete", {"id": lead})
        seen["proposed"] = [proposed.is_error, proposed.structured_content]
        try:
            await client.call_tool("lead__fly", {})
        except MCPError as error:
            seen["unknown"] = [error.error.code, error.error.message]
    sys.stdout.write(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
