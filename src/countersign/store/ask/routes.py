"""POST and GET /ask: questions in natural language (API document; decisions 10), also in the forms of NLWeb.

NLWeb is a protocol for questions to web sites, with two generations. In the first, the members of a question are flat,
and the events of a stream have no name but a `message_type`. In the second (specification 0.54), the question is nested
in an object, and answers have the member `_meta`. Streams are server-sent events (WHATWG HTML §9.2).
"""

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.errors import Refused, invalid_member
from countersign.kernel.http import response as http_answer
from countersign.kernel.http.problems import problem
from countersign.kernel.http.response import Response, encode
from countersign.kernel.http.routing import Nothing, OneOf, Options, route
from countersign.store.ask import answers
from countersign.store.ask.answers import QuestionAnswer
from countersign.store.auth.callers import StoreRequest
from countersign.store.catalog.filter import Filter, error_in
from countersign.store.catalog.filter_answers import Source, Status
from countersign.store.catalog.filter_queries import Facts, facts
from countersign.store.context import Store

MAX_QUESTION = 2_000
MAX_RESULTS = 20
API_VERSION = "0.54"
EVENTS = "text/event-stream"
_TYPES = {"game": "VideoGame", "app": "SoftwareApplication", "tool": "SoftwareApplication"}
_PIECE = re.compile(r".{1,80}(?:\s|$)|\s*\S+\s?", re.DOTALL)
Short = Annotated[str, msgspec.Meta(max_length=MAX_QUESTION)]
Question = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=MAX_QUESTION,
        pattern=r"\S",
        description="A question in plain words about products and their releases.",
        examples=["Which games run on Linux?"],
        extra={"needs": "must not be blank"},
    ),
]
_MODES = (
    "`list` and `summarize` answer from the catalog. With `generate`, a language model reads the question; this needs "
    "a configured model."
)
Mode = Annotated[Literal["list", "summarize", "generate"], msgspec.Meta(description=_MODES)]
Streamed = Annotated[bool, msgspec.Meta(description="Whether the answer is a stream of server-sent events.")]
QueryId = Annotated[str, msgspec.Meta(max_length=200, description="An id that the caller chooses for the question.")]
Unused = Annotated[Short, msgspec.Meta(description="NLWeb; accepted, without effect.")]
Previous = Annotated[Short, msgspec.Meta(description="The questions before this one, the oldest first; one a line.")]
Questions = Annotated[list[Short], msgspec.Meta(description="The questions before this one, the oldest first.")]
Standalone = Annotated[Short, msgspec.Meta(description="The question, understandable without the previous questions.")]


