"""Idempotency-Key over MCP: it is sent in the `_meta` of a call, and the `_meta` of a replayed result marks the
replay."""

from typing import Any

from tests.records.mcp.desk import McpDesk, request
from tests.records.test_idempotency import LEAD, REUSED, leads, new_key, run_with_key


def tool_call(name: str, key: object, **arguments: object) -> dict[str, Any]:
    """Return a call of a tool with an idempotency key."""
    params = {"name": name, "arguments": arguments, "_meta": {"idempotency-key": key}}
    return request("tools/call", params)


async def test_a_repeated_tool_call_has_one_effect(both: McpDesk) -> None:
    office, agent, key = both.office, await both.office.agent("alice"), new_key()

    first_result = await both.result(tool_call("lead__create", key, **LEAD), agent)
    repeated_result = await both.result(tool_call("lead__create", key, **LEAD), agent)

    assert repeated_result == {**first_result, "_meta": {"idempotency-replayed": True}}
    assert "_meta" not in first_result
    rest_response = await run_with_key(office, agent, "lead.create", key, LEAD)
    assert rest_response.json()["value"] == first_result["structuredContent"]["value"]
    assert await leads(office) == 1
    lead_id = first_result["structuredContent"]["value"]["id"]
    plans = [
        await both.result(tool_call("lead__delete", fresh_key, id=lead_id), agent) for fresh_key in [new_key()] * 2
    ]
    assert plans[1] == {**plans[0], "_meta": {"idempotency-replayed": True}}
    assert plans[0]["structuredContent"]["status"] == "approval_required"


async def test_a_tool_call_with_a_wrong_key_is_an_error_result(desk: McpDesk) -> None:
    key = new_key()
    await desk.result(tool_call("lead__create", key, **LEAD))
    for wrong_key in ("x", 5, True, [], {}, "", None, False, 0):
        result = await desk.result(tool_call("lead__create", wrong_key, **LEAD))
        assert (result["isError"], result["content"][0]["text"]) == (
            True,
            "Idempotency-Key: must be one UUID, bare or in double quotes",
        )
    other_result = await desk.result(tool_call("lead__create", key, title="Another"))
    assert (other_result["isError"], other_result["content"][0]["text"]) == (True, REUSED)
    refused_results = [await desk.result(tool_call("lead__qualify", key, id="x")) for key in [new_key()] * 2]
    assert refused_results[0]["isError"]
    assert refused_results[1] == {**refused_results[0], "_meta": {"idempotency-replayed": True}}
    assert await leads(desk.office) == 1


async def test_the_newest_revision_has_one_meta_member_in_a_result(modern: McpDesk) -> None:
    key = new_key()
    call_meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "idempotency-key": key,
    }
    params = {"name": "lead__create", "arguments": LEAD, "_meta": call_meta}
    headers = {"mcp_method": "tools/call", "mcp_name": "lead__create"}

    answers = [await modern.send(request("tools/call", params), revision="2026-07-28", **headers) for _ in range(2)]

    metas = [answer.json()["result"]["_meta"] for answer in answers]
    assert metas[1] == {**metas[0], "idempotency-replayed": True}
    assert answers[1].text.count('"_meta"') == 1
