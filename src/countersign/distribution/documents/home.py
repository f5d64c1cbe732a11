"""GET /: the store's start page for a person, which leads on and knows nothing else."""

from html import escape

from countersign.distribution.auth import sign_in_pages
from countersign.distribution.auth.callers import StoreRequest
from countersign.distribution.auth.sign_in_pages import Visitor
from countersign.distribution.context import Store
from countersign.distribution.documents import serving
from countersign.kernel.http import html
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, route

_FOR_PROGRAMS = (
    ("API description", serving.DOCUMENTS["openapi"]),
    ("Manual", serving.DOCUMENTS["wiki"]),
    ("For agents", serving.DOCUMENTS["agents"]),
    ("For language models", serving.DOCUMENTS["llms"]),
    ("All of these", serving.DOCUMENTS["api-catalog"]),
)
_RELATIONS = {"service-doc": "agents", "api-catalog": "api-catalog", "describedby": "llms"}
DOCUMENT_LINKS = ", ".join(f'<{serving.DOCUMENTS[name]}>; rel="{rel}"' for rel, name in _RELATIONS.items())
"""The Link header of the start page and of the web pages: where a program reads on."""


async def show_home(call: StoreRequest[Nothing, Nothing]) -> Response:
    """Lead a person on, to sign in or to their connected agents, and a program by links in the header."""
    shown = await _shown(call)
    shown.headers = (*shown.headers, ("Link", DOCUMENT_LINKS))
    return shown


async def _shown(call: StoreRequest[Nothing, Nothing]) -> Response:
    visitor = await sign_in_pages.present(call.context, call.headers)
    if visitor is not None:
        return _signed_in(call.context, visitor)
    if sign_in_pages.is_led_here(call.headers):
        return sign_in_pages.bounce("/")
    links = (("Sign in", "/auth/signin"), ("Create an account", "/auth/signup"), *_FOR_PROGRAMS)
    return html.message_page(_name(call.context), "Games, apps and tools, for people and their agents.", links=links)


def _signed_in(store: Store, visitor: Visitor) -> Response:
    links = (("Your connected agents", "/auth/agents"), *_FOR_PROGRAMS)
    body = (
        f"<p>You are signed in as {escape(visitor.person.email)}.</p>"
        '<form method="post" action="/auth/signout"><button class="other">Sign out</button></form>'
    )
    return html.page(_name(store), body + html.link_list(links))


def _name(store: Store) -> str:
    return store.settings.resource_name


ROUTES = (
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
