"""Two servers for the official conformance suite, which sends no token: one with tools made for it, one with records.

    python conformance_server.py tools PORT
    python conformance_server.py records PORT DATA TOKEN

Revision 2026-07-28 is on as well.
"""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import uvicorn

from countersign.kernel.http.app import App, Policy
from countersign.kernel.http.exchange import Scope
from countersign.kernel.http.request import Receive, Send
from countersign.kernel.http.response import Response, encode
from countersign.kernel.mcp import tools as mcp
from countersign.kernel.mcp.messages import JsonRpcError
from countersign.kernel.mcp.server import Implementation, McpServer
from countersign.kernel.mcp.tools import Hints, Outcome, Tool, ToolList, UnknownTool
from countersign.records import app, http, mcp_tools
from tests.records.office import settings

DIALECT = "https://json-schema.org/draft/2020-12/schema"
EMPTY = {"type": "object", "additionalProperties": False}
STREET = {"street": {"type": "string"}, "city": {"type": "string"}}
WAYS = {"contactMethod": {"enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}}
OF_2020_12 = {
    "$schema": DIALECT,
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": STREET}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}, **WAYS},
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
RESOURCE = {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource."}

CONTENT: dict[str, list[dict[str, Any]]] = {
    "test_simple_text": [{"type": "text", "text": "This is a simple text response for testing."}],
    "test_image_content": [IMAGE],
    "test_audio_content": [{"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}],
    "test_embedded_resource": [{"type": "resource", "resource": RESOURCE}],
    "test_multiple_content_types": [
        {"type": "text", "text": "Multiple content types test:"},
        IMAGE,
        {"type": "resource", "resource": RESOURCE},
    ],
    "json_schema_2020_12_tool": [{"type": "text", "text": "done"}],
    # These would do more if the server sent messages on its own.
    "test_logging_tool": [{"type": "text", "text": "done"}],
    "test_streaming_elicitation": [{"type": "text", "text": "done"}],
}
FAILING = "test_error_handling"
DEMANDING = "test_missing_capability"
MISSING_CAPABILITY = -32021


class FixtureTools:
    """The tools that the suite calls by name."""

    async def listed(self, context: http.RecordsRequest) -> ToolList:
        """Return all of them."""
        return ToolList(
            Tool(name, name, f"Answers with {name}.", OF_2020_12 if name.startswith("json") else EMPTY, Hints())
            for name in (*CONTENT, FAILING, DEMANDING)
        )

    async def call(
        self, context: http.RecordsRequest, name: str, arguments: bytes, meta: Mapping[str, object]
    ) -> Outcome:
        """Return the result that the suite expects of each."""
        if name == FAILING:
            return mcp.failure("This tool intentionally returns an error for testing")
        if name == DEMANDING:
            data = {"requiredCapabilities": {"sampling": {}}}
            raise JsonRpcError(MISSING_CAPABILITY, "the client cannot sample", status=400, data=data)
        if name not in CONTENT:
            raise UnknownTool(name)
        return Outcome(encode(CONTENT[name]))


async def serve(application: Any, port: int) -> None:
    """Serve on loopback until the process ends."""
    await uvicorn.Server(uvicorn.Config(application, port=port, log_level="warning")).serve()


async def serve_tools(port: int) -> None:
    """Serve the protocol alone, behind the HTTP layer of the records service."""
    server = McpServer(Implementation("fixtures", "Fixtures", "1", "Call them."), FixtureTools(), with_2026=True)

    async def answer(call: http.RecordsRequest) -> Response:
        """Answer one message."""
        reply = await server.answer(call, call.headers, call.body)
        return Response(reply.status, reply.body, reply.media_type)

    route = http.route("POST", "/mcp", answer, signed_in=False, guard=mcp_tools.guard_of(f"http://127.0.0.1:{port}"))
    unused_service = cast("Any", None)
    application = App(
        (route,),
        unused_service,
        database=unused_service,
        authenticator=http.BearerAuthentication(unused_service),
        limiter=None,
        versions=unused_service,
        policy=Policy(http.render_error, "", "records", cache_control="no-store"),
    )
    await serve(application, port)


async def serve_records(port: int, data: str, token: str) -> None:
    """Serve the real service; every request gets the token."""
    server_settings = replace(settings(data), mcp_2026=True)
    async with app.open_records(server_settings, f"http://127.0.0.1:{port}", is_loopback=True) as service:
        records = app.create(service)

        async def with_token(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                signed_headers = [*scope["headers"], (b"authorization", b"Bearer " + token.encode())]
                await records({**scope, "headers": signed_headers}, receive, send)

        await serve(with_token, port)


if __name__ == "__main__":
    kind, wanted, *rest = sys.argv[1:]
    asyncio.run(serve_tools(int(wanted)) if kind == "tools" else serve_records(int(wanted), *rest))
