"""Revision 2026-07-28 of MCP, if it is enabled: there is no handshake, and every request describes itself both in its
headers and in its metadata."""

import base64
from typing import Any

import httpx
import pytest

from tests.records.mcp.desk import CLIENT, MODERN, NEW, REVISIONS, McpDesk, initialize, request, tool

PREFIX = "io.modelcontextprotocol/"
META = {f"{PREFIX}protocolVersion": MODERN, f"{PREFIX}clientInfo": CLIENT, f"{PREFIX}clientCapabilities": {}}


def with_meta(message: dict[str, Any], **meta: object) -> dict[str, Any]:
    """Return the request with its metadata. A member of `meta` that is None is omitted."""
    all_members = {**META, **{f"{PREFIX}{name}": value for name, value in meta.items()}}
    set_members = {name: value for name, value in all_members.items() if value is not None}
    return {**message, "params": {**message.get("params", {}), "_meta": set_members}}


async def send(desk: McpDesk, message: dict[str, Any], who: str = "alice", **headers: str) -> httpx.Response:
    """Send the request as a client of this revision does. Headers can be changed, and an empty header is omitted."""
    mcp_headers = {"mcp_method": message["method"]}
    if message["method"] == "tools/call":
        mcp_headers["mcp_name"] = message["params"]["name"]
    revision = headers.pop("revision", MODERN)
    return await desk.send(message, who, revision or None, **{**mcp_headers, **headers})


async def test_discovery_shows_the_offered_capabilities(modern: McpDesk) -> None:
    answer = await send(modern, with_meta(request("server/discover")))

    result = answer.json()["result"]
    assert result["supportedVersions"] == [MODERN, NEW, "2025-06-18", "2025-03-26"]
    assert result["capabilities"] == {"tools": {"listChanged": False}}
    assert (result["resultType"], result["cacheScope"], result["ttlMs"]) == ("complete", "private", 3_600_000)
    assert result["_meta"][f"{PREFIX}serverInfo"]["name"] == "countersign-records"


async def test_the_tool_list_contains_only_tools_of_the_caller(modern: McpDesk) -> None:
    agent = await modern.office.agent("alice", "lead.get")

    result = (await send(modern, with_meta(request("tools/list")), agent)).json()["result"]

    assert (result["resultType"], result["cacheScope"], result["ttlMs"]) == ("complete", "private", 60_000)
    assert result["tools"] == await modern.tools(agent)


async def test_a_tool_is_called(modern: McpDesk) -> None:
    agent = await modern.office.agent("alice", "*")
    lead = await modern.office.first_record("lead")

    good_answer = await send(modern, with_meta(tool("lead__get", id=lead["id"])), agent)
    proposed_answer = await send(modern, with_meta(tool("lead__delete", id=lead["id"])), agent)
    refused_answer = await send(modern, with_meta(tool("lead__get", id="x")), agent)

    results = [response.json()["result"] for response in (good_answer, proposed_answer, refused_answer)]
    assert [result["resultType"] for result in results] == ["complete"] * 3
    assert [result["isError"] for result in results] == [False, False, True]
    assert results[0]["structuredContent"]["value"]["id"] == lead["id"]
    assert results[1]["structuredContent"]["status"] == "approval_required"


async def test_a_hidden_tool_is_unknown(modern: McpDesk) -> None:
    agent = await modern.office.agent("alice", "lead.get")

    answer = await send(modern, with_meta(tool("user__list")), agent)

    assert answer.status_code == 200
    assert answer.json()["error"] == {"code": -32602, "message": "Unknown tool: user__list"}


@pytest.mark.parametrize("method", ["initialize", "ping", "resources/list", "subscriptions/listen", "fly"])
async def test_an_unknown_method_is_404(modern: McpDesk, method: str) -> None:
    answer = await send(modern, with_meta(request(method)))

    assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)


LIST = with_meta(request("tools/list"))
CALL = with_meta(tool("lead__list", limit=1))
MISMATCHES: list[tuple[dict[str, Any], dict[str, str]]] = [
    (LIST, {"mcp_method": ""}),
    (LIST, {"mcp_method": "tools/call"}),
    (LIST, {"mcp_method": "Tools/List"}),
    (LIST, {"revision": ""}),
    (LIST, {"revision": NEW}),
    (with_meta(request("tools/list"), protocolVersion=NEW), {}),
    (CALL, {"mcp_name": ""}),
    (CALL, {"mcp_name": "lead__get"}),
    (CALL, {"mcp_name": "=?base64?!?="}),
    (CALL, {"mcp_name": "=?BASE64?bGVhZF9fbGlzdA==?="}),
]


