"""The official Python SDK as a client of the store, without a token. It lists tools, calls tools, is refused, and
requests things that do not exist."""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError


async def main(url: str, mode: str) -> None:
    """Print the results as one JSON object."""
    async with Client(streamable_http_client(url), mode=mode) as client:
        results: dict[str, object] = {"revision": client.protocol_version}
        results["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        results["got"] = (await client.call_tool("list_products", {"limit": 2})).structured_content
        refused_call = await client.call_tool("get_product", {"id": "nothing"})
        results["refused"] = [refused_call.is_error, refused_call.content[0].model_dump()["text"]]
        try:
            await client.call_tool("redeem_code", {"code": "A"})
        except MCPError as error:
            results["unknown"] = [error.error.code, error.error.message]
    sys.stdout.write(json.dumps(results))


asyncio.run(main(*sys.argv[1:]))
