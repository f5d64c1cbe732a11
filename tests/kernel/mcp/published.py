"""Validates every message of a server against the published schema of its revision, and against the types of the
official SDK."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from mcp_types import methods

SCHEMAS = Path(__file__).parent / "schemas"
RESULTS = {
    "initialize": "InitializeResult",
    "ping": "EmptyResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "server/discover": "DiscoverResult",
}
FIRST = "2025-03-26"
MEMBERS = {"tools/list": {"title", "outputSchema", "icons", "execution"}, "tools/call": {"structuredContent"}}
"""Members that the first revision does not have."""


def check(revision: str, method: str, message: dict[str, Any]) -> None:
    """Raise an error if the response to a request with this method does not match the revision."""
    assert message["jsonrpc"] == "2.0"
    assert ("result" in message) != ("error" in message), message
    assert "id" not in message or isinstance(message["id"], str | int)
    if "error" in message:
        assert isinstance(message["error"]["code"], int)
        assert isinstance(message["error"]["message"], str)
        # Before 2025-11-25, the schema had no error without an id, although the text of the specification permits one.
        if "id" in message or revision >= "2025-11-25":
            _against(revision, ("JSONRPCErrorResponse", "JSONRPCError"), message)
        return
    assert "id" in message
    methods.validate_server_result(method, revision, message["result"])
    _against(revision, ("JSONRPCResultResponse", "JSONRPCResponse"), message)
    _against(revision, (RESULTS[method],), message["result"])
    if revision == FIRST:
        members = MEMBERS.get(method, set())
        for tool in message["result"].get("tools", [message["result"]]):
            assert not members & tool.keys()


@cache
def _schema(revision: str) -> dict[str, Any]:
    return json.loads((SCHEMAS / f"schema-{revision}.json").read_text())


@cache
def _validator(revision: str, name: str) -> Any:
    schema = _schema(revision)
    kind = jsonschema.Draft202012Validator if "$defs" in schema else jsonschema.Draft7Validator
    definitions_key = "$defs" if "$defs" in schema else "definitions"
    return kind(
        {**schema, "$ref": f"#/{definitions_key}/{name}"}
        if definitions_key == "$defs"
        else _definition_schema(schema, name)
    )


def _definition_schema(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the draft-07 schema of one definition. In draft-07, the members beside $ref are ignored."""
    return {"definitions": schema["definitions"], "allOf": [{"$ref": f"#/definitions/{name}"}]}


def _against(revision: str, names: tuple[str, ...], value: object) -> None:
    schema = _schema(revision)
    definitions = schema.get("$defs") or schema["definitions"]
    _validator(revision, next(name for name in names if name in definitions)).validate(value)
