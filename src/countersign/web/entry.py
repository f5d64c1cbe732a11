"""What tells the pages of one service from those of another."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from countersign.kernel.http.exchange import Exchange
from countersign.kernel.http.request import ASGIApp, Headers
from countersign.kernel.http.response import Response
from countersign.web.asking import Reply
from countersign.web.origin import Home
from countersign.web.sessions import Sessions
from countersign.web.shell import Rendered


class Visit(Protocol):
    """A request for a page, as far as whoever renders it needs to know."""

    home: Home
    headers: Headers
    values: Mapping[str, str]
    """The parameters in the page's path."""
    query: str
    """What stands behind the question mark of its address."""

    async def is_signed_in(self) -> bool:
        """Whether the visitor has a session; no page that tells is ever kept by a cache of many."""
        ...

    async def get(self, target: str) -> Reply:
        """What the API answers this visitor to a GET of the address."""
        ...


Renderer = Callable[[Visit], Awaitable[Rendered | None]]
"""Makes a page on the server; None leaves it to the script."""

Handler = Callable[[ASGIApp, Exchange, dict[str, object]], Awaitable[Response]]
"""Answers a request of the pages themselves, with the service to ask, and the request's scope."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The pages of one service.

    name      the folder in frontend/ whose main.tsx they are built from
    title     what stands in the window
    sessions  from cookie to bearer
    apart     where the service's addresses begin for which there never is a page
    bare      where the API's addresses begin to which a POST brings its own credentials: no bearer is added
    forgets   where the addresses begin at which a session changes
    rendered  by template, which pages are made on the server as well
    own       by method and path, what the pages themselves answer
    link      the Link header of each page
    """

    name: str
    title: str
    sessions: Sessions
    apart: tuple[str, ...] = ("/api/",)
    bare: tuple[str, ...] = ()
    forgets: tuple[str, ...] = ()
    rendered: Mapping[str, Renderer] = field(default_factory=dict[str, Renderer])
    own: Mapping[tuple[str, str], Handler] = field(default_factory=dict[tuple[str, str], Handler])
    link: str = ""


class Addresses:
    """Which page is at an address."""

    def __init__(self, templates: Sequence[str]) -> None:
        self._patterns = [(each, re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", each))) for each in templates]

    def at(self, path: str) -> tuple[str, Mapping[str, str]] | None:
        """The template that the path fits, with the values in it; the first one that does."""
        for template, pattern in self._patterns:
            found = pattern.fullmatch(path)
            if found is not None:
                return template, found.groupdict()
        return None
