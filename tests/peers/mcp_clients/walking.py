"""The common steps of the Python clients: a call, a refusal, a plan, and an unknown tool."""

from typing import Any

from mcp.shared.exceptions import MCPError


async def call_tools(client: Any, lead: str, **leniently: bool) -> dict[str, Any]:
    """Call the tools, and return the results. `leniently` is the client's option to return a refused result instead of
    raising it."""
    results: dict[str, Any] = {"got": (await client.call_tool("lead__get", {"id": lead})).structured_content}
    refused_call = await client.call_tool("lead__get", {"id": "x"}, **leniently)
    results["refused"] = [refused_call.is_error, refused_call.content[0].model_dump()["text"]]
    proposed_call = await client.call_tool("lead__delete", {"id": lead})
    results["proposed"] = [proposed_call.is_error, proposed_call.structured_content]
    try:
        await client.call_tool("lead__fly", {})
    except MCPError as error:
        results["unknown"] = [error.error.code, error.error.message]
    return results
