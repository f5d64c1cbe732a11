"""Routes: each endpoint declared once, found by a tree of path segments, with preflights for other origins (CORS)."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypedDict, Unpack
from urllib.parse import unquote

import msgspec

from countersign.kernel.errors import NotFound, Refused
from countersign.kernel.http.deprecation import Deprecation, of_answers
from countersign.kernel.http.problems import MethodNotAllowed, RouteNotFound
from countersign.kernel.http.request import BodyT, Caller, CallerT, ContextT, QueryT, Request
from countersign.kernel.http.response import JSON, Response

MEBIBYTE = 1 << 20


class OneOf(tuple[type[msgspec.Struct], ...]):
    """Shapes of which an answer has one; which, its members tell."""

    __slots__ = ()


class Nothing(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """No parameters, or no members: whatever is sent here is refused as unknown."""


NOTHING = Nothing()


class Options(TypedDict, total=False):
    """What may be said of a route beside its address, handler and shapes; see `Route` for each meaning."""

    scope: str
    signed_in: bool
    writes: bool
    secret: bool
    cached: bool
    compressed: bool
    streams: bool
    takes: str
    form: bool
    oauth: bool
    own_credentials: bool
    session: bool
    quota: str
    counted: bool
    body_limit: int
    produces: tuple[str, ...]
    refusals: tuple[type[Refused], ...]
    documented: bool
    reads: tuple[str, ...]
    sends: Mapping[int, tuple[str, ...]]
    example: Mapping[str, object]
    deprecation: Deprecation
    at_root: bool
    cross_origin: bool
    alone: bool


@dataclass(frozen=True, slots=True)
class Route(Generic[ContextT]):
    """One endpoint. Made by `route`, which checks the handler's types against `query` and `body`.

    `answers` are the shapes of bodies by status: None for an empty one, OneOf where it is one of several.

    scope       what the caller's credential must carry; None: anyone may call
    signed_in   a credential is needed though no scope is named
    writes      the handler runs in one transaction together with its idempotency record
    prepare     slow work before that transaction (hashing, encoding); its result is `call.prepared`
    secret      the answer holds secrets: an idempotency record of it is sealed, caches may not keep it
    cached      the encoded answer to anonymous callers is kept in memory while its versions last
    compressed  the answer is the same for every caller, and is sent in a content coding
    streams     the handler reads the body itself
    takes       the media type of a streamed body
    form        the body may also be application/x-www-form-urlencoded
    derive      makes a streamed answer's body anew when its Idempotency-Key is used again
    settle      what is awaited once the effect is durable; its answer takes the place of the handler's, and is the
                one that is stored and replayed. Until then a second call on another node is told the handler's
    oauth       errors have the shape of RFC 6749 §5.2
    own_credentials  the handler reads Authorization itself; to everyone else the caller is anonymous
    session     the cookie of a session may let the caller in; pages say so by what they produce
    quota       counts against this quota instead of the caller's own
    counted     rate limits apply and are told in the answer's headers
    body_limit  bytes a decoded body may have
    produces    media types the route can answer with; the first is the default
    documented  it stands in the API document; others are marked as additions
    reads       headers of a request that the handler looks at, beside those that other options imply
    sends       headers of an answer by its status, beside those that every answer or another option implies
    example     a body to show, where one made from the shape alone would tell too little
    at_root     the path is relative to the root address, not to the versioned API
    cross_origin  pages of any site may send this and read the answer, never with cookies; preflights are answered
    announced   follows from the rest: what every answer says is deprecated, the route or members of its answers
    alone       it is never one of several requests in a batch
    """

    method: str
    path: str
    handler: Callable[[Request[ContextT, Any, Any, Any]], Awaitable[Response]]
    query: type[msgspec.Struct]
    body: type[msgspec.Struct] | None
    answers: Mapping[int, object]
    summary: str
    prepare: Callable[[Request[ContextT, Any, Any, Any]], Awaitable[object]] | None = None
    derive: Callable[[Request[ContextT, Any, Any, Any], Response], Awaitable[Response]] | None = None
    settle: Callable[[Request[ContextT, Any, Any, Any], Response], Awaitable[Response]] | None = None
    scope: str | None = None
    signed_in: bool = False
    writes: bool = False
    secret: bool = False
    cached: bool = False
    compressed: bool = False
    streams: bool = False
    takes: str = "application/octet-stream"
    form: bool = False
    oauth: bool = False
    own_credentials: bool = False
    session: bool = False
    quota: str | None = None
    counted: bool = True
    body_limit: int = MEBIBYTE
    produces: tuple[str, ...] = (JSON,)
    refusals: tuple[type[Refused], ...] = ()
    documented: bool = False
    reads: tuple[str, ...] = ()
    sends: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    example: Mapping[str, object] | None = None
    deprecation: Deprecation | None = None
    at_root: bool = False
    cross_origin: bool = False
    announced: tuple[Deprecation, ...] = ()
    alone: bool = False


def shapes(answers: Mapping[int, object]) -> list[object]:
    """Every shape of body among the answers."""
    found: list[object] = []
    for shape in answers.values():
        if shape is not None:
            found += shape if isinstance(shape, OneOf) else [shape]
    return found


def route(
    method: str,
    path: str,
    handler: Callable[[Request[ContextT, CallerT, QueryT, BodyT]], Awaitable[Response]],
    *,
    answers: Mapping[int, object],
    query: type[QueryT] | None = None,
    body: type[BodyT] | None = None,
    prepare: Callable[[Request[ContextT, CallerT, QueryT, BodyT]], Awaitable[object]] | None = None,
    derive: Callable[[Request[ContextT, CallerT, QueryT, BodyT], Response], Awaitable[Response]] | None = None,
    settle: Callable[[Request[ContextT, CallerT, QueryT, BodyT], Response], Awaitable[Response]] | None = None,
    **options: Unpack[Options],
) -> Route[ContextT]:
    """Declare an endpoint. The handler's docstring is its summary; `{name}` in the path is a parameter.

    Without `query` or `body` the handler's type there is `Nothing`.

    Raises:
        TypeError: the handler has no docstring.
    """
    words = (handler.__doc__ or "").strip()
    if not words:
        raise TypeError(f"{method} {path}: the handler needs a docstring, its first line is the summary")
    parameters = Nothing if query is None else query
    summary = words.splitlines()[0]
    made = Route(method, path, handler, parameters, body, answers, summary, prepare, derive, settle, **options)
    own = () if made.deprecation is None else (made.deprecation,)
    return replace(made, announced=(*own, *of_answers(shapes(answers))))


_NO_PARAMETERS: dict[str, str] = {}


class _Node(Generic[ContextT]):
    __slots__ = ("literals", "parameter", "parameter_name", "routes")

    def __init__(self) -> None:
        self.literals: dict[str, _Node[ContextT]] = {}
        self.parameter: _Node[ContextT] | None = None
        self.parameter_name = ""
        self.routes: dict[str, Route[ContextT]] = {}


class Router(Generic[ContextT]):
    """All routes of a service by path and method. HEAD is answered by the route of GET."""

    def __init__(self, routes: Iterable[Route[ContextT]], prefix: str) -> None:
        """`prefix` (such as /api/v1) goes before every route that is not declared at the root.

        Raises:
            ValueError: two routes have the same method and address.
        """
        self._root: _Node[ContextT] = _Node()
        self._static: dict[str, _Node[ContextT]] = {}
        for route in routes:
            self._add(route, route.path if route.at_root else prefix + route.path)

    def _add(self, route: Route[ContextT], path: str) -> None:
        node = self._root
        for segment in path.split("/")[1:]:
            if segment.startswith("{"):
                if node.parameter is None:
                    node.parameter, node.parameter_name = _Node(), segment[1:-1]
                if node.parameter_name != segment[1:-1]:
                    raise ValueError(f"{path}: the parameter is called {node.parameter_name} elsewhere")
                node = node.parameter
            else:
                node = node.literals.setdefault(segment, _Node())
        if route.method in node.routes:
            raise ValueError(f"{route.method} {path} is declared twice")
        node.routes[route.method] = route
        if "{" not in path:
            self._static[path] = node

    def match(self, method: str, raw_path: str) -> tuple[Route[ContextT], dict[str, str]]:
        """The route of a method and an undecoded path, with the decoded values of its parameters.

        Raises:
            RouteNotFound: nothing has this address.
            MethodNotAllowed: something has, for other methods; Allow names them.
            NotFound: a parameter is no text that anything could be named by.
        """
        node = self._static.get(raw_path)
        values = _NO_PARAMETERS
        if node is None:
            node, values = self._walk(raw_path)
        route = node.routes.get("GET" if method == "HEAD" else method)
        if route is None:
            allowed = sorted(node.routes) + (["HEAD"] if "GET" in node.routes else [])
            raise MethodNotAllowed(f"{method} is not offered here", headers={"Allow": ", ".join(sorted(allowed))})
        return route, values

    def _walk(self, raw_path: str) -> tuple[_Node[ContextT], dict[str, str]]:
        node = self._root
        values: dict[str, str] = {}
        for segment in raw_path.split("/")[1:]:
            step = node.literals.get(segment)
            if step is None:
                step = node.parameter
                if step is None or not segment:
                    raise RouteNotFound("no endpoint has this address")
                values[node.parameter_name] = _decoded(segment)
            node = step
        if not node.routes:
            raise RouteNotFound("no endpoint has this address")
        return node, values


def _decoded(segment: str) -> str:
    if "%" not in segment:
        return segment
    try:
        text = unquote(segment, errors="strict")
    except UnicodeDecodeError as error:
        raise NotFound("nothing has this name") from error
    if "\0" in text:
        raise NotFound("nothing has this name")
    return text


# Never with Access-Control-Allow-Credentials: another site's page acts by the tokens it holds, not by our cookies.
CORS_HEADERS = (
    ("Access-Control-Allow-Origin", "*"),
    (
        "Access-Control-Expose-Headers",
        "ETag, Link, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, WWW-Authenticate, "
        "X-Request-Id",
    ),
)
_PREFLIGHT_MAX_AGE_S = 86_400


class Preflight(msgspec.Struct, frozen=True):
    """The parameters of the request that is to follow, which are for its own route to check."""


def preflight_routes(routes: Iterable[Route[ContextT]]) -> tuple[Route[ContextT], ...]:
    """For each address with routes that other sites may use, the OPTIONS route that says so."""
    methods: dict[tuple[str, bool], list[str]] = {}
    for each in routes:
        if each.cross_origin:
            methods.setdefault((each.path, each.at_root), []).append(each.method)
    return tuple(
        _preflight_route(path, tuple(offered), at_root=at_root) for (path, at_root), offered in methods.items()
    )


def _preflight_route(path: str, offered: tuple[str, ...], *, at_root: bool) -> Route[Any]:
    headers = (
        ("Access-Control-Allow-Methods", ", ".join(offered)),
        ("Access-Control-Allow-Headers", "Authorization, Content-Type, If-None-Match, MCP-Protocol-Version, X-API-Key"),
        ("Access-Control-Max-Age", str(_PREFLIGHT_MAX_AGE_S)),
    )

    async def allow(call: Request[Any, Caller, Preflight, Nothing]) -> Response:
        """Allow pages of other sites to call this."""
        return Response(204, headers=headers)

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
