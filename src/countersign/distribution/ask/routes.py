"""POST and GET /ask: questions in plain words (API document; decisions 10), in NLWeb's forms as well.

NLWeb has two generations: flat members with unnamed events that carry `message_type`, and questions nested in an object
with the `_meta` form (specification 0.54). Streams are server-sent events (WHATWG HTML §9.2).
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from countersign.distribution.ask import answers
from countersign.distribution.ask.answers import Answered, Source, Status
from countersign.distribution.catalog.filter import Filter, fault
from countersign.distribution.catalog.filter_queries import Facts, facts
from countersign.distribution.context import Store
from countersign.distribution.identity.callers import Request
from countersign.kernel import clock, ids
from countersign.kernel.errors import Refused, invalid_member, invalid_parameter
from countersign.kernel.http import answer as http_answer
from countersign.kernel.http.answer import Answer, encode
from countersign.kernel.http.problems import problem
from countersign.kernel.http.route import Nothing, OneOf, Options, route

MAX_QUESTION = 2_000
MAX_RESULTS = 20
API_VERSION = "0.54"
EVENTS = "text/event-stream"
_NO_MODEL = "mode=generate needs a model, and none is configured here"
_TYPES = {"game": "VideoGame", "app": "SoftwareApplication", "tool": "SoftwareApplication"}
_PIECE = re.compile(r".{1,80}(?:\s|$)|\S+\s?", re.DOTALL)
_ASKED = "A question in plain words about products and their releases."
_EXAMPLES = ["Which games run on Linux?"]
Question = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_QUESTION, description=_ASKED, examples=_EXAMPLES)]
Short = Annotated[str, msgspec.Meta(max_length=MAX_QUESTION)]
_MODES = (
    "`list` and `summarize` answer from the catalog; `generate` has a model read the question, where one is configured."
)
Mode = Annotated[Literal["list", "summarize", "generate"], msgspec.Meta(description=_MODES)]
Streamed = Annotated[bool, msgspec.Meta(description="Whether the answer is a stream of server-sent events.")]
QueryId = Annotated[str, msgspec.Meta(max_length=200, description="An id of the caller's for the question.")]
Unused = Annotated[Short, msgspec.Meta(description="NLWeb; accepted, without effect.")]
Previous = Annotated[Short, msgspec.Meta(description="The questions before this one, the oldest first; one a line.")]
Questions = Annotated[list[Short], msgspec.Meta(description="The questions before this one, the oldest first.")]
Standalone = Annotated[Short, msgspec.Meta(description="The question in words that need none before it.")]


class AskOptions(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How POST /ask is to answer: as a stream of events, or as one object."""

    stream: Streamed = False


