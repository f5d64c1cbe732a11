"""The common steps of the Python clients: a call, a refusal, a plan, and an unknown tool."""

from typing import Any

from mcp.shared.exceptions import MCPError


async def walk(client: Any, lead: str, **leniently: bool) -> dict[str, Any]:
    """The results; `leniently` holds the client's option that returns a refused result instead of raising it."""
    results: dict[str, Any] = {"got": (await client.call_tool("lead__get", {"id": lead})).structured_content}
    refused = await client.call_tool("lead__get", {"id": "x"}, **leniently)
    results["refused"] = [refused.is_error, refused.content[0].model_dump()["text"]]
    proposed = await client.call_tool("lead__delete", {"id": lead})
    results["proposed"] = [proposed.is_error, proposed.structured_content]
    try:
        await client.call_tool("lead__fly", {})
    except MCPError as error:
        results["unknown"] = [error.error.code, error.error.message]
    return results
