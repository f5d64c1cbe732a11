"""POST and GET /ask: questions in plain words (API document; decisions 10), in NLWeb's forms as well."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from countersign.distribution.ask import nlweb, stream
from countersign.distribution.ask.schemas import (
    AskAnswer,
    AskBody,
    Asked,
    Asking,
    Mode,
    Nested,
    NlwebAnswer,
    NlwebAsked,
    NlwebBody,
    Preferred,
)
from countersign.distribution.ask.stream import Told
from countersign.distribution.context import Store
from countersign.distribution.identity.callers import Request
from countersign.kernel import clock, ids
from countersign.kernel.errors import Refused, invalid_member, invalid_parameter
from countersign.kernel.http import answer
from countersign.kernel.http.answer import Answer
from countersign.kernel.http.route import Nothing, OneOf, Options, route

EVENTS = "text/event-stream"
_READER = "countersign.distribution.ask.asking"


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
    wanted = _plain(call.body, call.body.query)
    if call.query.stream:
        wanted = wanted._replace(is_streamed=True, form="documented")
    return await _told(call, wanted)


async def ask_for_nlweb(call: Request[Nothing, NlwebBody]) -> Answer:
    """Ask about products and releases in plain words, in the forms of NLWeb's clients."""
    body = call.body
    wanted = _nested(body, body.query.text) if isinstance(body.query, Nested) else _plain(body, body.query)
    return await _told(call, wanted)


def _nested(body: NlwebBody, question: str) -> _Wanted:
    preferred = body.prefer or Preferred()
    return _Wanted(question, body.query_id or ids.new_uuid(), preferred.mode, "nested", preferred.streaming)


def _plain(body: AskBody | NlwebBody, question: str) -> _Wanted:
    is_streamed = bool(body.streaming)
    mode = body.mode or body.generate_mode or "list"
    return _Wanted(
        question, body.query_id or ids.new_uuid(), mode, "flat" if is_streamed else "documented", is_streamed
    )


async def ask_by_query(call: Request[Asked, Nothing]) -> Answer:
    """Ask about products and releases in plain words, in the address."""
    asked = call.query
    _require_said(asked.q, "q")
    query_id = asked.query_id or ids.new_uuid()
    return await _told(call, _Wanted(asked.q, query_id, asked.mode or "list", "documented", asked.stream))


async def ask_as_nlweb(call: Request[NlwebAsked, Nothing]) -> Answer:
    """Ask about products and releases in plain words, with the parameters of NLWeb's clients."""
    asked = call.query
    _require_said(asked.query, "query")
    is_streamed = bool(asked.streaming)
    form = "flat" if is_streamed else "documented"
    mode = asked.mode or asked.generate_mode or "list"
    return await _told(call, _Wanted(asked.query, asked.query_id or ids.new_uuid(), mode, form, is_streamed))


def _require_said(question: str, name: str) -> None:
    if not question.strip():
        raise invalid_parameter(name, "must not be blank")


def _require_text(wanted: _Wanted) -> None:
    if not wanted.question.strip():
        place = "/query/text" if wanted.form == "nested" else "/query"
        raise invalid_member(place, "must not be blank")


async def _told(call: Request[Any, Any], wanted: _Wanted) -> Answer:
    store = call.context
    _require_text(wanted)
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
    return stream.documented(wanted.query_id, answering, call.context.problems_root, call.target)


def _accepts_events_alone(accept: str | None) -> bool:
    return accept is not None and accept.split(";")[0].strip() == EVENTS


async def _answer(store: Store, wanted: _Wanted) -> Told:
    # What reads questions takes a fifth of a start to load: the first question waits for it, beside everybody else.
    if _READER not in sys.modules:
        await asyncio.to_thread(import_module, _READER)
    from countersign.distribution.ask import asking

    found = await asking.answer(store, wanted.question, clock.now(), is_reworded=wanted.mode == "generate")
    results = await nlweb.results(store, found)
    told = AskAnswer(found.text, [*found.sources], found.query, found.confidence, wanted.query_id, results)
    return Told(found, told)


_OPTIONS: Options = {
    "refusals": (ModeNotSupported,),
    "produces": ("application/json", EVENTS),
    "reads": ("Last-Event-ID",),
}
_DOCUMENTED: Options = {**_OPTIONS, "documented": True}
_AT_ROOT: Options = {**_OPTIONS, "at_root": True}
_TOLD: Mapping[int, object] = {200: AskAnswer, 204: None}
_TOLD_IN_EITHER_FORM: Mapping[int, object] = {200: OneOf((AskAnswer, NlwebAnswer)), 204: None}

ROUTES = (
    route("POST", "/ask", ask, query=Asking, body=AskBody, answers=_TOLD, **_DOCUMENTED),
    route("GET", "/ask", ask_by_query, query=Asked, answers=_TOLD, **_DOCUMENTED),
    # Where NLWeb's clients look for it.
    route("POST", "/ask", ask_for_nlweb, body=NlwebBody, answers=_TOLD_IN_EITHER_FORM, **_AT_ROOT),
    route("GET", "/ask", ask_as_nlweb, query=NlwebAsked, answers=_TOLD, **_AT_ROOT),
)
