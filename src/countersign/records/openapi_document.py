"""The OpenAPI document of what a caller may use."""

from collections.abc import Sequence
from typing import Any

from countersign import __version__
from countersign.records.access.view import Caller, ModelView
from countersign.records.api_meta import Approvals, BuiltinCommands
from countersign.records.commands import command
from countersign.records.commands.command import describe
from countersign.records.json_schemas import input_schema, value_schema

_ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
}
_PROPOSAL = {
    "type": "object",
    "properties": {
        "approval_required": {"const": True},
        "plan_id": {"type": "string"},
        "expires_at": {"type": "string", "format": "date-time"},
    },
    "required": ["approval_required", "plan_id", "expires_at"],
}
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "format": "uuid"},
    "description": "A UUID of your choice. A repeated call with the same key and input within 24 hours has no second "
    "effect, and gets the response of the first call.",
}
_REPLAYED = {
    "Idempotency-Replayed": {
        "schema": {"const": "true"},
        "description": "An earlier call with the same Idempotency-Key has run the command.",
    }
}


def openapi_document(
    caller: Caller, root_url: str, approvals: Approvals, builtin_commands: BuiltinCommands, mcp_revisions: Sequence[str]
) -> dict[str, Any]:
    """Return the OpenAPI document. It does not contain the names of models, fields and commands that the caller may not
    see."""
    paths: dict[str, Any] = {}
    for name, view in sorted(caller.view.models.items()):
        for command_name in sorted(view.commands):
            needs_approval = approvals.becomes_plan(f"{name}.{command_name}")
            description = describe(
                view,
                command_name,
                builtin_commands.get(name, {}),
                needs_approval=needs_approval,
                proposed_fields=approvals.fields(view),
            )
            asks = caller.is_agent and (needs_approval or (command_name == "update" and bool(approvals.fields(view))))
            paths[f"/api/{name}/{command_name}"] = {"post": _operation(view, command_name, description, asks=asks)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Countersign records", "version": __version__},
        "servers": [{"url": root_url}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR, "Proposal": _PROPOSAL},
            "parameters": {"IdempotencyKey": _IDEMPOTENCY_KEY},
            "responses": {
                "Refused": _json_content(
                    "The input is refused; `error` is the reason.", {"$ref": "#/components/schemas/Error"}
                ),
                "Unauthenticated": _json_content("No valid token.", {"$ref": "#/components/schemas/Error"}),
                "NotFound": _json_content("No such command for this caller.", {"$ref": "#/components/schemas/Error"}),
            },
        },
        "x-mcp": {
            "url": f"{root_url}/mcp",
            "transport": "streamable-http",
            "protocol_versions": list(mcp_revisions),
            "auth": "bearer",
        },
    }


def _operation(view: ModelView, name: str, summary: str, *, asks: bool) -> dict[str, Any]:
    envelope = {
        "type": "object",
        "properties": {
            "denied": {"type": "array", "items": {"type": "string"}},
            "value": value_schema(view, name),
        },
        "required": ["denied", "value"],
    }
    answers: dict[str, Any] = {"200": _json_content("Done.", envelope)}
    if asks:
        answers["202"] = _json_content("A person must approve.", {"$ref": "#/components/schemas/Proposal"})
    is_keyed = command.writes(view.model, name)
    if is_keyed:
        answers = {status: {**answer, "headers": _REPLAYED} for status, answer in answers.items()}
    for status, response in (("400", "Refused"), ("401", "Unauthenticated"), ("404", "NotFound")):
        answers[status] = {"$ref": f"#/components/responses/{response}"}
    return {
        "operationId": f"{view.model.name}__{name}",
        "summary": summary,
        "tags": [view.model.name],
        **({"parameters": [{"$ref": "#/components/parameters/IdempotencyKey"}]} if is_keyed else {}),
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": input_schema(view, name)}},
        },
        "responses": answers,
    }


def _json_content(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}
