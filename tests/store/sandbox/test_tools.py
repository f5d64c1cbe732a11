"""The tools of the sandbox are those of the store, applied to the data set of the key."""

from typing import Any

from countersign.store.sandbox.router import SandboxRouter
from tests.records.mcp.desk import initialize, request, tool
from tests.store.sandbox.data import PRODUCT, SandboxCaller, all_of
from tests.store.world import World

PLACE = "/sandbox/mcp"


async def call_mcp(sandbox: SandboxCaller, message: dict[str, Any], mcp_path: str = PLACE) -> dict[str, Any]:
    """Send a message with the key and return the result."""
    headers = {"X-API-Key": sandbox.key, "MCP-Protocol-Version": "2025-11-25"}
    answer = await sandbox.world.http.post(mcp_path, json=message, headers=headers)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()["result"]
    return result


async def test_tools_work_only_on_the_data_set_of_the_key(world: World, front: SandboxRouter) -> None:
    first_caller, second_caller = await SandboxCaller.create(world, front), await SandboxCaller.create(world, front)
    rows_before = await all_of(world)

    batch_result = await call_mcp(
        first_caller, tool("run_batch", operations=[{"method": "POST", "path": "/products", "body": PRODUCT}])
    )

    assert batch_result["structuredContent"]["results"][0]["status"] == 201
    assert (await call_mcp(first_caller, tool("get_product", id="made")))["structuredContent"]["org"] == "sandbox"
    assert (await call_mcp(second_caller, tool("get_product", id="made")))["isError"] is True
    assert (await world.call("GET", "/products/made")).status_code == 404
    assert await all_of(world) == rows_before


async def test_the_owner_sees_every_tool_except_those_about_the_sandbox(sandbox: SandboxCaller) -> None:
    service_tools = {
        listed_tool["name"] for listed_tool in (await spoken_outside(sandbox, request("tools/list")))["tools"]
    }
    inside_names = {listed_tool["name"] for listed_tool in (await call_mcp(sandbox, request("tools/list")))["tools"]}

    assert {"create_job", "redeem_code", "get_library"} <= inside_names
    assert {name for name in service_tools | inside_names if "sandbox" in name} == service_tools - inside_names
    unknown_response = await sandbox.world.http.post(
        PLACE, json=tool("get_sandbox"), headers={"X-API-Key": sandbox.key}
    )
    assert unknown_response.json()["error"]["message"] == "Unknown tool: get_sandbox"


async def spoken_outside(sandbox: SandboxCaller, message: dict[str, Any]) -> dict[str, Any]:
    """Send a message to the tools of the store, which do not accept sandbox keys, and return the result."""
    result: dict[str, Any] = (await sandbox.world.http.post("/mcp", json=message)).json()["result"]
    return result


async def test_the_handshake_says_that_the_data_is_for_tests_and_where_keys_are(sandbox: SandboxCaller) -> None:
    inside_instructions = (await call_mcp(sandbox, initialize("2025-11-25")))["instructions"]
    service_instructions = (await spoken_outside(sandbox, initialize("2025-11-25")))["instructions"]

    assert "separate test data set" in inside_instructions
    assert "http://127.0.0.1:8480/api/keys?tier=sandbox" in inside_instructions
    assert "sandbox" not in service_instructions.lower()


async def test_a_tool_call_without_its_required_key_is_answered_with_how_to_get_a_key(sandbox: SandboxCaller) -> None:
    http = sandbox.world.http
    read_response = await http.post(PLACE, json=tool("list_products", limit=1))
    refused_response = await http.post(PLACE, json=tool("get_library"))

    assert read_response.json()["result"]["isError"] is False
    assert refused_response.status_code == 401
    assert "/api/keys?tier=sandbox" in refused_response.json()["resolution"]
    metadata = refused_response.headers["www-authenticate"].partition('resource_metadata="')[2].partition('"')[0]
    assert (await http.get(metadata)).json()["resource"] == "http://127.0.0.1:8480/sandbox/mcp"
