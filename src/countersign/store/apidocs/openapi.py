"""ROOT/openapi.json and its sections: the API description (OpenAPI 3.1), made from the declared routes."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, get_args

from countersign.kernel.errors import NotFound
from countersign.kernel.http.response import Response, encode
from countersign.kernel.http.routing import Nothing, Route, route
from countersign.kernel.webhooks.outbox import PING
from countersign.store import scopes
from countersign.store.apidocs import documents
from countersign.store.apidocs.documents import SECTIONS
from countersign.store.apidocs.examples import Examples
from countersign.store.apidocs.health import API_VERSION
from countersign.store.apidocs.operations import (
    Operations,
    address_of,
    example_components,
    feature_of,
    header_components,
    operation_ids,
)
from countersign.store.apidocs.schemas import ADDITION, Document, Schemas
from countersign.store.auth.callers import StoreRequest
from countersign.store.auth.sessions import cookie_name
from countersign.store.context import PREFIX, Store
from countersign.store.webhook_events import EventType
from countersign.store.webhooks import SUBJECTS, WebhookEvent

FOLDER = "/openapi"
MakeDocument: TypeAlias = Callable[[str, str], Document]
"""A function that makes the whole description, given the root address and the name of the session's cookie."""

_REFERENCE = re.compile(r'"#/components/([a-zA-Z]+)/([^"]+)"')


class SectionNotFound(NotFound):
    """The description has no section of this name."""

    resolution = "Use a section that a tag of /openapi.json links to under externalDocs."


def section_address(root_url: str, section: str) -> str:
    """Return the address of a section's description."""
    return f"{root_url}{FOLDER}/{section}"


def section_routes(whole_document: MakeDocument) -> tuple[Route[Store], ...]:
    """Return the route that serves the sections of a description."""

    @lru_cache(maxsize=4)
    def encode_sections(root_url: str, cookie: str) -> dict[str, bytes]:
        document = whole_document(root_url, cookie)
        return {tag["name"]: encode(section_document(document, tag["name"])) for tag in document["tags"]}

    async def show_section(call: StoreRequest[Nothing, Nothing]) -> Response:
        """Show the OpenAPI description of one section."""
        sections = encode_sections(call.context.root_url, cookie_name(call.context))
        document = sections.get(call.path["section"])
        if document is None:
            raise SectionNotFound(
                "the description has no such section", resolution=f"Use one of: {', '.join(sections)}."
            )
        return documents.document_response(document)

    return (
        route(
            "GET",
            f"{FOLDER}/{{section}}",
            show_section,
            answers={200: dict},
            refusals=(SectionNotFound,),
            **documents.OPTIONS,
        ),
    )


def section_document(whole_document: Document, section: str) -> Document:
    """Return the description of one section: the operations of the section, and the components that the operations
    refer to."""
    paths = {path: _operations(whole_document, item, section) for path, item in whole_document["paths"].items()}
    webhooks = {name: item for name, item in whole_document["webhooks"].items() if section in item["post"]["tags"]}
    section_part: Document = {**whole_document, "components": {}, "webhooks": webhooks}
    section_part["tags"] = [tag for tag in whole_document["tags"] if tag["name"] == section]
    section_part["paths"] = {path: item for path, item in paths.items() if item}
    if not webhooks:
        del section_part["webhooks"]
    section_part["components"] = {
        **_components(whole_document, section_part),
        "securitySchemes": whole_document["components"]["securitySchemes"],
    }
    return section_part


def _operations(whole_document: Document, item: Document, section: str) -> Document:
    return {
        method: _without_headers(whole_document, value) for method, value in item.items() if section in value["tags"]
    }


def _without_headers(whole_document: Document, operation: Document) -> Document:
    responses = {
        status: _short_response(whole_document, status, response) for status, response in operation["responses"].items()
    }
    return {
        **operation,
        "responses": {status: response for status, response in responses.items() if response},
    }


