"""Answers that pages of other sites may read, and the preflights that ask for that (Fetch standard, 3.2)."""

from collections.abc import Iterable
from typing import Any

import msgspec

from countersign.kernel.http.request import Call, Caller, ContextT
from countersign.kernel.http.response import Answer
from countersign.kernel.http.routing import Nothing, Route, route

# Never with Access-Control-Allow-Credentials: another site's page acts by the tokens it holds, not by our cookies.
SHOWN = (
    ("Access-Control-Allow-Origin", "*"),
    (
        "Access-Control-Expose-Headers",
        "ETag, Link, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, WWW-Authenticate, "
        "X-Request-Id",
    ),
)
_MAX_AGE_S = 86_400


class Preflight(msgspec.Struct, frozen=True):
    """The parameters of the request that is to follow, which are for its own route to check."""


def preflights(routes: Iterable[Route[ContextT]]) -> tuple[Route[ContextT], ...]:
    """For each address with routes that other sites may use, the OPTIONS route that says so."""
    methods: dict[tuple[str, bool], list[str]] = {}
    for each in routes:
        if each.cross_origin:
            methods.setdefault((each.path, each.at_root), []).append(each.method)
    return tuple(_preflight(path, tuple(offered), at_root=at_root) for (path, at_root), offered in methods.items())


def _preflight(path: str, offered: tuple[str, ...], *, at_root: bool) -> Route[Any]:
    headers = (
        ("Access-Control-Allow-Methods", ", ".join(offered)),
        ("Access-Control-Allow-Headers", "Authorization, Content-Type, If-None-Match, MCP-Protocol-Version, X-API-Key"),
        ("Access-Control-Max-Age", str(_MAX_AGE_S)),
    )

    async def allow(call: Call[Any, Caller, Preflight, Nothing]) -> Answer:
        """Allow pages of other sites to call this."""
        return Answer(204, headers=headers)

    return route(
        "OPTIONS",
        path,
        allow,
        query=Preflight,
        answers={204: None},
        at_root=at_root,
        own_credentials=True,
        cross_origin=True,
    )
