"""The configuration of a site: everything that differs between the pages of the services."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from countersign.kernel.http.exchange import Exchange
from countersign.kernel.http.request import ASGIApp, Headers
from countersign.kernel.http.response import Response
from countersign.web.api_client import ApiResponse
from countersign.web.origin import PublicAddress
from countersign.web.page_shell import RenderedPage
from countersign.web.sessions import Sessions


class PageRequest(Protocol):
    """A request for a page, as passed to the renderer."""

    address: PublicAddress
    headers: Headers
    values: Mapping[str, str]
    """The parameters in the path."""
    query: str
    """The query string."""

    async def is_signed_in(self) -> bool:
        """Whether the visitor has a session; shared caches never store pages that depend on it."""
        ...

    async def get(self, target: str) -> ApiResponse:
        """The response of the API to this visitor's GET of the target."""
        ...

    async def get_public(self, target: str) -> ApiResponse:
        """The response of the API to a GET of the target without the visitor's session."""
        ...


Renderer = Callable[[PageRequest], Awaitable[RenderedPage | None]]
"""Renders a page on the server. None means that only the script renders the page."""

Resource = Callable[[PageRequest], Awaitable[Response]]
"""Responds to a GET of something that belongs to a page, such as its picture for link previews."""

Handler = Callable[[ASGIApp, Exchange, dict[str, object]], Awaitable[Response]]
"""Handles a request to the site itself, with the service to call, and the scope of the request."""


@dataclass(frozen=True, slots=True)
class SiteConfig:
    """The pages of one service.

    name                    the folder in frontend/ with the main.tsx that they are built from
    title                   the title of the window
    sessions                exchanges cookies for bearer tokens
    service_paths           prefixes of paths of the service, which never have pages
    own_credentials_paths   prefixes of API paths whose POST requests have their own credentials and get no bearer token
    session_change_paths    prefixes of paths at which a session changes
    renderers               maps path templates to the renderers of pages that are also rendered on the server
    resources               maps path templates to what belongs to the pages and is not itself a page
    handlers                maps methods and paths to handlers of requests that the site answers itself
    link_header             the Link header of each page
    """

    name: str
    title: str
    sessions: Sessions
    service_paths: tuple[str, ...] = ("/api/",)
    own_credentials_paths: tuple[str, ...] = ()
    session_change_paths: tuple[str, ...] = ()
    renderers: Mapping[str, Renderer] = field(default_factory=dict[str, Renderer])
    resources: Mapping[str, Resource] = field(default_factory=dict[str, Resource])
    handlers: Mapping[tuple[str, str], Handler] = field(default_factory=dict[tuple[str, str], Handler])
    link_header: str = ""


class PageRoutes:
    """Finds the page of a path."""

    def __init__(self, templates: Sequence[str]) -> None:
        self._patterns = [
            (template, re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template))) for template in templates
        ]

    def match(self, path: str) -> tuple[str, Mapping[str, str]] | None:
        """The first template that matches the path, with its values."""
        for template, pattern in self._patterns:
            path_match = pattern.fullmatch(path)
            if path_match is not None:
                return template, path_match.groupdict()
        return None
