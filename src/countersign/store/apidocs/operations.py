"""A route as an OpenAPI operation: parameters, body, responses, security and links to other operations."""

import inspect
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple, TypeAlias

import msgspec

from countersign.kernel.errors import Refused
from countersign.kernel.http import deprecation
from countersign.kernel.http.decode import FORM, is_optional_body
from countersign.kernel.http.problems import PROBLEM_JSON
from countersign.kernel.http.response import EVENTS, JSON
from countersign.kernel.http.routing import OneOf, Route
from countersign.store.apidocs import examples, schemas
from countersign.store.apidocs.documents import section_of
from countersign.store.apidocs.examples import Examples
from countersign.store.apidocs.problems import EVERYWHERE
from countersign.store.apidocs.schemas import ADDITION, Document, OAuthError, Problem, Schemas, is_documented
from countersign.store.apidocs.schemas import parameters as query_parameters
from countersign.store.auth.authentication import SandboxOnly, is_document
from countersign.store.context import PREFIX, Store

_UUID: Document = {"type": "string", "format": "uuid"}
_TEXT: Document = {"type": "string"}
_NUMBER: Document = {"type": "integer", "minimum": 0}

PATH_PARAMETERS: Mapping[str, tuple[Document, str]] = {
    "id": ({"type": "string", "minLength": 1, "examples": ["star-harbour"]}, "A product's id or slug."),
    "slug": (
        {"type": "string", "minLength": 1, "examples": ["northwind-games"]},
        "The slug of an organisation.",
    ),
    "collection_id": (_UUID, "The id of a collection."),
    "session_id": (_UUID, "The id of a session."),
    "job_id": (_UUID, "The job's id."),
    "version": ({"type": "string", "minLength": 1}, "The release's version."),
    "channel": ({"type": "string", "enum": ["stable", "beta", "nightly", "alpha"]}, "The channel."),
    "media_id": (_UUID, "The id of an image or video."),
    "artifact_id": (_UUID, "The artifact's id."),
    "webhook_id": (_UUID, "The id of a webhook."),
    "event_id": (_UUID, "The id of an event."),
    "batch_id": (_UUID, "The id of a batch of codes."),
    "sha256": ({"type": "string", "pattern": "^[0-9a-f]{64}$"}, "The SHA-256 of the bytes, in hexadecimal."),
    "token": ({"type": "string", "minLength": 1}, "The secret part of the address."),
    "section": ({"type": "string", "minLength": 1, "examples": ["catalog"]}, "The name of a tag."),
    "type": (
        {"type": "string", "minLength": 1, "examples": ["invalid-cursor"]},
        "The problem's code with dashes, as at the end of its `type`.",
    ),
}
"""Maps the name of a path parameter to its schema and meaning. A name has the same meaning in every path."""

