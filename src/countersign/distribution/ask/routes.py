"""POST and GET /ask: questions in plain words (API document; decisions 10), in NLWeb's forms as well."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from countersign.distribution.ask import answers, wire
from countersign.distribution.ask.filter import Filter, fault
from countersign.distribution.ask.wire import (
    AskAnswer,
    AskBody,
    AskOptions,
    AskQuery,
    NestedQuestion,
    NlwebAnswer,
    NlwebBody,
    NlwebQuery,
    Outcome,
    Preferences,
)
from countersign.distribution.context import Store
from countersign.distribution.identity.callers import Request
from countersign.kernel import clock, ids
from countersign.kernel.errors import Refused, invalid_member, invalid_parameter
from countersign.kernel.http import answer
from countersign.kernel.http.answer import Answer
from countersign.kernel.http.route import Nothing, OneOf, Options, route

EVENTS = "text/event-stream"
_NO_MODEL = "mode=generate needs a model, and none is configured here"


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
    mode: wire.Mode
    form: str
    is_streamed: bool


def _asked(
    given: AskQuery | NlwebQuery | AskBody | NlwebBody, question: str, place: str, *, is_streamed: bool
) -> _Asked:
    """The question in the flat form. A question in words that need none before it replaces those before it."""
    if not question.strip():
        raise (invalid_member if place.startswith("/") else invalid_parameter)(place, "must not be blank")
    standalone = (given.decontextualized_query or "").strip()
    previous = [] if standalone else wire.previous_questions(given.prev)
    mode: wire.Mode = given.mode or getattr(given, "generate_mode", None) or "list"
    form = "flat" if is_streamed and not isinstance(given, AskQuery) else "documented"
    return _Asked(standalone or question, previous, given.query_id or ids.new_uuid(), mode, form, is_streamed)


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
        asked = asked._replace(previous=wire.previous_questions(body.context.prev) or asked.previous)
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
    return answer.json(await wire.answer_of(call.context, found, ids.new_uuid()))


async def _answer(call: Request[Any, Any], asked: _Asked) -> Answer:
    store = call.context
    is_streamed = asked.is_streamed or (call.headers.get("accept") or "").split(";")[0].strip() == EVENTS
    if is_streamed and call.headers.get("last-event-id") is not None:
        # A stream is not resumed: 204 has the client stop asking.
        return answer.no_content()
    if asked.mode == "generate" and not store.settings.ask_model_url:
        if asked.form == "nested":
            return answer.json(wire.failure(asked.query_id, "NOT_SUPPORTED", _NO_MODEL))
        raise ModeNotSupported(_NO_MODEL)
    if not is_streamed:
        found = await _outcome(store, asked)
        return answer.json(wire.nested(found) if asked.form == "nested" else found.answer)
    return _stream(call, asked)


def _stream(call: Request[Any, Any], asked: _Asked) -> Answer:
    async def outcome() -> Outcome:
        return await _outcome(call.context, asked)

    if asked.form == "documented":
        events = wire.documented_events(asked.query_id, outcome, call.context.problems_root, call.target)
    else:
        events = (wire.nested_events if asked.form == "nested" else wire.flat_events)(asked.query_id, outcome)
    return Answer(200, events, EVENTS, (("Cache-Control", "no-store"), ("X-Accel-Buffering", "no")))


async def _outcome(store: Store, asked: _Asked) -> Outcome:
    is_read_by_model = asked.mode == "generate"
    found = await answers.answer(store, asked.question, clock.now(), asked.previous, with_model=is_read_by_model)
    return Outcome(found, await wire.answer_of(store, found, asked.query_id))


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