def _short_response(whole_document: Document, status: str, response: Document) -> Document:
    """Return a response without headers and links, or only the description and the codes of an error. Return an empty
    object for an error without codes, which the server sends before routing."""
    if "$ref" in response:
        response = whole_document["components"]["responses"][str(response["$ref"]).rpartition("/")[2]]
    if int(status) < 400:
        return {name: value for name, value in response.items() if name not in ("headers", "links")}
    if "x-codes" not in response:
        return {}
    return {"description": response["description"], "x-codes": response["x-codes"]}


def _components(whole_document: Document, section_part: Document) -> Document:
    """Return the components of `whole_document` that `section_part` refers to, directly or through other components."""
    components_by_kind: dict[str, dict[str, Any]] = {}
    pending_references = _references(section_part)
    while pending_references:
        kind, name = pending_references.pop()
        if name not in components_by_kind.setdefault(kind, {}):
            components_by_kind[kind][name] = whole_document["components"][kind][name]
            pending_references |= _references(components_by_kind[kind][name])
    return {kind: dict(sorted(members.items())) for kind, members in sorted(components_by_kind.items())}


def _references(document_part: object) -> set[tuple[str, str]]:
    pairs: Iterable[tuple[str, str]] = _REFERENCE.findall(encode(document_part).decode())
    return set(pairs)


SIGNING = (
    "Each message is signed according to Standard Webhooks 1.0.0: the text to sign is the header `webhook-id`, a full "
    "stop, the header `webhook-timestamp` (seconds since 1970), a full stop, and the body byte for byte. The key is "
    "the base64-decoded part of the secret after `whsec_`. `webhook-signature` contains one or more signatures, "
    "separated by spaces, each `v1,` and the base64 of the HMAC-SHA256. Accept the message when one of them is equal, "
    "compared in constant time, and the timestamp is at most 5 minutes old or ahead. `webhook-id` stays the same when "
    "a message is sent again: handle each id once. Answer 2xx within 10 seconds."
)
_HEADERS = {
    "webhook-id": ("The id of the event; the same in every attempt.", "01890a5d-ac96-774b-bcce-b302099a8057"),
    "webhook-timestamp": ("When this attempt was sent, in seconds since 1970.", "1772366400"),
    "webhook-signature": (
        "Signatures of id, timestamp and body, separated by spaces.",
        "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
    ),
}


def describe_webhooks(schemas: Schemas, examples: Examples) -> Document:
    """Map each type of event to the description of its webhook."""
    return {kind: {"post": _message(kind, schemas, examples)} for kind in (*get_args(EventType), PING)}


