"""ROOT/llms.txt: what there is and how to begin, for a language model to read whole (llmstxt.org): 3 KB at most."""

from collections.abc import Sequence
from functools import lru_cache

from countersign.distribution.auth.callers import StoreRequest
from countersign.distribution.context import PREFIX, Store
from countersign.distribution.documents import sections, serving
from countersign.distribution.documents.operations import feature_of
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, Route, route

PATH = "/llms.txt"
MAX_BYTES = 3 << 10
_PLAIN = "text/plain; charset=utf-8"
_TEXT = """# {name}

> A store of games, apps and tools: catalog, releases, files, a library per person, codes, jobs on builds.
> Public reads need no credential.

- Agents of a person: {root}/auth.md. A 401 links to it; a 403 names the missing scope.
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
4. Create, upload, process, publish in the sandbox, where nothing is real:
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


def routes(described: Sequence[Route[Store]]) -> tuple[Route[Store], ...]:
    """The route of the overview of these routes; the sequence may still grow."""

    @lru_cache(maxsize=4)
    def encoded(root_url: str, name: str) -> bytes:
        return overview(described, root_url, name).encode()

    async def show_overview(call: StoreRequest[Nothing, Nothing]) -> Response:
        """Give an overview for language models: the documents and endpoints there are."""
        return serving.answer(encoded(call.context.root_url, call.context.settings.resource_name), _PLAIN)

    produces = (_PLAIN, "text/plain", "text/markdown")
    return (route("GET", PATH, show_overview, answers={200: str}, produces=produces, **serving.OPTIONS),)


def overview(described: Sequence[Route[Store]], root_url: str, name: str) -> str:
    """The overview, in Markdown."""
    documents = [f"- [{each}]({root_url}{serving.DOCUMENTS[each]}): {meaning}" for each, meaning in _MEANINGS.items()]
    features = ", ".join(dict.fromkeys(feature_of(each) for each in described))
    documents.append(f"- {sections.address(root_url, 'SECTION')}: one section of openapi: {features}")
    return _TEXT.format(name=name, root=root_url, prefix=PREFIX, documents="\n".join(documents))
