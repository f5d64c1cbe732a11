"""A route: one endpoint declared once, for matching, decoding, deciding, documenting and answering."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypedDict, Unpack

import msgspec

from countersign.kernel.errors import Refused
from countersign.kernel.http.deprecation import Deprecation, of_answers
from countersign.kernel.http.request import BodyT, Call, CallerT, ContextT, QueryT
from countersign.kernel.http.response import JSON, Answer

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
    handler: Callable[[Call[ContextT, Any, Any, Any]], Awaitable[Answer]]
    query: type[msgspec.Struct]
    body: type[msgspec.Struct] | None
    answers: Mapping[int, object]
    summary: str
    prepare: Callable[[Call[ContextT, Any, Any, Any]], Awaitable[object]] | None = None
    derive: Callable[[Call[ContextT, Any, Any, Any], Answer], Awaitable[Answer]] | None = None
    settle: Callable[[Call[ContextT, Any, Any, Any], Answer], Awaitable[Answer]] | None = None
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
    handler: Callable[[Call[ContextT, CallerT, QueryT, BodyT]], Awaitable[Answer]],
    *,
    answers: Mapping[int, object],
    query: type[QueryT] | None = None,
    body: type[BodyT] | None = None,
    prepare: Callable[[Call[ContextT, CallerT, QueryT, BodyT]], Awaitable[object]] | None = None,
    derive: Callable[[Call[ContextT, CallerT, QueryT, BodyT], Answer], Awaitable[Answer]] | None = None,
    settle: Callable[[Call[ContextT, CallerT, QueryT, BodyT], Answer], Awaitable[Answer]] | None = None,
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