@pytest.mark.parametrize(("message", "headers"), MISMATCHES)
async def test_headers_must_be_as_in_the_body(
    modern: McpDesk, message: dict[str, Any], headers: dict[str, str]
) -> None:
    answer = await send(modern, message, **headers)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)
    assert answer.json()["id"] == message["id"]


async def test_a_name_may_be_sent_as_base64(modern: McpDesk) -> None:
    encoded = f"=?base64?{base64.b64encode(b'lead__list').decode()}?="

    assert (await send(modern, CALL, mcp_name=encoded)).json()["result"]["isError"] is False


async def test_white_space_around_a_header_is_no_part_of_it(modern: McpDesk) -> None:
    spaced = {"revision": f"{MODERN} ", "mcp_method": " tools/call\t", "mcp_name": "  lead__list "}

    assert (await send(modern, CALL, **spaced)).json()["result"]["isError"] is False
    assert (await modern.send(request("ping"), revision=f" {NEW} ")).status_code == 200


@pytest.mark.parametrize("meta", [{"clientCapabilities": None}, {"clientCapabilities": []}, {"protocolVersion": 7}])
async def test_an_incomplete_metadata_are_malformed(modern: McpDesk, meta: dict[str, object]) -> None:
    answer = await send(modern, with_meta(request("tools/list"), **meta))

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)


async def test_the_header_alone_is_not_enough(modern: McpDesk) -> None:
    answer = await send(modern, request("tools/list"))

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize("revision", ["1900-01-01", "2024-11-05"])
async def test_an_unsupported_revision_is_refused_with_the_supported_revisions(modern: McpDesk, revision: str) -> None:
    for message in (with_meta(request("tools/list"), protocolVersion=revision), request("tools/list")):
        answer = await send(modern, message, revision=revision)
        assert answer.status_code == 400
        assert answer.json()["error"] == {
            "code": -32022,
            "message": "Unsupported protocol version",
            "data": {"supported": [MODERN, NEW, "2025-06-18", "2025-03-26"], "requested": revision},
        }


async def test_batches_and_responses_are_refused_and_notifications_accepted(modern: McpDesk) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled"}

    assert (await modern.send([LIST], revision=MODERN)).status_code == 400
    assert (await modern.send({"jsonrpc": "2.0", "id": 1, "result": {}}, revision=MODERN)).status_code == 400
    assert (await modern.send(note, revision=MODERN)).status_code == 202


@pytest.mark.parametrize("revision", REVISIONS)
async def test_clients_with_a_handshake_are_served_beside(modern: McpDesk, revision: str) -> None:
    assert (await modern.result(initialize(revision), revision=None))["protocolVersion"] == revision
    assert await modern.result(request("ping"), revision=revision) == {}
    assert "resultType" not in await modern.result(request("tools/list"), revision=revision)
    # A client that chose this revision from the list, and continues to send it.
    list_request = with_meta(request("tools/list"), protocolVersion=revision)
    assert "resultType" not in await modern.result(list_request, revision=revision)


@pytest.mark.parametrize("revision", [MODERN, "1999-01-01"])
async def test_a_handshake_never_agrees_to_the_2026_revision(modern: McpDesk, revision: str) -> None:
    assert (await modern.result(initialize(revision), revision=None))["protocolVersion"] == NEW
    assert (await modern.send(initialize(NEW), revision=MODERN)).status_code == 400


async def test_the_description_of_the_service_names_the_enabled_revisions(modern: McpDesk, desk: McpDesk) -> None:
    descriptions: list[object] = []
    for client in (desk, modern):
        answer = await client.office.http.get("/api/openapi.json", headers=client.office.headers("alice"))
        descriptions.append(answer.json()["x-mcp"])

    assert descriptions == [
        {"url": "http://127.0.0.1:8080/mcp", "transport": "streamable-http", "protocol_versions": on, "auth": "bearer"}
        for on in ([NEW, "2025-06-18", "2025-03-26"], [MODERN, NEW, "2025-06-18", "2025-03-26"])
    ]


async def test_the_link_of_the_metadata_leads_to_the_endpoint(desk: McpDesk) -> None:
    answer = await desk.office.http.get("/api/meta", headers=desk.office.headers("alice"))

    target = answer.links["mcp"]["url"]
    pinged = await desk.office.post("alice", target, request("ping"))
    assert pinged.json()["result"] == {}


async def test_without_the_setting_clients_of_2026_get_an_error_that_makes_them_use_an_older_revision(
    desk: McpDesk
) -> None:
    answer = await send(desk, with_meta(request("server/discover")))

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)
