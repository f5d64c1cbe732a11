"""MCP over raw HTTP: the requirements for the transport, H1 to H17 of the checklist."""

import json

import pytest

from countersign.kernel import clock
from countersign.records import http
from tests.records.mcp.desk import BOTH, MODERN, NEW, REVISIONS, McpDesk, initialize, request, tool
from tests.records.office import ROOT_URL

every_revision = pytest.mark.parametrize("revision", REVISIONS)

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@every_revision
async def test_h1_a_request_is_answered_with_one_json_object(desk: McpDesk, revision: str) -> None:
    answer = await desk.send(PING, revision=revision)

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {"jsonrpc": "2.0", "id": 1, "result": {}}


@every_revision
@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/of_no_kind", "params": {"a": 1}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": "a", "error": {"code": 1, "message": "no"}},
    ],
    ids=["initialized", "unknown", "result", "error"],
)
async def test_h2_a_notification_or_a_response_is_accepted_without_a_body(
    desk: McpDesk, revision: str, message: dict[str, object]
) -> None:
    answer = await desk.send(message, revision=revision)

    assert (answer.status_code, answer.content) == (202, b"")


@every_revision
@pytest.mark.parametrize("message", [{"method": "notifications/initialized"}, {"jsonrpc": "2.0", "method": 7}, {}])
async def test_h3_an_unusable_notification_is_refused(desk: McpDesk, revision: str, message: dict[str, object]) -> None:
    answer = await desk.send(message, revision=revision)

    assert answer.status_code == 400
    assert "id" not in answer.json()


async def test_h4_get_is_not_allowed(desk: McpDesk) -> None:
    headers = {**desk.office.headers("alice"), "Accept": "text/event-stream"}

    answer = await desk.office.http.get("/mcp", headers=headers)

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json() == {"error": "method not allowed"}


async def test_h5_delete_is_not_allowed(desk: McpDesk) -> None:
    answer = await desk.office.http.delete("/mcp", headers=desk.office.headers("alice"))

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://localhost.evil.example",
        "http://127.0.0.1@evil.example",
        "file://localhost",
        "https://[::1",
        "http://127.0.0.1:99999",
        f"{ROOT_URL}.evil.example",
    ],
)
@pytest.mark.parametrize("who", ["alice", ""])
async def test_h6_a_page_of_another_site_is_refused_before_any_other_check(
    desk: McpDesk, origin: str, who: str
) -> None:
    answer = await desk.send(PING, who, origin=origin)

    assert answer.status_code == 403
    assert answer.json() == {"error": "this Origin may not send requests here"}


@pytest.mark.parametrize("origin", ["", ROOT_URL, "http://localhost:6274", "http://127.0.0.1", "https://[::1]:1"])
async def test_h7_a_page_of_this_machine_or_none_is_served(desk: McpDesk, origin: str) -> None:
    assert (await desk.send(PING, origin=origin)).status_code == 200


@pytest.mark.parametrize("revision", [MODERN, "2024-11-05", "1999-01-01", "latest", "2025-11-25, 2025-06-18"])
@pytest.mark.parametrize("message", [PING, initialize(NEW)], ids=["ping", "initialize"])
async def test_h8_the_refusal_of_an_unsupported_revision_is_not_mistaken_for_a_newer_server(
    desk: McpDesk, revision: str, message: dict[str, object]
) -> None:
    answer = await desk.send(message, revision=revision)

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32600
    assert answer.json()["id"] == message["id"]


async def test_h9_without_the_header_the_revision_is_2025_03_26(desk: McpDesk) -> None:
    result = await desk.result(tool("lead__list", limit=1), revision=None)

    assert set(result) == {"content", "isError"}
    assert (await desk.send([PING], revision=None)).status_code == 200


@every_revision
async def test_h10_initialize_may_carry_the_header(desk: McpDesk, revision: str) -> None:
    answer = await desk.send(initialize(NEW), revision=revision)

    assert answer.json()["result"]["protocolVersion"] == NEW


