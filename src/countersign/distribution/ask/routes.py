"""POST and GET /ask: questions in plain words (API document; decisions 10), in NLWeb's forms as well."""

from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

from countersign.distribution.ask import asking, nlweb, stream
from countersign.distribution.ask.schemas import AskAnswer, AskBody, Asked, Asking, Mode, Nested, NlwebAnswer, Preferred
from countersign.distribution.ask.stream import Told
from countersign.distribution.context import Store
from countersign.distribution.identity.callers import Request
from countersign.kernel import clock, ids
from countersign.kernel.errors import Refused, invalid_member, invalid_parameter
from countersign.kernel.http import answer
from countersign.kernel.http.answer import Answer
from countersign.kernel.http.route import Nothing, OneOf, route

EVENTS = "text/event-stream"


class ModeNotSupported(Refused):
    """A mode needs a language model, and none is configured."""

    status = 400
    code = "not_supported"
    title = "Mode not supported"
    resolution = "Ask with mode=list or mode=summarize, or without a mode."


class _Wanted(NamedTuple):
    """A question and the form its answer is to have."""

    question: str
    query_id: str
    mode: Mode
    form: str
    is_streamed: bool


async def ask(call: Request[Asking, AskBody]) -> Answer:
    """Ask about products and releases in plain words. `stream=true` tells the answer as server-sent events: `start`,
    a `source` each, `delta` with pieces of the text, `done` with the whole answer, or `error`."""
    body = call.body
    wanted = _nested(body, body.query.text) if isinstance(body.query, Nested) else _plain(body, body.query)
    if not wanted.question.strip():
        raise invalid_member("/query/text" if wanted.form == "nested" else "/query", "must not be blank")
    if call.query.stream:
        wanted = wanted._replace(is_streamed=True, form="documented" if wanted.form == "flat" else wanted.form)
    return await _told(call, wanted)


def _nested(body: AskBody, question: str) -> _Wanted:
    preferred = body.prefer or Preferred()
    return _Wanted(question, body.query_id or ids.new_uuid(), preferred.mode, "nested", preferred.streaming)


def _plain(body: AskBody, question: str) -> _Wanted:
    is_streamed = bool(body.streaming)
    mode = body.mode or body.generate_mode or "list"
    return _Wanted(
        question, body.query_id or ids.new_uuid(), mode, "flat" if is_streamed else "documented", is_streamed
    )


async def ask_by_query(call: Request[Asked, Nothing]) -> Answer:
    """Ask about products and releases in plain words, in the address: `q`, or NLWeb's parameters."""
    asked = call.query
    question = asked.q if asked.q is not None else asked.query
    if question is None:
        raise invalid_parameter("q", "is required")
    _require_said(question, "q" if asked.q is not None else "query")
    form = "flat" if asked.q is None and asked.streaming else "documented"
    mode = asked.mode or asked.generate_mode or "list"
    is_streamed = asked.stream or bool(asked.streaming)
    return await _told(call, _Wanted(question, asked.query_id or ids.new_uuid(), mode, form, is_streamed))


def _require_said(question: str, name: str) -> None:
    if not question.strip():
        raise invalid_parameter(name, "must not be blank")


async def _told(call: Request[Any, Any], wanted: _Wanted) -> Answer:
    store = call.context
    is_streamed = wanted.is_streamed or _accepts_events_alone(call.headers.get("accept"))
    if is_streamed and call.headers.get("last-event-id") is not None:
        # A stream is not taken up again: 204 has the client stop asking.
        return answer.no_content()
    if wanted.mode == "generate" and not store.settings.ask_model_url:
        if wanted.form == "nested":
            return answer.json(nlweb.not_supported(wanted.query_id))
        raise ModeNotSupported("mode=generate needs a model, and none is configured here")

    async def answering() -> Told:
        return await _answer(store, wanted)

    if not is_streamed:
        told = await answering()
        return answer.json(nlweb.nested(told.answered, told.answer) if wanted.form == "nested" else told.answer)
    headers = (("Cache-Control", "no-store"), ("X-Accel-Buffering", "no"))
    return Answer(200, _events(call, wanted, answering), EVENTS, headers)


def _events(call: Request[Any, Any], wanted: _Wanted, answering: stream.Answering) -> AsyncGenerator[bytes]:
    if wanted.form == "nested":
        return stream.nested(wanted.query_id, answering)
    if wanted.form == "flat":
        return stream.flat(wanted.query_id, answering)
    return stream.documented(wanted.query_id, answering, call.context.root_url, call.target)


def _accepts_events_alone(accept: str | None) -> bool:
    return accept is not None and accept.split(";")[0].strip() == EVENTS


async def _answer(store: Store, wanted: _Wanted) -> Told:
    found = await asking.answer(store, wanted.question, clock.now(), is_reworded=wanted.mode == "generate")
    results = await nlweb.results(store, found)
    told = AskAnswer(found.text, [*found.sources], found.query, found.confidence, wanted.query_id, results)
    return Told(found, told)


ROUTES = (
    route(
        "POST",
        "/ask",
        ask,
        query=Asking,
        body=AskBody,
        answers={200: OneOf((AskAnswer, NlwebAnswer)), 204: None},
        refusals=(ModeNotSupported,),
        produces=("application/json", EVENTS),
        reads=("Last-Event-ID",),
        documented=True,
    ),
    route(
        "GET",
        "/ask",
        ask_by_query,
        query=Asked,
        answers={200: AskAnswer, 204: None},
        refusals=(ModeNotSupported,),
        produces=("application/json", EVENTS),
        reads=("Last-Event-ID",),
        documented=True,
    ),
)
