"""MCP over raw HTTP: the requirements for calls of tools, the rest of O1 to O20 of the checklist."""

import io
import json
from contextlib import redirect_stderr

import pytest

from countersign.kernel import telemetry
from countersign.kernel.errors import Unavailable
from countersign.records.commands import limits, token_guess_limit
from countersign.records.dispatch import Dispatch
from tests.records.mcp.desk import REVISIONS, McpDesk, initialize, request, tool

every_revision = pytest.mark.parametrize("revision", REVISIONS)


HIDDEN = [
    "user__list",
    "lead__delete",
    "lead__fly",
    "nothing__get",
    "lead",
    "lead__",
    "__get",
    "",
    "lead.get",
    "x" * 9000,
]


@every_revision
@pytest.mark.parametrize("name", HIDDEN, ids=lambda name: name[:20])
async def test_o6_a_hidden_tool_gets_the_same_answer_as_an_unknown_tool(
    desk: McpDesk, revision: str, name: str
) -> None:
    agent = await desk.office.agent("alice", "lead.get")

    for arguments in ({}, {"id": "x"}, {"no_such_key": 1}):
        error = await desk.error(tool(name, **arguments), agent, revision)
        assert error == (-32602, f"Unknown tool: {name}")


async def test_o6_answers_to_hidden_and_unknown_tools_differ_only_in_the_name(desk: McpDesk) -> None:
    agent = await desk.office.agent("alice", "lead.get")
    answers = [
        await desk.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}}, agent)
        for name in ("user__list", "usor__list")
    ]

    (hidden_answer, unknown_answer), names = answers, {"x-request-id"}
    assert hidden_answer.content.replace(b"user", b"usor") == unknown_answer.content
    heads = [[item for item in answer.headers.items() if item[0] not in names] for answer in answers]
    assert heads[0] == heads[1]


@every_revision
async def test_o7_arguments_may_be_left_out(desk: McpDesk, revision: str) -> None:
    for params in (
        {"name": "plan__list"},
        {"name": "plan__list", "arguments": None},
        {"name": "plan__list", "_meta": {}},
    ):
        assert (await desk.result(request("tools/call", params), revision=revision))["isError"] is False


@every_revision
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"arguments": {}},
        {"name": 7},
        {"name": None},
        *({"name": "lead__list", "arguments": arguments} for arguments in ([], "{}", 7, True)),
    ],
)
async def test_o8_a_malformed_call_is_a_protocol_error(desk: McpDesk, revision: str, params: object) -> None:
    assert (await desk.error(request("tools/call", params), revision=revision))[0] == -32602


REFUSED: list[tuple[str, bytes]] = [
    ("lead__get", b"{}"),
    ("lead__get", b'{"id":"x"}'),
    ("lead__get", b'{"id":7}'),
    ("lead__create", b"{}"),
    ("lead__create", b'{"title":"a","no_such_key":1}'),
    ("lead__create", b'{"title":"a","title":"b"}'),
    ("lead__create", b'{"title":"a\\u0000"}'),
    ("lead__create", b'{"title":"a","expected_revenue_minor":1.5}'),
    ("lead__create", b'{"title":' + b"[" * 70 + b"]" * 70 + b"}"),
    ("lead__list", b'{"limit":0}'),
    ("lead__list", b'{"filter":[{"field":"contact_email","op":"eq","value":"a@b.example"}]}'),
    ("lead__search", b'{"filter":"x"}'),
    ("lead__import", b'{"csv":7}'),
]


@every_revision
async def test_o9_a_refused_input_is_a_result_with_the_error_text_of_rest(both: McpDesk, revision: str) -> None:
    agent = await both.office.agent("alice", "*")
    headers = {**both.office.headers(agent), "Content-Type": "application/json"}
    message = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%b","arguments":%b}}'
    for name, body in REFUSED:
        rest_response = await both.office.http.post("/api/" + name.replace("__", "/"), content=body, headers=headers)
        assert rest_response.status_code == 400, body

        answer = await both.send(message % (name.encode(), body), agent, revision)

        expected_result = {"content": [{"type": "text", "text": rest_response.json()["error"]}], "isError": True}
        assert answer.json()["result"] == expected_result, body


@every_revision
async def test_o10_a_command_that_needs_approval_returns_a_successful_result_with_a_plan(
    both: McpDesk, revision: str
) -> None:
    agent = await both.office.agent("alice", "lead.*")
    lead = await both.office.first_record("lead", "alice")

    result = await both.result(tool("lead__delete", id=lead["id"]), agent, revision)

    assert result["isError"] is False
    content = json.loads(result["content"][0]["text"])
    assert set(content) == {"status", "plan_id", "expires_at"}
    assert content["status"] == "approval_required"
    # The same proposal over REST is the same plan, and a person executes it.
    assert await both.office.proposed(agent, "lead.delete", id=lead["id"]) == content["plan_id"]
    assert (await both.office.approve("alice", content["plan_id"])).status_code == 200
    assert await both.refusal_of("alice", "lead__get", id=lead["id"]) == "no such record"


@every_revision
async def test_o11_and_o12_content_is_always_sent_and_structured_content_since_2025_06_18(
    both: McpDesk, revision: str
) -> None:
    result = await both.result(tool("lead__search", limit=2), revision=revision)

    (block,) = result["content"]
    assert block["type"] == "text"
    assert list(json.loads(block["text"])) == ["status", "denied", "value"]
    assert ("structuredContent" in result) == (revision != REVISIONS[0])
    assert result.get("structuredContent", json.loads(block["text"])) == json.loads(block["text"])


