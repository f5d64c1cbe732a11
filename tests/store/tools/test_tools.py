"""The tools of the store: generated from its routes, listed by scope, and called like routes over HTTP."""

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from countersign.kernel.errors import Unavailable
from countersign.kernel.http.response import JSON
from countersign.store.app import ROUTES
from countersign.store.mcp_tools import NAMES
from tests.contract.scenes import all_rows
from tests.records.mcp.desk import REVISIONS, McpDesk, request, tool
from tests.store.releases.test_lifecycle import file_row
from tests.store.tools.conftest import world_of

every_revision = pytest.mark.parametrize("revision", REVISIONS)

PUBLIC = {"get_health", "get_info", "list_products", "get_product", "list_releases", "run_batch", "search_catalog"}
COMBINATORS = {"oneOf", "anyOf", "allOf", "not", "if", "$ref", "$defs", "enum", "const"}
# These are read before a client uses MCP, or in its handshake.
NOT_OFFERED = ("/.well-known/", "/auth", "/api/keys", "/openapi", "/wiki", "/llms")


def test_every_documented_operation_is_a_tool_or_has_a_reason_not_to_be() -> None:
    for route in ROUTES:
        if route.documented and not route.streams and not route.own_credentials and JSON in route.produces:
            is_left_out = route.path.startswith(NOT_OFFERED) or (route.method, route.path) == ("GET", "/ask")
            assert ((route.method, route.path) in NAMES) != is_left_out, route.path


async def test_o1_to_o4_tools_are_valid_for_every_client(desk: McpDesk) -> None:
    tools = await desk.tools("alice")
    assert len({tool["name"] for tool in tools}) == len(tools)
    for described_tool in tools:
        schema = described_tool["inputSchema"]
        jsonschema.Draft202012Validator.check_schema(schema)
        assert re.fullmatch(r"[a-z_]{1,48}", described_tool["name"])
        assert described_tool["description"]
        assert "\n" not in json.dumps(described_tool)
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        assert not COMBINATORS & schema.keys()
        assert "$ref" not in json.dumps(schema)
        assert "anyOf" not in json.dumps(schema)


