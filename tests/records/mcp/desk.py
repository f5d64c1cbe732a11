"""An MCP client of an office's records service, which validates every response against the schema of its revision."""

import json
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

import httpx
import jsonschema

from tests.kernel.mcp import published
from tests.records.office import Office

REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25")
NEW = "2025-11-25"
MODERN = "2026-07-28"
BOTH = "application/json, text/event-stream"
CLIENT = {"name": "a test", "version": "1"}

_ids = count(1)


def request(method: str, params: object = None, **members: object) -> dict[str, Any]:
    """Return a request with a new id."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": next(_ids), "method": method, **members}
    return message if params is None else {**message, "params": params}


def tool(name: str, /, **arguments: object) -> dict[str, Any]:
    """Return a request that calls a tool."""
    return request("tools/call", {"name": name, "arguments": arguments})


def initialize(revision: str) -> dict[str, Any]:
    """Return the request of a handshake."""
    return request("initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": CLIENT})


@dataclass
class McpDesk:
    """Sends MCP requests to an office."""

    office: Office

    async def send(
        self, body: object, who: str = "alice", revision: str | None = NEW, *, accept: str | None = BOTH, **headers: str
    ) -> httpx.Response:
        """POST a body. Bytes are sent unchanged. Names of `headers` are written with _ instead of -, and an empty
        header is omitted."""
        all_headers = {
            "content-type": "application/json",
            "accept": accept or "",
            "mcp-protocol-version": revision or "",
            "authorization": self.office.headers(who)["Authorization"] if who else "",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        http_request = httpx.Request(
            "POST",
            self.office.http.base_url.join("/mcp"),
            content=content,
            headers={name: value for name, value in all_headers.items() if value},
        )
        answer = await self.office.http.send(http_request)
        _hold(body, answer, revision or REVISIONS[0])
        return answer

    async def answer(self, message: dict[str, Any], who: str = "alice", revision: str | None = NEW) -> dict[str, Any]:
        """Return the response to one request. It must have the status 200 and the id of the request."""
        response = await self.send(message, who, revision)
        assert response.status_code == 200, response.text
        assert response.json()["id"] == message["id"]
        return cast("dict[str, Any]", response.json())

    async def result(self, message: dict[str, Any], who: str = "alice", revision: str | None = NEW) -> dict[str, Any]:
        """Return the result of one request."""
        answer = await self.answer(message, who, revision)
        assert "result" in answer, answer
        return cast("dict[str, Any]", answer["result"])

    async def error(self, message: dict[str, Any], who: str = "alice", revision: str | None = NEW) -> tuple[int, str]:
        """Return the code and the text of the error response to one request."""
        answer = await self.answer(message, who, revision)
        assert "error" in answer, answer
        return answer["error"]["code"], answer["error"]["message"]

    async def tools(self, who: str = "alice", revision: str | None = NEW) -> list[dict[str, Any]]:
        """Return the tools in the list for a caller."""
        return cast("list[dict[str, Any]]", (await self.result(request("tools/list"), who, revision))["tools"])

    async def call_tool(self, who: str, name: str, /, **arguments: object) -> dict[str, Any]:
        """Return the structured content of the successful result of a tool."""
        # List the tools before the call, because the call may end the caller's session.
        tool_found = next(
            (described_tool for described_tool in await self.tools(who) if described_tool["name"] == name), {}
        )
        result = await self.result(tool(name, **arguments), who)
        assert result["isError"] is False, result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        if "outputSchema" in tool_found:
            schema = jsonschema.Draft202012Validator(
                tool_found["outputSchema"], format_checker=jsonschema.FormatChecker()
            )
            schema.validate(result["structuredContent"])
        return cast("dict[str, Any]", result["structuredContent"])

    async def refusal_of(self, who: str, name: str, /, **arguments: object) -> str:
        """Return the reason for which a tool refuses its input."""
        result = await self.result(tool(name, **arguments), who)
        assert result["isError"] is True, result
        assert [block["type"] for block in result["content"]] == ["text"]
        return cast("str", result["content"][0]["text"])


def _hold(body: object, answer: httpx.Response, revision: str) -> None:
    """Require that every message of the response matches its revision, and that no session was opened."""
    assert "mcp-session-id" not in answer.headers
    if not answer.content or answer.headers["content-type"] != "application/json":
        return
    messages = answer.json() if isinstance(answer.json(), list) else [answer.json()]
    methods = {str(message.get("id")): message.get("method") for message in _sent(body) if isinstance(message, dict)}
    for message in messages:
        if "jsonrpc" in message:
            spoken_revision = (
                message["result"]["protocolVersion"] if "protocolVersion" in message.get("result", {}) else revision
            )
            spoken_revision = spoken_revision if spoken_revision in (*REVISIONS, MODERN) else NEW
            published.check(spoken_revision, str(methods.get(str(message.get("id")))), message)


def _sent(body: object) -> list[Any]:
    if isinstance(body, bytes):
        try:
            body = json.loads(body)
        except (ValueError, RecursionError):
            return []
    return cast("list[Any]", body) if isinstance(body, list) else [body]
