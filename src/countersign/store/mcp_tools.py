"""POST {root_url}/mcp: the operations of the store as tools of the Model Context Protocol, made from the routes."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import msgspec

from countersign import __version__
from countersign.kernel import json_reader
from countersign.kernel.errors import Refused
from countersign.kernel.http import decode
from countersign.kernel.http.decode import UnsupportedMediaType
from countersign.kernel.http.request import BodyTooLarge, Subrequest
from countersign.kernel.http.response import JSON, Response, encode
from countersign.kernel.http.routing import MEBIBYTE, Nothing, Route, route
from countersign.kernel.mcp import tools as mcp
from countersign.kernel.mcp.messages import INTERNAL_ERROR, JsonRpcError
from countersign.kernel.mcp.server import EVENTS, Implementation, McpServer, OriginNotAllowed, require_allowed_origin
from countersign.kernel.mcp.tools import Hints, Outcome, Tool, ToolList, UnknownTool
from countersign.store.apidocs.operations import PATH_PARAMETERS
from countersign.store.apidocs.schemas import Schemas
from countersign.store.auth import authentication
from countersign.store.auth.callers import Caller, StoreRequest
from countersign.store.context import PREFIX, Store

_REFERENCE = "#/components/schemas/{name}"

Schema = dict[str, Any]


def struct_schema(shape: type[msgspec.Struct] | None) -> Schema:
    """The JSON Schema of the struct; for None an empty object."""
    if shape is None:
        return {"properties": {}}
    _, components = msgspec.json.schema_components([shape], ref_template=_REFERENCE)
    return _inlined_input_schema(components[shape.__name__], components)


def _inlined_input_schema(schema: Schema, components: Mapping[str, Schema]) -> Schema:
    if "$ref" in schema:
        return _inlined_input_schema(components[schema["$ref"].rpartition("/")[2]], components)
    only_choice = _only_choice(schema)
    if only_choice is not None:
        other_members = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
        return _inlined_input_schema({**only_choice, **other_members}, components)
    return {name: _inlined_input_value(name, value, components) for name, value in schema.items() if name != "title"}


def _only_choice(schema: Schema) -> Schema | None:
    """The only alternative to null in the schema, if there is one. Null is dropped because few clients can send it, and
    all can omit the member."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    return choices[0] if len(choices) == 1 else None


def _inlined_input_value(name: str, value: object, components: Mapping[str, Schema]) -> object:
    if name == "properties":
        members = cast("Mapping[str, Schema]", value)
        return {member: _inlined_input_schema(schema, components) for member, schema in members.items()}
    if name == "description":
        return " ".join(str(value).split())
    if isinstance(value, list) and name == "anyOf":
        return [_inlined_input_schema(member, components) for member in cast("list[Schema]", value)]
    return (
        _inlined_input_schema(cast("Schema", value), components) if isinstance(value, dict) else cast("object", value)
    )


def result_schema(route: Route[Store]) -> Schema:
    """The JSON Schema of a tool's result: the body of the route's response; an array is wrapped together with the
    cursor of its next page.

    Raises:
        ValueError: the responses have no body, or bodies of several shapes.
    """
    shapes = list(dict.fromkeys(answer for answer in route.answers.values() if answer is not None))
    if len(shapes) != 1:
        raise ValueError(f"{route.method} {route.path}: a tool needs answers of one shape")
    schemas = Schemas((route,))
    schema = _inlined_result_schema(schemas.schema_of(shapes[0]), schemas.components)
    if schema.get("type") != "array":
        return schema
    members = {"items": schema, "next_cursor": {"anyOf": [{"type": "string"}, {"type": "null"}]}}
    return {"type": "object", "properties": members, "required": list(members)}


def _inlined_result_schema(schema: Schema, components: Mapping[str, Schema]) -> Schema:
    """The schema with all references inlined. An `anyOf` of several references, such as that of a
    recursive query, becomes a plain object: clients reject recursive schemas."""
    if "$ref" in schema:
        return _inlined_result_schema(
            {**components[_component_name(schema)], **_without_member(schema, "$ref")}, components
        )
    choices = cast("list[Schema]", schema.get("anyOf", []))
    if sum("$ref" in choice for choice in choices) > 1:
        inline_choices = [choice for choice in choices if "$ref" not in choice]
        return {"anyOf": [{"type": "object"}, *inline_choices]} if inline_choices else {"type": "object"}
    return {
        name: _inlined_result_value(name, value, components)
        for name, value in schema.items()
        if _is_sent_to_clients(name)
    }


