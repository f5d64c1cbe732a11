"""Sends the same requests over REST or over MCP to a world (a built test database), and interprets the responses."""

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import httpx

from tests.records.worlds.asking import GeneratedRequest
from tests.records.worlds.building import OpenWorld

DOCUMENTS = ("/api/commands", "/api/meta", "/api/openapi.json")
WITHOUT_TOOL = ("/api/auth/", "/api/approve/")
REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25")


class ResponseMeaning(NamedTuple):
    """The meaning of a response, the same for REST and MCP: the status and the body of the REST response."""

    status: int
    body: Any


class Transport(Protocol):
    """Sends requests to a world."""

    async def ask(
        self, world: OpenWorld, who: str, asked: GeneratedRequest, tokens: Sequence[tuple[str, str]]
    ) -> httpx.Response:
        """Send the request to one world and return the response. `tokens` are the tokens of this world, each with its
        counterpart in the other world."""
        ...

    def meaning_of(self, asked: GeneratedRequest, answer: httpx.Response) -> ResponseMeaning:
        """Return the meaning of the response."""
        ...


class RestTransport:
    """Sends every request over REST."""

    async def ask(
        self, world: OpenWorld, who: str, asked: GeneratedRequest, tokens: Sequence[tuple[str, str]]
    ) -> httpx.Response:
        """Send the request over REST."""
        headers = {"Authorization": f"Bearer {world.tokens[who]}", "Accept": asked.accept, **asked.headers}
        if asked.key:
            headers["Idempotency-Key"] = asked.key
        if asked.body is None and asked.raw is None:
            return await world.http.request(asked.method or "GET", asked.path, headers=headers)
        headers.setdefault("Content-Type", "application/json")
        content = asked.content(tokens) if asked.raw is None else asked.raw
        return await world.http.request(asked.method or "POST", asked.path, content=content, headers=headers)

    def meaning_of(self, asked: GeneratedRequest, answer: httpx.Response) -> ResponseMeaning:
        """Return the status and the body of the response."""
        is_json = answer.headers.get("content-type") == "application/json" and answer.content
        return ResponseMeaning(answer.status_code, answer.json() if is_json else None)


class McpTransport(RestTransport):
    """Sends each command as a tool call, and each request for a description as `tools/list`. The requests use different
    revisions of MCP. Requests without a tool (tokens, approvals) are sent over REST."""

    async def ask(
        self, world: OpenWorld, who: str, asked: GeneratedRequest, tokens: Sequence[tuple[str, str]]
    ) -> httpx.Response:
        """Send the request over MCP."""
        if asked.path.startswith(WITHOUT_TOOL):
            return await super().ask(world, who, asked, tokens)
        headers = {
            "Authorization": f"Bearer {world.tokens[who]}",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": REVISIONS[zlib.crc32((asked.path + asked.body_text()).encode()) % 3],
            **asked.headers,
        }
        method = asked.method or "POST"
        return await world.http.request(method, "/mcp", content=_message(asked, tokens), headers=headers)

    def meaning_of(self, asked: GeneratedRequest, answer: httpx.Response) -> ResponseMeaning:
        """Return the envelope or the proposal in the result of a tool call, the status 400 for a refusal, and the
        status 404 for an unknown tool."""
        rest_meaning = super().meaning_of(asked, answer)
        if asked.path.startswith(WITHOUT_TOOL) or rest_meaning.status != 200:
            return rest_meaning
        if "error" in rest_meaning.body:
            return ResponseMeaning(404, rest_meaning.body["error"])
        result = rest_meaning.body["result"]
        if "tools" in result:
            return ResponseMeaning(200, result)
        if result["isError"]:
            return ResponseMeaning(400, result)
        body = httpx.Response(200, content=result["content"][0]["text"].encode()).json()
        return ResponseMeaning(202 if body["status"] == "approval_required" else 200, body)


def _message(asked: GeneratedRequest, tokens: Sequence[tuple[str, str]]) -> bytes:
    if asked.path in DOCUMENTS:
        return b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    name = "__".join(asked.path.removeprefix("/api/").split("/"))
    arguments = b"{}" if asked.body is None and asked.raw is None else asked.raw
    if arguments is None:
        arguments = asked.content(tokens)
    meta = b'"_meta":{"idempotency-key":"%b"},' % asked.key.encode() if asked.key else b""
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%b"name":"%b","arguments":%b}}'
    return call % (meta, name.encode(), arguments)


REST = RestTransport()
MCP = McpTransport()
