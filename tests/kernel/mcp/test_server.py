"""The MCP server answers any input with one valid reply, and runs only the called tool."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from countersign.kernel.mcp import tools as mcp
from countersign.kernel.mcp.messages import REVISION_HEADER
from countersign.kernel.mcp.server import EVENTS, Implementation, McpServer, Reply
from countersign.kernel.mcp.tools import Hints, Outcome, Tool, ToolList, UnknownTool

METHODS = ("initialize", "ping", "tools/list", "tools/call", "server/discover", "notifications/initialized", "x")
REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "1999-01-01", "")
PREFIX = "io.modelcontextprotocol/"

json_scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(REVISIONS)
json_values: st.SearchStrategy[Any] = st.recursive(
    json_scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
meta_objects = st.fixed_dictionaries(
    {}, optional={f"{PREFIX}{name}": json_values for name in ("protocolVersion", "clientCapabilities")}
)
request_params = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["echo", "nothing"]) | json_values,
        "arguments": st.dictionaries(st.text(max_size=3), json_values, max_size=2) | json_values,
        "cursor": json_values,
        "protocolVersion": json_values,
        "capabilities": st.just({}) | json_values,
        "clientInfo": st.just({"name": "a", "version": "1"}) | json_values,
        "_meta": meta_objects | json_values,
    },
)
request_messages = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | json_values},
    optional={
        "id": st.integers() | json_values,
        "method": st.sampled_from(METHODS) | json_values,
        "params": request_params | json_values,
    },
)
request_bodies = request_messages | st.lists(request_messages, max_size=3) | json_values
header_sets = st.fixed_dictionaries(
    {},
    optional={
        REVISION_HEADER: st.sampled_from(REVISIONS),
        "accept": st.sampled_from(["application/json", EVENTS, "*/*", ""]),
        "mcp-method": st.sampled_from(METHODS),
        "mcp-name": st.sampled_from(["echo", "=?base64?ZWNobw==?=", "=?base64?x?="]),
    },
)


class EchoServer:
    """The tools of the server under test: one tool, which returns its arguments."""

    async def listed(self, context: str) -> ToolList:
        """Return the list with the one tool."""
        return ToolList([Tool("echo", "Echo", "Says it again.", {"type": "object"}, Hints())])

    async def call(self, context: str, name: str, arguments: bytes, meta: Mapping[str, object]) -> Outcome:
        """Return the arguments of the call as its result."""
        if name != "echo":
            raise UnknownTool(name)
        return mcp.success(arguments)


def reply_to(request_body: object, request_headers: dict[str, str], *, with_2026: bool) -> Reply:
    """Return the server's reply to a JSON body. With `with_2026`, the server supports the revision 2026-07-28."""
    server = McpServer(Implementation("a", "A", "1", "Say something."), EchoServer(), with_2026=with_2026)
    return asyncio.run(server.answer("me", request_headers, json.dumps(request_body).encode()))


@given(request_bodies, header_sets, st.booleans())
def test_every_body_has_one_well_formed_reply(body: object, request_headers: dict[str, str], with_2026: bool) -> None:
    reply = reply_to(body, request_headers, with_2026=with_2026)

    assert reply.status in ((200, 202, 400, 404) if with_2026 else (200, 202, 400))
    if reply.status == 202:
        assert reply.body == b""
        return
    text = reply.body.decode()
    if reply.media_type == EVENTS:
        text = text.removeprefix("event: message\ndata: ")
    reply_messages = json.loads(text)
    for message in reply_messages if isinstance(reply_messages, list) else [reply_messages]:
        assert message["jsonrpc"] == "2.0"
        assert ("result" in message) != ("error" in message)


@given(st.dictionaries(st.text(max_size=4), json_values, max_size=3), st.sampled_from(REVISIONS[:3]))
def test_arguments_reach_the_tool_unchanged(arguments: dict[str, Any], revision: str) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": arguments}}

    result = json.loads(reply_to(request, {REVISION_HEADER: revision}, with_2026=False).body)["result"]

    assert json.loads(result["content"][0]["text"]) == arguments
    assert result.get("structuredContent", arguments) == arguments
