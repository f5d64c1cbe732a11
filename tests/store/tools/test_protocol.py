"""MCP over raw HTTP for the store: the tests of the records service that need no record, and the store's own
responses."""

import json

import pytest

from countersign import __version__
from countersign.kernel import clock
from countersign.kernel.http.routing import MEBIBYTE
from tests.records.mcp.desk import BOTH, NEW, REVISIONS, McpDesk, initialize, request, tool
from tests.records.mcp.test_2026 import send, with_meta
from tests.records.mcp.test_http import (
    MESSAGES,
    PING,
    test_h1_a_request_is_answered_with_one_json_object,
    test_h2_a_notification_or_a_response_is_accepted_without_a_body,
    test_h3_an_unusable_notification_is_refused,
    test_h7_a_page_of_this_machine_or_none_is_served,
    test_h8_the_refusal_of_an_unsupported_revision_is_not_mistaken_for_a_newer_server,
    test_h10_initialize_may_carry_the_header,
    test_h12_no_session_is_opened_and_a_sent_session_id_is_ignored,
    test_h13_another_content_type_is_refused,
    test_h13_the_content_type_may_name_the_charset_utf_8,
)
from tests.records.mcp.test_lifecycle import (
    NOTE,
    test_j1_the_answer_has_the_id_of_the_request_with_its_type,
    test_j2_an_id_of_another_type_is_refused_and_not_treated_as_a_notification,
    test_j3_a_body_that_is_not_json_gets_a_parse_error,
    test_j4_json_that_is_not_a_message_gets_an_invalid_request_error,
    test_j5_an_unknown_method_is_not_found,
    test_j6_params_that_are_not_an_object_are_invalid,
    test_j7_a_batch_has_a_limit,
    test_j7_a_batch_without_requests_is_only_accepted,
    test_j9_an_empty_batch_is_refused,
    test_j9_later_revisions_have_no_batches,
    test_j10_a_revision_that_is_offered_is_agreed_to,
    test_j11_for_any_other_the_latest_is_offered,
    test_j13_tools_are_offered_and_never_announced_to_change,
    test_j14_a_handshake_without_required_members_is_invalid,
    test_j15_ping_is_answered_before_any_handshake,
    test_j18_a_cancellation_is_accepted_and_does_nothing,
)
from tests.store.conftest import ROOT_URL

__all__ = [
    "test_h1_a_request_is_answered_with_one_json_object",
    "test_h2_a_notification_or_a_response_is_accepted_without_a_body",
    "test_h3_an_unusable_notification_is_refused",
    "test_h7_a_page_of_this_machine_or_none_is_served",
    "test_h8_the_refusal_of_an_unsupported_revision_is_not_mistaken_for_a_newer_server",
    "test_h10_initialize_may_carry_the_header",
    "test_h12_no_session_is_opened_and_a_sent_session_id_is_ignored",
    "test_h13_another_content_type_is_refused",
    "test_h13_the_content_type_may_name_the_charset_utf_8",
    "test_j1_the_answer_has_the_id_of_the_request_with_its_type",
    "test_j2_an_id_of_another_type_is_refused_and_not_treated_as_a_notification",
    "test_j3_a_body_that_is_not_json_gets_a_parse_error",
    "test_j4_json_that_is_not_a_message_gets_an_invalid_request_error",
    "test_j5_an_unknown_method_is_not_found",
    "test_j6_params_that_are_not_an_object_are_invalid",
    "test_j7_a_batch_has_a_limit",
    "test_j7_a_batch_without_requests_is_only_accepted",
    "test_j9_an_empty_batch_is_refused",
    "test_j9_later_revisions_have_no_batches",
    "test_j10_a_revision_that_is_offered_is_agreed_to",
    "test_j11_for_any_other_the_latest_is_offered",
    "test_j13_tools_are_offered_and_never_announced_to_change",
    "test_j14_a_handshake_without_required_members_is_invalid",
    "test_j15_ping_is_answered_before_any_handshake",
    "test_j18_a_cancellation_is_accepted_and_does_nothing",
]

every_revision = pytest.mark.parametrize("revision", REVISIONS)


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH"])
async def test_h4_and_h5_only_post_is_allowed(desk: McpDesk, method: str) -> None:
    answer = await desk.office.http.request(method, "/mcp", headers={"Accept": "text/event-stream"})

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost.evil.example", f"{ROOT_URL}.evil.example"]
)
@pytest.mark.parametrize("who", ["alice", ""])
async def test_h6_a_page_of_another_site_is_refused(desk: McpDesk, origin: str, who: str) -> None:
    answer = await desk.send(PING, who, origin=origin)

    assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("accept", [None, "application/json", "*/*", "application/*;q=0.5", BOTH])
async def test_h11_a_client_that_accepts_json_gets_json(desk: McpDesk, accept: str | None) -> None:
    answer = await desk.send(PING, accept=accept)

    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")


async def test_h11_a_client_that_accepts_only_a_stream_gets_one_event(desk: McpDesk) -> None:
    answer = await desk.send(tool("list_products"), accept="text/event-stream")

    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
    head, data, *last_lines = answer.text.split("\n")
    assert (head, last_lines) == ("event: message", ["", ""])
    assert len(json.loads(data.removeprefix("data: "))["result"]["structuredContent"]["items"]) == 1


