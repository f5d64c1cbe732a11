"""The HTTP conventions of the records service: raw routes, bearer tokens, error bodies, and the envelope of results."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeAlias, Unpack

import msgspec

from countersign.kernel import clock
from countersign.kernel.errors import Refused
from countersign.kernel.http import routing
from countersign.kernel.http.problems import MethodNotAllowed
from countersign.kernel.http.request import Headers, Request
from countersign.kernel.http.response import JSON, Response, encode
from countersign.kernel.http.routing import Nothing, Options, Route
from countersign.records.access.callers import Callers
from countersign.records.access.view import Caller, View
from countersign.records.commands import list_search
from countersign.records.commands.run import Body, Run
from countersign.records.commands.select import Record
from countersign.records.context import Records

BODY_LIMIT = 8 << 20
ANONYMOUS = Caller("person", "", "", "", View({}))

RecordsRequest: TypeAlias = Request[Records, Caller, Nothing, bytes]


class Unauthenticated(Refused):
    """The token is missing, unknown, expired or revoked."""

    status = 401
    code = "unauthenticated"
    title = "Authentication required"


def route(
    method: str,
    path: str,
    handler: Callable[[RecordsRequest], Awaitable[Response]],
    **options: Unpack[Options],
) -> Route[Records]:
    """Return a raw route. Its handler decodes the body, because the checks of an input depend on what the caller may
    see."""
    defaults: Options = {"signed_in": True, "takes": JSON, "body_limit": BODY_LIMIT}
    return routing.route(method, path, handler, answers={}, body=bytes, **(defaults | options))


class BearerAuthentication:
    """Identifies callers by their bearer tokens."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers

    async def caller_of(self, headers: Headers, address: str, route: Route[Any]) -> Caller:
        """Return the caller. It is anonymous if the request has no valid token or the route needs no token."""
        caller = await self._callers.caller_of(headers) if route.signed_in else None
        return ANONYMOUS if caller is None else caller

    def admit(self, caller: Caller, scope: str | None) -> None:
        """Admit every caller with a valid token. The command and the record determine what the caller may do.

        Raises:
            Unauthenticated: the token is missing, unknown, expired or revoked.
        """
        if caller.is_anonymous:
            raise Unauthenticated("the bearer token is missing, unknown, expired or revoked")


def render_error(refused: Refused, route: Route[Any] | None, target: str, accept: str | None = None) -> Response:
    """Return the response {"error": …}. It is the same for every 404 error."""
    if refused.status == 404:
        return Response(404, b'{"error":"not found"}')
    headers = tuple(refused.headers.items())
    if refused.status == 401 and "WWW-Authenticate" not in refused.headers:
        headers = (*headers, ("WWW-Authenticate", "Bearer"))
    return Response(refused.status, encode({"error": _detail(refused), **refused.members}), headers=headers)


def _detail(refused: Refused) -> str:
    if isinstance(refused, MethodNotAllowed):
        return "method not allowed"
    if refused.faults and refused.faults[0].place == "Host":
        return f"Host {refused.faults[0].detail}"
    return refused.detail


class Envelope(msgspec.Struct):
    """The response to a command that was run (API document, Command envelope). `denied` lists the fields that are
    hidden from the caller."""

    denied: tuple[str, ...]
    value: object


def is_complete_list(command: str, body: Body) -> bool:
    """Return whether the command lists every visible record. Such a list is streamed, because it may be larger than the
    memory."""
    return command == "list" and "limit" not in body


def complete_list(run: Run, model: str, body: Body) -> AsyncGenerator[bytes]:
    """Return the envelope with every visible record. It is read from one snapshot, in constant memory. The first piece
    is produced after the first records are read.

    Raises:
        BadInput: the query is refused. The call itself raises this error, before the first piece is produced.
    """
    parsed_query = list_search.read_query(run, model, "list", body)
    list_search.statement(run, model, parsed_query)
    denied_names = run.view_of(model).denied
    run.engine.calls.note(run.caller, f"{model}.list", None, "ok", clock.monotonic_s())

    async def pieces() -> AsyncGenerator[bytes]:
        async with aclosing(list_search.stream(run, model, parsed_query)) as rows:
            first_rows = await anext(rows, list[Record]())
            yield b'{"denied":%b,"value":[%b' % (encode(denied_names), encode(first_rows)[1:-1])
            async for records in rows:
                yield b"," + encode(records)[1:-1]
        yield b"]}"

    return pieces()


async def started_pieces(pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Return the same pieces after the first one is produced, so that an error of the first read is still answered
    with its status.

    Raises:
        as the first piece.
    """
    first_piece = await anext(pieces, b"")

    async def all_pieces() -> AsyncGenerator[bytes]:
        async with aclosing(pieces):
            yield first_piece
            async for piece in pieces:
                yield piece

    return all_pieces()
