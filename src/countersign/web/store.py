"""The pages of the store: how they are signed in, and which are readable without a script."""

from countersign.web import product
from countersign.web.entry import Entry
from countersign.web.origin import Home
from countersign.web.sessions import ExchangedSessions


def entry(title: str, cookie_name: str, home: Home, *, link: str = "") -> Entry:
    """The store's pages; `title` is the store's name, `cookie_name` that of its session's cookie, `link` the Link
    header of each page."""
    return Entry(
        name="store",
        title=title,
        sessions=ExchangedSessions(cookie_name, "/auth/session/token", home),
        apart=("/api/", "/auth/", "/.well-known/", "/problems/", "/sandbox/", "/mcp"),
        bare=("/api/v1/auth/",),
        forgets=("/auth/",),
        rendered={
            "/": lambda visit: product.listed(visit, title),
            "/products/{slug}": lambda visit: product.shown(visit, title),
        },
        link=link,
    )