REQUEST_HEADERS: Mapping[str, tuple[Document, str]] = {
    "Idempotency-Key": (_UUID, "A UUID chosen by the caller; a repeated request returns the first response."),
    "If-None-Match": (_TEXT, "An ETag that the caller has; 304 when it still matches."),
    "If-Match": (_TEXT, "The ETag that the change is based on; 412 when it no longer matches."),
    "If-Range": (_TEXT, "The ETag that Range applies to; the whole body when it no longer matches."),
    "Range": (_TEXT, "The bytes to send, as bytes=FIRST-LAST; any other form sends the whole body."),
    "Content-Range": ({"type": "string", "pattern": r"^bytes [0-9]+-[0-9]+/[0-9]+$"}, "The byte range of the body."),
    "Last-Event-ID": (_TEXT, "The last received event; streams cannot be resumed: 204."),
    "Download-Begins": (
        {"type": "string", "enum": ["1"]},
        "The client starts to install the build, which counts as a download.",
    ),
    "Prefer": (_TEXT, "`respond-async`, or `wait=SECONDS` up to 30 (RFC 7240)."),
}
RESPONSE_HEADERS: Mapping[str, tuple[Document, str]] = {
    "RateLimit-Limit": (_NUMBER, "Quota in the current window."),
    "RateLimit-Remaining": (_NUMBER, "Requests left."),
    "RateLimit-Reset": (_NUMBER, "Seconds until the window ends."),
    "Retry-After": (_NUMBER, "Seconds to wait."),
    "WWW-Authenticate": (_TEXT, "The address of the metadata, and the required scope."),
    "X-Request-Id": (_TEXT, "The request's id in the service's log."),
    "Idempotency-Replayed": ({"type": "string", "enum": ["true"]}, "The response is that of the first request."),
    "ETag": (_TEXT, "The entity tag of the body."),
    "Cache-Control": (_TEXT, "How long the response may be cached, and by whom."),
    "Vary": (_TEXT, "The request headers that the response depends on."),
    "Content-Encoding": ({"type": "string", "enum": ["zstd", "gzip"]}, "How the body is compressed."),
    "Link": (_TEXT, 'The next page with rel="next", a deprecation notice with rel="deprecation".'),
    "Location": ({"type": "string", "format": "uri-reference"}, "The address of the created or moved resource."),
    "Deprecation": (_TEXT, "When the endpoint or member was deprecated (RFC 9745)."),
    "Sunset": (_TEXT, "When it is removed (RFC 8594)."),
    "Preference-Applied": (_TEXT, "The preference that was applied (RFC 7240)."),
    "Upload-Received": (_TEXT, "The received byte ranges: FIRST-LAST,FIRST-LAST,…"),
    "Content-Range": (_TEXT, "The byte range that is sent."),
    "Accept-Ranges": (_TEXT, "Byte ranges are supported."),
    "Content-Disposition": (_TEXT, "The file name to save the body under."),
    "Repr-Digest": (_TEXT, "The SHA-256 of the whole body (RFC 9530)."),
    "Release-Status": ({"type": "string", "enum": ["yanked"]}, "The release was yanked."),
    "Already-Redeemed": ({"type": "string", "enum": ["true"]}, "The caller redeemed this code before."),
    "Batch-Id": (_UUID, "The id of the batch."),
    "Set-Cookie": (_TEXT, "The session."),
}
_ALWAYS = frozenset({"X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"})


def header_components() -> Document:
    """Return the components for all response headers, which responses refer to."""
    components: Document = {}
    for name, (schema, meaning) in RESPONSE_HEADERS.items():
        components[name] = {"description": meaning, "required": name in _ALWAYS, "schema": schema}
        if name not in schemas.HEADERS:
            components[name][ADDITION] = True
    return components


def request_parameters(route: Route[Store], examples: Examples) -> list[Document]:
    """Return the parameters of a route: those of the path, those of the query, and the request headers."""
    documented_parameters = schemas.ENDPOINTS.get((route.method, route.path), schemas.UNDESCRIBED).parameters
    parameters = [
        *_path_parameters(route, examples),
        *_query_parameters(route, examples),
        *_header_parameters(route, examples),
    ]
    for parameter in parameters:
        if parameter["name"] not in documented_parameters:
            parameter[ADDITION] = True
    return parameters


def _path_parameters(route: Route[Store], examples: Examples) -> list[Document]:
    parameters: list[Document] = []
    for name in re.findall(r"\{(\w+)\}", route.path):
        schema, meaning = PATH_PARAMETERS.get(name, (_TEXT, ""))
        parameters.append({"name": name, "in": "path", "required": True, "description": meaning, "schema": schema})
        parameters[-1]["example"] = examples.example_of(schema, name)
    return parameters


def _query_parameters(route: Route[Store], examples: Examples) -> list[Document]:
    parameters: list[Document] = []
    schema_by_name, required_names = query_parameters(route.query)
    for name, schema in schema_by_name.items():
        description = schema.pop("description", "")
        parameters.append(
            {
                "name": name,
                "in": "query",
                "required": name in required_names,
                "description": description,
                "schema": schema,
            }
        )
        parameters[-1]["example"] = examples.example_of(schema, name)
        if schema.get("deprecated"):
            parameters[-1]["deprecated"] = True
    return parameters