class Asked(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What every question can have beside its text."""

    decontextualized_query: Standalone | None = None
    mode: Mode | None = None
    query_id: QueryId | None = None


class AskQuery(Asked):
    """The parameters of GET /ask."""

    q: Question
    stream: Streamed = False
    prev: Previous | None = None


class NlwebQuery(Asked):
    """What clients of NLWeb send to the /ask at a site's root."""

    query: Question
    site: Unused | None = None
    prev: Previous | None = None
    streaming: Streamed | None = None
    generate_mode: Mode | None = None


class AskBody(Asked):
    """A question, in plain words; the members beside `query` are NLWeb's."""

    query: Question
    prev: Questions | None = None
    streaming: Streamed | None = None
    generate_mode: Mode | None = None


class NestedQuestion(msgspec.Struct):
    """A question as NLWeb 0.5 nests it."""

    text: Question


class Preferences(msgspec.Struct, forbid_unknown_fields=True):
    """What an NLWeb client prefers; language, form and agent change nothing."""

    streaming: bool = False
    mode: Mode = "list"
    response_format: Short | None = None
    accept_language: Short | None = msgspec.field(default=None, name="accept-language")
    user_agent: Short | None = msgspec.field(default=None, name="user-agent")


class Context(msgspec.Struct, forbid_unknown_fields=True):
    """What was said before, as NLWeb sends it: `prev` are the questions, the oldest first."""

    type: Short | None = msgspec.field(default=None, name="@type")
    prev: Short | list[Short] | None = None
    text: Short | None = None
    memory: Any = None


class ClientVersion(msgspec.Struct, forbid_unknown_fields=True):
    """Which NLWeb a client speaks."""

    version: Short | None = None
    api_version: Short | None = None
    session_context: dict[str, Any] | None = None


class NlwebBody(Asked):
    """A question as clients of NLWeb send it to the /ask at a site's root: flat, or nested in an object."""

    query: Question | NestedQuestion
    site: Short | None = None
    prev: Previous | list[Short] | None = None
    streaming: Streamed | None = None
    generate_mode: Mode | None = None
    context: Context | None = None
    prefer: Preferences | None = None
    meta: ClientVersion | None = None


class Result(msgspec.Struct):
    """A product or release of an answer, as NLWeb lists it; `schema_object` is of schema.org, `score` 0…100."""

    url: str
    name: str
    site: str
    score: int
    description: str
    schema_object: dict[str, Any]


class AskAnswer(msgspec.Struct):
    """An answer, what it is from, and the filter that was run (null: the question was not understood). `status` is
    `partial` where words of the question were not used, which are `unused`; `suggestions` are questions that have
    answers."""

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
    """What kind of NLWeb answer this is."""

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


class Outcome(NamedTuple):
    """An answer: as the engine has it, and as the wire has it."""

    answered: Answered
    answer: AskAnswer


Answering = Callable[[], Awaitable[Outcome]]


def previous_questions(given: str | list[str] | None) -> list[str]:
    """The questions before this one. NLWeb's first generation separates them by commas, which questions have too: a
    text is one question for each line."""
    return given if isinstance(given, list) else [line for line in (given or "").splitlines() if line.strip()]


async def answer_of(store: Store, answered: Answered, query_id: str) -> AskAnswer:
    """The answer as the wire has it, with the first twenty products and releases that it is from."""
    sources = answered.sources[:MAX_RESULTS]
    products = {each.detail.slug: each for each in await facts(store.database, [each.product for each in sources])}
    rows = [_result(store, products[each.product], each, 100 - place) for place, each in enumerate(sources)]
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
    if source.release is not None:
        described["softwareVersion"] = source.release
    elif detail.channels:
        newest = detail.channels[0]
        described |= {"softwareVersion": newest.version, "datePublished": newest.published_at}
    described |= {name: value for name in ("description", "license") if (value := getattr(detail, name))}
    name = detail.title if source.release is None else f"{detail.title} {source.release}"
    return Result(source.url, name, store.root_url, score, detail.description or "", described)


def nested(outcome: Outcome) -> NlwebAnswer:
    """The answer in the `_meta` form: an elicitation where it asks back, a failure where it cannot tell."""
    answered, answer = outcome
    if answered.status != "refused" and not answered.candidates:
        rows = [
            {**row.schema_object, "name": row.name, "grounding": {"source_urls": [row.url]}} for row in answer.results
        ]
        return NlwebAnswer(meta=AnswerMeta("answer"), query_id=answer.query_id, answer=answer.answer, results=rows)
    if not answered.candidates:
        return failure(answer.query_id, "NO_RESULTS", answered.text)
    question = {"id": "1", "text": answered.text, "type": "single_select", "options": [*answered.candidates]}
    elicitation = {"text": answered.text, "questions": [question]}
    return NlwebAnswer(meta=AnswerMeta("elicitation"), query_id=answer.query_id, elicitation=elicitation)


def failure(query_id: str, code: str, message: str) -> NlwebAnswer:
    """The answer to a nested question that has none."""
    return NlwebAnswer(meta=AnswerMeta("failure"), query_id=query_id, error={"code": code, "message": message})


def event(name: str, value: object) -> bytes:
    """A named event; '' for one without a name."""
    head = b"event: %b\n" % name.encode() if name else b""
    return b"%bdata: %b\n\n" % (head, encode(value))


async def documented_events(
    query_id: str, answering: Answering, root_url: str, target: str
) -> AsyncGenerator[bytes]:
    """`start`, a `source` each, the text in `delta`s, and `done` with the whole answer; or `error`, a problem."""
    yield event("start", {"id": query_id})
    try:
        _, answer = await answering()
    except Refused as refused:
        # The head is sent: the refusal can only be in the stream.
        body = problem(refused, root_url, target).body
        yield b"event: error\ndata: %b\n\n" % (body if isinstance(body, bytes) else b"{}")
        return
    for source in answer.sources:
        yield event("source", source)
    for piece in _PIECE.findall(answer.answer):
        yield event("delta", {"text": piece})
    yield event("done", answer)


async def flat_events(query_id: str, answering: Answering) -> AsyncGenerator[bytes]:
    """Unnamed messages of NLWeb's first generation, each with its `message_type`."""
    yield event("", {"message_type": "api_version", "api_version": API_VERSION, "query_id": query_id})
    try:
        answered, answer = await answering()
    except Refused as refused:
        yield event("", {"message_type": "error", "error": refused.detail, "status": refused.status})
        return
    if answer.results:
        yield event("", {"message_type": "result_batch", "results": answer.results, "query_id": query_id})
    kind = "ask_user" if answered.candidates else "summary"
    yield event("", {"message_type": kind, "message": answer.answer, "query_id": query_id})
    yield event("", {"message_type": "complete", "query_id": query_id})


async def nested_events(query_id: str, answering: Answering) -> AsyncGenerator[bytes]:
    """`start`, `result`, `complete`: fragments of the `_meta` form."""
    head: dict[str, Any] = {"message_type": "api_version", "api_version": API_VERSION, "query_id": query_id}
    yield event("start", {**head, "_meta": {"version": API_VERSION}})
    try:
        whole = nested(await answering())
    except Refused as refused:
        yield event("complete", {"message_type": "error", "error": {"code": refused.code, "message": refused.detail}})
        return
    if whole.results:
        yield event("result", {"message_type": "result_batch", "results": whole.results, "query_id": query_id})
    rest = {name: value for name in ("answer", "elicitation", "error") if (value := getattr(whole, name)) is not None}
    yield event("complete", {"message_type": "complete", "_meta": whole.meta, "query_id": query_id, **rest})


class ModeNotSupported(Refused):
    """A mode needs a language model, and none is configured."""

    status = 400
    code = "not_supported"
    title = "Mode not supported"
    resolution = "Ask with mode=list or mode=summarize, or without a mode."


class _Asked(NamedTuple):
    """A question, and the form of its answer."""

    question: str
    previous: list[str]
    query_id: str
    mode: Mode
    form: str
    is_streamed: bool


def _asked(
    given: AskQuery | NlwebQuery | AskBody | NlwebBody, question: str, place: str, *, is_streamed: bool
) -> _Asked:
    """The question in the flat form. A question in words that need none before it replaces those before it."""
    _require_text(question, place)
    standalone = (given.decontextualized_query or "").strip()
    previous = [] if standalone else previous_questions(given.prev)
    mode: Mode = given.mode or getattr(given, "generate_mode", None) or "list"
    form = "flat" if is_streamed and hasattr(given, "generate_mode") else "documented"
    return _Asked(standalone or question, previous, given.query_id or ids.new_uuid(), mode, form, is_streamed)


def _require_text(question: str, place: str) -> None:
    if not question.strip():
        raise (invalid_member if place.startswith("/") else invalid_parameter)(place, "must not be blank")


async def ask(call: Request[AskOptions, AskBody]) -> Answer:
    """Ask about products and releases in plain words. `stream=true` sends the answer as server-sent events: `start`,
    a `source` each, `delta` with pieces of the text, `done` with the whole answer, or `error`."""
    asked = _asked(call.body, call.body.query, "/query", is_streamed=bool(call.body.streaming))
    return await _answer(call, asked._replace(is_streamed=True, form="documented") if call.query.stream else asked)


async def ask_by_query(call: Request[AskQuery, Nothing]) -> Answer:
    """Ask about products and releases in plain words, in the address."""
    return await _answer(call, _asked(call.query, call.query.q, "q", is_streamed=call.query.stream))


async def ask_for_nlweb(call: Request[Nothing, NlwebBody]) -> Answer:
    """Ask about products and releases in plain words, in the forms of NLWeb's clients."""
    body = call.body
    if not isinstance(body.query, NestedQuestion):
        return await _answer(call, _asked(body, body.query, "/query", is_streamed=bool(body.streaming)))
    preferred = body.prefer or Preferences()
    asked = _asked(body, body.query.text, "/query/text", is_streamed=preferred.streaming)
    if body.context is not None and not body.decontextualized_query:
        asked = asked._replace(previous=previous_questions(body.context.prev) or asked.previous)
    return await _answer(call, asked._replace(form="nested", mode=preferred.mode))


async def ask_as_nlweb(call: Request[NlwebQuery, Nothing]) -> Answer:
    """Ask about products and releases in plain words, with the parameters of NLWeb's clients."""
    return await _answer(call, _asked(call.query, call.query.query, "query", is_streamed=bool(call.query.streaming)))


async def search_catalog(call: Request[Nothing, Filter]) -> Answer:
    """Search products, releases and publishers with the filter object that answers to questions show as `query`."""
    wrong = fault(call.body)
    if wrong is not None:
        raise invalid_member("/where", wrong)
    found = await answers.run(call.context, call.body)
    return http_answer.json(await answer_of(call.context, found, ids.new_uuid()))


async def _answer(call: Request[Any, Any], asked: _Asked) -> Answer:
    store = call.context
    is_streamed = asked.is_streamed or (call.headers.get("accept") or "").split(";")[0].strip() == EVENTS
    if is_streamed and call.headers.get("last-event-id") is not None:
        # A stream is not resumed: 204 has the client stop asking.
        return http_answer.no_content()
    if asked.mode == "generate" and not store.settings.ask_model_url:
        if asked.form == "nested":
            return http_answer.json(failure(asked.query_id, "NOT_SUPPORTED", _NO_MODEL))
        raise ModeNotSupported(_NO_MODEL)
    if not is_streamed:
        found = await _outcome(store, asked)
        return http_answer.json(nested(found) if asked.form == "nested" else found.answer)
    return _stream(call, asked)


def _stream(call: Request[Any, Any], asked: _Asked) -> Answer:
    async def outcome() -> Outcome:
        return await _outcome(call.context, asked)

    if asked.form == "documented":
        events = documented_events(asked.query_id, outcome, call.context.problems_root, call.target)
    else:
        events = (nested_events if asked.form == "nested" else flat_events)(asked.query_id, outcome)
    return Answer(200, events, EVENTS, (("Cache-Control", "no-store"), ("X-Accel-Buffering", "no")))


async def _outcome(store: Store, asked: _Asked) -> Outcome:
    is_read_by_model = asked.mode == "generate"
    found = await answers.answer(store, asked.question, clock.now(), asked.previous, with_model=is_read_by_model)
    return Outcome(found, await answer_of(store, found, asked.query_id))


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
    # Where NLWeb's clients look for it.
    route("POST", "/ask", ask_for_nlweb, body=NlwebBody, answers=_EITHER, **_AT_ROOT),
    route("GET", "/ask", ask_as_nlweb, query=NlwebQuery, answers=_FLAT, **_AT_ROOT),
)

TOOLS = (route("POST", "/search_catalog", search_catalog, body=Filter, answers={200: AskAnswer}),)
"""What agents call as a tool, which has no address of its own."""
