"""GET /api/v1, /health, /info and /healthz, and the start page at GET /."""

from html import escape

import msgspec

from countersign import __version__
from countersign.kernel import clock
from countersign.kernel.database import versions
from countersign.kernel.errors import Refused, Unavailable
from countersign.kernel.http import html, response
from countersign.kernel.http.html import FORMATS, FormatQuery, render_format
from countersign.kernel.http.rate_limit import DOCUMENTS
from countersign.kernel.http.response import Response, Uri
from countersign.kernel.http.routing import Nothing, route
from countersign.store.apidocs import documents
from countersign.store.auth import sign_in_pages
from countersign.store.auth.callers import StoreRequest
from countersign.store.auth.sign_in_pages import SignedInPerson
from countersign.store.context import PREFIX, Store
from countersign.store.jobs import queries as jobs

API_VERSION = "1.0.0"
MAX_UNATTENDED_S = 60


class Health(msgspec.Struct):
    """The health object of the API document."""

    status: str
    version: str


class Index(msgspec.Struct):
    """The entry point of the API: its name, its version, and links."""

    service: str
    version: str
    links: dict[str, Uri]


class Info(msgspec.Struct):
    """The info object of the API document."""

    service: str
    version: str
    storage: str


async def show_health(call: StoreRequest[FormatQuery, Nothing]) -> Response:
    """Check that database and blob store can be read and written, and that workers process jobs."""
    started_s = clock.monotonic_s()
    try:
        async with call.context.database.transaction() as transaction:
            await versions.check_writable(transaction)
        await call.context.blobs.check()
        await _require_workers(call.context)
    except Refused as refused:
        wait_text = f"{clock.monotonic_s() - started_s:.1f} s"
        raise Unavailable(
            f"{refused.detail} ({wait_text})", resolution=refused.remedy, headers={"Retry-After": "5"}
        ) from refused
    return render_format(Health("ok", API_VERSION), call.query.format)


async def _require_workers(store: Store) -> None:
    """Raises Unavailable if jobs are waiting and no worker is running. A server that uses the embedded engine and has
    no workers of its own skips the check."""
    settings = store.settings
    is_shared = store.database.dialect == "postgres" and settings.job_engine != "embedded"
    if not settings.job_workers and not is_shared:
        return
    if await jobs.unattended_s(store.database) > MAX_UNATTENDED_S:
        remedy = "Start `countersign worker`, or set COUNTERSIGN_JOB_WORKERS, and look into the log of the workers."
        raise Unavailable("jobs wait, and no worker has been seen for a minute", resolution=remedy)


async def show_info(call: StoreRequest[FormatQuery, Nothing]) -> Response:
    """Name the service, its version and its storage."""
    engine = call.context.database.dialect
    blobs = "s3" if call.context.settings.blobs_url else "local"
    return render_format(
        Info(f"countersign distribution {__version__}", API_VERSION, f"{engine}, {blobs}"), call.query.format
    )


async def show_index(call: StoreRequest[Nothing, Nothing]) -> Response:
    """List the entry points: documents, health, catalog, sandbox and keys."""
    store = call.context
    links = {name: store.root_url + path for name, path in documents.DOCUMENTS.items()}
    links |= {name: f"{store.base_url}/{name}" for name in ("health", "info", "products", "catalog")}
    links |= {"sandbox": f"{store.root_url}/sandbox", "keys": f"{store.root_url}/api/keys"}
    links["mcp"] = f"{store.root_url}/mcp"
    headers = (("Cache-Control", f"public, max-age={documents.MAX_AGE_S}"),)
    return response.json(Index(store.settings.resource_name, API_VERSION, links), headers=headers)


async def show_liveness(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Answer that the process is running, without checking its dependencies."""
    return render_format(Health("ok", API_VERSION), "json")


ROUTES = (
    route("GET", PREFIX, show_index, answers={200: Index}, at_root=True, cross_origin=True, quota=DOCUMENTS),
    route(
        "GET",
        "/health",
        show_health,
        query=FormatQuery,
        answers={200: Health},
        refusals=(Unavailable,),
        produces=FORMATS,
        documented=True,
    ),
    route("GET", "/info", show_info, query=FormatQuery, answers={200: Info}, produces=FORMATS, documented=True),
    route("GET", "/healthz", show_liveness, answers={200: Health}, counted=False, at_root=True),
)


_FOR_PROGRAMS = (
    ("API description", documents.DOCUMENTS["openapi"]),
    ("Manual", documents.DOCUMENTS["wiki"]),
    ("For agents", documents.DOCUMENTS["agents"]),
    ("For language models", documents.DOCUMENTS["llms"]),
    ("All of these", documents.DOCUMENTS["api-catalog"]),
)
_RELATIONS = {"service-doc": "agents", "api-catalog": "api-catalog", "describedby": "llms"}
DOCUMENT_LINKS = ", ".join(f'<{documents.DOCUMENTS[name]}>; rel="{rel}"' for rel, name in _RELATIONS.items())
"""The Link header of the start page and of the web pages: documents for programs."""


async def show_home(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Show the start page, with links to sign in or to the connected agents. The Link header names documents for
    programs."""
    page = await _home_page(call)
    page.headers = (*page.headers, ("Link", DOCUMENT_LINKS))
    return page


async def _home_page(call: StoreRequest[Nothing, Nothing]) -> Response:
    visitor = await sign_in_pages.current_person(call.context, call.headers)
    if visitor is not None:
        return _signed_in_page(call.context, visitor)
    if sign_in_pages.is_cross_site(call.headers):
        return sign_in_pages.redirect_page_to("/")
    links = (("Sign in", "/auth/signin"), ("Create an account", "/auth/signup"), *_FOR_PROGRAMS)
    return html.message_page(
        _store_name(call.context), "Games, apps and tools, for people and their agents.", links=links
    )


def _signed_in_page(store: Store, visitor: SignedInPerson) -> Response:
    links = (("Your connected agents", "/auth/agents"), *_FOR_PROGRAMS)
    body = (
        f"<p>You are signed in as {escape(visitor.person.email)}.</p>"
        '<form method="post" action="/auth/signout"><button class="other">Sign out</button></form>'
    )
    return html.page(_store_name(store), body + html.link_list(links))


def _store_name(store: Store) -> str:
    return store.settings.resource_name


HOME_ROUTES = (
    route(
        "GET",
        "/",
        show_home,
        answers={200: str},
        sends={200: ("Link",)},
        produces=("text/html; charset=utf-8", "text/html"),
        own_credentials=True,
        at_root=True,
    ),
)
