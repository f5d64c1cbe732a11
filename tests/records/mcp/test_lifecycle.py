"""MCP over raw HTTP: JSON-RPC, batches and the handshake, J1 to J18 of the checklist."""

import json
from typing import Any

import pytest

from countersign import __version__
from countersign.kernel.mcp.messages import MAX_BATCHED
from tests.records.mcp.desk import CLIENT, MODERN, NEW, REVISIONS, McpDesk, initialize, request, tool

every_revision = pytest.mark.parametrize("revision", REVISIONS)

FIRST, *LATER = REVISIONS
NOTE = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def with_id(raw: str) -> bytes:
    """Return a ping with this id as raw JSON."""
    return b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % raw.encode()


@pytest.mark.parametrize("raw", ["0", "-7", "1", "18446744073709551616", '"1"', '""', '"ä\\n\\"\\u0001"', '"2.0"'])
async def test_j1_the_answer_has_the_id_of_the_request_with_its_type(desk: McpDesk, raw: str) -> None:
    answer = await desk.send(with_id(raw))

    assert answer.json()["id"] == json.loads(raw)
    assert type(answer.json()["id"]) is type(json.loads(raw))


@every_revision
@pytest.mark.parametrize("raw", ["null", "1.5", "1.0", "1e3", "true", "[]", "{}", "-0.0"])
async def test_j2_an_id_of_another_type_is_refused_and_not_treated_as_a_notification(
    desk: McpDesk, revision: str, raw: str
) -> None:
    answer = await desk.send(with_id(raw), revision=revision)

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32600
    assert "id" not in answer.json()


UNREADABLE = {
    "empty": b"",
    "brace": b"{",
    "not UTF-8": b"\xff",
    "half a pair": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}',
    "cut": b'{"jsonrpc":"2.0","id":1,"method":"ping"',
    "cut batch": b"[1",
    "deep": b"[" * 50_000,
    "two": b"{}{}",
}


@every_revision
@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
async def test_j3_a_body_that_is_not_json_gets_a_parse_error(desk: McpDesk, revision: str, body: bytes) -> None:
    answer = await desk.send(body, revision=revision)

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32700


@every_revision
@pytest.mark.parametrize(
    "message",
    [
        7,
        "ping",
        None,
        True,
        {"id": 1, "method": "ping"},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": 2.0, "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "method": None},
        {"jsonrpc": "2.0", "result": {}},
    ],
)
async def test_j4_json_that_is_not_a_message_gets_an_invalid_request_error(
    desk: McpDesk, revision: str, message: object
) -> None:
    answer = await desk.send(message, revision=revision)

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32600


@every_revision
@pytest.mark.parametrize(
    "method",
    ["fly", "resources/list", "prompts/list", "server/discover", "logging/setLevel", "completion/complete", "", "Ping"],
)
async def test_j5_an_unknown_method_is_not_found(desk: McpDesk, revision: str, method: str) -> None:
    assert (await desk.error(request(method), revision=revision))[0] == -32601


@every_revision
@pytest.mark.parametrize("params", [[], [1], "x", 7, False])
async def test_j6_params_that_are_not_an_object_are_invalid(desk: McpDesk, revision: str, params: object) -> None:
    for method in ("ping", "tools/list", "tools/call", "initialize"):
        assert (await desk.error(request(method, params), revision=revision))[0] == -32602


@pytest.mark.parametrize("revision", [FIRST, None])
async def test_j7_a_batch_is_answered_request_by_request_in_2025_03_26(desk: McpDesk, revision: str | None) -> None:
    good_request, unknown, refused_request = request("ping"), request("fly"), tool("lead__get", id="x")
    list_request = request("tools/list")

    answer = await desk.send([good_request, NOTE, unknown, 7, refused_request, list_request], revision=revision)

    assert answer.status_code == 200
    by_id: dict[Any, Any] = {reply.get("id"): reply for reply in answer.json()}
    assert set(by_id) == {good_request["id"], unknown["id"], refused_request["id"], list_request["id"], None}
    assert by_id[good_request["id"]]["result"] == {}
    assert by_id[unknown["id"]]["error"]["code"] == -32601
    assert by_id[None]["error"]["code"] == -32600
    assert by_id[refused_request["id"]]["result"]["isError"] is True
    assert by_id[list_request["id"]]["result"]["tools"]


