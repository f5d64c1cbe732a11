"""The tools of the store: which there are for a caller, and calling one as a request in the caller's own name."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import msgspec

from countersign.distribution.auth import authentication
from countersign.distribution.auth.callers import Caller, StoreRequest
from countersign.distribution.context import Store
from countersign.distribution.tools.operation import BadArgument, Operation, operation
from countersign.kernel import json_reader
from countersign.kernel.errors import Refused
from countersign.kernel.http.response import Response, encode
from countersign.kernel.http.routing import Nothing, Route
from countersign.kernel.mcp import tools as mcp
from countersign.kernel.mcp.messages import INTERNAL_ERROR, Fault
from countersign.kernel.mcp.tools import Outcome, ToolList, UnknownTool

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