def _message(kind: str, schemas: Schemas, examples: Examples) -> Document:
    meaning, subject = SUBJECTS[kind]
    schema = schemas.schema_of(WebhookEvent)
    content = {"schema": schema, "example": {**examples.example_of(schema), "type": kind, "subject": subject}}
    return {
        "operationId": f"webhook_{kind.replace('.', '_')}",
        "tags": ["webhooks"],
        "summary": meaning,
        "description": f"{meaning} {SIGNING}",
        "parameters": [
            {
                "name": name,
                "in": "header",
                "required": True,
                "description": description,
                "schema": {"type": "string"},
                "example": example,
            }
            for name, (description, example) in _HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": content}},
        "responses": {"2XX": {"description": "The message was received. Any other answer is a failed attempt."}},
        "security": [],
        ADDITION: True,
    }


PATH = "/openapi.json"
_ABOUT = (
    "The store: catalog, releases, library, codes, jobs. Each tag names the address of a description of its section "
    "alone. x-addition marks what the API document does not define. Undescribed parameters and body members are "
    "rejected, except at the OAuth endpoints. HEAD is supported wherever GET is. Errors are problem details (RFC "
    "9457); x-codes lists the codes of a status."
)


def routes(described_routes: Sequence[Route[Store]]) -> tuple[Route[Store], ...]:
    """Return the routes that serve the description of these routes. Routes may be added to the sequence after this
    call."""

    @lru_cache(maxsize=4)
    def encode_document(root_url: str, cookie: str) -> bytes:
        return encode(document(described_routes, root_url, cookie))

    async def show_openapi(call: StoreRequest[Nothing, Nothing]) -> Response:
        """Show the OpenAPI description of the API."""
        return documents.document_response(encode_document(call.context.root_url, cookie_name(call.context)))

    return (
        route("GET", PATH, show_openapi, answers={200: dict}, **documents.OPTIONS),
        *section_routes(lambda root_url, cookie: document(described_routes, root_url, cookie)),
    )


def document(described_routes: Iterable[Route[Store]], root_url: str, cookie: str) -> Document:
    """Return the OpenAPI document of these routes. `cookie` is the name of the session cookie."""
    listed_routes = tuple(described_routes)
    schemas = Schemas(listed_routes, (WebhookEvent,))
    operations = Operations(schemas, operation_ids(listed_routes))
    paths: dict[str, Document] = {}
    for listed_route in listed_routes:
        paths.setdefault(address_of(listed_route), {})[listed_route.method.lower()] = operations.describe(listed_route)
    repeated_responses = _share_responses(paths)
    features = dict.fromkeys(feature_of(listed_route) for listed_route in listed_routes)
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://spec.openapis.org/oas/3.1/dialect/base",
        "info": {"title": "Countersign distribution", "version": API_VERSION, "description": _ABOUT},
        "servers": [{"url": root_url}],
        "tags": [_tag(name, root_url) for name in features],
        "paths": dict(sorted(paths.items())),
        "webhooks": describe_webhooks(schemas, operations.examples),
        "components": {
            "schemas": schemas.components,
            "responses": repeated_responses,
            "headers": header_components(),
            "examples": example_components(listed_routes, root_url),
            "securitySchemes": _security_schemes(root_url, cookie),
        },
    }


def _tag(feature: str, root_url: str) -> Document:
    """Return the tag of a section, with the address of the section's own document."""
    descriptions = {
        "description": "This section alone, without the shared parts.",
        "url": section_address(root_url, feature),
    }
    return {"name": feature, "description": section_text(feature), "externalDocs": descriptions}


def response(whole_document: Document, operation: Document, status: str) -> Document:
    """Return the response of an operation with this status. If several operations share the response, follow the
    reference to the component."""
    response_object: Document = operation["responses"][status]
    if "$ref" not in response_object:
        return response_object
    return whole_document["components"]["responses"][str(response_object["$ref"]).rpartition("/")[2]]


def _share_responses(paths: Document) -> Document:
    """Move every response that several operations share into a named component."""
    uses: dict[bytes, list[tuple[Document, str]]] = {}
    for item in paths.values():
        for operation in item.values():
            for status, entry in operation["responses"].items():
                uses.setdefault(encode(entry), []).append((operation["responses"], status))
    components: Document = {}
    numbers: Counter[str] = Counter()
    for users in uses.values():
        if len(users) > 1:
            status = users[0][1]
            numbers[status] += 1
            name = f"{status}-{numbers[status]}"
            components[name] = users[0][0][status]
            for responses, _ in users:
                responses[status] = {"$ref": f"#/components/responses/{name}"}
    return components


def section_text(feature: str) -> str:
    """Return the subject of a section, as text."""
    return SECTIONS.get(feature, feature)


def _security_schemes(root_url: str, cookie: str) -> Document:
    known_scopes = {scope: scope.replace(":", " ") for scope in scopes.ALL}
    flow = {"tokenUrl": f"{root_url}{PREFIX}/auth/token", "scopes": known_scopes}
    return {
        "OAuth2": {"type": "oauth2", "flows": {"clientCredentials": flow}},
        "BearerAuth": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
        "ApiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key", ADDITION: True},
        "ClientSecret": {"type": "http", "scheme": "basic", ADDITION: True},
        "Session": {"type": "apiKey", "in": "cookie", "name": cookie, ADDITION: True},
    }