def _is_sent_to_clients(name: str) -> bool:
    return name != "title" and not name.startswith("x-")


def _inlined_result_value(name: str, value: object, components: Mapping[str, Schema]) -> object:
    if name == "properties":
        members = cast("Mapping[str, Schema]", value)
        return {member: _inlined_result_schema(schema, components) for member, schema in members.items()}
    if name == "description":
        return " ".join(str(value).split())
    if name == "anyOf":
        return [_inlined_result_schema(member, components) for member in cast("list[Schema]", value)]
    is_schema = isinstance(value, dict) and name in ("items", "additionalProperties")
    return _inlined_result_schema(cast("Schema", value), components) if is_schema else cast("object", value)


def _component_name(reference: Schema) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _without_member(schema: Schema, name: str) -> Schema:
    return {member: value for member, value in schema.items() if member != name}


KEY = "idempotency_key"
EXCLUDED_PARAMETERS = frozenset({"format", "stream", "streaming"})
"""Parameters and members that select another response format than the JSON object of a tool."""

_KEY_SCHEMA = {
    "type": "string",
    "format": "uuid",
    "description": "A UUID of your choice; a repeated call with the same UUID has no second effect.",
}
_JSON = (("content-type", "application/json"),)
_PARAMETER = re.compile(r"\{(\w+)\}")


class BadArgument(Refused):
    """An argument is unknown, missing or invalid."""


@dataclass(frozen=True, slots=True)
class ToolOperation:
    """A route offered as a tool. `members` are those of its body."""

    route: Route[Store]
    tool: Tool
    query: frozenset[str]
    members: frozenset[str]

    def request(self, arguments: Mapping[str, Any]) -> Subrequest:
        """The request of a tool call; null arguments are omitted. The route validates the values.

        Raises:
            BadArgument: an argument is unknown, or cannot be sent in the path, the query or a header.
        """
        sent_arguments = {name: value for name, value in arguments.items() if value is not None}
        known_arguments = self.tool.input_schema["properties"]
        unknown_names = sent_arguments.keys() - known_arguments.keys()
        if unknown_names:
            raise BadArgument(f"{min(unknown_names)}: {decode.unknown_name_error(known_arguments)}")
        headers = (("idempotency-key", _header_value(sent_arguments[KEY])),) if KEY in sent_arguments else ()
        if self.route.body is None:
            return Subrequest(self.route.method, self._address(sent_arguments), headers)
        body = encode({name: sent_arguments[name] for name in self.members & sent_arguments.keys()})
        return Subrequest(self.route.method, self._address(sent_arguments), (*_JSON, *headers), body)

    def _address(self, sent_arguments: Mapping[str, Any]) -> str:
        prefix = "" if self.route.at_root else PREFIX
        path = _PARAMETER.sub(lambda matched: _path_segment(matched[1], sent_arguments), self.route.path)
        query = urlencode(
            {name: _query_value(name, sent_arguments[name]) for name in self.query & sent_arguments.keys()}
        )
        return f"{prefix}{path}?{query}" if query else prefix + path


def operation(name: str, route: Route[Store]) -> ToolOperation:
    """The route as a tool of this name.

    Raises:
        ValueError: two of its parameters and members have the same name.
    """
    path = _PARAMETER.findall(route.path)
    query, body = struct_schema(route.query), struct_schema(cast("type[msgspec.Struct] | None", route.body))
    for excluded_name in EXCLUDED_PARAMETERS:
        query["properties"].pop(excluded_name, None)
        body["properties"].pop(excluded_name, None)
    groups = ({name: _path_parameter_schema(name) for name in path}, query["properties"], body["properties"])
    properties = {**groups[0], **groups[1], **groups[2], **({KEY: _KEY_SCHEMA} if route.writes else {})}
    if len(properties) != sum(map(len, groups)) + route.writes:
        raise ValueError(f"tool {name}: two parameters have the same name")
    required_names = [
        name for name in (*path, *query.get("required", ()), *body.get("required", ())) if name in properties
    ]
    input_schema = {
        "type": "object",
        "properties": properties,
        **({"required": required_names} if required_names else {}),
        "additionalProperties": False,
    }
    description = " ".join((route.handler.__doc__ or route.summary).split())
    title = name.replace("_", " ").capitalize()
    tool = Tool(name, title, description, input_schema, _hints(route), result_schema(route))
    return ToolOperation(route, tool, frozenset(query["properties"]), frozenset(body["properties"]))


