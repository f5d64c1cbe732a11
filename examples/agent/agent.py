"""An agent's loop over MCP: a model chooses the tool calls, the loop runs them, and a call that needs approval waits.

    COUNTERSIGN_AGENT_TOKEN=… python agent.py http://127.0.0.1:8080/mcp

The model here is a stand-in that follows rules (`rules.py`), so that the example runs offline.
"""

import argparse
import asyncio
import json
import os
import sys
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from rules import Call, Model, Result, RuleBased, Said

MAX_STEPS = 500


async def work(url: str, token: str, model: Model) -> str:
    """Let the model work until it has said its last word, which is returned."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        tools = (await client.list_tools()).tools
        print(f"{client.server_info.title}, revision {client.protocol_version}: {len(tools)} tools")
        result: Result | None = None
        for _ in range(MAX_STEPS):
            step = model.next(tools, result)
            if isinstance(step, Said):
                return step.text
            await asyncio.sleep(step.after_s)
            result = await carry_out(client, step)
            print(f"{step.tool} {shorten(step.arguments)}\n  {result.status}: {shorten(result.told)}")
    return f"gave up after {MAX_STEPS} steps"


async def carry_out(client: Client, step: Call) -> Result:
    """Call the tool. Every outcome is a result for the model, also an error."""
    try:
        answer = await client.call_tool(step.tool, step.arguments)
    except MCPError as error:
        return Result("unknown", error.error.message)
    if answer.is_error:
        return Result("refused", "".join(getattr(block, "text", "") for block in answer.content))
    tool_answer: dict[str, Any] = answer.structured_content or {}
    return Result(str(tool_answer["status"]), tool_answer)


def shorten(value: object) -> str:
    """Return a value on one line of a terminal."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 150 else f"{text[:150]}…"


def main() -> None:
    """Work once, and print what came of it."""
    parser = argparse.ArgumentParser(description="An agent that works leads, and proposes what needs a person.")
    parser.add_argument("url", help="the MCP endpoint, http://127.0.0.1:8080/mcp")
    parser.add_argument("--wait", type=int, default=300, metavar="S", help="how long to wait for a person's decision")
    arguments = parser.parse_args()
    token = os.environ.get("COUNTERSIGN_AGENT_TOKEN")
    if not token:
        sys.exit("set COUNTERSIGN_AGENT_TOKEN to the agent's token")
    print(asyncio.run(work(arguments.url, token, RuleBased(arguments.wait))))


if __name__ == "__main__":
    main()