@pytest.mark.parametrize("authorization", ["Bearer nobody's", "Basic YTpi", "Bearer"])
@pytest.mark.parametrize("message", MESSAGES, ids=["initialize", "ping", "list", "call", "notification", "batch"])
async def test_h14_requests_with_an_invalid_token_get_no_data(
    desk: McpDesk, authorization: str, message: object
) -> None:
    answer = await desk.send(message, "", REVISIONS[0], authorization=authorization)

    assert (answer.status_code, answer.json()["code"]) == (401, "invalid_token")
    challenge = answer.headers["www-authenticate"]
    assert challenge.startswith('Bearer error="invalid_token"')
    assert f'resource_metadata="{ROOT_URL}/.well-known/oauth-protected-resource"' in challenge


async def test_h14_an_expired_token_is_refused_and_none_is_read_from_the_address(desk: McpDesk) -> None:
    assert (await desk.send(PING, "carol")).status_code == 200
    with clock.fixed(clock.later(clock.now(), seconds=2 * 86400)):
        assert (await desk.send(PING, "carol")).status_code == 401

    token = desk.office.tokens["alice"]
    response = await desk.office.http.post(f"/mcp?access_token={token}", json=PING)
    assert response.status_code == 400
    assert "access_token" in response.json()["detail"]


async def test_h15_a_body_over_the_limit_is_refused(desk: McpDesk) -> None:
    assert (await desk.send(b" " * (MEBIBYTE + 1))).status_code == 413


async def test_h16_discovery_answers_with_json(desk: McpDesk) -> None:
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
        answer = await desk.office.http.get(path)
        assert "json" in answer.headers["content-type"]


async def test_h17_the_endpoint_answers_itself_without_a_redirect(desk: McpDesk) -> None:
    assert (await desk.send(PING)).history == []
    assert (await desk.office.http.post("/mcp/", json=PING)).status_code == 404
    assert (await desk.office.http.post("/api/v1/mcp", json=PING)).status_code == 404


async def test_j7_a_batch_is_answered_request_by_request_in_2025_03_26(desk: McpDesk) -> None:
    ping, unknown, refused_call = request("ping"), request("fly"), tool("get_product", id="nothing")

    answer = await desk.send([ping, NOTE, unknown, 7, refused_call], revision=REVISIONS[0])

    by_id = {reply.get("id"): reply for reply in answer.json()}
    assert by_id[ping["id"]]["result"] == {}
    assert by_id[unknown["id"]]["error"]["code"] == -32601
    assert by_id[None]["error"]["code"] == -32600
    assert by_id[refused_call["id"]]["result"]["isError"] is True


async def test_j8_a_batch_with_initialize_is_refused_as_a_whole(desk: McpDesk) -> None:
    job = tool("run_batch", operations=[{"method": "PUT", "path": "/org", "body": {"name": "Never"}}])

    answer = await desk.send([job, initialize(REVISIONS[0])], revision=REVISIONS[0])

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)
    org_answer = await desk.office.http.get("/api/v1/org", headers=desk.office.headers("alice"))
    assert org_answer.json()["name"] == "North"


@every_revision
async def test_j12_the_handshake_introduces_the_server(desk: McpDesk, revision: str) -> None:
    for who in ("alice", ""):
        result = await desk.result(initialize(revision), who, revision=None)
        assert set(result) == {"protocolVersion", "capabilities", "serverInfo", "instructions"}
        assert result["serverInfo"] == {
            "name": "countersign-store",
            "title": "Countersign store",
            "version": __version__,
        }


@every_revision
async def test_j17_every_answer_matches_the_published_schema_of_the_revision(desk: McpDesk, revision: str) -> None:
    """The MCP client validates each response against the schema."""
    refused_call = tool("get_product", id="nothing")
    for message in (initialize(revision), request("ping"), request("tools/list"), tool("list_products"), refused_call):
        assert "result" in await desk.answer(message, "alice", revision)
    for message in (tool("fly"), request("fly"), request("tools/list", {"cursor": "x"})):
        assert "error" in await desk.answer(message, "alice", revision)


async def test_revision_2026_is_served_if_the_setting_is_on(modern_desk: McpDesk, desk: McpDesk) -> None:
    discovery = (await send(modern_desk, with_meta(request("server/discover")))).json()["result"]
    listed_result = (await send(modern_desk, with_meta(request("tools/list")))).json()["result"]
    tool_result = (await send(modern_desk, with_meta(tool("get_product", id="saga")))).json()["result"]

    assert discovery["supportedVersions"][0] == "2026-07-28"
    assert listed_result["tools"] == await modern_desk.tools("alice")
    assert tool_result["structuredContent"]["slug"] == "saga"
    assert tool_result["resultType"] == "complete"
    assert (await send(desk, with_meta(request("server/discover")))).status_code == 400
    assert (await modern_desk.result(initialize(NEW), revision=None))["protocolVersion"] == NEW