def request_headers(route: Route[Store]) -> tuple[str, ...]:
    """Return the request headers that affect what a route does. Headers that OpenAPI describes in another way, such as
    Authorization, are not included."""
    implied_headers = ("Idempotency-Key",) if route.writes else ()
    return (*implied_headers, *(("If-None-Match",) if route.cached else ()), *route.reads)


def _header_parameters(route: Route[Store], examples: Examples) -> list[Document]:
    parameters: list[Document] = []
    for name in request_headers(route):
        schema, meaning = REQUEST_HEADERS[name]
        parameters.append({"name": name, "in": "header", "required": False, "description": meaning, "schema": schema})
        parameters[-1]["example"] = examples.example_of(schema, name)
    return parameters


Key: TypeAlias = tuple[str, str]


class OperationLink(NamedTuple):
    """A link from a response to an operation that can follow. `parameters` maps the parameters of the target to runtime
    expressions, which take values from the request or the response."""

    source: Key
    status: int
    target: Key
    parameters: Mapping[str, str]


_PRODUCT = {"id": "$response.body#/id"}
_LISTED = {"id": "$response.body#/items/0/id"}
_JOB = {"job_id": "$response.body#/job_id"}
_RELEASE = {"id": "$request.path.id", "version": "$response.body#/version"}
_SAME_RELEASE = {"id": "$request.path.id", "version": "$request.path.version"}
_NEW_PRODUCT, _NEW_RELEASE = ("POST", "/products"), ("POST", "/products/{id}/releases")
_OF_RELEASE = "/products/{id}/releases/{version}"
_ARTIFACTS = ("POST", _OF_RELEASE + "/artifacts")

LINKS = (
    *(
        OperationLink(_NEW_PRODUCT, 201, target, _PRODUCT)
        for target in (
            ("GET", "/products/{id}"),
            ("PUT", "/products/{id}"),
            ("DELETE", "/products/{id}"),
            ("GET", "/products/{id}/releases"),
            ("POST", "/products/{id}/media"),
            _NEW_RELEASE,
        )
    ),
    OperationLink(("GET", "/products"), 200, ("GET", "/products/{id}"), _LISTED),
    OperationLink(("GET", "/products"), 200, ("GET", "/products/{id}/releases"), _LISTED),
    OperationLink(("GET", "/products"), 200, ("GET", "/products"), {"cursor": "$response.body#/next_cursor"}),
    OperationLink(("GET", "/catalog"), 200, ("GET", "/catalog"), {"cursor": "$response.body#/next_cursor"}),
    *(
        OperationLink(_NEW_RELEASE, 201, target, _RELEASE)
        for target in (
            ("PUT", _OF_RELEASE),
            ("DELETE", _OF_RELEASE),
            ("POST", _OF_RELEASE + "/publish"),
            ("POST", _OF_RELEASE + "/promote"),
            _ARTIFACTS,
        )
    ),
    OperationLink(("POST", _OF_RELEASE + "/publish"), 200, ("POST", _OF_RELEASE + "/yank"), _SAME_RELEASE),
    OperationLink(("POST", _OF_RELEASE + "/publish"), 200, ("POST", _OF_RELEASE + "/promote"), _SAME_RELEASE),
    OperationLink(_ARTIFACTS, 201, ("GET", "/artifacts/{artifact_id}"), {"artifact_id": "$response.body#/artifact_id"}),
    *(
        OperationLink(("POST", "/jobs"), status, target, _JOB)
        for status in (200, 202)
        for target in (("GET", "/jobs/{job_id}"), ("DELETE", "/jobs/{job_id}"), ("GET", "/jobs/{job_id}/events"))
    ),
    OperationLink(
        ("POST", "/codes"), 201, ("POST", "/codes/{batch_id}/revoke"), {"batch_id": "$response.body#/batch_id"}
    ),
)


