"""MCP over raw HTTP: the requirements for the list of tools, O1 to O5, O14, O17 and O18 of the checklist."""

import json
import re
from typing import Any

import jsonschema
import pytest

from countersign.kernel.mcp.tools import PAGE, ToolList
from countersign.records.commands.command import APPROVAL, is_tool
from tests.records.mcp.desk import REVISIONS, McpDesk, request

every_revision = pytest.mark.parametrize("revision", REVISIONS)

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
COMBINATORS = {"oneOf", "anyOf", "allOf", "not", "if", "$ref", "$defs", "enum", "const"}


async def test_o1_every_tool_has_a_name_a_description_and_a_schema_of_an_object(desk: McpDesk) -> None:
    for tool in await desk.tools("root"):
        assert set(tool) == {"name", "title", "description", "inputSchema", "annotations"}
        assert tool["title"]
        assert tool["description"]
        assert "\n" not in tool["description"]
        assert tool["inputSchema"]["type"] == "object"
        assert isinstance(tool["inputSchema"]["properties"], dict)
        assert tool["inputSchema"]["additionalProperties"] is False


async def test_o2_a_tool_without_arguments_takes_an_empty_object(desk: McpDesk) -> None:
    revoke = next(tool for tool in await desk.tools("root") if tool["name"] == "session__revoke")
    assert "required" not in revoke["inputSchema"]
    assert (await desk.call_tool("alice", "session__revoke"))["status"] == "ok"


def types_in(schema: Any) -> list[Any]:
    """Yield every `type` in a schema."""
    if isinstance(schema, list):
        return [type_name for member in schema for type_name in types_in(member)]
    if not isinstance(schema, dict):
        return []
    return [schema["type"], *types_in(list(schema.values()))] if "type" in schema else types_in(list(schema.values()))


async def test_o3_schemas_are_flat_and_use_the_default_dialect(desk: McpDesk) -> None:
    agent = await desk.office.agent("alice", "*")
    for who in ("root", "alice", agent):
        for tool in await desk.tools(who):
            schema = tool["inputSchema"]
            jsonschema.Draft202012Validator.check_schema(schema)
            assert "$schema" not in schema
            assert not COMBINATORS & schema.keys(), tool["name"]
            assert all(isinstance(kind, str | dict) for kind in types_in(schema)), tool["name"]


def enums_in(schema: Any) -> list[Any]:
    """Yield every `enum` in a schema."""
    if isinstance(schema, list):
        return [values for member in schema for values in enums_in(member)]
    if not isinstance(schema, dict):
        return []
    own_enums = [schema["enum"]] if isinstance(schema.get("enum"), list) else []
    return [*own_enums, *enums_in(list(schema.values()))]


async def test_no_schema_has_an_empty_enum_which_some_clients_refuse(desk: McpDesk) -> None:
    for who in ("root", "carol", await desk.office.agent("root", "product.*")):
        schemas = {tool["name"]: tool["inputSchema"] for tool in await desk.tools(who)}
        assert [name for name, schema in schemas.items() if [] in enums_in(schema)] == []
        assert "product__count_by" in schemas


async def test_o4_tool_names_are_valid_for_every_client_and_unique(desk: McpDesk) -> None:
    names = [tool["name"] for tool in await desk.tools("root")]

    assert all(NAME.fullmatch(name) for name in names)
    assert len({name.lower() for name in names}) == len(names)


@every_revision
async def test_o5_each_caller_is_shown_the_commands_that_the_caller_may_use(both: McpDesk, revision: str) -> None:
    agent = await both.office.agent("alice", "lead.get", "lead.update")
    for who in ("root", "alice", "bob", "carol", agent):
        answer = await both.office.http.get("/api/commands", headers=both.office.headers(who))
        ids = {command["id"] for command in answer.json()["commands"]}
        expected = {id_.replace(".", "__") for id_ in ids if is_tool(*id_.split("."))}
        assert (len(expected) < len(ids)) == (who != agent)
        assert {tool["name"] for tool in await both.tools(who, revision)} == expected
    assert {tool["name"] for tool in await both.tools(agent)} < {tool["name"] for tool in await both.tools("alice")}


async def test_o5_a_schema_names_only_fields_that_the_caller_sees(both: McpDesk) -> None:
    tools_by_caller = {who: await both.tools(who) for who in ("root", "alice", await both.office.agent("alice", "*"))}
    members = {
        who: {tool["name"]: tool["inputSchema"]["properties"] for tool in tools}
        for who, tools in tools_by_caller.items()
    }

    assert "tax_id" in json.dumps(tools_by_caller["root"])
    assert "tax_id" not in json.dumps([tools_by_caller["alice"], tools_by_caller["alice's agent"]])
    masked = members["alice's agent"]["party__create"]["email"]
    assert masked == {"description": "a placeholder token EMAIL_<n>, or new text in clear", "type": "string"}
    assert members["alice"]["party__create"]["email"].get("description") != masked["description"]
    # A field that can be emptied accepts null in updates. In a new record, the field is simply omitted.
    assert {"type": "null"} in members["alice"]["lead__update"]["source"]["anyOf"]
    assert members["alice"]["lead__create"]["source"]["type"] == "string"


