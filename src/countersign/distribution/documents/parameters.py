"""Parameters and headers as the description shows them: of the path, of the query, of requests and answers."""

import re
from collections.abc import Mapping

from countersign.distribution.context import Store
from countersign.distribution.documents import api_document
from countersign.distribution.documents.examples import Examples
from countersign.distribution.documents.schemas import ADDITION, Document
from countersign.distribution.documents.schemas import parameters as query_parameters
from countersign.kernel.http.routing import Route

_UUID: Document = {"type": "string", "format": "uuid"}
_TEXT: Document = {"type": "string"}
_NUMBER: Document = {"type": "integer", "minimum": 0}

IN_PATH: Mapping[str, tuple[Document, str]] = {
    "id": ({"type": "string", "minLength": 1, "examples": ["star-harbour"]}, "A product's id or slug."),
    "job_id": (_UUID, "The job's id."),
    "version": ({"type": "string", "minLength": 1}, "The release's version."),
    "channel": ({"type": "string", "enum": ["stable", "beta", "nightly", "alpha"]}, "The channel."),
    "media_id": (_UUID, "The id of a picture or film."),
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
"""Parameters of paths by name: each names the same thing everywhere."""

OF_REQUESTS: Mapping[str, tuple[Document, str]] = {
    "Idempotency-Key": (_UUID, "A UUID of the caller's choice; the same request again is answered as the first time."),
    "If-None-Match": (_TEXT, "An ETag that the caller has; 304 when it still holds."),
    "If-Match": (_TEXT, "The ETag that the change is based on; 412 when it no longer holds."),
    "If-Range": (_TEXT, "The ETag that Range is meant for; the whole when it no longer holds."),
    "Range": (_TEXT, "The bytes to send, as bytes=FIRST-LAST; in another form the whole is sent."),
    "Content-Range": ({"type": "string", "pattern": r"^bytes [0-9]+-[0-9]+/[0-9]+$"}, "Which part the body is."),
    "Last-Event-ID": (_TEXT, "Which event was the last to arrive; a stream is not taken up again: 204."),
    "Download-Begins": ({"type": "string", "enum": ["1"]}, "The client begins to install the build: it is counted."),
    "Prefer": (_TEXT, "`respond-async`, or `wait=SECONDS` up to 30 (RFC 7240)."),
}
OF_ANSWERS: Mapping[str, tuple[Document, str]] = {
    "RateLimit-Limit": (_NUMBER, "Quota in the current window."),
    "RateLimit-Remaining": (_NUMBER, "Requests left."),
    "RateLimit-Reset": (_NUMBER, "Seconds until the window ends."),
    "Retry-After": (_NUMBER, "Seconds to wait."),
    "WWW-Authenticate": (_TEXT, "How to come in: where the metadata is, and which scope is needed."),
    "X-Request-Id": (_TEXT, "The request's id in the service's log."),
    "Idempotency-Replayed": ({"type": "string", "enum": ["true"]}, "The answer is that of the first request."),
    "ETag": (_TEXT, "The entity tag of what is sent."),
    "Cache-Control": (_TEXT, "How long the answer may be kept, and by whom."),
    "Vary": (_TEXT, "The request headers that the answer depends on."),
    "Content-Encoding": ({"type": "string", "enum": ["zstd", "gzip"]}, "How the body is compressed."),
    "Link": (_TEXT, 'The next page with rel="next", a deprecation notice with rel="deprecation".'),
    "Location": ({"type": "string", "format": "uri-reference"}, "Where it goes on."),
    "Deprecation": (_TEXT, "When what was used became deprecated (RFC 9745)."),
    "Sunset": (_TEXT, "When it ends (RFC 8594)."),
    "Preference-Applied": (_TEXT, "Which preference was followed (RFC 7240)."),
    "Upload-Received": (_TEXT, "The stretches that have arrived: FIRST-LAST,FIRST-LAST,…"),
    "Content-Range": (_TEXT, "Which part of the whole is sent."),
    "Accept-Ranges": (_TEXT, "Ranges of bytes may be asked for."),
    "Content-Disposition": (_TEXT, "The name to save it under."),
    "Repr-Digest": (_TEXT, "The SHA-256 of the whole (RFC 9530)."),
    "Release-Status": ({"type": "string", "enum": ["yanked"]}, "The release was yanked."),
    "Already-Redeemed": ({"type": "string", "enum": ["true"]}, "The caller redeemed this code before."),
    "Batch-Id": (_UUID, "The id of the batch."),
    "Set-Cookie": (_TEXT, "The session."),
}
_ALWAYS = frozenset({"X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"})


def header_components() -> Document:
    """Every header of answers, for others to refer to."""
    found: Document = {}
    for name, (schema, meaning) in OF_ANSWERS.items():
        found[name] = {"description": meaning, "required": name in _ALWAYS, "schema": schema}
        if name not in api_document.HEADERS:
            found[name][ADDITION] = True
    return found


def of_request(route: Route[Store], examples: Examples) -> list[Document]:
    """The parameters of a route: of its path, its query, and the headers it looks at."""
    known = api_document.ENDPOINTS.get((route.method, route.path), api_document.UNSAID).parameters
    listed = [*_of_path(route, examples), *_of_query(route, examples), *_of_header(route, examples)]
    for each in listed:
        if each["name"] not in known:
            each[ADDITION] = True
    return listed


def _of_path(route: Route[Store], examples: Examples) -> list[Document]:
    listed: list[Document] = []
    for name in re.findall(r"\{(\w+)\}", route.path):
        schema, meaning = IN_PATH.get(name, (_TEXT, ""))
        listed.append({"name": name, "in": "path", "required": True, "description": meaning, "schema": schema})
        listed[-1]["example"] = examples.of(schema, name)
    return listed


def _of_query(route: Route[Store], examples: Examples) -> list[Document]:
    listed: list[Document] = []
    schemas, required = query_parameters(route.query)
    for name, schema in schemas.items():
        words = schema.pop("description", "")
        listed.append(
            {"name": name, "in": "query", "required": name in required, "description": words, "schema": schema}
        )
        listed[-1]["example"] = examples.of(schema, name)
        if schema.get("deprecated"):
            listed[-1]["deprecated"] = True
    return listed


def headers_read(route: Route[Store]) -> tuple[str, ...]:
    """The headers of a request that change what a route does, but those that OpenAPI has other words for."""
    implied = ("Idempotency-Key",) if route.writes else ()
    return (*implied, *(("If-None-Match",) if route.cached else ()), *route.reads)


def _of_header(route: Route[Store], examples: Examples) -> list[Document]:
    listed: list[Document] = []
    for name in headers_read(route):
        schema, meaning = OF_REQUESTS[name]
        listed.append({"name": name, "in": "header", "required": False, "description": meaning, "schema": schema})
        listed[-1]["example"] = examples.of(schema, name)
    return listed