def _path_parameter_schema(name: str) -> dict[str, Any]:
    path_schema, description = PATH_PARAMETERS[name]
    return {**path_schema, "description": description}


def _hints(route: Route[Store]) -> Hints:
    """Only a batch may be destructive: its route is the one that must be `alone` in a request. Questions are POST
    requests that change nothing."""
    return Hints(read_only=not route.writes, idempotent=not route.writes, destructive=route.alone)


def _path_segment(name: str, sent_arguments: Mapping[str, Any]) -> str:
    value = sent_arguments.get(name)
    if not isinstance(value, str) or not value:
        raise BadArgument(f"{name}: is required and must be a string")
    return quote(_require_storable(name, value), safe="")


def _query_value(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise BadArgument(f"{name}: must be a string, a number, true or false")
    return _require_storable(name, value)


def _require_storable(name: str, value: str) -> str:
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise BadArgument(f"{name}: must not contain NUL or lone surrogates")
    return value


def _header_value(value: object) -> str:
    if not isinstance(value, str) or not value.isascii() or not value.isprintable():
        raise BadArgument(f"{KEY}: must be a UUID")
    return value


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
"""The documented operations that are useful as tools. Operations that issue keys or tokens are not included: an
agent gets those over HTTP."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class StoreTools:
    """The tools of the store's routes. Callers with the same tools share the encoded list."""

    def __init__(self, routes: Iterable[Route[Store]], direct: Iterable[Route[Store]] = ()) -> None:
        self._routes: dict[str, Route[Store]] = {}
        without_address = tuple(direct)
        self._direct = frozenset(NAMES[route.method, route.path] for route in without_address)
        for tool_route in (*routes, *without_address):
            name = NAMES.get((tool_route.method, tool_route.path))
            if name is not None:
                self._routes.setdefault(name, tool_route)
        self._lists: dict[frozenset[str], ToolList] = {}

    @cached_property
    def _operations(self) -> Mapping[str, ToolOperation]:
        """The tools by name. The first use builds their schemas, because that would take 25 ms of each start."""
        return {name: operation(name, route) for name, route in self._routes.items()}

    async def listed(self, context: ToolCall) -> ToolList:
        """The tools that the caller's token permits."""
        operations = {
            name: operation for name, operation in self._operations.items() if _is_offered(context, operation.route)
        }
        names = frozenset(operations)
        if names not in self._lists:
            self._lists[names] = ToolList(offered_operation.tool for offered_operation in operations.values())
        return self._lists[names]

    async def call(self, context: ToolCall, name: str, arguments: bytes, meta: Mapping[str, object]) -> Outcome:
        """Send the tool's request on behalf of the caller.

        Raises:
            UnknownTool: the caller has no such tool.
            Unauthenticated: the tool requires a token, and the request has none.
            JsonRpcError: the service failed or is unavailable.
        """
        operation = self._operations.get(name)
        if operation is None or _is_sandbox_route(operation.route) > _has_sandbox(context.context):
            raise UnknownTool(name)
        if not _is_permitted(context.caller, operation.route):
            if context.caller.is_anonymous or context.caller.kind == "key":
                detail = f"the tool {name} needs a token"
                raise authentication.missing_credential(
                    context.context, detail, scope=operation.route.scope, resource=PATH
                )
            raise UnknownTool(name)
        try:
            request = operation.request(cast("dict[str, Any]", json_reader.read(arguments, checks_texts=False)))
        except BadArgument as refused:
            return mcp.failure(refused.detail)
        except json_reader.InvalidJson as error:
            return mcp.failure(str(error))
        if name in self._direct:
            return await _call_directly(context, operation, request.body)
        return _outcome(await context.send_subrequest(request))


async def _call_directly(context: ToolCall, operation: ToolOperation, body: bytes) -> Outcome:
    """Call the handler of a tool that has no HTTP address. Such a tool only reads."""
    try:
        body_struct = json_reader.read_as(body, cast("type[msgspec.Struct]", operation.route.body))
        call = cast("StoreRequest[Any, Any]", replace(context, body=cast("Nothing", body_struct)))
        return _outcome(await operation.route.handler(call))
    except (msgspec.ValidationError, json_reader.InvalidJson) as error:
        return mcp.failure(str(error))
    except Refused as refused:
        return mcp.failure("\n".join(filter(None, (refused.detail, refused.remedy))))


def _is_offered(context: ToolCall, route: Route[Store]) -> bool:
    return _is_permitted(context.caller, route) and _is_sandbox_route(route) <= _has_sandbox(context.context)


def _is_sandbox_route(route: Route[Store]) -> bool:
    return route.path.startswith("/sandbox")


def _has_sandbox(store: Store) -> bool:
    """Whether the store has a sandbox; a sandbox has none."""
    return store.settings.sandboxes > 0


def _is_permitted(caller: Caller, route: Route[Store]) -> bool:
    if route.scope is not None:
        return not caller.is_anonymous and caller.allows(route.scope)
    return not (route.signed_in and (caller.is_anonymous or caller.kind == "key"))


def _outcome(answer: Response) -> Outcome:
    body = cast("bytes", answer.body) or b"{}"
    if answer.status >= 500:
        raise JsonRpcError(INTERNAL_ERROR, str(_decode(body).get("detail", "the service is unavailable")))
    if answer.status >= 400:
        problem = _decode(body)
        return mcp.failure("\n".join(str(problem[name]) for name in ("detail", "resolution") if name in problem))
    if body.startswith(b"{"):
        return mcp.success(body)
    return mcp.success(b'{"items":%b,"next_cursor":%b}' % (body, encode(_next_cursor(answer))))


def _next_cursor(answer: Response) -> str | None:
    """The cursor of an array's next page, which is in the Link header over HTTP."""
    link = dict(answer.headers).get("Link", "")
    query = urlsplit(link.removeprefix("<").partition(">")[0]).query
    return next(iter(parse_qs(query).get("cursor", ())), None)


NAME = "countersign-store"
TITLE = "Countersign store"
INSTRUCTIONS = (
    "A store of games, apps and tools: their catalog and releases, and the library of the token's owner. "
    "Products are named by slug or id. To get the next page of a list, pass its next_cursor as cursor. Only the "
    "tools that the token permits are listed; without a token, the public tools. The page /auth.md of this "
    "server explains how to get a token."
)


SANDBOX_INSTRUCTIONS = (
    "The sandbox of a store of games, apps and tools: the same tools on a separate test data set of the "
    "caller, which is removed after an idle hour."
)


class RpcError(msgspec.Struct, omit_defaults=True):
    """The error of a message (JSON-RPC 2.0 §5.1)."""

    code: int
    message: str
    data: Any = None


class RpcAnswer(msgspec.Struct, omit_defaults=True):
    """The answer to one message (JSON-RPC 2.0 §5): `result` or `error`, with the message's `id` if it had one."""

    jsonrpc: str
    id: str | int | msgspec.UnsetType = msgspec.UNSET
    result: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    error: RpcError | msgspec.UnsetType = msgspec.UNSET


def routes(offered_routes: Iterable[Route[Store]], direct: Iterable[Route[Store]] = ()) -> tuple[Route[Store], ...]:
    """The endpoint whose tools are made from these routes. Routes in `direct` have no HTTP address: they are tools
    only."""
    tools = StoreTools(offered_routes, direct)

    @lru_cache(maxsize=8)
    def server(way_in: str, *, with_2026: bool) -> McpServer[ToolCall]:
        instructions = f"{SANDBOX_INSTRUCTIONS} {way_in}" if way_in else INSTRUCTIONS
        return McpServer(Implementation(NAME, TITLE, __version__, instructions), tools, with_2026=with_2026)

    async def speak_mcp(call: ToolCall) -> Response:
        """Answer one message of the Model Context Protocol, or a batch of them."""
        require_allowed_origin(call.headers.get("origin"), call.context.root_url)
        decode.require_media_type(call.headers.get("content-type"), JSON)
        body = await _body(call)
        mcp_server = server(call.context.token_hint, with_2026=call.context.settings.mcp_2026)
        reply = await mcp_server.answer(call, call.headers, body)
        return Response(reply.status, reply.body, reply.media_type, (("Cache-Control", "no-store"),))

    return (
        route(
            "POST",
            PATH,
            speak_mcp,
            answers={200: RpcAnswer | list[RpcAnswer], 202: None, 400: RpcAnswer, 404: RpcAnswer},
            refusals=(OriginNotAllowed, UnsupportedMediaType, BodyTooLarge),
            streams=True,
            takes=JSON,
            produces=(JSON, EVENTS),
            at_root=True,
        ),
    )


async def _body(call: ToolCall) -> bytes:
    body = bytearray()
    async for piece in call.chunks():
        body += piece
        if len(body) > MEBIBYTE:
            raise BodyTooLarge(f"the body must have at most {MEBIBYTE} bytes")
    return bytes(body)
