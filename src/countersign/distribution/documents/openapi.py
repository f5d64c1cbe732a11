"""ROOT/openapi.json: the API description (OpenAPI 3.1), made from the declared routes."""

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, TypeAlias

import msgspec

from countersign.distribution.context import PREFIX, Store
from countersign.distribution.documents.health import API_VERSION
from countersign.distribution.documents.problems import EVERYWHERE
from countersign.distribution.identity import scopes
from countersign.distribution.identity.callers import Request
from countersign.kernel.errors import Refused
from countersign.kernel.http.answer import Answer, encode
from countersign.kernel.http.problems import PROBLEM_JSON
from countersign.kernel.http.route import Nothing, OneOf, Route, route
from countersign.kernel.http.route import shapes as shapes_of

Document: TypeAlias = dict[str, Any]

_REFERENCE = "#/components/schemas/{name}"
_LIMITS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


class Problem(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Problem details (RFC 9457); `message` repeats `detail`, so that both documented error shapes hold."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    code: str
    message: str
    resolution: str | None = None
    errors: list[dict[str, str]] | None = None


def routes(described: Iterable[Route[Store]]) -> tuple[Route[Store], ...]:
    """The route that serves the description of these routes."""
    listed = tuple(described)

    async def show_openapi(call: Request[Nothing, Nothing]) -> Answer:
        """Describe the API."""
        body = encode(document(listed, call.context.root_url))
        return Answer(
            200, body, headers=(("Cache-Control", "public, max-age=300"), ("Access-Control-Allow-Origin", "*"))
        )

    return (route("GET", "/openapi.json", show_openapi, answers={200: dict}, at_root=True),)


def document(described: Iterable[Route[Store]], root_url: str) -> Document:
    """The OpenAPI document of the routes of a store at this address."""
    listed = tuple(described)
    shapes: list[object] = [Problem]
    for each in listed:
        shapes += [*([] if each.body is None else [each.body]), *shapes_of(each.answers)]
    _, components = msgspec.json.schema_components(shapes, ref_template=_REFERENCE)
    paths: dict[str, Document] = {}
    for each in listed:
        address = each.path if each.at_root else PREFIX + each.path
        operation = _operation(each)
        # The same path may stand at the root and below the versioned address.
        if each.at_root and any(other.path == each.path and not other.at_root for other in listed):
            operation["operationId"] += "_at_root"
        paths.setdefault(address, {})[each.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Countersign distribution", "version": API_VERSION},
        "servers": [{"url": root_url}],
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": components, "securitySchemes": _schemes(root_url)},
    }


def _schemes(root_url: str) -> Document:
    known = {scope: scope.replace(":", " ") for scope in scopes.ALL}
    flow = {"tokenUrl": f"{root_url}{PREFIX}/auth/token", "scopes": known}
    return {
        "OAuth2": {"type": "oauth2", "flows": {"clientCredentials": flow}},
        "BearerAuth": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    }


def _operation(each: Route[Store]) -> Document:
    operation: Document = {
        "operationId": f"{each.method.lower()}_" + re.sub(r"\W+", "_", each.path).strip("_"),
        "summary": each.summary,
        "parameters": _parameters(each),
        "responses": _responses(each),
    }
    if each.body is not None:
        schema = _schema(each.body)
        content: Document = {"application/json": {"schema": schema}}
        if each.form:
            content["application/x-www-form-urlencoded"] = {"schema": schema}
        operation["requestBody"] = {"required": True, "content": content}
    elif each.streams:
        binary = {each.takes: {"schema": {"type": "string", "format": "binary"}}}
        operation["requestBody"] = {"required": True, "content": binary}
    if each.scope is not None or each.signed_in:
        operation["security"] = [{"BearerAuth": []}, {"OAuth2": [each.scope] if each.scope else []}]
    if not each.documented:
        operation["x-addition"] = True
    if each.deprecation is not None:
        operation["deprecated"] = True
    return operation


def _schema(shape: object) -> Document:
    if isinstance(shape, OneOf):
        return {"anyOf": [_schema(each) for each in shape]}
    (schema,), _ = msgspec.json.schema_components([shape], ref_template=_REFERENCE)
    return schema


def _parameters(each: Route[Store]) -> list[Document]:
    listed: list[Document] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", each.path)
    ]
    _, components = msgspec.json.schema_components([each.query], ref_template=_REFERENCE)
    shape = components[each.query.__name__]
    for name, schema in shape.get("properties", {}).items():
        required = name in shape.get("required", [])
        listed.append({"name": name, "in": "query", "required": required, "schema": schema})
    if each.writes:
        key = {"type": "string", "format": "uuid"}
        listed.append({"name": "Idempotency-Key", "in": "header", "required": False, "schema": key})
    return listed


def _responses(each: Route[Store]) -> Document:
    found: dict[str, Document] = {}
    for status, shape in each.answers.items():
        entry: Document = {"description": HTTPStatus(status).phrase}
        if shape is not None:
            entry["content"] = {kind: {"schema": _schema(shape)} for kind in each.produces}
        if each.counted:
            entry["headers"] = {name: {"schema": {"type": "integer"}} for name in _LIMITS}
        found[str(status)] = entry
    for refusal in _refusals(each):
        known = found.setdefault(str(refusal.status), {"description": refusal.title})
        problem = {"schema": {"$ref": _REFERENCE.format(name="Problem")}}
        known.setdefault("content", {}).setdefault(PROBLEM_JSON, problem)
        known.setdefault("x-codes", [])
        if refusal.code not in known["x-codes"]:
            known["x-codes"].append(refusal.code)
    return dict(sorted(found.items()))


def _refusals(each: Route[Store]) -> list[type[Refused]]:
    """What the route may refuse with: what every route may, and its own."""
    skipped = {405, 410}
    if each.method == "GET":
        skipped |= {409, 413, 415, 422, 507}
    if each.scope is None and not each.signed_in:
        skipped.add(403)
    general = [refusal for refusal in EVERYWHERE if refusal.status not in skipped]
    return [*general, *each.refusals]
