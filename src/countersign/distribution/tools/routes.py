"""POST {root_url}/mcp: the store for agents that speak the Model Context Protocol."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from countersign import __version__
from countersign.distribution.context import Store
from countersign.distribution.tools.offered import PATH, StoreTools, ToolCall
from countersign.kernel.errors import Refused
from countersign.kernel.http.decode import UnsupportedMediaType
from countersign.kernel.http.request import BodyTooLarge
from countersign.kernel.http.response import JSON, Response
from countersign.kernel.http.routing import MEBIBYTE, Route, route
from countersign.kernel.mcp.server import EVENTS, Implementation, Server, is_origin_allowed

NAME = "countersign-store"
TITLE = "Countersign store"
INSTRUCTIONS = (
    "A store of games, apps and tools: their catalog and releases, and the library of whoever the token belongs to. "
    "Products are named by slug or id. A list that has a next_cursor goes on when it is given as cursor. Only the "
    "tools that the token allows are listed; without one, those that anybody may use. The page /auth.md at this "
    "server tells how to get a token."
)


SANDBOX_INSTRUCTIONS = (
    "The sandbox of a store of games, apps and tools: the same tools on a data set of the caller's own, in which "
    "nothing is real and which is removed after an idle hour."
)


class RpcError(msgspec.Struct, omit_defaults=True):
    """Why a message was not done (JSON-RPC 2.0 §5.1)."""

    code: int
    message: str
    data: Any = None


class RpcAnswer(msgspec.Struct, omit_defaults=True):
    """The answer to one message (JSON-RPC 2.0 §5): `result` or `error`, under the message's `id` where it had one."""

    jsonrpc: str
    id: str | int | msgspec.UnsetType = msgspec.UNSET
    result: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    error: RpcError | msgspec.UnsetType = msgspec.UNSET


class ForeignOrigin(Refused):
    """A page of another site sent its reader's browser here."""

    status = 403
    code = "foreign_origin"
    title = "Origin not allowed"
    resolution = "Call from the store's own pages, from this machine, or from a program that is no browser."


def routes(offered: Iterable[Route[Store]], direct: Iterable[Route[Store]] = ()) -> tuple[Route[Store], ...]:
    """The endpoint whose tools are made from these routes. Those of `direct` have no address: they are tools alone."""
    tools = StoreTools(offered, direct)

    @lru_cache(maxsize=8)
    def server(way_in: str, *, with_2026: bool) -> Server[ToolCall]:
        instructions = f"{SANDBOX_INSTRUCTIONS} {way_in}" if way_in else INSTRUCTIONS
        return Server(Implementation(NAME, TITLE, __version__, instructions), tools, with_2026=with_2026)

    async def speak_mcp(call: ToolCall) -> Response:
        """Answer one message of the Model Context Protocol, or a batch of them."""
        if not is_origin_allowed(call.headers.get("origin"), call.context.root_url):
            raise ForeignOrigin("this Origin may not send requests here")
        _require_json(call.headers.get("content-type"))
        body = await _body(call)
        speaking = server(call.context.way_in, with_2026=call.context.settings.mcp_2026)
        reply = await speaking.answer(call, call.headers, body)
        return Response(reply.status, reply.body, reply.media_type, (("Cache-Control", "no-store"),))

    return (
        route(
            "POST",
            PATH,
            speak_mcp,
            answers={200: RpcAnswer | list[RpcAnswer], 202: None, 400: RpcAnswer, 404: RpcAnswer},
            refusals=(ForeignOrigin, UnsupportedMediaType, BodyTooLarge),
            streams=True,
            takes=JSON,
            produces=(JSON, EVENTS),
            at_root=True,
        ),
    )


def _require_json(content_type: str | None) -> None:
    media_type, _, parameters = (content_type or "").partition(";")
    charset = parameters.strip().lower().replace('"', "")
    if media_type.strip().lower() != JSON or charset not in ("", "charset=utf-8"):
        raise UnsupportedMediaType(f"the body must be sent as {JSON}")


async def _body(call: ToolCall) -> bytes:
    body = bytearray()
    async for piece in call.chunks():
        body += piece
        if len(body) > MEBIBYTE:
            raise BodyTooLarge(f"the body may have {MEBIBYTE} bytes at most")
    return bytes(body)
