"""Declares endpoints as routes, and finds the route of a request in a tree of path segments. CORS preflights also have
routes."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypedDict, Unpack
from urllib.parse import unquote

import msgspec

from countersign.kernel.errors import NotFound, Refused
from countersign.kernel.http.deprecation import Deprecation, response_deprecations
from countersign.kernel.http.problems import MethodNotAllowed, RouteNotFound
from countersign.kernel.http.request import BodyT, CallerT, ContextT, Headers, QueryT, Request, RequestCaller
from countersign.kernel.http.response import JSON, EncodedHeaders, Response

MEBIBYTE = 1 << 20
FORM_BYTES = 64 << 10
"""The maximum size of a form. Decoding a form blocks all other requests, about a second for 8 MiB."""
MAX_KNOWN_PATHS, MAX_KNOWN_LENGTH = 512, 200
"""The maximum number and the maximum length of cached paths of raw routes. The paths of commands are few, so the cache
contains all of them."""


class OneOf(tuple[type[msgspec.Struct], ...]):
    """Alternative shapes of a response, distinguished by their members."""

    __slots__ = ()


class Nothing(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A struct without members. Each parameter or member that is sent is refused as unknown."""


NOTHING = Nothing()


class Options(TypedDict, total=False):
    """Options of a route besides its path, handler and shapes; see `Route`."""

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
    optional_body: bool
    guard: Callable[[Headers], None]


@dataclass(frozen=True, slots=True)
class Route(Generic[ContextT]):
    """One endpoint. Create it with `route`, which checks the handler's types against `query` and `body`.

    `answers` maps a status to the shape of the body: None for an empty body, OneOf for alternatives. A route is raw if
    its body is `bytes`. For a raw route, the size and the media type of the body are checked before the caller is
    identified. The handler itself decodes path, query and body, negotiates the content, and handles idempotency.

    scope       the scope that the caller's credential must have; None: anyone may call
    signed_in   a credential is required, without a scope
    writes      the handler runs in one transaction together with its idempotency record
    prepare     work before that transaction (hashing, encoding, counting); its result is `call.prepared`
    prepare_before_batch  replaces `prepare` in an atomic batch. It runs before the transaction of the batch begins, so
                that other writers do not wait while it uses remote counters. It does not see the effects of earlier
                operations
    secret      the response contains secrets: its idempotency record is encrypted, caches may not store it
    cached      the encoded response to anonymous callers is cached in memory until its versions change
    compressed  the response is the same for every caller, and is sent compressed
    streams     the handler reads the body itself
    takes       the media type of a streamed or raw body
    optional_body  a raw body, together with its Content-Type, may be missing
    guard       checks the headers of a raw route before everything else
    form        the body may also be application/x-www-form-urlencoded
    derive      rebuilds the body of a streamed response when its Idempotency-Key is used again
    settle      is awaited after the effect is durable; its response replaces the handler's response, and is stored and
                replayed. Until then, a repeated request on another node gets the handler's response
    oauth       errors have the shape of RFC 6749 §5.2
    own_credentials  the handler itself reads Authorization; the application treats the caller as anonymous
    session     accepts the session cookie; a route that `produces` a page always does
    quota       counts against this quota instead of the caller's own
    counted     rate limits apply and are sent in headers
    body_limit  maximum size of a decoded body in bytes (for a route with `form`: FORM_BYTES)
    produces    media types of the response; the first is the default
    documented  part of the API document; others are marked as additions
    reads       request headers that the handler reads, besides those that other options imply
    sends       response headers by status, besides those that every response gets or another option implies
    example     an example of a body, where one generated from the shape would not be helpful
    at_root     the path is relative to the root address, not to the versioned API
    cross_origin  pages of any origin may call this, without cookies (CORS); preflights are answered
    announced   derived from the rest: the deprecations of the route and of members of its responses
    is_raw      derived from `body`
    alone       never part of a batch
    """

    method: str
    path: str
    handler: Callable[[Request[ContextT, Any, Any, Any]], Awaitable[Response]]
    query: type[msgspec.Struct]
    body: type[msgspec.Struct | bytes] | None
    answers: Mapping[int, object]
    summary: str
    prepare: Callable[[Request[ContextT, Any, Any, Any]], Awaitable[object]] | None = None
    prepare_before_batch: Callable[[Request[ContextT, Any, Any, Any]], Awaitable[object]] | None = None
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
    optional_body: bool = False
    guard: Callable[[Headers], None] | None = None
    is_raw: bool = False


