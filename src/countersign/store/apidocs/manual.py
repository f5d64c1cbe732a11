"""ROOT/llms.txt and ROOT/wiki.json: the manual for language models and programs."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import msgspec

from countersign.kernel.http.deprecation import GRACE
from countersign.kernel.http.idempotency import VALID_S
from countersign.kernel.http.rate_limit import WINDOW_S
from countersign.kernel.http.response import JSON, Response, encode
from countersign.kernel.http.routing import Nothing, Route, route
from countersign.store.apidocs import documents, openapi, problems
from countersign.store.apidocs.health import API_VERSION
from countersign.store.apidocs.openapi import SIGNING
from countersign.store.apidocs.operations import address_of, feature_of
from countersign.store.apidocs.schemas import ADDITION, Document
from countersign.store.auth.callers import StoreRequest
from countersign.store.context import PREFIX, Store

LLMS_PATH = "/llms.txt"
MAX_BYTES = 3 << 10
_PLAIN = "text/plain; charset=utf-8"
_TEXT = """# {name}

> A store of games, apps and tools: catalog, releases, files, a library per person, codes, jobs on builds.
> Public reads need no credential.

- Agents: {root}/auth.md. A 401 links to it; a 403 names the missing scope.
- Errors: `code` is stable, `resolution` is the next step, `type` a page about it.
- Limits: RateLimit-* headers; after a 429 wait for Retry-After. A key (recipe 2) raises the anonymous limit.
- MCP: /mcp, in the sandbox /sandbox/mcp.

## Recipes

All need curl 7.82 or newer (`--json`) and begin with:
```sh
R={root}; B=$R{prefix}
get() {{ grep -o '"'$1'":"[^"]*' | head -1 | cut -d'"' -f4; }}
```
1. Linux tools with a beta, newest first:
```sh
curl -s "$B/products?kind=tool&platform=linux&channel=beta&sort=-published_at"
```
2. Take a key, read up to 50 things in one request:
```sh
K=$(curl -s "$R/api/keys?tier=agent" | get api_key)
curl -s $B/batch -H "X-API-Key: $K" --json '{{"operations": [
 {{"method": "GET", "path": "/products?limit=2"}}, {{"method": "GET", "path": "/info"}}]}}'
```
3. Download a free file, compare its SHA-256:
```sh
P=$(curl -s "$B/products?access=free&limit=1" | get slug)
F=$(curl -s "$B/products/$P/releases?limit=1" | grep -o '"artifacts":.*')
echo "$F" | get sha256; curl -s $B/artifacts/$(echo "$F" | get id) | sha256sum
```
4. Create, upload, process and publish in the sandbox (test data):
```sh
K=$(curl -s "$R/api/keys?tier=sandbox" | get api_key)
S=$R/sandbox{prefix}; V=$S/products/my-tool/releases; C="curl -s -H X-API-Key:$K"
$C $S/products --json '{{"slug": "my-tool", "title": "My tool", "kind": "tool", "platforms": ["linux"]}}'
$C $V --json '{{"version": "1.0", "channel": "beta"}}'
A=$($C $V/1.0/artifacts --json '{{"filename": "tool.sh", "size": 5}}')
printf hello | curl -s -T - $(echo $A | get upload_url)
$C -H Prefer:wait=30 $S/jobs --json '{{"type": "build.process",
 "payload": {{"artifact_id": "'$(echo $A | get artifact_id)'"}}}}'
$C -X POST $V/1.0/publish
```
5. Act for a person: show them user_code and verification_uri, then poll (auth.md, 4):
```sh
curl -s $B/auth/register --json '{{"method": "service_auth", "email": "you@example.com", "scope": "read:library"}}'
```

## Documents

