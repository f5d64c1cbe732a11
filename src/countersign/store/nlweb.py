"""POST and GET /ask at the site's root: questions in the forms of NLWeb, a protocol for questions to web sites.

NLWeb has two generations. In the first, the members of a question are flat, and the events of a stream have no name but
a `message_type`. In the second (specification 0.54), the question is nested in an object, and answers have the member
`_meta`.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec

from countersign.kernel.errors import Refused
from countersign.kernel.http import response
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, OneOf, Options, route
from countersign.store.ask.answers import QuestionAnswer
from countersign.store.ask.responses import (
    ANSWERS,
    DOCUMENTED,
    OPTIONS,
    AskAnswer,
    Event,
    FlatQuestion,
    Form,
    Mode,
    ModeNotSupported,
    Previous,
    Question,
    Short,
    lines,
    request_of,
    respond,
)
from countersign.store.auth.callers import StoreRequest

API_VERSION = "0.54"
Unused = Annotated[Short, msgspec.Meta(description="NLWeb; accepted, without effect.")]


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


def nested_answer(answered: QuestionAnswer, answer: AskAnswer) -> NlwebAnswer:
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


class FlatForm(Form):
    """The form of NLWeb's first generation: a stream of unnamed messages, each with its `message_type`."""

    def start(self, query_id: str) -> Event:
        """Return the message with the version."""
        return "", {"message_type": "api_version", "api_version": API_VERSION, "query_id": query_id}

    def events(self, answered: QuestionAnswer, answer: AskAnswer) -> Iterable[Event]:
        """Return the results, the text, and the end of the answer."""
        tail = {"query_id": answer.query_id}
        if answer.results:
            yield "", {"message_type": "result_batch", "results": answer.results, **tail}
        yield "", {"message_type": "ask_user" if answered.candidates else "summary", "message": answer.answer, **tail}
        yield "", {"message_type": "complete", **tail}

    def error(self, call: StoreRequest[Any, Any], refused: Refused) -> Event:
        """Return the message of an error."""
        return "", {"message_type": "error", "error": refused.detail, "status": refused.status}


class NestedForm(Form):
    """The form of answers to nested questions: one object, or the events `start`, `result` and `complete` with its
    fragments."""

    def body(self, answered: QuestionAnswer, answer: AskAnswer) -> NlwebAnswer:
        """Return the answer in the `_meta` form."""
        return nested_answer(answered, answer)

    def start(self, query_id: str) -> Event:
        """Return the event with the version."""
        version = {"message_type": "api_version", "api_version": API_VERSION, "query_id": query_id}
        return "start", {**version, "_meta": {"version": API_VERSION}}

    def events(self, answered: QuestionAnswer, answer: AskAnswer) -> Iterable[Event]:
        """Return the results, and the rest of the answer."""
        members: dict[str, Any] = msgspec.to_builtins(nested_answer(answered, answer))
        results = members.pop("results", None)
        if results:
            yield "result", {"message_type": "result_batch", "results": results, "query_id": answer.query_id}
        yield "complete", {"message_type": "complete", **members}

    def error(self, call: StoreRequest[Any, Any], refused: Refused) -> Event:
        """Return the last event, with the error."""
        return "complete", {"message_type": "error", "error": {"code": refused.code, "message": refused.detail}}


FLAT, NESTED = FlatForm(), NestedForm()


async def ask_for_nlweb(call: StoreRequest[Nothing, NlwebBody]) -> Response:
    """Ask about products and releases in natural language, in the forms of NLWeb clients."""
    body = call.body
    if not isinstance(body.query, NestedQuestion):
        return await _respond_flat(call, body, body.query)
    context = None if body.decontextualized_query else body.context
    preferences = body.prefer or Preferences()
    ask_request = request_of(body, body.query.text, (context and lines(context.prev)) or body.prev)
    ask_request = ask_request._replace(mode=preferences.mode)
    try:
        return await respond(call, ask_request, NESTED, is_streamed=preferences.streaming)
    except ModeNotSupported as refused:
        return response.json(failure(ask_request.query_id, "NOT_SUPPORTED", refused.detail))


async def ask_as_nlweb(call: StoreRequest[NlwebQuery, Nothing]) -> Response:
    """Ask about products and releases in natural language, with the parameters of NLWeb clients."""
    return await _respond_flat(call, call.query, call.query.query)


async def _respond_flat(call: StoreRequest[Any, Any], members: NlwebQuery | NlwebBody, question: str) -> Response:
    """Answer a flat question: only its stream differs from the documented API."""
    is_streamed = bool(members.streaming)
    ask_request = request_of(members, question, members.prev)
    return await respond(call, ask_request, FLAT if is_streamed else DOCUMENTED, is_streamed=is_streamed)


_OPTIONS: Options = {**OPTIONS, "at_root": True}
_ANY_FORM: Mapping[int, object] = {200: OneOf((AskAnswer, NlwebAnswer)), 204: None}
ROUTES = (
    route("POST", "/ask", ask_for_nlweb, body=NlwebBody, answers=_ANY_FORM, **_OPTIONS),
    route("GET", "/ask", ask_as_nlweb, query=NlwebQuery, answers=ANSWERS, **_OPTIONS),
)