def shapes(answers: Mapping[int, object]) -> list[object]:
    """Return the shapes of all response bodies."""
    route_shapes: list[object] = []
    for shape in answers.values():
        if shape is not None:
            route_shapes += shape if isinstance(shape, OneOf) else [shape]
    return route_shapes


def route(
    method: str,
    path: str,
    handler: Callable[[Request[ContextT, CallerT, QueryT, BodyT]], Awaitable[Response]],
    *,
    answers: Mapping[int, object],
    query: type[QueryT] | None = None,
    body: type[BodyT] | None = None,
    prepare: Callable[[Request[ContextT, CallerT, QueryT, BodyT]], Awaitable[object]] | None = None,
    prepare_before_batch: Callable[[Request[ContextT, CallerT, QueryT, BodyT]], Awaitable[object]] | None = None,
    derive: Callable[[Request[ContextT, CallerT, QueryT, BodyT], Response], Awaitable[Response]] | None = None,
    settle: Callable[[Request[ContextT, CallerT, QueryT, BodyT], Response], Awaitable[Response]] | None = None,
    **options: Unpack[Options],
) -> Route[ContextT]:
    """Declare an endpoint. The handler's docstring is its summary; `{name}` in the path is a parameter.

    A handler of a route without `query` or `body` declares the type `Nothing` for the missing one.

    Raises:
        TypeError: the handler has no docstring.
    """
    words = (handler.__doc__ or "").strip()
    if not words:
        raise TypeError(f"{method} {path}: the handler needs a docstring, its first line is the summary")
    parameters = Nothing if query is None else query
    summary = words.splitlines()[0]
    if options.get("form"):
        options.setdefault("body_limit", FORM_BYTES)
    hooks = (prepare, prepare_before_batch, derive, settle)
    new_route = Route(method, path, handler, parameters, body, answers, summary, *hooks, **options)
    own_deprecation = () if new_route.deprecation is None else (new_route.deprecation,)
    announced = (*own_deprecation, *response_deprecations(shapes(answers)))
    return replace(new_route, announced=announced, is_raw=body is bytes)


_NO_PARAMETERS: dict[str, str] = {}


class _Node(Generic[ContextT]):
    __slots__ = ("is_raw", "literals", "parameter", "parameter_name", "routes")

    def __init__(self) -> None:
        self.literals: dict[str, _Node[ContextT]] = {}
        self.parameter: _Node[ContextT] | None = None
        self.parameter_name = ""
        self.routes: dict[str, Route[ContextT]] = {}
        self.is_raw = False