async def test_j7_a_batch_without_requests_is_only_accepted(desk: McpDesk) -> None:
    answer = await desk.send([NOTE, {"jsonrpc": "2.0", "id": 9, "result": {}}], revision=FIRST)

    assert (answer.status_code, answer.content) == (202, b"")


async def test_j7_a_batch_has_a_limit(desk: McpDesk) -> None:
    assert (await desk.send([NOTE] * MAX_BATCHED, revision=FIRST)).status_code == 202
    assert (await desk.send([NOTE] * (MAX_BATCHED + 1), revision=FIRST)).status_code == 400


async def test_j8_a_batch_with_initialize_is_refused_as_a_whole(desk: McpDesk) -> None:
    count_before = len(await desk.office.all("lead"))

    answer = await desk.send([tool("lead__create", title="Never"), initialize(FIRST)], revision=FIRST)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)
    assert len(await desk.office.all("lead")) == count_before


@pytest.mark.parametrize("revision", LATER)
async def test_j9_later_revisions_have_no_batches(desk: McpDesk, revision: str) -> None:
    answer = await desk.send([request("ping")], revision=revision)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)


@every_revision
async def test_j9_an_empty_batch_is_refused(desk: McpDesk, revision: str) -> None:
    answer = await desk.send([], revision=revision)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)


@every_revision
async def test_j10_a_revision_that_is_offered_is_agreed_to(desk: McpDesk, revision: str) -> None:
    assert (await desk.result(initialize(revision), revision=None))["protocolVersion"] == revision


@pytest.mark.parametrize("revision", ["2024-11-05", MODERN, "1999-01-01", ""])
async def test_j11_for_any_other_the_latest_is_offered(desk: McpDesk, revision: str) -> None:
    assert (await desk.result(initialize(revision), revision=None))["protocolVersion"] == NEW


@every_revision
async def test_j12_the_handshake_introduces_the_server(desk: McpDesk, revision: str) -> None:
    result = await desk.result(initialize(revision), revision=None)

    assert set(result) == {"protocolVersion", "capabilities", "serverInfo", "instructions"}
    assert result["serverInfo"] == {
        "name": "countersign-records",
        "title": "Countersign records",
        "version": __version__,
    }


@every_revision
async def test_j13_tools_are_offered_and_never_announced_to_change(desk: McpDesk, revision: str) -> None:
    result = await desk.result(initialize(revision), revision=None)

    assert result["capabilities"] == {"tools": {"listChanged": False}}


GOOD = {"protocolVersion": NEW, "capabilities": {}, "clientInfo": CLIENT}


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        *({name: value for name, value in GOOD.items() if name != left_out} for left_out in GOOD),
        {**GOOD, "protocolVersion": 1},
        {**GOOD, "capabilities": []},
        {**GOOD, "clientInfo": {"name": "x"}},
        {**GOOD, "clientInfo": "x"},
    ],
)
async def test_j14_a_handshake_without_required_members_is_invalid(desk: McpDesk, params: object) -> None:
    assert (await desk.error(request("initialize", params), revision=None))[0] == -32602


@every_revision
async def test_j15_ping_is_answered_before_any_handshake(desk: McpDesk, revision: str) -> None:
    assert await desk.result(request("ping"), revision=revision) == {}
    assert await desk.result(request("ping", {"_meta": {"progressToken": 1}}), revision=revision) == {}


@every_revision
async def test_j16_tools_are_listed_and_called_without_a_handshake(desk: McpDesk, revision: str) -> None:
    assert await desk.tools(revision=revision)
    assert (await desk.result(tool("lead__list", limit=1), revision=revision))["isError"] is False


@every_revision
async def test_j17_every_answer_matches_the_published_schema_of_the_revision(desk: McpDesk, revision: str) -> None:
    """The client validates each response against the schema. This test sends a request of every kind."""
    agent = await desk.office.agent("alice", "*")
    lead = await desk.office.first_record("lead")
    deletion, unknown = tool("lead__delete", id=lead["id"]), tool("lead__fly")

    for message in (initialize(revision), request("ping"), request("tools/list"), deletion, tool("lead__get")):
        assert "result" in await desk.answer(message, agent, revision)
    for message in (unknown, request("fly"), request("tools/list", {"cursor": "x"})):
        assert "error" in await desk.answer(message, agent, revision)


@every_revision
async def test_j18_a_cancellation_is_accepted_and_does_nothing(desk: McpDesk, revision: str) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "late"}}

    answer = await desk.send(message, revision=revision)

    assert (answer.status_code, answer.content) == (202, b"")
