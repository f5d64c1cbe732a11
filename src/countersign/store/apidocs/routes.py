"""Routes of the documents about the API, with ROOT/.well-known/api-catalog (RFC 9727) and security.txt (RFC 9116)."""

import re
from collections.abc import Iterable
from datetime import timedelta

from countersign.kernel import clock
from countersign.kernel.errors import NotFound
from countersign.kernel.http.response import JSON, Response, encode
from countersign.kernel.http.routing import Nothing, Route, route
from countersign.store.apidocs import documents, manual, openapi, problems
from countersign.store.apidocs.documents import DocumentOptions
from countersign.store.auth.callers import StoreRequest
from countersign.store.context import Store

LINKSET = "application/linkset+json"
PROFILE = "https://www.rfc-editor.org/info/rfc9727"
CATALOG_PATH, SECURITY_PATH = documents.DOCUMENTS["api-catalog"], "/.well-known/security.txt"
VALID = timedelta(days=180)
_DAY = 86_400 * clock.SECOND
_PLAIN = "text/plain; charset=utf-8"


class NoSecurityContact(NotFound):
    """The operator has not configured a security contact."""

    resolution = "Operators: set COUNTERSIGN_SECURITY_CONTACT to an e-mail or web address."


async def show_api_catalog(call: StoreRequest[Nothing, Nothing]) -> Response:
    """List the APIs of this service and their descriptions."""
    root = call.context.root_url
    link = ("Link", f'<{root}{CATALOG_PATH}>; rel="api-catalog"')
    return documents.document_response(encode(api_catalog(call.context)), f'{LINKSET}; profile="{PROFILE}"', (link,))


def api_catalog(store: Store) -> dict[str, object]:
    """The linkset (RFC 9264 §4.2): the API, its description, its manual, its metadata and its health."""
    root, base = store.root_url, store.base_url
    addresses = documents.DOCUMENTS
    return {
        "linkset": [
            {"anchor": root + CATALOG_PATH, "item": [{"href": base, "title": store.settings.resource_name}]},
            {
                "anchor": base,
                "service-desc": [{"href": root + addresses["openapi"], "type": JSON}],
                "service-doc": [
                    {"href": root + addresses["wiki"], "type": JSON},
                    {"href": root + addresses["agents"], "type": "text/markdown"},
                    {"href": root + addresses["llms"], "type": "text/plain"},
                ],
                "service-meta": [
                    {"href": f"{root}/.well-known/oauth-protected-resource", "type": JSON},
                    {"href": f"{root}/.well-known/oauth-authorization-server", "type": JSON},
                ],
                "status": [{"href": f"{base}/health", "type": JSON}],
            },
        ]
    }


async def show_security(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show the security contact that the operator configured."""
    store = call.context
    contacts = contacts_of(store.settings.security_contact)
    if not contacts:
        raise NoSecurityContact("this installation names no contact for security reports")
    # The expiry date is computed from the current day, so that the file and its ETag change only once a day.
    today = clock.Instant(clock.now() // _DAY * _DAY)
    lines = [
        *(f"Contact: {contact}" for contact in contacts),
        f"Expires: {clock.rfc3339(clock.later(today, seconds=VALID.total_seconds()))}",
        f"Canonical: {store.root_url}{SECURITY_PATH}",
        "Preferred-Languages: en",
    ]
    return documents.document_response(("\n".join(lines) + "\n").encode(), _PLAIN)


def contacts_of(setting: str) -> tuple[str, ...]:
    """Return the contacts of the setting, in the same order, as URIs, which security.txt requires."""
    contacts = [word for word in re.split(r"[,\s]+", setting) if word]
    return tuple(
        contact if ":" in contact else f"mailto:{contact}" if "@" in contact else f"https://{contact}"
        for contact in contacts
    )


_HEADERS = {**documents.RESPONSE_HEADERS, 200: (*documents.RESPONSE_HEADERS[200], "Link")}
_LINKED: DocumentOptions = {**documents.OPTIONS, "sends": _HEADERS}

ROUTES = (
    route(
        "GET",
        CATALOG_PATH,
        show_api_catalog,
        answers={200: dict},
        produces=(LINKSET, JSON),
        **_LINKED,
    ),
    route(
        "GET",
        SECURITY_PATH,
        show_security,
        answers={200: str},
        refusals=(NoSecurityContact,),
        produces=(_PLAIN, "text/plain"),
        **documents.OPTIONS,
    ),
)


def routes(described_routes: Iterable[Route[Store]]) -> tuple[Route[Store], ...]:
    """Return the routes of the documents. The documents describe the given routes and their own routes."""
    all_routes = [*described_routes]
    own_routes = (
        *openapi.routes(all_routes),
        *problems.routes(all_routes),
        *manual.wiki_routes(all_routes),
        *manual.llms_routes(all_routes),
        *ROUTES,
    )
    all_routes += own_routes
    return own_routes
