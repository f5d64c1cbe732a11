"""An MCP server of tools: from an HTTP body to a JSON-RPC response, without sessions and streams."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast
from urllib.parse import urlsplit

import msgspec

from countersign.kernel.errors import Refused
from countersign.kernel.mcp import messages
from countersign.kernel.mcp.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    REVISION_HEADER,
    Headers,
    JsonRpcError,
    Message,
    Revision,
    RpcRequest,
    ToolCall,
)
from countersign.kernel.mcp.tools import Outcome, Tools
from countersign.kernel.validation_messages import sentence

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def is_origin_allowed(origin: str | None, root_url: str) -> bool:
    """Return whether a request with this Origin is allowed (DNS rebinding; 2025-11-25, Transports, Security Warning 1).

    Clients other than browsers send no Origin. Pages of this machine and of the service's own address are allowed.
    """
    if origin is None:
        return True
    try:
        origin_parts, own_parts = urlsplit(origin), urlsplit(root_url)
        is_same = (origin_parts.scheme, origin_parts.hostname, origin_parts.port) == (
            own_parts.scheme,
            own_parts.hostname,
            own_parts.port,
        )
    except ValueError:
        return False
    return is_same or (origin_parts.scheme in ("http", "https") and origin_parts.hostname in LOOPBACK)


class OriginNotAllowed(Refused):
    """A page of another origin sent the request."""

    status = 403
    code = "foreign_origin"
    title = "Origin not allowed"
    resolution = "Call from the service's own pages, from this machine, or from a program that is not a browser."


def require_allowed_origin(origin: str | None, root_url: str) -> None:
    """Require an Origin header for which `is_origin_allowed` is true.

    Raises:
        OriginNotAllowed: a page of another origin sent the request.
    """
    if not is_origin_allowed(origin, root_url):
        raise OriginNotAllowed("this Origin may not send requests here")


JSON = "application/json"
EVENTS = "text/event-stream"
LIST_TTL_MS = 60_000
DISCOVERY_TTL_MS = 3_600_000
BATCH_BYTES = 32 << 20
"""The maximum size of all responses of a batch: beyond it, the remaining requests are not processed."""

ContextT = TypeVar("ContextT")
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Implementation:
    """The description of the server; `instructions` are for the model."""

    name: str
    title: str
    version: str
    instructions: str


class Reply(msgspec.Struct, frozen=True, gc=False):
    """An HTTP response."""

    status: int
    body: bytes = b""
    media_type: str = JSON


class _Client(msgspec.Struct):
    name: str
    version: str


class _Initialize(msgspec.Struct, rename="camel"):
    protocol_version: str
    capabilities: dict[str, Any]
    client_info: _Client


class _List(msgspec.Struct):
    cursor: str = ""


class _Call(msgspec.Struct):
    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    meta: Any = msgspec.field(default=None, name="_meta")


_ParamsT = TypeVar("_ParamsT", bound=msgspec.Struct)


class McpServer(Generic[ContextT]):
    """Answers POST requests to the MCP endpoint. Each request is answered from its content alone (2025-11-25,
    Transports, Sending Messages); the server never sends messages on its own."""

    def __init__(self, implementation: Implementation, tools: Tools[ContextT], *, with_2026: bool) -> None:
        """With `with_2026`, revision 2026-07-28 is enabled in addition to the revisions with a handshake."""
        self._about = implementation
        self._tools = tools
        self._with_2026 = with_2026
        about = {"name": implementation.name, "title": implementation.title, "version": implementation.version}
        self._server_info = _encode(about)
        self._described = b'"io.modelcontextprotocol/serverInfo":%b' % self._server_info

    async def answer(self, context: ContextT, headers: Headers, body: bytes) -> Reply:
        """Return the response to one authenticated POST; `context` is passed to the tools.

        Raises:
            Refused: a tool refused the whole request, for example because it had no token. A batch does not raise this.
        """
        try:
            reply = await self._answer(context, headers, body)
        except JsonRpcError as fault:
            return Reply(fault.status, fault.encoded())
        return _as_event(reply) if reply.status == 200 and _wants_event(headers.get("accept")) else reply

    async def _answer(self, context: ContextT, headers: Headers, body: bytes) -> Reply:
        message = messages.read(body)
        request = message if isinstance(message, RpcRequest) else None
        if self._with_2026 and messages.is_self_described(headers, request):
            try:
                return await self._self_described(context, headers, message)
            except JsonRpcError as fault:
                return Reply(fault.status, fault.encoded(None if request is None else request.id))
        revision = _revision_of(headers, request)
        if isinstance(message, RpcRequest):
            return Reply(200, await self._respond(context, revision, message))
        return await self._batch(context, revision, message) if isinstance(message, list) else Reply(202)

    async def _batch(self, context: ContextT, revision: Revision, elements: list[bytes]) -> Reply:
        """Respond to each request of a batch (2025-03-26, Batching)."""
        if not revision.has_batches:
            raise JsonRpcError(INVALID_REQUEST, f"revision {revision.name} has no batches", status=400)
        messages_read = [_element(message) for message in elements]
        if any(isinstance(message, RpcRequest) and message.method == "initialize" for message in messages_read):
            raise JsonRpcError(INVALID_REQUEST, "initialize must not be part of a batch", status=400)
        answers: list[bytes] = []
        for message in messages_read:
            if isinstance(message, RpcRequest):
                answers.append(await self._answer_next(context, revision, message, sum(map(len, answers))))
                await asyncio.sleep(0)  # a response from memory never suspends, and would block other requests
            elif isinstance(message, JsonRpcError):
                answers.append(message.encoded())
        return Reply(200, b"[%b]" % b",".join(answers)) if answers else Reply(202)

    async def _answer_next(
        self, context: ContextT, revision: Revision, request: RpcRequest, answered_bytes: int
    ) -> bytes:
        if answered_bytes > BATCH_BYTES:
            error = JsonRpcError(INTERNAL_ERROR, "not processed: the preceding responses are too long")
            return error.encoded(request.id)
        try:
            return await self._respond(context, revision, request)
        except Refused as refused:
            # In a batch, a refusal becomes an error of this message, so that the other messages are answered.
            return JsonRpcError(INVALID_PARAMS, refused.detail).encoded(request.id)

    async def _respond(self, context: ContextT, revision: Revision, request: RpcRequest) -> bytes:
        try:
            if request.method == "tools/call":
                outcome = await self._call(context, request)
                meta = b',"_meta":%b' % _encode(outcome.meta) if outcome.meta else b""
                return request.answered(outcome.members(revision) + meta)
            return request.answered(await self._members(context, revision, request))
        except JsonRpcError as fault:
            return fault.encoded(request.id)

    async def _members(self, context: ContextT, revision: Revision, request: RpcRequest) -> bytes:
        """Return the members of the result of every method except a tool call."""
        if request.method == "tools/list":
            list_params = _params(request, _List)
            return (await self._tools.listed(context)).page(revision, list_params.cursor)
        if request.method == "initialize":
            return self._initialize_result(_params(request, _Initialize).protocol_version)
        if request.method == "ping":
            return b""
        raise JsonRpcError(METHOD_NOT_FOUND, f"Method not found: {request.method}")

    async def _call(self, context: ContextT, request: RpcRequest) -> Outcome:
        tool_call = request.tool_call or _tool_call(request)
        return await self._tools.call(context, tool_call.name, tool_call.arguments, tool_call.meta)

    def _initialize_result(self, requested_revision: str) -> bytes:
        revision = messages.HANDSHAKES.get(requested_revision, messages.LATEST)
        return b'"protocolVersion":"%b","capabilities":{"tools":{"listChanged":false}},%b' % (
            revision.name.encode(),
            self._introduction(b'"serverInfo":%b,' % self._server_info),
        )

    def _introduction(self, server_info: bytes) -> bytes:
        return b'%b"instructions":%b' % (server_info, _encode(self._about.instructions))

    async def _self_described(self, context: ContextT, headers: Headers, message: Message | list[bytes]) -> Reply:
        """Respond in revision 2026-07-28, whose errors have their own HTTP statuses."""
        if isinstance(message, list):
            raise JsonRpcError(INVALID_REQUEST, "the body must be one message", status=400)
        if not isinstance(message, RpcRequest):
            if message.is_response:
                raise JsonRpcError(INVALID_REQUEST, "a client sends no responses", status=400)
            return Reply(202)
        messages.check_headers(headers, message)
        meta = self._described
        if message.method == "server/discover":
            members = self._discover_result()
        elif message.method == "tools/list":
            members = await self._members(context, messages.JULY_2026, message)
            members += b',"ttlMs":%d,"cacheScope":"private"' % LIST_TTL_MS
        elif message.method == "tools/call":
            outcome = await self._call(context, message)
            members = outcome.members(messages.JULY_2026)
            meta += b"".join(b",%b:%b" % (_encode(name), _encode(value)) for name, value in outcome.meta.items())
        else:
            raise JsonRpcError(METHOD_NOT_FOUND, f"Method not found: {message.method}", status=404)
        return Reply(200, message.answered(b'"resultType":"complete","_meta":{%b},%b' % (meta, members)))

    def _discover_result(self) -> bytes:
        revision_names = _encode(messages.revision_names(with_2026=True))
        return b'"supportedVersions":%b,"capabilities":{"tools":{"listChanged":false}},%b,"ttlMs":%d,%b' % (
            revision_names,
            self._introduction(b""),
            DISCOVERY_TTL_MS,
            b'"cacheScope":"private"',
        )


def _element(raw: bytes) -> Message | JsonRpcError:
    try:
        return messages.read_one(raw)
    except JsonRpcError as fault:
        return fault


def _revision_of(headers: Headers, request: RpcRequest | None) -> Revision:
    """Return the revision that the header names.

    Raises:
        JsonRpcError: the revision is not enabled. The error code is never one that only revision 2026-07-28 defines,
            since clients would conclude that the server supports that revision.
    """
    header = messages.header_of(headers, REVISION_HEADER)
    if header is None:
        return messages.UNNAMED
    revision = messages.HANDSHAKES.get(header)
    if revision is None:
        identity = None if request is None else request.id
        raise JsonRpcError(INVALID_REQUEST, "unsupported MCP-Protocol-Version", status=400, id=identity)
    return revision


def _params(request: RpcRequest, kind: type[_ParamsT]) -> _ParamsT:
    """Return the params as a struct.

    Raises:
        JsonRpcError: -32602, the params do not match the struct.
    """
    try:
        return msgspec.json.decode(request.params or b"{}", type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise JsonRpcError(INVALID_PARAMS, f"invalid params of {request.method}: {_reason(error)}") from error


def _tool_call(request: RpcRequest) -> ToolCall:
    """Return the params of a request to call a tool.

    Raises:
        JsonRpcError: -32602, the params are invalid, or the arguments are not an object.
    """
    call_params = _params(request, _Call)
    arguments = bytes(call_params.arguments)
    # Some clients send null if there are no arguments.
    if arguments == b"null":
        arguments = b"{}"
    if not arguments.startswith(b"{"):
        raise JsonRpcError(INVALID_PARAMS, "arguments must be an object")
    meta: Mapping[str, Any] = {}
    if isinstance(call_params.meta, dict):
        meta = cast("Mapping[str, Any]", call_params.meta)
    return ToolCall(call_params.name, arguments, meta)


def _reason(error: msgspec.DecodeError | RecursionError) -> str:
    return sentence(error) if isinstance(error, msgspec.DecodeError) else "they are nested too deeply"


def _wants_event(accept: str | None) -> bool:
    """Return whether the client accepts only a stream. With any other Accept, or without one, the client gets JSON."""
    if accept is None or JSON in accept or EVENTS not in accept.lower():
        return False
    kinds = [part.split(";")[0].strip().lower() for part in accept.split(",")]
    return not any(kind in (JSON, "application/*", "*/*") for kind in kinds)


def _as_event(reply: Reply) -> Reply:
    return Reply(reply.status, b"event: message\ndata: %b\n\n" % reply.body, EVENTS)