class Router(Generic[ContextT]):
    """All routes of a service by path and method. HEAD uses the route of GET."""

    def __init__(self, routes: Iterable[Route[ContextT]], prefix: str) -> None:
        """`prefix` (such as /api/v1) precedes the path of every route that is not declared `at_root`.

        Raises:
            ValueError: two routes have the same method and address.
        """
        self._root: _Node[ContextT] = _Node()
        self._static: dict[str, _Node[ContextT]] = {}
        self._known: dict[str, tuple[_Node[ContextT], dict[str, str]]] = {}
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
                node.is_raw = route.is_raw
            else:
                node = node.literals.setdefault(segment, _Node())
        if route.method in node.routes:
            raise ValueError(f"{route.method} {path} is declared twice")
        node.routes[route.method] = route
        if "{" not in path:
            self._static[path] = node

    def match(self, method: str, raw_path: str) -> tuple[Route[ContextT], dict[str, str]]:
        """Return the route of a method and an undecoded path, with the decoded values of its parameters.

        Raises:
            RouteNotFound: no route has this path.
            MethodNotAllowed: the path has only routes for other methods, which the header Allow lists.
            NotFound: a parameter is not valid UTF-8 text.
        """
        node = self._static.get(raw_path)
        values = _NO_PARAMETERS
        if node is None:
            node, values = self._known.get(raw_path) or self._walk(raw_path)
        route = node.routes.get("GET" if method == "HEAD" else method)
        if route is None:
            allowed_methods = sorted(node.routes) + (["HEAD"] if "GET" in node.routes else [])
            raise MethodNotAllowed(
                f"{method} is not offered here", headers={"Allow": ", ".join(sorted(allowed_methods))}
            )
        return route, values

    def _walk(self, raw_path: str) -> tuple[_Node[ContextT], dict[str, str]]:
        values: dict[str, str] = {}
        node = _find(self._root, raw_path.split("/"), 1, values)
        if node is None:
            raise RouteNotFound("no endpoint has this address")
        if node.is_raw and len(raw_path) <= MAX_KNOWN_LENGTH:
            if len(self._known) >= MAX_KNOWN_PATHS:
                self._known.clear()
            self._known[raw_path] = node, values
        return node, values


def _find(
    node: _Node[ContextT], segments: list[str], position: int, values: dict[str, str]
) -> _Node[ContextT] | None:
    """Return the node of the segments from this position on. A literal segment hides a parameter in its place, unless
    the parameter is raw and the path does not exist below the literal."""
    if position == len(segments):
        return node if node.routes else None
    segment = segments[position]
    literal, parameter = node.literals.get(segment), node.parameter
    match_below = None if literal is None else _find(literal, segments, position + 1, values)
    if match_below is not None or parameter is None:
        return match_below
    if parameter.is_raw:
        values[node.parameter_name] = segment
    elif literal is None and segment:
        values[node.parameter_name] = _decoded(segment)
    else:
        return None
    return _find(parameter, segments, position + 1, values)


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


# Access-Control-Allow-Credentials is never sent, since pages of other origins use their own tokens, not our cookies.
CORS_HEADERS: EncodedHeaders = (
    (b"access-control-allow-origin", b"*"),
    (
        b"access-control-expose-headers",
        b"ETag, Link, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, WWW-Authenticate, "
        b"X-Request-Id",
    ),
)
_PREFLIGHT_MAX_AGE_S = 86_400


class Preflight(msgspec.Struct, frozen=True):
    """The parameters of the actual request, which its own route checks."""


def preflight_routes(routes: Iterable[Route[ContextT]]) -> tuple[Route[ContextT], ...]:
    """Return an OPTIONS route for each path that has a route with `cross_origin`."""
    methods: dict[tuple[str, bool], list[str]] = {}
    for declared_route in routes:
        if declared_route.cross_origin:
            methods.setdefault((declared_route.path, declared_route.at_root), []).append(declared_route.method)
    return tuple(
        _preflight_route(path, tuple(methods_of_path), at_root=at_root)
        for (path, at_root), methods_of_path in methods.items()
    )


def _preflight_route(path: str, offered: tuple[str, ...], *, at_root: bool) -> Route[Any]:
    headers = (
        ("Access-Control-Allow-Methods", ", ".join(offered)),
        ("Access-Control-Allow-Headers", "Authorization, Content-Type, If-None-Match, MCP-Protocol-Version, X-API-Key"),
        ("Access-Control-Max-Age", str(_PREFLIGHT_MAX_AGE_S)),
    )

    async def allow(call: Request[Any, RequestCaller, Preflight, Nothing]) -> Response:
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
