"""An answer as a stream of events (WHATWG HTML §9.2): the documented ones, and those that clients of NLWeb read."""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, NamedTuple

from countersign.distribution.ask import nlweb
from countersign.distribution.ask.answers import Answered
from countersign.distribution.ask.schemas import AskAnswer
from countersign.kernel.errors import Refused
from countersign.kernel.http.answer import encode
from countersign.kernel.http.problems import problem

API_VERSION = "0.54"
_PIECE = re.compile(r".{1,80}(?:\s|$)|\S+\s?", re.DOTALL)


class Told(NamedTuple):
    """An answer to be told: as the engine has it, and as the wire has it."""

    answered: Answered
    answer: AskAnswer


Answering = Callable[[], Awaitable[Told]]


def event(name: str, value: object) -> bytes:
    """A named event; '' for one without a name."""
    head = b"event: %b\n" % name.encode() if name else b""
    return b"%bdata: %b\n\n" % (head, encode(value))


async def documented(query_id: str, answering: Answering, root_url: str, target: str) -> AsyncGenerator[bytes]:
    """`start`, a `source` each, the text in `delta`s, and `done` with the whole answer; or `error`, a problem."""
    yield event("start", {"id": query_id})
    try:
        told = await answering()
    except Refused as refused:
        # The head is out: the refusal can only be told in the stream.
        body = problem(refused, root_url, target).body
        yield b"event: error\ndata: %b\n\n" % (body if isinstance(body, bytes) else b"{}")
        return
    for source in told.answer.sources:
        yield event("source", source)
    for piece in pieces(told.answer.answer):
        yield event("delta", {"text": piece})
    yield event("done", told.answer)


def pieces(text: str) -> list[str]:
    """The text in parts of about eighty characters, which together are the text."""
    return _PIECE.findall(text)


async def flat(query_id: str, answering: Answering) -> AsyncGenerator[bytes]:
    """Unnamed messages of NLWeb's first generation, each with its `message_type`."""
    yield event("", {"message_type": "api_version", "api_version": API_VERSION, "query_id": query_id})
    try:
        told = await answering()
    except Refused as refused:
        # The head is out: the refusal can only be told in the stream.
        yield event("", {"message_type": "error", "error": refused.detail, "status": refused.status})
        return
    if told.answer.results:
        yield event("", {"message_type": "result_batch", "results": told.answer.results, "query_id": query_id})
    kind = "ask_user" if told.answered.candidates else "summary"
    yield event("", {"message_type": kind, "message": told.answer.answer, "query_id": query_id})
    yield event("", {"message_type": "complete", "query_id": query_id})


async def nested(query_id: str, answering: Answering) -> AsyncGenerator[bytes]:
    """`start`, `result`, `complete`: fragments of the `_meta` form."""
    begun: dict[str, Any] = {"message_type": "api_version", "api_version": API_VERSION, "query_id": query_id}
    yield event("start", {**begun, "_meta": {"version": API_VERSION}})
    try:
        told = await answering()
    except Refused as refused:
        # The head is out: the refusal can only be told in the stream.
        yield event("complete", {"message_type": "error", "error": {"code": refused.code, "message": refused.detail}})
        return
    whole = nlweb.nested(told.answered, told.answer)
    if whole.results:
        yield event("result", {"message_type": "result_batch", "results": whole.results, "query_id": query_id})
    rest = {name: value for name in ("answer", "elicitation", "error") if (value := getattr(whole, name)) is not None}
    yield event("complete", {"message_type": "complete", "_meta": whole.meta, "query_id": query_id, **rest})