def response_links(source: Key, status: int, ids: Mapping[Key, str]) -> Document:
    """Map the id of each operation that can follow a response to its link. `ids` maps the method and the full path of
    each existing operation to its id."""
    links: Document = {}
    for link in LINKS:
        target_id = ids.get(_with_prefix(link.target))
        if (_with_prefix(link.source), link.status) == (source, status) and target_id is not None:
            links[target_id] = {"operationId": target_id, "parameters": {**link.parameters}}
    return links


def _with_prefix(key: Key) -> Key:
    return key[0], PREFIX + key[1]


_LIMITS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
SERVER_STATUSES = {
    408: "The request was not received in time; there is no body.",
    431: "The address, or the headers together, are too long; there is no body.",
}
"""Responses that the server sends before routing."""
_EVENT: Document = {
    "description": "One event of the stream (HTML, Server-sent events); `data` is JSON.",
    "type": "object",
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
    "required": ["data"],
}
_OTHER_TEXT = ("text/", "application/x-ndjson", "application/atom+xml")
"""Media types whose bodies are described as strings. A YAML body is described by the schema of its content."""


def address_of(route: Route[Store]) -> str:
    """Return the full path of a route."""
    return route.path if route.at_root else PREFIX + route.path


def operation_ids(routes: Iterable[Route[Store]]) -> Mapping[Key, str]:
    """Map the method and the full path of each route to an operation id. If a route at the root has the same path as a
    route below the prefix, its id ends in `_at_root`."""
    ids: dict[Key, str] = {}
    for route in sorted(routes, key=lambda route: route.at_root):
        name = f"{route.method.lower()}_" + re.sub(r"\W+", "_", route.path).strip("_")
        ids[route.method, address_of(route)] = name if name not in ids.values() else f"{name}_at_root"
    return ids


def feature_of(route: Route[Store]) -> str:
    """The section of the description that a route belongs to."""
    return section_of(route.handler.__module__)


def description_of(route: Route[Store]) -> str:
    """The handler's docstring without its `Raises` section."""
    docstring = inspect.cleandoc(route.handler.__doc__ or "")
    return docstring.partition("Raises:")[0].strip()