@pytest.mark.parametrize("accept", [None, "application/json", "*/*", "application/*;q=0.5", BOTH, "text/html"])
async def test_h11_a_client_that_accepts_any_type_gets_json(desk: McpDesk, accept: str | None) -> None:
    answer = await desk.send(PING, accept=accept)

    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")


async def test_h11_a_client_that_accepts_only_a_stream_gets_one_event(desk: McpDesk) -> None:
    answer = await desk.send(tool("lead__list", limit=2), accept="text/event-stream")

    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
    head, data, *last_lines = answer.text.split("\n")
    assert (head, last_lines) == ("event: message", ["", ""])
    assert len(json.loads(data.removeprefix("data: "))["result"]["structuredContent"]["value"]) == 2


@every_revision
async def test_h12_no_session_is_opened_and_a_sent_session_id_is_ignored(desk: McpDesk, revision: str) -> None:
    initialized_response = await desk.send(initialize(revision), revision=None)
    answer = await desk.send(PING, revision=revision, mcp_session_id="made-up")

    assert "mcp-session-id" not in {*initialized_response.headers, *answer.headers}
    assert answer.status_code == 200


@pytest.mark.parametrize("media_type", ["text/plain", "", "application/json-rpc", "application/x-www-form-urlencoded"])
async def test_h13_another_content_type_is_refused(desk: McpDesk, media_type: str) -> None:
    assert (await desk.send(PING, content_type=media_type)).status_code == 415


async def test_h13_the_content_type_may_name_the_charset_utf_8(desk: McpDesk) -> None:
    assert (await desk.send(PING, content_type="application/json; charset=utf-8")).status_code == 200


MESSAGES = [initialize(NEW), PING, request("tools/list"), tool("lead__list"), {"jsonrpc": "2.0", "method": "x"}, [PING]]


@pytest.mark.parametrize("authorization", ["", "Bearer nobody's", "Basic YTpi", "Bearer"])
@pytest.mark.parametrize("message", MESSAGES, ids=["initialize", "ping", "list", "call", "notification", "batch"])
async def test_h14_requests_without_a_token_get_no_data(desk: McpDesk, authorization: str, message: object) -> None:
    answer = await desk.send(message, "", REVISIONS[0], authorization=authorization)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json() == {"error": "the bearer token is missing, unknown, expired or revoked"}


async def test_h14_an_expired_or_revoked_token_is_refused_and_none_is_read_from_the_address(desk: McpDesk) -> None:
    agent = await desk.office.agent("alice", "lead.*", label="mailbot")
    token = desk.office.tokens[agent]
    assert (await desk.send(PING, agent)).status_code == 200
    with clock.fixed(clock.later(clock.now(), seconds=91 * 86400)):
        assert (await desk.send(PING, agent)).status_code == 401

    record = await desk.office.first_record("agent_token", "alice", label="mailbot")
    await desk.office.value("alice", "agent_token.revoke", id=record["id"])

    assert (await desk.send(PING, agent)).status_code == 401
    address_answer = await desk.office.http.post(f"/mcp?access_token={desk.office.tokens['alice']}", json=PING)
    assert address_answer.status_code == 401
    assert token not in address_answer.text


async def test_h15_a_body_over_the_limit_is_refused(desk: McpDesk) -> None:
    answer = await desk.send(b" " * (http.BODY_LIMIT + 1))

    assert answer.status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ],
)
async def test_h16_discovery_of_oauth_finds_nothing_as_json(desk: McpDesk, path: str) -> None:
    answer = await desk.office.http.get(path)

    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")
    assert answer.json() == {"error": "not found"}


async def test_h17_the_endpoint_answers_itself_without_a_redirect(desk: McpDesk) -> None:
    assert (await desk.send(PING)).history == []
    slashed_response = await desk.office.http.post("/mcp/", json=PING, headers=desk.office.headers("alice"))
    assert slashed_response.status_code == 404
