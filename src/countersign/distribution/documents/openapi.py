"""ROOT/openapi.json: the API description (OpenAPI 3.1), made from the declared routes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import import_module

from countersign.distribution import scopes
from countersign.distribution.auth.callers import StoreRequest
from countersign.distribution.auth.sessions import cookie_name
from countersign.distribution.context import PREFIX, Store
from countersign.distribution.documents import sections, serving, webhooks
from countersign.distribution.documents.health import API_VERSION
from countersign.distribution.documents.operations import (
    Operations,
    address_of,
    example_components,
    feature_of,
    operation_ids,
)
from countersign.distribution.documents.parameters import header_components
from countersign.distribution.documents.schemas import ADDITION, Document, Schemas
from countersign.distribution.webhooks.schemas import WebhookEvent
from countersign.kernel.http.response import Response, encode
from countersign.kernel.http.routing import Nothing, Route, route

PATH = "/openapi.json"
_ABOUT = (
    "The store: catalog, releases, library, codes, jobs. Each tag names the address of its section, which is a small "
    "description by itself. What is marked x-addition goes beyond the API document. "
    "Parameters and members of bodies that are not described are refused, but at the OAuth endpoints. HEAD is "
    "answered wherever GET is. Errors are problem details (RFC 9457); x-codes lists the codes of a status."
)


def routes(described: Sequence[Route[Store]]) -> tuple[Route[Store], ...]:
    """The route that serves the description of these routes; the sequence may still grow."""

    @lru_cache(maxsize=4)
    def encoded(root_url: str, cookie: str) -> bytes:
        return encode(document(described, root_url, cookie))

    async def show_openapi(call: StoreRequest[Nothing, Nothing]) -> Response:
        """Describe the API."""
        return serving.answer(encoded(call.context.root_url, cookie_name(call.context)))

    return (
        route("GET", PATH, show_openapi, answers={200: dict}, **serving.OPTIONS),
        *sections.routes(lambda root_url, cookie: document(described, root_url, cookie)),
    )


def document(described: Iterable[Route[Store]], root_url: str, cookie: str) -> Document:
    """The OpenAPI document of the routes of a store at this address, with sessions in this cookie."""
    listed = tuple(described)
    schemas = Schemas(listed, (WebhookEvent,))
    operations = Operations(schemas, operation_ids(listed))
    paths: dict[str, Document] = {}
    for each in listed:
        paths.setdefault(address_of(each), {})[each.method.lower()] = operations.describe(each)
    repeated = _repeated(paths)
    features = dict.fromkeys(feature_of(each) for each in listed)
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://spec.openapis.org/oas/3.1/dialect/base",
        "info": {"title": "Countersign distribution", "version": API_VERSION, "description": _ABOUT},
        "servers": [{"url": root_url}],
        "tags": [_tag(name, root_url) for name in features],
        "paths": dict(sorted(paths.items())),
        "webhooks": webhooks.described(schemas, operations.examples),
        "components": {
            "schemas": schemas.components,
            "responses": repeated,
            "headers": header_components(),
            "examples": example_components(listed, root_url),
            "securitySchemes": _schemes(root_url, cookie),
        },
    }


def _tag(feature: str, root_url: str) -> Document:
    """A section of the description, and where it is by itself."""
    words = {
        "description": "This section alone, without what others have in common.",
        "url": sections.address(root_url, feature),
    }
    return {"name": feature, "description": about(feature), "externalDocs": words}


def response(whole: Document, operation: Document, status: str) -> Document:
    """The answer of an operation of the document with this status, which others may share."""
    found: Document = operation["responses"][status]
    if "$ref" not in found:
        return found
    return whole["components"]["responses"][str(found["$ref"]).rpartition("/")[2]]


def _repeated(paths: Document) -> Document:
    """Give every answer that several operations share a name, and let them refer to it."""
    uses: dict[bytes, list[tuple[Document, str]]] = {}
    for item in paths.values():
        for operation in item.values():
            for status, entry in operation["responses"].items():
                uses.setdefault(encode(entry), []).append((operation["responses"], status))
    components: Document = {}
    numbers: Counter[str] = Counter()
    for places in uses.values():
        if len(places) > 1:
            status = places[0][1]
            numbers[status] += 1
            name = f"{status}-{numbers[status]}"
            components[name] = places[0][0][status]
            for responses, _ in places:
                responses[status] = {"$ref": f"#/components/responses/{name}"}
    return components


def about(feature: str) -> str:
    """What a feature is, in the words of its folder."""
    return (import_module(f"countersign.distribution.{feature}").__doc__ or feature).strip()


def _schemes(root_url: str, cookie: str) -> Document:
    known = {scope: scope.replace(":", " ") for scope in scopes.ALL}
    flow = {"tokenUrl": f"{root_url}{PREFIX}/auth/token", "scopes": known}
    return {
        "OAuth2": {"type": "oauth2", "flows": {"clientCredentials": flow}},
        "BearerAuth": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
        "ApiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key", ADDITION: True},
        "ClientSecret": {"type": "http", "scheme": "basic", ADDITION: True},
        "Session": {"type": "apiKey", "in": "cookie", "name": cookie, ADDITION: True},
    }
