"""One route as an operation of the description: parameters, body, answers, who may, and what follows."""

import inspect
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from countersign.distribution.auth.authentication import SandboxOnly, is_document
from countersign.distribution.context import PREFIX, Store
from countersign.distribution.documents import example_values, links, parameters
from countersign.distribution.documents.examples import Examples
from countersign.distribution.documents.links import Key
from countersign.distribution.documents.problems import EVERYWHERE
from countersign.distribution.documents.schemas import ADDITION, Document, OAuthError, Problem, Schemas, is_documented
from countersign.kernel.errors import Refused
from countersign.kernel.http import deprecation
from countersign.kernel.http.decode import FORM, may_be_left_out
from countersign.kernel.http.problems import PROBLEM_JSON
from countersign.kernel.http.response import JSON
from countersign.kernel.http.routing import OneOf, Route

_LIMITS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
BEFORE_ROUTES = {
    408: "The request did not arrive in time; there is no body.",
    431: "The address, or the headers together, are too long; there is no body.",
}
"""What the server answers by itself, before it knows the route."""
_EVENTS = "text/event-stream"
_EVENT: Document = {
    "description": "One event of the stream (HTML, Server-sent events); `data` is JSON.",
    "type": "object",
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
    "required": ["data"],
}
_OTHER_TEXT = ("text/", "application/x-ndjson", "application/atom+xml")
"""Media types that are described as text. YAML is described by what it parses to."""


def address_of(route: Route[Store]) -> str:
    """The whole path of a route."""
    return route.path if route.at_root else PREFIX + route.path


def operation_ids(routes: Iterable[Route[Store]]) -> Mapping[Key, str]:
    """An id for each route, by method and whole path; one at the root whose path another shares says so."""
    ids: dict[Key, str] = {}
    for each in sorted(routes, key=lambda route: route.at_root):
        name = f"{each.method.lower()}_" + re.sub(r"\W+", "_", each.path).strip("_")
        ids[each.method, address_of(each)] = name if name not in ids.values() else f"{name}_at_root"
    return ids


def feature_of(route: Route[Store]) -> str:
    """The feature that a route belongs to: the folder of its handler."""
    parts = route.handler.__module__.split(".")
    return parts[2] if len(parts) > 2 else parts[-1]


def words_of(route: Route[Store]) -> str:
    """What the handler's docstring says, without the refusals, which are listed elsewhere."""
    words = inspect.cleandoc(route.handler.__doc__ or "")
    return words.partition("Raises:")[0].strip()


class Operations:
    """Describes routes, whose shapes have these schemas."""

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
            "description": words_of(route),
            "parameters": parameters.of_request(route, self._examples),
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
        schema = self._schemas.of(route.body)
        example = route.example or self._examples.of(schema)
        shown: Document = {"schema": schema, "example": example}
        kinds = (JSON, FORM) if route.form else (JSON,)
        return {"required": not may_be_left_out(route.body), "content": dict.fromkeys(kinds, shown)}

    def _responses(self, route: Route[Store]) -> Document:
        found: dict[int, Document] = {}
        for status, shape in route.answers.items():
            found[status] = {"description": HTTPStatus(status).phrase, "headers": _headers(route, status)}
            found[status] |= self._content(route, shape)
            if following := links.of_answer((route.method, address_of(route)), status, self._ids):
                found[status]["links"] = following
        if "If-None-Match" in parameters.headers_read(route):
            found[304] = {"description": "The ETag still holds.", "headers": _headers(route, 304)}
        for refusal in refusals_of(route):
            self._add_refusal(route, refusal, found)
        for status, meaning in BEFORE_ROUTES.items():
            found.setdefault(status, {"description": meaning})
        for status, each in found.items():
            if not is_documented(route, status):
                each[ADDITION] = True
        return {str(status): found[status] for status in sorted(found)}

    def _content(self, route: Route[Store], shape: object) -> Document:
        """The body in each media type that the route can answer with, where there is one."""
        if shape is None:
            return {}
        # A stretch of a document keeps the document's media type, and is none itself.
        kinds = [each.partition(";")[0] for each in route.produces if each != JSON or shape is not bytes]
        content = {kind: self._shown(route, kind, shape) for kind in kinds}
        return {"content": content} if content else {}

    def _shown(self, route: Route[Store], kind: str, shape: object) -> Document:
        """The schema of a body in a media type, with an example where it is no mere text."""
        schema = self._schema_in(kind, shape)
        if kind == JSON and isinstance(shape, OneOf):
            shown = {each.__name__: {"value": self._examples.of(self._schemas.of(each))} for each in shape}
            return {"schema": schema, "examples": shown}
        if schema.get("type") == "string" or not schema:
            return {"schema": schema}
        if kind == _EVENTS:
            return {"schema": schema, "example": example_values.EVENTS[feature_of(route)]}
        if shape is dict:
            return {"schema": schema, "example": _open_example(route.path)}
        return {"schema": schema, "example": self._examples.of(schema)}

    def _schema_in(self, kind: str, shape: object) -> Document:
        """The schema of a body of this shape in a media type: of a stream of events, that of each."""
        if kind == _EVENTS:
            return _EVENT
        is_text = kind.startswith(_OTHER_TEXT) and shape is not bytes
        return {"type": "string"} if is_text else self._schemas.of(shape)

    def _add_refusal(self, route: Route[Store], refusal: type[Refused], found: dict[int, Document]) -> None:
        entry = found.setdefault(refusal.status, {"description": refusal.title})
        entry.setdefault("headers", _headers(route, refusal.status))
        content: Document = entry.setdefault("content", {})
        if route.produces[0].startswith("text/html"):
            content.setdefault("text/html", {"schema": {"type": "string"}})
        kind, shape = (JSON, OAuthError) if route.oauth else (PROBLEM_JSON, Problem)
        shown = content.setdefault(kind, {"schema": self._schemas.of(shape)})
        place = f"#/components/examples/{'oauth.' if route.oauth else ''}{_example_of(refusal)}"
        shown.setdefault("examples", {})[refusal.code] = {"$ref": place}
        codes: list[str] = entry.setdefault("x-codes", [])
        if refusal.code not in codes:
            codes.append(refusal.code)