{documents}
"""
_MEANINGS = {
    "openapi": "every endpoint",
    "wiki": "rules, endpoints, errors, examples",
    "agents": "registration to revocation",
    "api-catalog": "links to all of these",
}


def llms_routes(described_routes: Sequence[Route[Store]]) -> tuple[Route[Store], ...]:
    """Return the route of the overview of these routes. Routes may be added to the sequence after this call."""

    @lru_cache(maxsize=4)
    def encode_overview(root_url: str, name: str) -> bytes:
        return overview(described_routes, root_url, name).encode()

    async def show_overview(call: StoreRequest[Nothing, Nothing]) -> Response:
        """Show an overview for language models: documents and recipes."""
        return documents.document_response(
            encode_overview(call.context.root_url, call.context.settings.resource_name), _PLAIN
        )

    produces = (_PLAIN, "text/plain", "text/markdown")
    return (route("GET", LLMS_PATH, show_overview, answers={200: str}, produces=produces, **documents.OPTIONS),)


def overview(described_routes: Sequence[Route[Store]], root_url: str, name: str) -> str:
    """Return the overview of these routes, in Markdown."""
    addresses = documents.DOCUMENTS
    lines = [f"- [{name}]({root_url}{addresses[name]}): {meaning}" for name, meaning in _MEANINGS.items()]
    features = ", ".join(dict.fromkeys(feature_of(described_route) for described_route in described_routes))
    lines.append(f"- {openapi.section_address(root_url, 'SECTION')}: one section of openapi: {features}")
    return _TEXT.format(name=name, root=root_url, prefix=PREFIX, documents="\n".join(lines))


WIKI_PATH = "/wiki.json"


class Section(msgspec.Struct):
    """A section: its text and its endpoints."""

    id: str
    text: str
    endpoints: list[str]


class Sample(msgspec.Struct, omit_defaults=True):
    """An example request and its response."""

    request: str
    body: Any = None
    status: int | None = None
    answer: Any = None


class Page(msgspec.Struct):
    """An endpoint: required scope, parameters, responses and errors. `addition` is true where the API document
    does not define the endpoint."""

    endpoint: str
    operation_id: str
    section: str
    text: str
    needs: str
    parameters: dict[str, str]
    answers: dict[str, str]
    errors: list[str]
    addition: bool
    example: Sample


class Wiki(msgspec.Struct):
    """The manual. Endpoints are named by method and path, errors by their code."""

    title: str
    version: str
    base_url: str
    sections: list[Section]
    endpoints: list[Page]
    errors: list[problems.ProblemType]
    documents: dict[str, str]


def wiki_routes(described_routes: Sequence[Route[Store]]) -> tuple[Route[Store], ...]:
    """Return the route of the manual of these routes. Routes may be added to the sequence after this call."""

    @lru_cache(maxsize=4)
    def encode_wiki(root_url: str) -> bytes:
        return encode(wiki(described_routes, root_url))

    async def show_wiki(call: StoreRequest[Nothing, Nothing]) -> Response:
        """Show the manual for programs: sections, endpoints, error codes, examples."""
        return documents.document_response(encode_wiki(call.context.root_url))

    return (route("GET", WIKI_PATH, show_wiki, answers={200: Wiki}, **documents.OPTIONS),)


def wiki(described_routes: Sequence[Route[Store]], root_url: str) -> Wiki:
    """Return the manual of these routes, for a store at this root address."""
    document = openapi.document(described_routes, root_url, "")
    pages = [
        _page(described_route, document["paths"][address_of(described_route)][described_route.method.lower()], document)
        for described_route in described_routes
    ]
    features = dict.fromkeys(feature_of(described_route) for described_route in described_routes)
    return Wiki(
        title="Countersign distribution",
        version=API_VERSION,
        base_url=root_url + PREFIX,
        sections=[
            *(Section(name, text, []) for name, text in shared_sections(root_url).items()),
            *(Section(name, openapi.section_text(name), _pages_of_section(pages, name)) for name in features),
        ],
        endpoints=pages,
        errors=[problems.problem_page(item) for _, item in sorted(problems.problem_types(described_routes).items())],
        documents={name: root_url + path for name, path in documents.DOCUMENTS.items()},
    )


def shared_sections(root_url: str) -> Mapping[str, str]:
    """Map each subject to the rules that many endpoints share."""
    return {
        "authentication": (
            "Send Authorization: Bearer TOKEN. A client gets one from POST "
            f"{root_url}{PREFIX}/auth/token with its secret; an agent follows {root_url}/auth.md. A 401 links to "
            "the metadata, a 403 names the missing scope. Public endpoints need no token."
        ),
        "trying": (
            f"GET {root_url}/api/keys?tier=sandbox returns a key without registration. Send it as X-API-Key to "
            f"{root_url}/sandbox{PREFIX}: the key owns an organisation in a separate data set, in which it can create, "
            f"publish, upload and redeem. {root_url}/mcp offers operations as tools, "
            f"{root_url}/sandbox/mcp the same in the sandbox."
        ),
        "errors": (
            "Errors are application/problem+json (RFC 9457). `code` identifies the problem, `resolution` the remedy, "
            "`errors` the invalid parameters and members. `type` is the address of a page about the code."
        ),
        "rate-limits": (
            f"Requests are counted in windows of {WINDOW_S} seconds. RateLimit-Limit, RateLimit-Remaining and "
            "RateLimit-Reset (seconds) show the caller's quota. After a 429 wait for Retry-After seconds."
        ),
        "idempotency": (
            f"Writes accept Idempotency-Key, a UUID. Repeated within {VALID_S // 3600} hours, the same request gets "
            "the first response with Idempotency-Replayed: true and has no second effect."
        ),
        "pages": (
            "Lists are paginated. Send `next_cursor`, or follow the Link header with rel=next, until there is "
            "none. A cursor is valid for the filters it was created with."
        ),
        "webhook-signatures": (
            f"POST {PREFIX}/org/webhooks (scope admin:org) registers an address for events; only its response "
            f"contains the secret. {SIGNING}"
        ),
        "versions": (
            f"The version is in the path: {PREFIX}. Deprecated endpoints and members send the Deprecation and Sunset "
            f"headers for at least {GRACE.days} days before their removal; after that they answer 410."
        ),
    }


def _pages_of_section(pages: Sequence[Page], name: str) -> list[str]:
    return [page.endpoint for page in pages if page.section == name]


def _page(route: Route[Store], operation: Document, document: Document) -> Page:
    return Page(
        endpoint=f"{route.method} {address_of(route)}",
        operation_id=operation["operationId"],
        section=feature_of(route),
        text=" ".join(operation["description"].split()),
        needs=route.scope or ("a token" if route.signed_in else "nothing"),
        parameters={parameter["name"]: parameter["in"] for parameter in operation["parameters"]},
        answers={str(status): ", ".join(dict.fromkeys(route.produces)) for status in route.answers},
        errors=sorted({refusal.code for refusal in route.refusals}),
        addition=ADDITION in operation,
        example=_sample(route, operation, document),
    )


def _sample(route: Route[Store], operation: Document, document: Document) -> Sample:
    """Return an example request and response, taken from the examples in the API description."""
    path = address_of(route)
    query_parts: list[str] = []
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", str(parameter["example"]))
        elif parameter["in"] == "query" and parameter["required"]:
            query_parts.append(f"{parameter['name']}={quote(str(parameter['example']))}")
    body = next((kind.get("example") for kind in operation.get("requestBody", {}).get("content", {}).values()), None)
    status = min(route.answers)
    content = openapi.response(document, operation, str(status)).get("content", {}).get(JSON, {})
    answer = content.get("example", next((route["value"] for route in content.get("examples", {}).values()), None))
    query = "?" + "&".join(query_parts) if query_parts else ""
    return Sample(f"{route.method} {path}{query}", body, status, answer)
