"""The common parts of the documents about the API: addresses, caching and sections."""

from collections.abc import Mapping
from typing import TypedDict

from countersign.kernel.http.rate_limit import DOCUMENTS as QUOTA
from countersign.kernel.http.response import JSON, Response, etag_of
from countersign.kernel.http.response_cache import VARY

MAX_AGE_S = 300
DOCUMENTS: Mapping[str, str] = {
    "openapi": "/openapi.json",
    "wiki": "/wiki.json",
    "agents": "/auth.md",
    "llms": "/llms.txt",
    "api-catalog": "/.well-known/api-catalog",
}
"""Maps the name of each document to its path. Other documents link to a document by this name."""
RESPONSE_HEADERS: Mapping[int, tuple[str, ...]] = dict.fromkeys(
    (200, 304), ("ETag", "Cache-Control", "Vary", "Content-Encoding")
)
"""Maps each status of a document's response to the headers of that response."""


class DocumentOptions(TypedDict):
    """The route options that are the same for every document."""

    at_root: bool
    compressed: bool
    cross_origin: bool
    quota: str
    reads: tuple[str, ...]
    sends: Mapping[int, tuple[str, ...]]


OPTIONS: DocumentOptions = {
    "at_root": True,
    "compressed": True,
    "cross_origin": True,
    "quota": QUOTA,
    "reads": ("If-None-Match",),
    "sends": RESPONSE_HEADERS,
}
"""The values of the route options that are the same for every document."""


def document_response(body: bytes, media_type: str = JSON, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """Return the document with its entity tag. A route with `OPTIONS` answers 304 to a client that sends this tag."""
    headers = (("Cache-Control", f"public, max-age={MAX_AGE_S}"), VARY, *headers)
    return Response(200, body, media_type, headers, etag_of(body))


SECTIONS: dict[str, str] = {
    "accounts": "Accounts of people: sign-up with a proven e-mail address, and reset of a lost password.",
    "agents": "Agents: how they register, how a person claims one, and the tokens they get.",
    "ask": "Questions about the catalog in natural language, answered from its tables.",
    "batch": "Several calls in one request: independent calls, or one transaction.",
    "builds": "Artifacts of releases: announcement, upload, and download.",
    "catalog": "Public data: products, their releases, search, and the whole catalog as a document.",
    "delivery": "Updates for clients: channels, manifests, chunks and deltas.",
    "documents": "Health of the store, its API description, and the pages of its problem types.",
    "identity": "Organisations, people, OAuth clients, sessions and tokens.",
    "jobs": "Jobs: requested in one call, run by worker processes, and readable until they are removed.",
    "keys": "Self-serve API keys: anyone can get one; it grants read access to public data only.",
    "library": "The library: the products that the caller owns.",
    "oauth": "OAuth endpoints: tokens, authorization with consent, revocation, and metadata.",
    "personal": "What belongs to the caller alone: follows, collections, notifications, sessions, and an export.",
    "processing": "Processing of uploaded artifacts, and removal of draft releases.",
    "publishing": "Products, releases and media: create, edit and publish.",
    "redeem": "Redeem codes: issue them in batches, and redeem them into a library.",
    "sandbox": "The sandbox: the whole API on temporary data sets, one for each key or anonymous address.",
    "signing": "The keys that organisations sign builds and channels with.",
    "statistics": "Statistics of an organisation: downloads, redemptions, updates, followers and bytes by day.",
    "tools": "The store's operations as tools of the Model Context Protocol.",
    "webhooks": "Webhooks of an organisation: receivers of events, and their deliveries.",
}

# Maps a module path below the store's package to its section, for modules whose section is not named after the folder.
SECTION_OF: dict[str, str] = {
    "apidocs": "documents",
    "auth.accounts": "accounts",
    "auth.agents": "agents",
    "auth.api_keys": "keys",
    "auth.oauth": "oauth",
    "auth.security_events": "agents",
    "auth": "identity",
    "mcp_tools": "tools",
    "nlweb": "ask",
    "releases.artifacts": "builds",
    "releases.draft_removal": "processing",
    "releases.processing": "processing",
    "releases.update_delivery": "delivery",
    "releases": "publishing",
    "signing_keys": "signing",
}


def section_of(module: str) -> str:
    """Return the section of a module of handlers. The longest matching path in `SECTION_OF` determines the section; if
    no path matches, the section is the name of the first folder below the store's package."""
    path = module.split(".")[2:] or [module]
    for length in range(len(path), 0, -1):
        if (section := SECTION_OF.get(".".join(path[:length]))) is not None:
            return section
    return path[0]