class Operations:
    """Describes routes as OpenAPI operations. `schemas` contains the schemas of their requests and responses."""

    def __init__(self, schemas: Schemas, ids: Mapping[Key, str]) -> None:
        self._schemas = schemas
        self.examples = self._examples = Examples(schemas.components)
        self._ids = ids

    def describe(self, route: Route[Store]) -> Document:
        """The operation object of a route."""
        operation: Document = {
            "operationId": self._ids[route.method, address_of(route)],
            "tags": [feature_of(route)],
            "summary": route.summary,
            "description": description_of(route),
            "parameters": request_parameters(route, self._examples),
            "responses": self._responses(route),
            "security": security_of(route),
        }
        if route.body is not None or route.streams:
            operation["requestBody"] = self._body(route)
        if not route.documented:
            operation[ADDITION] = True
        if route.deprecation is not None:
            operation["deprecated"] = True
            operation["x-sunset"] = route.deprecation.sunset.isoformat()
            operation["x-deprecation"] = route.deprecation.link
        return operation

    def _body(self, route: Route[Store]) -> Document:
        if route.body is None:
            return {"required": True, "content": {route.takes: {"schema": {}}}}
        schema = self._schemas.schema_of(route.body)
        example = route.example or self._examples.example_of(schema)
        entry: Document = {"schema": schema, "example": example}
        kinds = (JSON, FORM) if route.form else (JSON,)
        return {"required": not is_optional_body(route.body), "content": dict.fromkeys(kinds, entry)}

    def _responses(self, route: Route[Store]) -> Document:
        responses: dict[int, Document] = {}
        for status, shape in route.answers.items():
            responses[status] = {"description": HTTPStatus(status).phrase, "headers": _headers(route, status)}
            responses[status] |= self._content(route, shape)
            if links := response_links((route.method, address_of(route)), status, self._ids):
                responses[status]["links"] = links
        if "If-None-Match" in request_headers(route):
            responses[304] = {"description": "The ETag still matches.", "headers": _headers(route, 304)}
        for refusal in refusals_of(route):
            self._add_refusal(route, refusal, responses)
        for status, meaning in SERVER_STATUSES.items():
            responses.setdefault(status, {"description": meaning})
        for status, response in responses.items():
            if not is_documented(route, status):
                response[ADDITION] = True
        return {str(status): responses[status] for status in sorted(responses)}

    def _content(self, route: Route[Store], shape: object) -> Document:
        """Return the `content` member: the body in each media type that the route can answer with. The result is empty
        if the response has no body."""
        if shape is None:
            return {}
        # A byte range of a JSON document has the media type JSON, but is not valid JSON: do not describe it as JSON.
        kinds = [produce.partition(";")[0] for produce in route.produces if produce != JSON or shape is not bytes]
        content = {kind: self._media_type_object(route, kind, shape) for kind in kinds}
        return {"content": content} if content else {}

    def _media_type_object(self, route: Route[Store], kind: str, shape: object) -> Document:
        """Return the schema of a body in a media type, with an example unless the body is plain text."""
        schema = self._schema_of_media_type(kind, shape)
        if kind == JSON and isinstance(shape, OneOf):
            entry = {
                struct.__name__: {"value": self._examples.example_of(self._schemas.schema_of(struct))}
                for struct in shape
            }
            return {"schema": schema, "examples": entry}
        if schema.get("type") == "string" or not schema:
            return {"schema": schema}
        if kind == EVENTS:
            return {"schema": schema, "example": examples.EVENT_EXAMPLES[feature_of(route)]}
        if shape is dict:
            return {"schema": schema, "example": _example_of_path(route.path)}
        return {"schema": schema, "example": self._examples.example_of(schema)}

    def _schema_of_media_type(self, kind: str, shape: object) -> Document:
        """Return the schema of a body in a media type. For a stream of events, return the schema of one event."""
        if kind == EVENTS:
            return _EVENT
        is_text = kind.startswith(_OTHER_TEXT) and shape is not bytes
        return {"type": "string"} if is_text else self._schemas.schema_of(shape)

    def _add_refusal(self, route: Route[Store], refusal: type[Refused], responses: dict[int, Document]) -> None:
        entry = responses.setdefault(refusal.status, {"description": refusal.title})
        entry.setdefault("headers", _headers(route, refusal.status))
        content: Document = entry.setdefault("content", {})
        if route.produces[0].startswith("text/html"):
            content.setdefault("text/html", {"schema": {"type": "string"}})
        kind, shape = (JSON, OAuthError) if route.oauth else (PROBLEM_JSON, Problem)
        media_type = content.setdefault(kind, {"schema": self._schemas.schema_of(shape)})
        reference = f"#/components/examples/{'oauth.' if route.oauth else ''}{_example_of(refusal)}"
        media_type.setdefault("examples", {})[refusal.code] = {"$ref": reference}
        codes: list[str] = entry.setdefault("x-codes", [])
        if refusal.code not in codes:
            codes.append(refusal.code)


def _example_of_path(path: str) -> Mapping[str, object]:
    """Return an example of a response that is an object without defined members."""
    empty_example: Mapping[str, object] = {}
    return next(
        (value for path_prefix, value in examples.EXAMPLE_BY_PATH.items() if path.startswith(path_prefix)),
        empty_example,
    )


def security_of(route: Route[Store]) -> list[Document]:
    """Return the security requirements of a route. An empty requirement means that authentication is optional."""
    if route.scope is not None or route.signed_in:
        return [{"BearerAuth": []}, {"OAuth2": [route.scope] if route.scope else []}]
    if route.oauth:
        return [{}, {"ClientSecret": []}]
    if route.session or route.produces[0].startswith("text/html"):
        return [{}, {"Session": []}]
    if route.own_credentials:
        return [{}, {"BearerAuth": []}]
    return [{}, {"BearerAuth": []}, {"OAuth2": []}, {"ApiKey": []}]