SEEN = {"model": "lead", "commands": "get,list,update"}
SIGHTS: dict[str, dict[str, str]] = {
    "first": {"clear": "title,source", "write": "title"},
    "second": {"clear": "title", "masked": "contact_email", "write": "title"},
    "third": {"clear": "title,source", "write": "title,source"},
}


async def test_o5_callers_with_the_same_commands_are_each_shown_their_own_fields(both: McpDesk) -> None:
    fields_by_caller: dict[str, set[str]] = {}
    for name, sight in SIGHTS.items():
        await both.office.person(name, {**SEEN, **sight})
        update = next(tool for tool in await both.tools(name) if tool["name"] == "lead__update")
        fields_by_caller[name] = set(update["inputSchema"]["properties"])

    assert fields_by_caller == {
        "first": {"id", "revision", "title"},
        "second": {"id", "revision", "title"},
        "third": {"id", "revision", "title", "source"},
    }
    tools_by_person = {name: json.dumps(await both.tools(name)) for name in SIGHTS}
    assert "source" in tools_by_person["first"]
    assert "source" not in tools_by_person["second"]


async def test_o5_a_changed_right_of_the_caller_changes_the_next_list(both: McpDesk) -> None:
    agent = await both.office.agent("alice", "lead.*")
    descriptions_before = {tool["name"]: tool["description"] for tool in await both.tools(agent)}

    setting = {"title": "approval:lead.qualify", "value": json.dumps({"n": 1})}
    await both.office.value("root", "setting.create", **setting)

    descriptions_after = {tool["name"]: tool["description"] for tool in await both.tools(agent)}
    assert descriptions_after["lead__qualify"] == f"{descriptions_before['lead__qualify']} {APPROVAL}"
    assert APPROVAL in descriptions_before["lead__delete"]
    assert (
        "approve"
        not in next(tool for tool in await both.tools("alice") if tool["name"] == "lead__delete")["description"]
    )


@every_revision
async def test_o14_a_tool_has_the_members_that_its_revision_knows(desk: McpDesk, revision: str) -> None:
    hints = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    is_first_revision = revision == REVISIONS[0]

    for tool in await desk.tools(revision=revision):
        members = {"name", "description", "inputSchema", "annotations"} | (set() if is_first_revision else {"title"})
        assert set(tool) == members
        assert set(tool["annotations"]) == hints | ({"title"} if is_first_revision else set())


async def test_o14_the_hints_describe_the_effect_of_the_command(desk: McpDesk) -> None:
    hints = {tool["name"]: list(tool["annotations"].values()) for tool in await desk.tools("root")}

    # read only, destructive, idempotent, open world
    reads, adds, replaces = [True, False, True, False], [False, False, False, False], [False, True, True, False]
    for command in ("get", "list", "search", "count_by", "export", "history"):
        assert hints[f"lead__{command}"] == reads
    assert hints["plan__watch"] == reads
    for command in ("create", "import", "qualify"):
        assert hints[f"lead__{command}"] == adds
    for name in ("lead__update", "lead__delete", "session__revoke", "agent_token__revoke"):
        assert hints[name] == replaces


async def test_o17_all_tools_are_on_one_page_and_a_foreign_cursor_is_refused(desk: McpDesk) -> None:
    result = await desk.result(request("tools/list", {}))

    assert "nextCursor" not in result
    assert len(result["tools"]) < PAGE
    for cursor in ("made-up", result["tools"][0]["name"], "0"):
        assert (await desk.error(request("tools/list", {"cursor": cursor})))[0] == -32602
    assert (await desk.error(request("tools/list", {"cursor": 7})))[0] == -32602


@pytest.mark.parametrize("size", [1, 7, 79, 80, 81])
async def test_o17_following_the_pages_leads_to_every_tool_once(
    desk: McpDesk, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_tools = await desk.tools("root")
    agent = await desk.office.agent("root", "*")
    monkeypatch.setattr(ToolList.__init__, "__defaults__", (size,))

    tools: list[dict[str, Any]] = []
    params: dict[str, object] = {}
    while params is not None:
        result = await desk.result(request("tools/list", params), agent)
        assert 0 < len(result["tools"]) <= size
        tools += result["tools"]
        if "nextCursor" not in result:
            break
        params = {"cursor": result["nextCursor"]}

    names = [tool["name"] for tool in tools]
    assert len(set(names)) == len(names)
    assert set(names) <= {tool["name"] for tool in all_tools}
    assert len(names) > 60


async def test_o18_the_order_is_the_same_in_every_call(desk: McpDesk) -> None:
    names = [tool["name"] for tool in await desk.tools()]

    assert names == sorted(names)
    first_body, second_body = [(await desk.send({**request("tools/list"), "id": 1})).content for _ in range(2)]
    assert first_body == second_body