ASKED: list[tuple[str, dict[str, object]]] = [
    ("lead.list", {}),
    ("lead.list", {"order": [{"field": "title"}], "limit": 3}),
    ("party.list", {}),
    ("party.search", {"filter": [{"field": "kind", "op": "eq", "value": "company"}], "limit": 5}),
    ("lead.count_by", {"field": "stage"}),
    ("lead.export", {"limit": 3}),
    ("plan.list", {}),
    ("audit_entry.list", {"limit": 3}),
]


async def test_o12_the_envelope_is_that_of_rest(both: McpDesk) -> None:
    agent = await both.office.agent("bob", "*")
    for who in ("root", "alice", "bob", agent):
        for command, body in ASKED:
            rest_response = await both.office.call(who, command, body)
            answer = await both.answer(tool(command.replace(".", "__"), **body), who)
            if rest_response.status_code == 404:
                assert answer["error"]["code"] == -32602
            else:
                assert answer["result"]["structuredContent"] == {"status": "ok", **rest_response.json()}, (who, command)


async def test_o13_no_output_is_promised_that_masking_could_break(desk: McpDesk) -> None:
    assert not [tool for tool in await desk.tools("root") if "outputSchema" in tool]


async def test_o15_a_call_that_asks_for_a_task_is_simply_carried_out(desk: McpDesk) -> None:
    params = {"name": "lead__list", "arguments": {"limit": 1}, "task": {"ttl": 60000}}

    result = await desk.result(request("tools/call", params))

    assert "task" not in result
    assert result["structuredContent"]["status"] == "ok"


@every_revision
async def test_o16_the_response_is_the_only_message(desk: McpDesk, revision: str) -> None:
    """Whatever capabilities the client declares, the body of the response is the only message."""
    able = {"sampling": {}, "roots": {"listChanged": True}, "elicitation": {}}
    message = initialize(revision)
    message["params"]["capabilities"] = able
    for tool_call in (message, tool("lead__list", limit=1), tool("lead__create")):
        answer = await desk.send(tool_call, revision=revision)
        assert set(answer.json()) == {"jsonrpc", "id", "result"}


async def test_o19_a_call_is_limited_and_audited_as_over_rest(both: McpDesk) -> None:
    agent = await both.office.agent("alice", "lead.*", label="mailbot")
    lead = await both.office.first_record("lead", "alice", stage="new")
    await both.call_tool(agent, "lead__qualify", id=lead["id"])

    entry = (await both.office.value("root", "audit_entry.list", order=[{"field": "at", "dir": "desc"}], limit=1))[0]
    assert (entry["command"], entry["record_id"], entry["agent"]) == ("lead.qualify", lead["id"], "mailbot")
    assert entry["request_id"]

    for _ in range(token_guess_limit.MAX_UNKNOWN_TOKENS):
        await both.refusal_of(agent, "lead__update", id=lead["id"], contact_email="EMAIL_1")
    rest_response = await both.office.call(agent, "lead.update", {"id": lead["id"], "contact_email": "EMAIL_1"})
    assert rest_response.status_code == 429
    assert (
        await both.refusal_of(agent, "lead__update", id=lead["id"], contact_email="EMAIL_1")
        == rest_response.json()["error"]
    )


async def test_o19_mcp_sends_no_value_that_is_hidden_from_the_caller(both: McpDesk) -> None:
    agent = await both.office.agent("alice", "*")

    answer = await both.send(tool("lead__list"), agent)

    assert "@" not in answer.text
    assert all(
        lead["contact_email"].startswith("EMAIL_") for lead in answer.json()["result"]["structuredContent"]["value"]
    )
    denied_names = (await both.call_tool(agent, "party__list", limit=1))["denied"]
    assert denied_names == ["party.tax_id"]


async def test_o20_an_unavailable_service_is_an_internal_error_with_its_message(
    desk: McpDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run_unavailable(*arguments: object, **options: object) -> object:
        raise Unavailable("the database cannot be reached")

    monkeypatch.setattr(Dispatch, "run", run_unavailable)

    assert await desk.error(tool("lead__get", id="x")) == (-32603, "the database cannot be reached")


@every_revision
async def test_o20_a_fault_of_the_service_is_an_internal_error_without_internals(
    desk: McpDesk, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*arguments: object, **options: object) -> object:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(Dispatch, "run", broken)
    log_text = io.StringIO()
    with redirect_stderr(log_text):
        telemetry.configure()
        answer = await desk.send(tool("lead__get", id="x"), revision=revision)

    (line,) = [json.loads(line) for line in log_text.getvalue().splitlines()]
    assert line["request_id"] == answer.headers["x-request-id"]
    assert answer.status_code == 200
    assert answer.json()["error"] == {"code": -32603, "message": "the service failed; the fault was logged"}
    assert "secret" not in answer.text


async def test_a_list_that_is_too_long_for_one_message_is_refused(
    desk: McpDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await desk.office.agent("alice", "lead.*")
    assert len((await desk.call_tool(agent, "lead__list"))["value"]) == 500

    monkeypatch.setattr(limits, "MAX_MCP_LIST_BYTES", 1 << 17)

    assert "give a limit" in await desk.refusal_of(agent, "lead__list")
    assert len((await desk.call_tool(agent, "lead__list", limit=5))["value"]) == 5