def refusals_of(route: Route[Store]) -> list[type[Refused]]:
    """Return the problems that a route can answer with: the general problems that can occur at the route, and the
    problems that the route declares."""
    impossible_statuses = _impossible_statuses(route)
    general = [refusal for refusal in EVERYWHERE if _can_occur(refusal, route, impossible_statuses)]
    return [*general, *_deprecation_refusals(route), *route.refusals]


def _can_occur(refusal: type[Refused], route: Route[Store], impossible_statuses: set[int]) -> bool:
    """Whether the refusal can occur at the route. Every route that checks a key refuses a key for the sandbox, except
    for documents."""
    if refusal is SandboxOnly:
        return not route.own_credentials and not is_document(route)
    return refusal.status not in impossible_statuses


def _impossible_statuses(route: Route[Store]) -> set[int]:
    """Return the statuses of general refusals that cannot occur at the route. 405 cannot occur because it is the
    response to a method without a route."""
    is_possible_by_status = {
        403: route.scope is not None or route.signed_in,
        401: not route.own_credentials,
        404: "{" in route.path,
        409: route.writes,
        422: route.writes,
        413: route.method != "GET" and not route.streams,
        415: route.method != "GET" and not route.streams,
        507: route.method != "GET",
        405: False,
        410: False,
    }
    return {status for status, is_possible in is_possible_by_status.items() if not is_possible}


def _deprecation_refusals(route: Route[Store]) -> list[type[Refused]]:
    """Return the refusals that the route answers with after a deprecated endpoint, parameter or member was removed."""
    members = [deprecation.MemberGone] if _has_deprecated_members(route) else []
    return [*([] if route.deprecation is None else [deprecation.EndpointGone]), *members]


def _has_deprecated_members(route: Route[Store]) -> bool:
    """Whether a parameter of the route, or a member of its body, is deprecated."""
    shapes = (route.query, *(() if route.body is None else (route.body,)))
    return any(deprecation.field_deprecations(shape) for shape in shapes)


def _headers(route: Route[Store], status: int) -> Document:
    """The headers of an answer with this status."""
    is_sent_by_header: Mapping[tuple[str, ...], bool] = {
        ("X-Request-Id",): True,
        _LIMITS: route.counted,
        tuple(route.sends.get(status, ())): True,
        ("Retry-After",): status in (429, 503),
        ("WWW-Authenticate",): status == 401,
        ("Idempotency-Replayed",): route.writes and status < HTTPStatus.TOO_MANY_REQUESTS,
        ("ETag", "Cache-Control"): route.cached and status in (200, 304),
        ("Deprecation", "Sunset", "Link"): bool(route.announced) or _has_deprecated_members(route),
    }
    names = dict.fromkeys(name for group, is_sent in is_sent_by_header.items() if is_sent for name in group)
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def example_components(routes: Iterable[Route[Store]], root_url: str) -> Document:
    """Return two examples of every refusal of the routes: one in the form of a problem, and one in the form of an OAuth
    error."""
    components: Document = {}
    for refusal in dict.fromkeys(refusal for route in routes for refusal in refusals_of(route)):
        detail = " ".join((refusal.__doc__ or "").split()).partition(". ")[0].rstrip(".")
        oauth_error: dict[str, Any] = {"error": refusal.code, "error_description": detail}
        oauth_error |= {"code": refusal.code, "message": detail}
        if refusal.resolution:
            oauth_error["resolution"] = refusal.resolution
        problem = Problem(
            type=f"{root_url}/problems/{refusal.code.replace('_', '-')}",
            title=refusal.title,
            status=refusal.status,
            detail=detail,
            code=refusal.code,
            message=detail,
            resolution=refusal.resolution or None,
            error=refusal.code,
            error_description=detail,
        )
        name = _example_of(refusal)
        components.setdefault(name, {"summary": refusal.title, "value": msgspec.to_builtins(problem)})
        components.setdefault(f"oauth.{name}", {"summary": refusal.title, "value": oauth_error})
    return components


def _example_of(refusal: type[Refused]) -> str:
    """Return the name of a refusal's example. The name includes the status because some codes have two statuses."""
    return f"{refusal.code}.{refusal.status}"
