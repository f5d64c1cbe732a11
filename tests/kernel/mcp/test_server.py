"""The whole server: any input gets one valid reply, and only the called tool runs."""

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

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(REVISIONS)
anything: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
metas = st.fixed_dictionaries(
    {}, optional={f"{PREFIX}{name}": anything for name in ("protocolVersion", "clientCapabilities")}
)
params = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["echo", "nothing"]) | anything,
        "arguments": st.dictionaries(st.text(max_size=3), anything, max_size=2) | anything,
        "cursor": anything,
        "protocolVersion": anything,
        "capabilities": st.just({}) | anything,
        "clientInfo": st.just({"name": "a", "version": "1"}) | anything,
        "_meta": metas | anything,
    },
)
messages = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | anything},
    optional={
        "id": st.integers() | anything,
        "method": st.sampled_from(METHODS) | anything,
        "params": params | anything,
    },
)
bodies = messages | st.lists(messages, max_size=3) | anything
headers = st.fixed_dictionaries(
    {},
    optional={
        REVISION_HEADER: st.sampled_from(REVISIONS),
        "accept": st.sampled_from(["application/json", EVENTS, "*/*", ""]),
        "mcp-method": st.sampled_from(METHODS),
        "mcp-name": st.sampled_from(["echo", "=?base64?ZWNobw==?=", "=?base64?x?="]),
    },
)


class EchoServer:
    """A server with one tool, which returns its arguments."""

    async def listed(self, context: str) -> ToolList:
        """Return the tool."""
        return ToolList([Tool("echo", "Echo", "Says it again.", {"type": "object"}, Hints())])

    async def call(self, context: str, name: str, arguments: bytes, meta: Mapping[str, object]) -> Outcome:
        """Return the arguments."""
        if name != "echo":
            raise UnknownTool(name)
        return mcp.answered(arguments)


def reply_to(body: object, sent: dict[str, str], *, with_2026: bool) -> Reply:
    """Return the server's reply."""
    server = McpServer(Implementation("a", "A", "1", "Say something."), EchoServer(), with_2026=with_2026)
    return asyncio.run(server.answer("me", sent, json.dumps(body).encode()))


@given(bodies, headers, st.booleans())
def test_every_body_has_one_well_formed_reply(body: object, sent: dict[str, str], with_2026: bool) -> None:
    reply = reply_to(body, sent, with_2026=with_2026)

    assert reply.status in ((200, 202, 400, 404) if with_2026 else (200, 202, 400))
    if reply.status == 202:
        assert reply.body == b""
        return
    text = reply.body.decode()
    if reply.media_type == EVENTS:
        text = text.removeprefix("event: message\ndata: ")
    answers = json.loads(text)
    for answer in answers if isinstance(answers, list) else [answers]:
        assert answer["jsonrpc"] == "2.0"
        assert ("result" in answer) != ("error" in answer)


@given(st.dictionaries(st.text(max_size=4), anything, max_size=3), st.sampled_from(REVISIONS[:3]))
def test_arguments_reach_the_tool_as_they_were_sent(arguments: dict[str, Any], revision: str) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": arguments}}

    result = json.loads(reply_to(call, {REVISION_HEADER: revision}, with_2026=False).body)["result"]

    assert json.loads(result["content"][0]["text"]) == arguments
    assert result.get("structuredContent", arguments) == arguments
