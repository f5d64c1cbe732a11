"""POST {root_url}/mcp: the tools for a caller, and calling one as a request inside the service (MCP)."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import msgspec

from countersign import __version__
from countersign.kernel import json_reader
from countersign.kernel.errors import Refused
from countersign.kernel.http.decode import UnsupportedMediaType
from countersign.kernel.http.request import BodyTooLarge
from countersign.kernel.http.response import JSON, Response, encode
from countersign.kernel.http.routing import MEBIBYTE, Nothing, Route, route
from countersign.kernel.mcp import tools as mcp
from countersign.kernel.mcp.messages import INTERNAL_ERROR, Fault
from countersign.kernel.mcp.server import EVENTS, Implementation, Server, is_origin_allowed
from countersign.kernel.mcp.tools import Outcome, ToolList, UnknownTool
from countersign.store.auth import authentication
from countersign.store.auth.callers import Caller, StoreRequest
from countersign.store.context import Store
from countersign.store.tools.operation import BadArgument, Operation, operation

PATH = "/mcp"
ToolCall = StoreRequest[Nothing, Nothing]

NAMES: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("GET", "/health"): "get_health",
        ("GET", "/info"): "get_info",
        ("GET", "/products"): "list_products",
        ("GET", "/products/{id}"): "get_product",
        ("GET", "/products/{id}/releases"): "list_releases",
        ("GET", "/library"): "get_library",
        ("POST", "/redeem"): "redeem_code",
        ("POST", "/batch"): "run_batch",
        ("POST", "/jobs"): "create_job",
        ("GET", "/jobs/{job_id}"): "get_job",
        ("GET", "/sandbox"): "get_sandbox",
        ("GET", "/sandbox/api/v1/health"): "get_sandbox_health",
        ("GET", "/sandbox/api/v1/telemetry"): "get_sandbox_telemetry",
        ("POST", "/ask"): "ask",
        ("POST", "/search_catalog"): "search_catalog",
    }
)
"""Every documented operation that is of use to an agent in the middle of its work. Keys and tokens are got before."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class StoreTools:
    """The tools made from the store's routes. Callers who may call the same ones share the encoded list."""

    def __init__(self, routes: Iterable[Route[Store]], direct: Iterable[Route[Store]] = ()) -> None:
        found: dict[str, Operation] = {}
        alone = tuple(direct)
        self._direct = frozenset(NAMES[each.method, each.path] for each in alone)
        for each in (*routes, *alone):
            name = NAMES.get((each.method, each.path))
            if name is not None and name not in found:
                found[name] = operation(name, each)
        self._operations: Mapping[str, Operation] = found
        self._lists: dict[frozenset[str], ToolList] = {}

    async def listed(self, context: ToolCall) -> ToolList:
        """The tools whose scope the caller's token carries."""
        seen = {name: each for name, each in self._operations.items() if _is_offered(context, each.route)}
        names = frozenset(seen)
        if names not in self._lists:
            self._lists[names] = ToolList(each.tool for each in seen.values())
        return self._lists[names]

    async def call(self, context: ToolCall, name: str, arguments: bytes, meta: Mapping[str, object]) -> Outcome:
        """Send the request that the tool stands for, in the caller's name.

        Raises:
            UnknownTool: there is no such tool for this caller.
            Unauthenticated: the tool needs a token, and none was sent.
            Fault: the service failed, or cannot be reached now.
        """
        wanted = self._operations.get(name)
        if wanted is None or _is_of_sandbox(wanted.route) > _has_sandbox(context.context):
            raise UnknownTool(name)
        if not _may(context.caller, wanted.route):
            if context.caller.is_anonymous or context.caller.kind == "key":
                detail = f"the tool {name} needs a token"
                raise authentication.unauthenticated(context.context, detail, scope=wanted.route.scope, resource=PATH)
            raise UnknownTool(name)
        try:
            json_reader.require_unique_keys(arguments)
            request = wanted.request(_decode(arguments))
        except BadArgument as refused:
            return mcp.refused(refused.detail)
        except json_reader.InvalidJson as error:
            return mcp.refused(str(error))
        if name in self._direct:
            return await _direct(context, wanted, request.body)
        return _outcome(await context.send_subrequest(request))


async def _direct(context: ToolCall, wanted: Operation, body: bytes) -> Outcome:
    """Call the handler of a tool that has no address; reads only, like the route that it is declared as."""
    try:
        json_reader.read(body)
        shape = cast("type[msgspec.Struct]", wanted.route.body)
        call = cast(
            "StoreRequest[Any, Any]", replace(context, body=cast("Nothing", msgspec.json.decode(body, type=shape)))
        )
        return _outcome(await wanted.route.handler(call))
    except (msgspec.ValidationError, json_reader.InvalidJson) as error:
        return mcp.refused(str(error))
    except Refused as refused:
        return mcp.refused("\n".join(filter(None, (refused.detail, refused.remedy))))


def _is_offered(context: ToolCall, route: Route[Store]) -> bool:
    return _may(context.caller, route) and _is_of_sandbox(route) <= _has_sandbox(context.context)


def _is_of_sandbox(route: Route[Store]) -> bool:
    return route.path.startswith("/sandbox")


def _has_sandbox(store: Store) -> bool:
    """Whether there is a sandbox beside the store; in the sandbox itself there is no other."""
    return store.settings.sandboxes > 0


def _may(caller: Caller, route: Route[Store]) -> bool:
    if route.scope is not None:
        return not caller.is_anonymous and caller.allows(route.scope)
    return not (route.signed_in and (caller.is_anonymous or caller.kind == "key"))


def _outcome(answer: Response) -> Outcome:
    body = cast("bytes", answer.body) or b"{}"
    if answer.status >= 500:
        raise Fault(INTERNAL_ERROR, str(_decode(body).get("detail", "the service cannot do its work now")))
    if answer.status >= 400:
        told = _decode(body)
        return mcp.refused("\n".join(str(told[name]) for name in ("detail", "resolution") if name in told))
    if body.startswith(b"{"):
        return mcp.answered(body)
    return mcp.answered(b'{"items":%b,"next_cursor":%b}' % (body, encode(_next_cursor(answer))))


def _next_cursor(answer: Response) -> str | None:
    """Where the next page of an array begins, which over HTTP only the Link header tells."""
    link = dict(answer.headers).get("Link", "")
    query = urlsplit(link.removeprefix("<").partition(">")[0]).query
    return next(iter(parse_qs(query).get("cursor", ())), None)


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
