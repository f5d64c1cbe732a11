"""The official Python SDK as a client: lists the tools and runs the common steps. `mode` is legacy or auto."""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from walking import call_tools


async def main(url: str, token: str, lead: str, mode: str) -> None:
    """Print the results as one JSON object."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        revision = client.protocol_version
        tools = [tool.name for tool in (await client.list_tools()).tools]
        results = await call_tools(client, lead)
    sys.stdout.write(json.dumps({"revision": revision, "tools": tools, **results}))


asyncio.run(main(*sys.argv[1:]))