class AskOptions(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The response format of POST /ask: a stream of events, or one object."""

    stream: Streamed = False


class QuestionParameters(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The optional members of every question."""

    decontextualized_query: Standalone | None = None
    mode: Mode | None = None
    query_id: QueryId | None = None


class AskQuery(QuestionParameters):
    """The parameters of GET /ask."""

    q: Question
    stream: Streamed = False
    prev: Previous | None = None


class FlatQuestion(QuestionParameters, kw_only=True):
    """The additional members of the flat NLWeb forms."""

    streaming: Streamed | None = None
    generate_mode: Mode | None = None


class AskBody(FlatQuestion):
    """A question in natural language; the members other than `query` are NLWeb's."""

    query: Question
    prev: Questions | None = None


class NlwebQuery(FlatQuestion):
    """The parameters of NLWeb clients at /ask of the site's root."""

    query: Question
    site: Unused | None = None
    prev: Previous | None = None


class NestedQuestion(msgspec.Struct):
    """A nested question of NLWeb 0.5."""

    text: Question


class Preferences(msgspec.Struct, forbid_unknown_fields=True):
    """The preferences of an NLWeb client; language, form and agent are ignored."""

    streaming: bool = False
    mode: Mode = "list"
    response_format: Short | None = None
    accept_language: Short | None = msgspec.field(default=None, name="accept-language")
    user_agent: Short | None = msgspec.field(default=None, name="user-agent")


class Context(msgspec.Struct, forbid_unknown_fields=True):
    """The context of an NLWeb question: `prev` are the previous questions, the oldest first."""

    type: Short | None = msgspec.field(default=None, name="@type")
    prev: Short | list[Short] | None = None
    text: Short | None = None
    memory: Any = None


class ClientVersion(msgspec.Struct, forbid_unknown_fields=True):
    """The NLWeb version of a client."""

    version: Short | None = None
    api_version: Short | None = None
    session_context: dict[str, Any] | None = None


class NlwebBody(FlatQuestion):
    """A question of NLWeb clients at /ask of the site's root: flat, or nested in an object."""

    query: Question | NestedQuestion
    site: Short | None = None
    prev: Previous | list[Short] | None = None
    context: Context | None = None
    prefer: Preferences | None = None
    meta: ClientVersion | None = None


class Result(msgspec.Struct):
    """A product or release of an answer in NLWeb's form; `schema_object` is of schema.org, `score` 0…100."""

    url: str
    name: str
    site: str
    score: int
    description: str
    schema_object: dict[str, Any]


class AskAnswer(msgspec.Struct):
    """An answer, its sources, and its filter (null: the question was not understood). `status` is `partial` if the
    words in `unused` were ignored; `suggestions` are questions that can be answered."""

    answer: str
    status: Status
    sources: list[Source]
    query: Filter | None
    confidence: float
    suggestions: list[str]
    unused: list[str]
    query_id: str
    results: list[Result]


class AnswerMeta(msgspec.Struct):
    """The kind of an NLWeb answer."""

    response_type: Literal["answer", "elicitation", "failure"]
    version: str = API_VERSION


class NlwebAnswer(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The answer to a nested question."""

    meta: AnswerMeta = msgspec.field(name="_meta")
    query_id: str
    results: list[dict[str, Any]] = []
    answer: str | None = None
    elicitation: dict[str, Any] | None = None
    error: dict[str, str] | None = None


Event = tuple[str, object]
"""An event of a stream: name (empty for none) and data."""


class Form(NamedTuple):
    """The form of an answer: the body of a response, or the first event, the events of the answer, and the event of an
    error in a stream."""

    body: Callable[[QuestionAnswer, AskAnswer], object]
    start: Callable[[str], Event]
    events: Callable[[QuestionAnswer, AskAnswer], Iterable[Event]]
    error: Callable[[StoreRequest[Any, Any], Refused], Event]


async def wire_answer(store: Store, answered: QuestionAnswer, query_id: str) -> AskAnswer:
    """Return the answer as it is sent, with the first twenty products and releases that are its sources."""
    sources = answered.sources[:MAX_RESULTS]
    products = {each.slug: each for each in await facts(store.database, [each.product for each in sources])}
    # A product may have been removed from the catalog in the meantime.
    scored = [(each, 100 - index) for index, each in enumerate(sources) if each.product in products]
    rows = [_result(store, products[each.product], each, score) for each, score in scored]
    head = answered.text, answered.status, [*answered.sources], answered.filter, answered.confidence
    return AskAnswer(*head, [*answered.suggestions], [*answered.unused], query_id, rows)


def _result(store: Store, product: Facts, source: Source, score: int) -> Result:
    detail = product.detail
    described: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": _TYPES[detail.kind],
        "applicationCategory": detail.kind,
        "name": detail.title,
        "url": f"{store.base_url}/products/{detail.slug}",
        "operatingSystem": ", ".join(detail.platforms),
        "publisher": {"@type": "Organization", "name": product.publisher},
        "keywords": ", ".join(detail.tags),
        "isAccessibleForFree": detail.access == "free",
    }
    described |= {name: value for name in ("description", "license") if (value := getattr(detail, name))}
    name = detail.title
    if source.release is not None:
        name = f"{detail.title} {source.release}"
        described["softwareVersion"] = source.release
    elif detail.channels:
        newest = detail.channels[0]
        described |= {"softwareVersion": newest.version, "datePublished": newest.published_at}
    return Result(source.url, name, store.root_url, score, detail.description or "", described)


def _events(answered: QuestionAnswer, answer: AskAnswer) -> Iterable[Event]:
    """Return one `source` event for each source, the text in `delta` events, and `done` with the complete answer."""
    yield from (("source", source) for source in answer.sources)
    yield from (("delta", {"text": piece}) for piece in _PIECE.findall(answered.text))
    yield "done", answer


def _error_event(call: StoreRequest[Any, Any], refused: Refused) -> Event:
    body = problem(refused, call.context.problems_root, call.target).body
    return "error", msgspec.Raw(body if isinstance(body, bytes) else b"{}")


DOCUMENTED = Form(
    body=lambda _, answer: answer,
    start=lambda query_id: ("start", {"id": query_id}),
    events=_events,
    error=_error_event,
)


def nested(answered: QuestionAnswer, answer: AskAnswer) -> NlwebAnswer:
    """Return the answer in the `_meta` form: an elicitation if it needs a clarification, a failure if there is no
    answer."""
    if answered.candidates:
        question = {"id": "1", "text": answered.text, "type": "single_select", "options": [*answered.candidates]}
        elicitation = {"text": answered.text, "questions": [question]}
        return NlwebAnswer(meta=AnswerMeta("elicitation"), query_id=answer.query_id, elicitation=elicitation)
    if answered.status == "refused":
        return failure(answer.query_id, "NO_RESULTS", answered.text)
    rows = [{**row.schema_object, "name": row.name, "grounding": {"source_urls": [row.url]}} for row in answer.results]
    return NlwebAnswer(meta=AnswerMeta("answer"), query_id=answer.query_id, answer=answer.answer, results=rows)


def failure(query_id: str, code: str, message: str) -> NlwebAnswer:
    """Return the response to a nested question without an answer."""
    return NlwebAnswer(meta=AnswerMeta("failure"), query_id=query_id, error={"code": code, "message": message})


def flat_events(answered: QuestionAnswer, answer: AskAnswer) -> Iterable[Event]:
    """Return the unnamed messages of NLWeb's first generation, each with its `message_type`."""
    tail = {"query_id": answer.query_id}
    if answer.results:
        yield "", {"message_type": "result_batch", "results": answer.results, **tail}
    yield "", {"message_type": "ask_user" if answered.candidates else "summary", "message": answer.answer, **tail}
    yield "", {"message_type": "complete", **tail}


def nested_events(answered: QuestionAnswer, answer: AskAnswer) -> Iterable[Event]:
    """Return the events `result` and `complete`: fragments of the `_meta` form."""
    whole: dict[str, Any] = msgspec.to_builtins(nested(answered, answer))
    results = whole.pop("results", None)
    if results:
        yield "result", {"message_type": "result_batch", "results": results, "query_id": answer.query_id}
    yield "complete", {"message_type": "complete", **whole}


def _api_version(query_id: str) -> dict[str, Any]:
    return {"message_type": "api_version", "api_version": API_VERSION, "query_id": query_id}


FLAT = Form(
    body=lambda _, answer: answer,
    start=lambda query_id: ("", _api_version(query_id)),
    events=flat_events,
    error=lambda _, refused: ("", {"message_type": "error", "error": refused.detail, "status": refused.status}),
)
NESTED = Form(
    body=nested,
    start=lambda query_id: ("start", {**_api_version(query_id), "_meta": {"version": API_VERSION}}),
    events=nested_events,
    error=lambda _, refused: (
        "complete",
        {"message_type": "error", "error": {"code": refused.code, "message": refused.detail}},
    ),
)


class ModeNotSupported(Refused):
    """The mode requires a language model, and none is configured."""

    status = 400
    code = "not_supported"
    title = "Mode not supported"
    resolution = "Ask with mode=list or mode=summarize, or without a mode."


class QuestionRequest(NamedTuple):
    """A question, the previous questions, the id of the question, and how it is read."""

    text: str
    previous: list[str]
    query_id: str
    mode: Mode


def request_of(members: QuestionParameters, question: str, previous: str | list[str] | None) -> QuestionRequest:
    """Return the question of a request. A decontextualised question replaces the previous questions."""
    standalone = (members.decontextualized_query or "").strip()
    mode = members.mode or (members.generate_mode if isinstance(members, FlatQuestion) else None)
    query_id = members.query_id or ids.new_uuid()
    return QuestionRequest(standalone or question, [] if standalone else lines(previous), query_id, mode or "list")


def lines(previous: str | list[str] | None) -> list[str]:
    """Return the previous questions. NLWeb's first generation separates questions by commas, which questions can
    contain: this API separates them by lines."""
    return previous if isinstance(previous, list) else [line for line in (previous or "").splitlines() if line.strip()]


async def respond(
    call: StoreRequest[Any, Any], asked: QuestionRequest, form: Form, *, is_streamed: bool = False
) -> Response:
    """Answer a question in a form: as a stream of events if it `is_streamed` or the client accepts only events.

    Raises:
        ModeNotSupported: the mode needs a model, and none is configured.
    """
    store = call.context
    is_streamed |= (call.headers.get("accept") or "").split(";")[0].strip() == EVENTS
    if is_streamed and call.headers.get("last-event-id") is not None:
        # A stream cannot be resumed: the status 204 makes the client stop reconnecting.
        return http_answer.no_content()
    if asked.mode == "generate" and not store.settings.ask_model_url:
        raise ModeNotSupported("mode=generate needs a model, and none is configured here")
    if is_streamed:
        headers = (("Cache-Control", "no-store"), ("X-Accel-Buffering", "no"))
        return Response(200, _stream(call, asked, form), EVENTS, headers)
    return http_answer.json(form.body(*await _outcome(store, asked)))


async def _outcome(store: Store, asked: QuestionRequest) -> tuple[QuestionAnswer, AskAnswer]:
    is_read_by_model = asked.mode == "generate"
    found = await answers.answer(store, asked.text, clock.now(), asked.previous, with_model=is_read_by_model)
    return found, await wire_answer(store, found, asked.query_id)


async def _stream(call: StoreRequest[Any, Any], asked: QuestionRequest, form: Form) -> AsyncGenerator[bytes]:
    """Yield the events in the requested form: the first one immediately, then those of the answer, or an error
    event."""
    yield _encoded(form.start(asked.query_id))
    try:
        events = form.events(*await _outcome(call.context, asked))
    except Refused as refused:
        # The response has begun, so the error can only be sent as part of the stream.
        events = [form.error(call, refused)]
    for event in events:
        yield _encoded(event)


def _encoded(event: Event) -> bytes:
    name, data = event
    head = b"event: %b\n" % name.encode() if name else b""
    return b"%bdata: %b\n\n" % (head, encode(data))


async def ask(call: StoreRequest[AskOptions, AskBody]) -> Response:
    """Ask about products and releases in natural language. `stream=true` sends the answer as server-sent events:
    `start`, `source` for each source, `delta` with pieces of the text, `done` with the whole answer, or `error`."""
    body, is_flat = call.body, bool(call.body.streaming) and not call.query.stream
    form, is_streamed = FLAT if is_flat else DOCUMENTED, call.query.stream or is_flat
    return await respond(call, request_of(body, body.query, body.prev), form, is_streamed=is_streamed)


async def ask_by_query(call: StoreRequest[AskQuery, Nothing]) -> Response:
    """Ask about products and releases in natural language, with the question in the URL."""
    query = call.query
    return await respond(call, request_of(query, query.q, query.prev), DOCUMENTED, is_streamed=query.stream)


async def ask_for_nlweb(call: StoreRequest[Nothing, NlwebBody]) -> Response:
    """Ask about products and releases in natural language, in the forms of NLWeb clients."""
    body = call.body
    if not isinstance(body.query, NestedQuestion):
        return await _respond_flat(call, body, body.query)
    context = None if body.decontextualized_query else body.context
    preferred = body.prefer or Preferences()
    asked = request_of(body, body.query.text, (context and lines(context.prev)) or body.prev)
    asked = asked._replace(mode=preferred.mode)
    try:
        return await respond(call, asked, NESTED, is_streamed=preferred.streaming)
    except ModeNotSupported as refused:
        return http_answer.json(failure(asked.query_id, "NOT_SUPPORTED", refused.detail))


async def ask_as_nlweb(call: StoreRequest[NlwebQuery, Nothing]) -> Response:
    """Ask about products and releases in natural language, with the parameters of NLWeb clients."""
    return await _respond_flat(call, call.query, call.query.query)


async def _respond_flat(call: StoreRequest[Any, Any], members: NlwebQuery | NlwebBody, question: str) -> Response:
    """Answer a flat question: only its stream differs from the documented API."""
    is_streamed = bool(members.streaming)
    asked = request_of(members, question, members.prev)
    return await respond(call, asked, FLAT if is_streamed else DOCUMENTED, is_streamed=is_streamed)


async def search_catalog(call: StoreRequest[Nothing, Filter]) -> Response:
    """Search products, releases and publishers with a filter, the object that answers contain as `query`."""
    wrong = error_in(call.body)
    if wrong is not None:
        raise invalid_member("/where", wrong)
    found = await answers.of_filter(call.context, call.body)
    return http_answer.json(await wire_answer(call.context, found, ids.new_uuid()))


_OPTIONS: Options = {
    "refusals": (ModeNotSupported,),
    "produces": ("application/json", EVENTS),
    "reads": ("Last-Event-ID",),
}
_DOCUMENTED: Options = {**_OPTIONS, "documented": True}
_AT_ROOT: Options = {**_OPTIONS, "at_root": True}
_FLAT: Mapping[int, object] = {200: AskAnswer, 204: None}
_EITHER: Mapping[int, object] = {200: OneOf((AskAnswer, NlwebAnswer)), 204: None}

ROUTES = (
    route("POST", "/ask", ask, query=AskOptions, body=AskBody, answers=_FLAT, **_DOCUMENTED),
    route("GET", "/ask", ask_by_query, query=AskQuery, answers=_FLAT, **_DOCUMENTED),
    # The address at which NLWeb's clients expect the endpoint.
    route("POST", "/ask", ask_for_nlweb, body=NlwebBody, answers=_EITHER, **_AT_ROOT),
    route("GET", "/ask", ask_as_nlweb, query=NlwebQuery, answers=_FLAT, **_AT_ROOT),
)

TOOLS = (route("POST", "/search_catalog", search_catalog, body=Filter, answers={200: AskAnswer}),)
"""The tool for agents, which has no HTTP address."""
