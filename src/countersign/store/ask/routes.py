"""POST and GET /ask: questions in natural language (API document; decisions 10), and the tool that takes a filter."""

from typing import Annotated

import msgspec

from countersign.kernel import ids
from countersign.kernel.errors import invalid_member
from countersign.kernel.http import response as http_answer
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, Options, Route, route
from countersign.store.ask import answers, responses
from countersign.store.auth.callers import StoreRequest
from countersign.store.catalog.filter import Filter, error_in
from countersign.store.context import Store

_EARLIER = "The questions before this one, the oldest first."
Questions = Annotated[list[responses.Short], msgspec.Meta(description=_EARLIER)]


class AskOptions(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The response format of POST /ask: a stream of events, or one object."""

    stream: responses.Streamed = False


class AskQuery(responses.QuestionParameters):
    """The parameters of GET /ask."""

    q: responses.Question
    stream: responses.Streamed = False
    prev: responses.Previous | None = None


class AskBody(responses.FlatQuestion):
    """A question in natural language; the members other than `query` are NLWeb's."""

    query: responses.Question
    prev: Questions | None = None


async def ask_by_query(call: StoreRequest[AskQuery, Nothing]) -> Response:
    """Ask about products and releases in natural language, with the question in the URL."""
    query = call.query
    asked = responses.request_of(query, query.q, query.prev)
    return await responses.respond(call, asked, responses.DOCUMENTED, is_streamed=query.stream)


async def search_catalog(call: StoreRequest[Nothing, Filter]) -> Response:
    """Search products, releases and publishers with a filter, the object that answers contain as `query`."""
    wrong = error_in(call.body)
    if wrong is not None:
        raise invalid_member("/where", wrong)
    found = await answers.of_filter(call.context, call.body)
    return http_answer.json(await responses.wire_answer(call.context, found, ids.new_uuid()))


def routes(flat: responses.Form) -> tuple[Route[Store], ...]:
    """The documented routes. The answer to a body with `streaming` has the form `flat`."""

    async def ask(call: StoreRequest[AskOptions, AskBody]) -> Response:
        """Ask about products and releases in natural language. `stream=true` sends the answer as server-sent events:
        `start`, `source` for each source, `delta` with pieces of the text, `done` with the whole answer, or `error`."""
        body, is_flat = call.body, bool(call.body.streaming) and not call.query.stream
        form, is_streamed = flat if is_flat else responses.DOCUMENTED, call.query.stream or is_flat
        asked = responses.request_of(body, body.query, body.prev)
        return await responses.respond(call, asked, form, is_streamed=is_streamed)

    options: Options = {**responses.OPTIONS, "documented": True}
    return (
        route("POST", "/ask", ask, query=AskOptions, body=AskBody, answers=responses.ANSWERS, **options),
        route("GET", "/ask", ask_by_query, query=AskQuery, answers=responses.ANSWERS, **options),
    )


TOOLS = (route("POST", "/search_catalog", search_catalog, body=Filter, answers={200: responses.AskAnswer}),)
"""The tool for agents, which has no HTTP address."""
