"""JSON Schemas of requests and responses, made from the structs, and tables of what the API document defines.

The API document is the contract of the API. What it does not define is marked as an addition.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec
from msgspec import inspect

from countersign.kernel.http.response import Uri
from countersign.kernel.http.routing import OneOf, Route
from countersign.kernel.http.routing import shapes as shapes_of
from countersign.store.context import Store

Members: TypeAlias = Mapping[str, bool]
"""Maps the name of a member to true if the member is required."""

OBJECTS: Mapping[str, Members] = {
    "Product": {"id": True, "slug": True, "title": True, "description": False, "kind": True, "platforms": True},
    "ProductList": {"items": True, "next_cursor": True},
    "Release": {"version": True, "channel": True, "published_at": True, "notes": False},
    "operation": {"method": True, "path": True, "body": False},
    "result": {"status": True, "body": True},
    "batch request": {"operations": True},
    "batch response": {"results": True},
    "JobStatus": {"job_id": True, "status": True, "progress": False},
    "problem details": {
        "type": True,
        "title": True,
        "status": True,
        "detail": True,
        "instance": False,
        "code": False,
        "resolution": False,
    },
    "health": {"status": True, "version": False},
    "info": {"service": True, "version": True, "storage": False},
    "sandbox metadata": {
        "sandbox": True,
        "status": True,
        "environment": True,
        "free_tier": False,
        "self_serve_keys": False,
    },
    "sandbox health": {"status": True, "environment": True},
    "sandbox telemetry": {"status": True, "active_agents": True},
    "provisioned key": {"status": True, "api_key": True, "self_serve": True, "free_tier": False},
    "natural-language answer": {"answer": True},
    "redeem result": {"success": True, "product_id": True},
    "redeem request": {"code": True},
    "job request": {"type": True, "payload": True},
    "ask request": {"query": True},
    "token request": {"grant_type": False, "assertion": False, "scope": False},
    "token": {"access_token": True, "token_type": True, "expires_in": True, "scope": True},
    "registration": {
        "grant_type": False,
        "assertion_type": False,
        "assertion": False,
        "scope": False,
        "method": False,
        "email": False,
    },
    "revocation": {"token": False, "token_type_hint": False},
}
ITEM_OBJECTS: Mapping[tuple[str, str], str] = {
    ("ProductList", "items"): "Product",
    ("batch request", "operations"): "operation",
    ("batch response", "results"): "result",
}
"""Maps an object of the API document and a member that is a list to the object that each item of the list is."""
NULLABLE = frozenset({("ProductList", "next_cursor")})
"""Members that may be null."""
IN_GENERAL = frozenset({401, 403, 429})
"""The statuses that the API document's section on errors defines for all endpoints."""
HEADERS = frozenset(
    {
        "RateLimit-Limit",
        "RateLimit-Remaining",
        "RateLimit-Reset",
        "Retry-After",
        "WWW-Authenticate",
        "Deprecation",
        "Sunset",
    }
)
"""The response headers that the API document defines."""


class Endpoint(NamedTuple):
    """One row of the endpoint table: the names of its parameters, and the objects of its body and responses."""

    parameters: tuple[str, ...] = ()
    body: str | None = None
    answers: Mapping[int, str | None] = {}


_KEY = "Idempotency-Key"

ENDPOINTS: Mapping[tuple[str, str], Endpoint] = {
    ("GET", "/health"): Endpoint(("format",), None, {200: "health", 429: "problem details"}),
    ("GET", "/info"): Endpoint(("format",), None, {200: "info"}),
    ("GET", "/products"): Endpoint(("cursor", "limit"), None, {200: "ProductList"}),
    ("GET", "/products/{id}"): Endpoint(("id",), None, {200: "Product", 404: "problem details"}),
    ("GET", "/products/{id}/releases"): Endpoint(("id",), None, {200: "Release"}),
    ("GET", "/library"): Endpoint(("limit", "cursor"), None, {200: "Product", 401: "problem details"}),
    ("POST", "/redeem"): Endpoint((_KEY,), "redeem request", {200: "redeem result"}),
    ("POST", "/batch"): Endpoint((_KEY,), "batch request", {200: "batch response"}),
    ("POST", "/jobs"): Endpoint((_KEY,), "job request", {200: "JobStatus", 202: "JobStatus"}),
    ("GET", "/jobs/{job_id}"): Endpoint(("job_id",), None, {200: "JobStatus"}),
    ("GET", "/sandbox"): Endpoint(("format",), None, {200: "sandbox metadata"}),
    ("GET", "/sandbox/api/v1/health"): Endpoint(("format",), None, {200: "sandbox health"}),
    ("GET", "/sandbox/api/v1/telemetry"): Endpoint(("format",), None, {200: "sandbox telemetry"}),
    ("GET", "/api/keys"): Endpoint(("tier",), None, {200: "provisioned key"}),
    ("POST", "/ask"): Endpoint(("stream",), "ask request", {200: "natural-language answer"}),
    ("GET", "/ask"): Endpoint(("q",), None, {200: "natural-language answer"}),
    # From the section on authentication.
    ("POST", "/auth/token"): Endpoint((), "token request", {200: "token"}),
    ("POST", "/auth/login"): Endpoint((), "token request", {200: "token"}),
    ("POST", "/auth/register"): Endpoint((), "registration", {200: None}),
    ("GET", "/auth/me"): Endpoint((), None, {200: None}),
    ("POST", "/auth/revoke"): Endpoint((), "revocation", {200: None}),
    ("GET", "/auth/authorize"): Endpoint((), None, {200: None}),
    ("POST", "/healthz"): Endpoint((), None, {202: None}),
}
UNDESCRIBED = Endpoint((), None, {200: None})
"""An endpoint that the API document lists without details."""