def _open_example(path: str) -> Mapping[str, object]:
    """An object that the address answers with, whose members no schema names."""
    nothing: Mapping[str, object] = {}
    return next((each for place, each in example_values.OPEN.items() if path.startswith(place)), nothing)


def security_of(route: Route[Store]) -> list[Document]:
    """The schemes by which a caller may be known to a route; an empty one where nobody need be."""
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
    """What the route may refuse with: what every route may where it can arise, and its own."""
    skipped = _impossible(route)
    general = [each for each in EVERYWHERE if _may_arise(each, route, skipped)]
    return [*general, *_endings(route), *route.refusals]


def _may_arise(refusal: type[Refused], route: Route[Store], skipped: set[int]) -> bool:
    """Whether the refusal can arise at the route; a key for the sandbox is refused wherever a key is looked at, but at
    documents."""
    if refusal is SandboxOnly:
        return not route.own_credentials and not is_document(route)
    return refusal.status not in skipped


def _impossible(route: Route[Store]) -> set[int]:
    """The statuses of general refusals that cannot arise at the route. 405 is that of other methods."""
    may_arise = {
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
    return {status for status, may in may_arise.items() if not may}


def _endings(route: Route[Store]) -> list[type[Refused]]:
    """What a route refuses with when it, or something it takes, has ended."""
    members = [deprecation.MemberGone] if _ending_members(route) else []
    return [*([] if route.deprecation is None else [deprecation.EndpointGone]), *members]


def _ending_members(route: Route[Store]) -> bool:
    """Whether a parameter of the route, or a member of its body, is deprecated."""
    shapes = (route.query, *(() if route.body is None else (route.body,)))
    return any(deprecation.of_fields(shape) for shape in shapes)


def _headers(route: Route[Store], status: int) -> Document:
    """The headers of an answer with this status."""
    sent: Mapping[tuple[str, ...], bool] = {
        ("X-Request-Id",): True,
        _LIMITS: route.counted,
        tuple(route.sends.get(status, ())): True,
        ("Retry-After",): status in (429, 503),
        ("WWW-Authenticate",): status == 401,
        ("Idempotency-Replayed",): route.writes and status < HTTPStatus.TOO_MANY_REQUESTS,
        ("ETag", "Cache-Control"): route.cached and status in (200, 304),
        ("Deprecation", "Sunset", "Link"): bool(route.announced) or _ending_members(route),
    }
    names = dict.fromkeys(name for group, is_sent in sent.items() if is_sent for name in group)
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def example_components(routes: Iterable[Route[Store]], root_url: str) -> Document:
    """An example of everything the routes may refuse with, for each in both shapes: that of problems, and that of
    the OAuth endpoints."""
    found: Document = {}
    for refusal in dict.fromkeys(refusal for each in routes for refusal in refusals_of(each)):
        detail = " ".join((refusal.__doc__ or "").split()).partition(". ")[0].rstrip(".")
        short: dict[str, Any] = {"error": refusal.code, "error_description": detail}
        short |= {"code": refusal.code, "message": detail}
        if refusal.resolution:
            short["resolution"] = refusal.resolution
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
        found.setdefault(name, {"summary": refusal.title, "value": msgspec.to_builtins(problem)})
        found.setdefault(f"oauth.{name}", {"summary": refusal.title, "value": short})
    return found


def _example_of(refusal: type[Refused]) -> str:
    """What the example is called; a few codes stand at two statuses."""
    return f"{refusal.code}.{refusal.status}"
