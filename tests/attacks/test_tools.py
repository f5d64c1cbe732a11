"""Attacks through tools: to exceed the rights of the token, or the resources of the server."""

import pytest

from countersign.kernel.mcp import server
from tests.records.mcp.desk import REVISIONS, McpDesk, tool
from tests.store.tools.conftest import desk, world_of

__all__ = ["desk"]


@pytest.mark.parametrize("tier", ["community", "agent"])
async def test_a_key_is_offered_only_tools_that_keys_may_use(desk: McpDesk, tier: str) -> None:
    world = world_of(desk)
    provisioned_response = await world.http.get("/api/keys", params={"tier": tier})
    headers = {"X-API-Key": provisioned_response.json()["api_key"]}
    list_request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    listed_response = await world.http.post("/mcp", json=list_request, headers=headers)
    anybody = await world.http.post("/mcp", json=list_request)
    job = await world.http.post("/mcp", json=tool("get_job", job_id="x"), headers=headers)

    assert listed_response.json() == anybody.json()
    assert (job.status_code, job.json()["detail"]) == (401, "the tool get_job needs a token")


async def test_answers_of_a_batch_of_messages_do_not_fill_the_memory(
    desk: McpDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of fifty messages may have an answer of megabytes; all of them at once would end the server."""
    monkeypatch.setattr(server, "BATCH_BYTES", 10_000)
    await world_of(desk).product("north", "long", description="x" * 4_000)
    messages = [tool("get_product", id="long") for _ in range(40)]
    issue = tool("run_batch", operations=[{"method": "PUT", "path": "/org", "body": {"name": "Never"}}])

    answer = await desk.send([*messages, issue], "alice", revision=REVISIONS[0])

    assert len(answer.content) < 30_000
    assert len(answer.json()) == 41
    assert "not processed" in answer.json()[-1]["error"]["message"]
    org = await world_of(desk).call("GET", "/org", desk.office.headers("alice")["Authorization"].split()[1])
    assert org.json()["name"] != "Never"