Document: TypeAlias = dict[str, Any]

ADDITION = "x-addition"
_REFERENCE = "#/components/schemas/{name}"
_UNTYPED: Mapping[object, Document] = {str: {"type": "string"}, bytes: {}, dict: {"type": "object"}}


class FaultShown(msgspec.Struct, omit_defaults=True):
    """One error in the input: a parameter, or a member of the body by its JSON pointer (RFC 6901)."""

    detail: str
    parameter: str | None = None
    pointer: str | None = None


class Problem(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Problem details (RFC 9457); `message` repeats `detail`, so that the object matches both documented error shapes;
    `error` and `error_description` are the OAuth members. Some problems have further members."""

    type: Uri
    title: str
    status: int
    detail: str
    instance: Uri | None = None
    code: str
    message: str
    resolution: str | None = None
    error: str
    error_description: str
    errors: list[FaultShown] | None = None


class OAuthError(msgspec.Struct, omit_defaults=True, kw_only=True):
    """An error of the OAuth endpoints (RFC 6749 §5.2), with the members of the short error shape."""

    error: str
    error_description: str
    code: str
    message: str
    resolution: str | None = None


class Schemas:
    """The schemas of a set of routes. `components` maps names to the schemas that other schemas refer to."""

    def __init__(self, routes: Iterable[Route[Store]], sent_structs: Sequence[type[msgspec.Struct]] = ()) -> None:
        """Make the schemas. `sent_structs` contains structs that the service sends outside of responses."""
        listed_routes = tuple(routes)
        bodies = [listed_route.body for listed_route in listed_routes if listed_route.body is not None]
        answers = [shape for route in listed_routes for shape in shapes_of(route.answers) if shape not in _UNTYPED] + [
            *sent_structs
        ]
        shapes = list(dict.fromkeys((Problem, OAuthError, *bodies, *answers)))
        shape_schemas, self.components = msgspec.json.schema_components(shapes, ref_template=_REFERENCE)
        self._by_shape = dict(zip(shapes, shape_schemas, strict=True))
        received_structs = _structs(bodies)
        for struct in _structs((Problem, OAuthError, *answers)) - received_structs:
            _describe_sent(self.components[_name_of(struct, self.components)], struct)
        self._mark_additions(listed_routes)
        for schema in self.components.values():
            schema["description"] = " ".join(schema.get("description", "").split())
            _simplify(schema)

    def schema_of(self, shape: object) -> Document:
        """Return the schema of a request body or a response body."""
        if isinstance(shape, OneOf):
            return {"anyOf": [self.schema_of(alternative) for alternative in shape]}
        return _UNTYPED[shape] if shape in _UNTYPED else self._by_shape[shape]

    def _mark_additions(self, routes: Iterable[Route[Store]]) -> None:
        """Mark the schemas and members that the API document does not define as additions, and make members optional
        that are optional in the API document."""
        object_by_component: dict[str, str] = {}
        self._record_object(object_by_component, Problem, "problem details")
        for route in routes:
            entry = ENDPOINTS.get((route.method, route.path), UNDESCRIBED)
            self._record_object(object_by_component, route.body, entry.body)
            for status, name in entry.answers.items():
                self._record_object(object_by_component, route.answers.get(status), name)
        for name, schema in self.components.items():
            if name in object_by_component:
                _mark_members(schema, object_by_component[name])
            else:
                schema[ADDITION] = True

    def _record_object(self, object_by_component: dict[str, str], shape: object, object_name: str | None) -> None:
        """Record which object of the API document the shape corresponds to."""
        if shape is not None and object_name is not None:
            self._record_object_of_schema(object_by_component, self.schema_of(shape), object_name)

    def _record_object_of_schema(self, object_by_component: dict[str, str], schema: Document, object_name: str) -> None:
        """Record that a schema, or the schema of its items, describes the object `object_name` of the API document.
        Then do the same for the members in `ITEM_OBJECTS`. If `anyOf` lists several schemas, only the first is
        considered."""
        first_schema: Document = schema.get("anyOf", [schema])[0]
        name = str(first_schema.get("items", first_schema).get("$ref", "")).rpartition("/")[2]
        if not name or name in object_by_component:
            return
        object_by_component[name] = object_name
        for (outer, member), inner in ITEM_OBJECTS.items():
            if outer == object_name:
                self._record_object_of_schema(object_by_component, self.components[name]["properties"][member], inner)


def parameters(shape: type[msgspec.Struct]) -> tuple[Mapping[str, Document], frozenset[str]]:
    """Return a map from the name of each query parameter to its schema, and the names of the required parameters. A
    query parameter cannot be null."""
    _, components = msgspec.json.schema_components([shape], ref_template=_REFERENCE)
    schema = components[shape.__name__]
    _simplify(schema)
    members: Mapping[str, Document] = schema.get("properties", {})
    return {name: _without_null(member) for name, member in members.items()}, frozenset(schema.get("required", ()))


def _name_of(struct: type[msgspec.Struct], components: Mapping[str, Document]) -> str:
    """Return the component name of a struct: the name of the struct, or its qualified name if several structs have the
    same name."""
    full_name = re.sub(r"[^a-zA-Z0-9.\-_]", "_", f"{struct.__module__}.{struct.__qualname__}")
    return struct.__name__ if struct.__name__ in components else full_name


def _structs(shapes: Iterable[object]) -> set[type[msgspec.Struct]]:
    """Return every struct that the shapes contain, directly or indirectly."""
    structs: set[type[msgspec.Struct]] = set()
    pending_types: list[Any] = [*inspect.multi_type_info(shapes)]
    while pending_types:
        kind = pending_types.pop()
        if isinstance(kind, inspect.StructType):
            if kind.cls in structs:
                continue
            structs.add(kind.cls)
            pending_types += (field.type for field in kind.fields)
        for name in ("type", "item_type", "value_type"):
            pending_types += [getattr(kind, name)] if hasattr(kind, name) else []
        for name in ("types", "item_types"):
            pending_types += getattr(kind, name, ())
    return structs


def _describe_sent(schema: Document, struct: type[msgspec.Struct]) -> None:
    """Describe a response struct as it is sent. With `omit_defaults`, a member with a default value is omitted and is
    never null; without it, every member is always present."""
    members: dict[str, Document] = schema["properties"]
    for struct_field in msgspec.structs.fields(struct):
        if struct_field.required or struct_field.default is msgspec.UNSET:
            continue
        if struct.__struct_config__.omit_defaults:
            members[struct_field.encode_name] = _without_null(members[struct_field.encode_name])
        else:
            members[struct_field.encode_name].pop("default", None)
            schema.setdefault("required", []).append(struct_field.encode_name)


def _without_null(schema: Document) -> Document:
    """The schema without null and without a null default."""
    other_members = {
        name: value for name, value in schema.items() if name != "anyOf" and (name, value) != ("default", None)
    }
    alternatives = cast("list[Document]", schema.get("anyOf", []))
    non_null_alternatives = [alternative for alternative in alternatives if alternative.get("type") != "null"]
    if len(non_null_alternatives) == 1:
        return {**non_null_alternatives[0], **other_members}
    return {**other_members, "anyOf": non_null_alternatives} if non_null_alternatives else other_members


def _mark_members(schema: Document, schema_name: str) -> None:
    documented_object = OBJECTS[schema_name]
    members: dict[str, Document] = schema["properties"]
    for name, member in members.items():
        if name not in documented_object:
            # A member that is a $ref can be marked too: JSON Schema 2020-12 allows other keywords next to $ref.
            member[ADDITION] = True
        elif (schema_name, name) not in NULLABLE:
            # The API document defines only the first alternative: mark the others as additions.
            for alternative in member.get("anyOf", ())[1:]:
                alternative[ADDITION] = True
    optional = {name for name, is_required in documented_object.items() if not is_required}
    schema["required"] = [name for name in schema.get("required", ()) if name not in optional]


def _simplify(schema: Document) -> None:
    """Rewrite every part of the schema with keywords that all OpenAPI tools support."""
    pending_values: list[Any] = [schema]
    while pending_values:
        value = pending_values.pop()
        if isinstance(value, dict):
            schema_part = cast("Document", value)
            _simplify_part(schema_part)
            pending_values += schema_part.values()
        elif isinstance(value, list):
            pending_values += cast("list[object]", value)


def _simplify_part(document: Document) -> None:
    """Add the type of a string enumeration, and replace `prefixItems` by `items`."""
    values = document.get("enum")
    if isinstance(values, list) and all(isinstance(value, str) for value in cast("list[object]", values)):
        document.setdefault("type", "string")
    row: list[Document] = document.pop("prefixItems", [])
    if row:
        kinds = [cell for number, cell in enumerate(row) if cell not in row[:number]]
        document["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def is_documented(route: Route[Store], status: int) -> bool:
    """Whether the API document defines this status for the route."""
    entry = ENDPOINTS.get((route.method, route.path), UNDESCRIBED)
    return route.documented and (status in entry.answers or status in IN_GENERAL)