def _members(schema: dict[str, Any], member_place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every member that the schema describes, with its position."""
    for name, member in schema.get("properties", {}).items():
        yield f"{member_place}.{name}", member
        yield from _members(member, f"{member_place}.{name}")
        yield from _members(member.get("items", {}), f"{member_place}.{name}")


async def test_every_argument_is_described(desk: McpDesk) -> None:
    for described_tool in await desk.tools("alice"):
        for member_place, member in _members(described_tool["inputSchema"], described_tool["name"]):
            assert member.get("description"), member_place


async def test_every_answer_keeps_to_the_output_schema_of_its_tool(both: McpDesk) -> None:
    world, owner = world_of(both), both.office.tokens["alice"]
    await world.call("POST", "/products/saga/releases", owner, json={"version": "1.0", "channel": "beta"})
    content = b"a build"
    announced_body = (
        await world.call(
            "POST", "/products/saga/releases/1.0/artifacts", owner, json={"filename": "a.bin", "size": len(content)}
        )
    ).json()
    await world.http.put(announced_body["upload_url"], content=content)
    await file_row(world, announced_body["artifact_id"])
    await world.call("POST", "/products/saga/releases/1.0/publish", owner)
    batch = {"kind": "license", "products": ["saga"], "count": 1}
    (code,) = (await world.call("POST", "/codes", owner, json=batch)).json()["codes"]
    job = {"type": "artifact.verify", "payload": {"artifact_id": announced_body["artifact_id"]}}
    calls: dict[str, dict[str, Any]] = {
        **{
            name: {}
            for name in ("get_health", "get_info", "get_sandbox", "get_sandbox_health", "get_sandbox_telemetry")
        },
        "list_products": {"limit": 1},
        "get_product": {"id": "saga"},
        "list_releases": {"id": "saga"},
        "redeem_code": {"code": code},
        "get_library": {},
        "run_batch": {"operations": [{"method": "GET", "path": "/products/saga/releases"}]},
        "create_job": job,
        "ask": {"query": "What is the newest release of Saga?"},
        "search_catalog": {"where": {"kind": {"any": ["game"]}}, "answer": "count"},
    }
    tools_by_name = {tool["name"]: tool for tool in await both.tools("alice")}
    assert tools_by_name.keys() == calls.keys() | {"get_job"}
    for tools in tools_by_name.values():
        assert tools["outputSchema"]["type"] == "object"
        assert "$ref" not in json.dumps(tools["outputSchema"])
        jsonschema.Draft202012Validator.check_schema(tools["outputSchema"])

    # `called` validates each response against the schema.
    answers = {name: await both.call_tool("alice", name, **arguments) for name, arguments in calls.items()}

    assert answers["list_releases"]["items"][0]["artifacts"]
    assert (await both.call_tool("alice", "get_job", job_id=answers["create_job"]["job_id"]))[
        "type"
    ] == "artifact.verify"
    assert all("outputSchema" not in tool for tool in await both.tools("alice", REVISIONS[0]))


async def test_schemas_hold_path_query_and_body_side_by_side(desk: McpDesk) -> None:
    schemas = {tool["name"]: tool["inputSchema"] for tool in await desk.tools("alice")}

    assert set(schemas["list_releases"]["properties"]) == {"id", "channel", "limit", "cursor"}
    assert schemas["list_releases"]["required"] == ["id"]
    assert schemas["list_products"]["properties"]["limit"]["maximum"] == 100
    assert schemas["redeem_code"]["required"] == ["code"]
    assert set(schemas["redeem_code"]["properties"]) == {"code", "idempotency_key"}
    assert schemas["run_batch"]["properties"]["operations"]["items"]["properties"]["method"]["enum"]
    assert schemas["get_info"] == {"type": "object", "properties": {}, "additionalProperties": False}


@every_revision
async def test_o5_each_caller_is_shown_the_tools_that_the_token_allows(both: McpDesk, revision: str) -> None:
    names_by_caller = {
        who: {tool["name"] for tool in await both.tools(who, revision)} for who in ("", "alice", "carol", "reader")
    }
    names_by_caller = {
        who: names - {"ask"} - {name for name in names if "sandbox" in name} for who, names in names_by_caller.items()
    }

    assert names_by_caller[""] == PUBLIC
    assert names_by_caller["reader"] == PUBLIC | {"get_job"}
    assert names_by_caller["carol"] == PUBLIC | {"get_job", "get_library", "redeem_code"}
    assert names_by_caller["alice"] == PUBLIC | {"get_job", "get_library", "redeem_code", "create_job"}


@every_revision
async def test_o6_a_tool_that_the_token_does_not_reach_is_unknown(both: McpDesk, revision: str) -> None:
    rows_before = await all_rows(world_of(both).store)
    for who, name in (("reader", "get_library"), ("reader", "redeem_code"), ("carol", "create_job")):
        for arguments in ({}, {"code": "A"}, {"no_such": 1}):
            assert await both.error(tool(name, **arguments), who, revision) == (-32602, f"Unknown tool: {name}")
    for name in ("fly", "", "list_products ", "LIST_PRODUCTS", "POST /products", "x" * 9000):
        assert await both.error(tool(name), "alice", revision) == (-32602, f"Unknown tool: {name}")
    assert await all_rows(world_of(both).store) == rows_before


@pytest.mark.parametrize(("name", "scope"), [("redeem_code", "read:library"), ("get_job", None)])
async def test_a_call_without_its_required_token_is_answered_with_how_to_get_a_token(
    desk: McpDesk, name: str, scope: str | None
) -> None:
    http = desk.office.http
    key = (await http.get("/api/keys?tier=agent")).json()["api_key"]

    for headers in ({}, {"X-API-Key": key}):
        answer = await http.post("/mcp", json=request("tools/call", {"name": name}), headers=headers)
        challenge = answer.headers["www-authenticate"]
        assert answer.status_code == 401
        assert ('scope="read:library"' in challenge) == (scope is not None)
        metadata = (await http.get(challenge.partition('resource_metadata="')[2].partition('"')[0])).json()
        assert metadata["resource"] == "http://127.0.0.1:8480/mcp"
        assert (await http.get(f"{metadata['authorization_servers'][0]}/auth.md")).status_code == 200
        assert answer.headers["link"] == '<http://127.0.0.1:8480/auth.md>; rel="service-doc"'


async def test_in_a_batch_a_call_that_needs_a_token_is_an_error_beside_the_other_answers(desk: McpDesk) -> None:
    batch = [tool("get_library"), tool("get_info")]
    answer = await desk.office.http.post("/mcp", json=batch)

    refused_entry, answered_entry = answer.json()
    assert answer.status_code == 200
    assert refused_entry["error"] == {"code": -32602, "message": "the tool get_library needs a token"}
    assert answered_entry["result"]["isError"] is False


@pytest.mark.parametrize("content_type", ["text/plain", "", "application/json"])
async def test_a_token_that_does_not_hold_is_refused_before_the_media_type(desk: McpDesk, content_type: str) -> None:
    headers = {"Authorization": "Bearer made-up", "Content-Type": content_type}
    answer = await desk.office.http.post("/mcp", content=b"x", headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (401, "invalid_token")


@every_revision
async def test_o7_and_o8_arguments_may_be_left_out_and_must_be_an_object(desk: McpDesk, revision: str) -> None:
    for params in ({"name": "get_info"}, {"name": "get_info", "arguments": None}, {"name": "get_info", "_meta": {}}):
        assert (await desk.result(request("tools/call", params), revision=revision))["isError"] is False
    for bad_arguments in ([], "{}", 7, True):
        params = {"name": "get_info", "arguments": bad_arguments}
        assert (await desk.error(request("tools/call", params), revision=revision))[0] == -32602


async def test_a_tool_returns_the_same_answer_as_http(both: McpDesk) -> None:
    world = world_of(both)
    await world.grant("carol@example.com", await world.product("north", "second"))
    pairs: list[tuple[str, str, dict[str, Any], str]] = [
        ("", "list_products", {"limit": 1, "kind": "game"}, "/products?limit=1&kind=game"),
        ("", "list_products", {"q": "sägä & co?", "limit": None}, "/products?q=s%C3%A4g%C3%A4+%26+co%3F"),
        ("", "get_product", {"id": "saga"}, "/products/saga"),
        ("", "list_releases", {"id": "saga", "limit": 2}, "/products/saga/releases?limit=2"),
        ("carol", "get_library", {}, "/library"),
        ("", "get_info", {}, "/info"),
    ]
    for who, name, arguments, path in pairs:
        single_response = await world.http.get(f"/api/v1{path}", headers=both.office.headers(who) if who else {})
        body = single_response.json()
        expected = {"items": body, "next_cursor": None} if isinstance(body, list) else body
        assert await both.call_tool(who, name, **arguments) == expected, name


async def test_pages_of_an_array_are_followed_by_their_cursor(both: McpDesk) -> None:
    world = world_of(both)
    await world.grant("carol@example.com", *[await world.product("north", f"game-{number}") for number in range(5)])
    slugs: list[str] = []
    cursor = None
    while True:
        page = await both.call_tool("carol", "get_library", limit=2, cursor=cursor)
        slugs += [item["slug"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert sorted(slugs) == [f"game-{number}" for number in range(5)]


@every_revision
async def test_o9_a_refusal_is_a_result_with_its_message_and_its_remedy(both: McpDesk, revision: str) -> None:
    for name, arguments, path, options in (
        ("get_product", {"id": "nothing"}, "/products/nothing", {}),
        ("get_product", {"id": "../library"}, "/products/..%2Flibrary", {}),
        ("list_products", {"limit": 0}, "/products?limit=0", {}),
        ("list_products", {"limit": True}, "/products?limit=true", {}),
        ("list_products", {"cursor": "x"}, "/products?cursor=x", {}),
        ("redeem_code", {"code": "AAAA"}, "/redeem", {"json": {"code": "AAAA"}}),
        ("redeem_code", {"code": 7}, "/redeem", {"json": {"code": 7}}),
        ("redeem_code", {}, "/redeem", {"json": {}}),
        ("create_job", {"type": "x", "payload": {}}, "/jobs", {"json": {"type": "x", "payload": {}}}),
    ):
        method = "POST" if options else "GET"
        alone_response = await both.office.http.request(
            method, f"/api/v1{path}", headers=both.office.headers("alice"), **options
        )
        problem = alone_response.json()
        result = await both.result(tool(name, **arguments), revision=revision)
        assert (result["isError"], "structuredContent" in result) == (True, False), name
        texts = [problem["detail"], *([problem["resolution"]] if "resolution" in problem else [])]
        assert result["content"] == [{"type": "text", "text": "\n".join(texts)}]


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("get_product", {}, "id: is required and must be a string"),
    ("get_product", {"id": 7}, "id: is required and must be a string"),
    ("get_product", {"id": ""}, "id: is required and must be a string"),
    ("get_product", {"id": "a\x00"}, "id: must not contain NUL or lone surrogates"),
    (
        "search_catalog",
        {"where": {"product": {"any": ["a\x00"]}}},
        "a text contains NUL or an unpaired surrogate",
    ),
    ("get_product", {"id": "saga", "format": "html"}, "format: is unknown here (known: id)"),
    ("list_products", {"q": ["a"]}, "q: must be a string, a number, true or false"),
    ("list_products", {"q": {"a": 1}}, "q: must be a string, a number, true or false"),
    ("redeem_code", {"code": "A", "idempotency_key": 7}, "idempotency_key: must be a UUID"),
    ("redeem_code", {"code": "A", "idempotency_key": "a\r\nAuthorization: x"}, "idempotency_key: must be a UUID"),
]


@pytest.mark.parametrize(("name", "arguments", "reason"), BAD)
async def test_o9_an_argument_that_cannot_be_sent_is_refused_by_its_name(
    desk: McpDesk, name: str, arguments: dict[str, Any], reason: str
) -> None:
    assert await desk.refusal_of("alice", name, **arguments) == reason


async def test_the_error_for_an_unknown_argument_lists_the_known_arguments(desk: McpDesk) -> None:
    reason = await desk.refusal_of("alice", "list_products", authorization="x")

    assert reason.startswith("authorization: is unknown here (known: ")
    assert {"kind", "platform", "limit", "cursor"} <= set(reason.removesuffix(")").split(": ")[-1].split(", "))


async def test_an_argument_never_leaves_its_place_in_the_address(desk: McpDesk) -> None:
    """The name of a product could form another address or other parameters."""
    for name in (
        "saga/releases",
        "saga?limit=1",
        "saga#x",
        "..",
        ".",
        "../products",
        "%2e%2e",
        "saga%2Freleases",
        "a b",
    ):
        reason = await desk.refusal_of("alice", "get_product", id=name)
        assert reason.startswith("no such product") or "product" in reason, (name, reason)
    assert "limit" not in await desk.refusal_of("alice", "list_products", q="", limit=5)


async def test_a_call_with_a_key_has_its_effect_once(both: McpDesk) -> None:
    world = world_of(both)
    body = {"kind": "license", "products": ["saga"], "count": 1}
    owner = both.office.tokens["alice"]
    (code,) = (await world.call("POST", "/codes", owner, json=body)).json()["codes"]
    key = str(uuid.uuid4())

    first_result = await both.call_tool("carol", "redeem_code", code=code, idempotency_key=key)
    second_result = await both.call_tool("carol", "redeem_code", code=code, idempotency_key=key)
    other_refusal = await both.refusal_of("carol", "redeem_code", code="ZZZZ", idempotency_key=key)

    assert first_result == second_result
    assert first_result["success"] is True
    assert "used for a different request" in other_refusal
    assert [item["slug"] for item in (await both.call_tool("carol", "get_library"))["items"]] == ["saga"]


@pytest.mark.parametrize("mode", ["parallel", "atomic"])
async def test_a_batch_is_run_by_its_tool(both: McpDesk, mode: str) -> None:
    product = {"slug": "new", "title": "New", "kind": "game", "platforms": ["linux"]}
    operations = [
        {"method": "POST", "path": "/products", "body": product},
        {"method": "GET", "path": "/products/nothing"},
    ]

    batch_result = await both.call_tool("alice", "run_batch", operations=operations, mode=mode)
    nested = await both.call_tool(
        "alice", "run_batch", operations=[{"method": "POST", "path": "/batch", "body": {"operations": operations}}]
    )

    statuses = [result["status"] for result in batch_result["results"]]
    assert statuses == ([201, 404] if mode == "parallel" else [424, 404])
    product_result = await both.result(tool("get_product", id="new"))
    assert product_result["isError"] == (mode == "atomic")
    assert nested["results"][0]["body"]["code"] == "not_batchable"


@every_revision
async def test_o11_and_o12_structured_content_is_beside_the_text(desk: McpDesk, revision: str) -> None:
    result = await desk.result(tool("list_releases", id="saga"), revision=revision)

    (block,) = result["content"]
    assert json.loads(block["text"]) == {"items": [], "next_cursor": None}
    assert ("structuredContent" in result) == (revision != REVISIONS[0])


async def test_o14_the_hints_describe_the_effect_of_the_tool(desk: McpDesk) -> None:
    hints = {tool["name"]: list(tool["annotations"].values()) for tool in await desk.tools("alice")}

    # read only, destructive, idempotent, open world
    assert hints["get_product"] == hints["get_library"] == [True, False, True, False]
    assert hints["ask"] == [True, False, True, False]
    assert hints["redeem_code"] == hints["create_job"] == [False, False, False, False]
    assert hints["run_batch"] == [False, True, False, False]


async def test_o17_and_o18_one_page_in_the_same_order(desk: McpDesk) -> None:
    names = [tool["name"] for tool in await desk.tools()]

    assert names == sorted(names)
    assert (await desk.error(request("tools/list", {"cursor": "made-up"})))[0] == -32602


async def test_o20_an_unavailable_database_is_an_internal_error(desk: McpDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    store = world_of(desk).store

    async def fetch_unavailable(*arguments: object) -> object:
        raise Unavailable("the database cannot be reached")

    async def broken(*arguments: object) -> object:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(store.database, "fetch_one", fetch_unavailable)
    assert await desk.error(tool("get_product", id="saga"), "") == (-32603, "the database cannot be reached")
    monkeypatch.setattr(store.database, "fetch_one", broken)
    code, error_text = await desk.error(tool("get_product", id="saga"), "")
    assert (code, "secret" in error_text) == (-32603, False)


async def test_o19_every_call_counts_against_the_limit(limited_desk: McpDesk) -> None:
    """This includes the calls of one batch, which the first revision supports."""
    answer = await limited_desk.send([tool("get_info") for _ in range(20)], "", REVISIONS[0])

    error_flags = [reply["result"]["isError"] for reply in answer.json()]
    assert error_flags == [False] * 9 + [True] * 11
    assert (await limited_desk.send(request("ping"), "")).status_code == 429
