"""The routes of all documents about the routes there are."""

from collections.abc import Iterable

from countersign.distribution.context import Store
from countersign.distribution.documents import openapi, overview, problems, wellknown, wiki
from countersign.kernel.http.routing import Route


def routes(described: Iterable[Route[Store]]) -> tuple[Route[Store], ...]:
    """The routes of the documents that describe these routes, and themselves."""
    every = [*described]
    own = (
        *openapi.routes(every),
        *problems.routes(every),
        *wiki.routes(every),
        *overview.routes(every),
        *wellknown.ROUTES,
    )
    every += own
    return own
