"""FastMCP as a client: lists the tools and runs the common steps."""

import asyncio
import json
import sys

from fastmcp import Client
from walking import call_tools


async def main(url: str, token: str, lead: str, _: str) -> None:
    """Print the results as one JSON object."""
    async with Client(url, auth=token) as client:
        tools = [tool.name for tool in await client.list_tools()]
        results = await call_tools(client, lead, raise_on_error=False)
    sys.stdout.write(json.dumps({"tools": tools, **results}))


asyncio.run(main(*sys.argv[1:]))
