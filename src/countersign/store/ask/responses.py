"""Answer the question of a request: the members of questions, the answer as it is sent, and its forms.

The documented form is here; NLWeb's forms are in `store/nlweb.py`. Streams are server-sent events (WHATWG HTML §9.2).
"""

import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.errors import Refused
from countersign.kernel.http import response
from countersign.kernel.http.problems import problem
from countersign.kernel.http.response import EVENTS, JSON, Response
from countersign.kernel.http.routing import Options
from countersign.store.ask import answers
from countersign.store.ask.answers import QuestionAnswer
from countersign.store.auth.callers import StoreRequest
from countersign.store.catalog.filter import Filter
from countersign.store.catalog.filter_answers import Source, Status
from countersign.store.catalog.filter_queries import Facts, facts
from countersign.store.context import Store

MAX_QUESTION = 2_000
MAX_RESULTS = 20
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
Previous = Annotated[Short, msgspec.Meta(description="The questions before this one, the oldest first; one a line.")]
Standalone = Annotated[Short, msgspec.Meta(description="The question, understandable without the previous questions.")]


class QuestionParameters(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The optional members of every question."""

    decontextualized_query: Standalone | None = None
    mode: Mode | None = None
    query_id: QueryId | None = None


class FlatQuestion(QuestionParameters, kw_only=True):
    """The additional members of the flat NLWeb forms."""

    streaming: Streamed | None = None
    generate_mode: Mode | None = None


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


Event = tuple[str, object]
"""An event of a stream: name (empty for none) and data."""


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


class Form:
    """The documented form of an answer: the body of a response, and the events of a stream."""

    def body(self, _answered: QuestionAnswer, answer: AskAnswer) -> msgspec.Struct:
        """Return the body of a response that is not a stream."""
        return answer

    def start(self, query_id: str) -> Event:
        """Return the first event, which precedes the search for an answer."""
        return "start", {"id": query_id}

    def events(self, answered: QuestionAnswer, answer: AskAnswer) -> Iterable[Event]:
        """Return one `source` event for each source, the text in `delta` events, and `done` with the complete
        answer."""
        yield from (("source", source) for source in answer.sources)
        yield from (("delta", {"text": piece}) for piece in _PIECE.findall(answered.text))
        yield "done", answer

    def error(self, call: StoreRequest[Any, Any], refused: Refused) -> Event:
        """Return the event of an error."""
        body = problem(refused, call.context.problems_root, call.target).body
        return "error", msgspec.Raw(body if isinstance(body, bytes) else b"{}")


DOCUMENTED = Form()


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
    is_streamed |= (call.headers.get("accept") or "").split(";")[0].strip() == EVENTS
    if is_streamed and call.headers.get("last-event-id") is not None:
        # A stream cannot be resumed: the status 204 makes the client stop reconnecting.
        return response.no_content()
    if asked.mode == "generate" and not call.context.settings.ask_model_url:
        raise ModeNotSupported("mode=generate needs a model, and none is configured here")
    if is_streamed:
        return response.event_stream(_stream(call, asked, form))
    return response.json(form.body(*await _outcome(call.context, asked)))


async def _outcome(store: Store, asked: QuestionRequest) -> tuple[QuestionAnswer, AskAnswer]:
    is_read_by_model = asked.mode == "generate"
    found = await answers.answer(store, asked.text, clock.now(), asked.previous, with_model=is_read_by_model)
    return found, await wire_answer(store, found, asked.query_id)


async def _stream(call: StoreRequest[Any, Any], asked: QuestionRequest, form: Form) -> AsyncGenerator[bytes]:
    """Yield the events in the requested form: the first one immediately, then those of the answer, or an error
    event."""
    yield response.event(*form.start(asked.query_id))
    try:
        events = form.events(*await _outcome(call.context, asked))
    except Refused as refused:
        # The response has begun, so the error can only be sent as part of the stream.
        events = [form.error(call, refused)]
    for event in events:
        yield response.event(*event)


OPTIONS: Options = {
    "refusals": (ModeNotSupported,),
    "produces": (JSON, EVENTS),
    "reads": ("Last-Event-ID",),
}
ANSWERS: Mapping[int, object] = {200: AskAnswer, 204: None}
