"""JSON-RPC 2.0 messages of MCP: the protocol's revisions, parsing and encoding, and the metadata of requests.

For a server that offers only tools, the revisions differ in batches, titles, and how a request names its revision. From
2026-07-28 on, each request names its revision in its `_meta`, and repeats the name in a header.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, cast

import msgspec
from msgspec import UNSET

from countersign.kernel import json_reader


@dataclass(frozen=True, slots=True)
class Revision:
    """One published revision, named by its date.

    With `has_batches`, several messages may be sent as one array. With `has_titles`, tools have a title, and results
    have structured content.
    """

    name: str
    has_batches: bool = False
    has_titles: bool = True


MARCH_2025 = Revision("2025-03-26", has_batches=True, has_titles=False)
JUNE_2025 = Revision("2025-06-18")
NOVEMBER_2025 = Revision("2025-11-25")
JULY_2026 = Revision("2026-07-28")
"""The revision without a handshake: every request states its revision in its `_meta`."""

HANDSHAKES: Mapping[str, Revision] = {revision.name: revision for revision in (NOVEMBER_2025, JUNE_2025, MARCH_2025)}
"""The revisions with a handshake, which are always enabled, the latest first."""

_HANDSHAKE_NAMES = tuple(HANDSHAKES)  # a tuple, since a client may send a value that is not hashable

LATEST = NOVEMBER_2025
"""The revision in the response to a request for a disabled revision (2025-11-25, Lifecycle, Version Negotiation)."""

UNNAMED = MARCH_2025
"""The revision of a request without the header (2025-06-18, Transports, Protocol Version Header)."""


def revision_names(*, with_2026: bool) -> tuple[str, ...]:
    """Return the names of the enabled revisions, the latest first."""
    return (JULY_2026.name, *HANDSHAKES) if with_2026 else tuple(HANDSHAKES)


PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

MAX_BATCHED = 50
MAX_DEPTH = json_reader.MAX_DEPTH + 8
"""The maximum nesting of a message. A tool's arguments begin a few levels deep in the message, and may themselves be
nested as deep as the body of a request."""

_INTEGER = re.compile(rb"-?(0|[1-9][0-9]{0,99})")
_encode = msgspec.json.Encoder().encode


class JsonRpcError(Exception):
    """A message that gets a JSON-RPC error.

    `status` is the HTTP status of the response. `id` is the id of the request as JSON, or None if it could not be read.
    """

    def __init__(
        self, code: int, message: str, *, status: int = 200, id: bytes | None = None, data: object = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.id = id
        self.data = data

    def encoded(self, request_id: bytes | None = None) -> bytes:
        """Return the error response. Without an id it has no member `id`, since null is not a valid id (2025-06-18,
        Requests)."""
        message_id = self.id if self.id is not None else request_id
        error: dict[str, object] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        id_member = b"" if message_id is None else b'"id":%b,' % message_id
        return b'{"jsonrpc":"2.0",%b"error":%b}' % (id_member, _encode(error))


class ToolCall(msgspec.Struct, frozen=True):
    """The params of a request to call a tool. `arguments` is JSON that is not validated yet. `meta` are the members of
    `_meta`."""

    name: str
    arguments: bytes
    meta: Mapping[str, Any]


class RpcRequest(msgspec.Struct, frozen=True):
    """A request: its id as JSON, and its params, which are a JSON object, or None if there are no params.

    The params of most tool calls are parsed together with the message. Such a request has `tool_call`, and no `params`.
    """

    id: bytes
    method: str
    params: bytes | None
    tool_call: ToolCall | None = None

    def answered(self, members: bytes) -> bytes:
        """Return the encoded response whose result is an object with these members."""
        return b'{"jsonrpc":"2.0","id":%b,"result":{%b}}' % (self.id, members)


class OneWayMessage(msgspec.Struct, frozen=True, gc=False):
    """A notification, or a response from the client. Neither gets a response."""

    is_response: bool


Message: TypeAlias = RpcRequest | OneWayMessage


class _RawMessage(msgspec.Struct):
    jsonrpc: Any = UNSET
    id: msgspec.Raw | msgspec.UnsetType = UNSET
    method: Any = UNSET
    params: msgspec.Raw | msgspec.UnsetType = UNSET
    result: msgspec.Raw | msgspec.UnsetType = UNSET
    error: msgspec.Raw | msgspec.UnsetType = UNSET

    @property
    def is_answer(self) -> bool:
        return self.result is not UNSET or self.error is not UNSET


_one = msgspec.json.Decoder(_RawMessage).decode
_many = msgspec.json.Decoder(list[msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode


def read(body: bytes) -> Message | list[bytes]:
    """Parse the message of a body. For a batch, return the elements, which `read_one` parses.

    Raises:
        JsonRpcError: with status 400, -32700: the body is not JSON in UTF-8; -32600: the body is not a message, is an
            empty or too long batch, or has a duplicate key or too many values.
    """
    if not json_reader.has_at_most(json_reader.MAX_VALUES, body):
        raise JsonRpcError(INVALID_REQUEST, f"a body has at most {json_reader.MAX_VALUES:,} values", status=400)
    text = _utf8(body)
    tool_call = _read_tool_call(body)
    if tool_call is not None:
        return tool_call
    if text.startswith("{") or not text.lstrip().startswith("["):
        _require_unique_keys(body)
        return read_one(text)
    try:
        elements = [bytes(element) for element in _many(text)]
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unreadable(error) from error
    if not 0 < len(elements) <= MAX_BATCHED:
        raise JsonRpcError(INVALID_REQUEST, f"a batch has 1 to {MAX_BATCHED} messages", status=400)
    for element in elements:
        _require_unique_keys(element)
    return elements


def read_one(text: str | bytes) -> Message:
    """Parse one message.

    Raises:
        JsonRpcError: the text is not a valid message, for the reasons given at `read`.
    """
    try:
        raw_message = _one(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unreadable(error) from error
    identity = None if raw_message.id is UNSET else _id(bytes(raw_message.id))
    if raw_message.jsonrpc != "2.0":
        raise JsonRpcError(INVALID_REQUEST, 'jsonrpc must be "2.0"', status=400, id=identity)
    if raw_message.method is UNSET and identity is not None and raw_message.is_answer:
        return OneWayMessage(is_response=True)
    if not isinstance(raw_message.method, str):
        raise JsonRpcError(INVALID_REQUEST, "method must be a string", status=400, id=identity)
    if identity is None:
        return OneWayMessage(is_response=False)
    return RpcRequest(identity, raw_message.method, _params(raw_message, identity))


def _params(raw_message: _RawMessage, identity: bytes) -> bytes | None:
    params = None if raw_message.params is UNSET else bytes(raw_message.params)
    if params is not None and not params.startswith(b"{"):
        raise JsonRpcError(INVALID_PARAMS, "params must be an object", id=identity)
    return params


def _utf8(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise _unreadable(error) from error


class _OnlyCallParams(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: msgspec.Raw
    meta: msgspec.Raw | msgspec.UnsetType = msgspec.field(default=UNSET, name="_meta")


class _OnlyToolCall(msgspec.Struct, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    id: msgspec.Raw
    method: Literal["tools/call"]
    params: _OnlyCallParams


_MEMBERS = len(_OnlyToolCall.__struct_fields__) + len(_OnlyCallParams.__struct_fields__) - 1
"""The number of members of a tool call without `_meta`."""

_tool_call = msgspec.json.Decoder(_OnlyToolCall).decode


def _read_tool_call(body: bytes) -> RpcRequest | None:
    """Parse a tool call in one pass. Return None for any other message, and for a tool call that may have a duplicate
    key, other members or a fault: `read` examines those.
    """
    try:
        message = _tool_call(body)
        params = message.params
        arguments = bytes(params.arguments)
        # As in `json_reader`: each member has one colon outside of texts.
        members = body.count(b":") - arguments.count(b":")
        meta: object = {}
        if params.meta is not UNSET:
            raw_meta = bytes(params.meta)
            members -= raw_meta.count(b":") + 1
            meta = json_reader.read(raw_meta, checks_texts=False)
    except (msgspec.DecodeError, RecursionError, json_reader.InvalidJson):
        return None
    if members != _MEMBERS or not arguments.startswith(b"{") or not isinstance(meta, dict):
        return None
    return RpcRequest(
        _id(bytes(message.id)), message.method, None, ToolCall(params.name, arguments, cast("dict[str, Any]", meta))
    )


class _WithArguments(msgspec.Struct):
    arguments: msgspec.Raw = msgspec.Raw()


class _WithParams(msgspec.Struct):
    params: _WithArguments = msgspec.field(default_factory=_WithArguments)


_arguments = msgspec.json.Decoder(_WithParams).decode


def _require_unique_keys(message: bytes) -> None:
    """Refuse a message with a duplicate key. Arguments are not checked here, since the tool validates them: refused
    input must give a result, not a protocol error."""
    try:
        arguments = bytes(_arguments(message).params.arguments)
    except (msgspec.DecodeError, RecursionError):
        arguments = b"{}"
    if not arguments.startswith(b"{"):
        arguments = b"{}"
    try:
        json_reader.read(message.replace(arguments, b"{}", 1), max_depth=MAX_DEPTH, checks_texts=False)
    except json_reader.NotJson as error:
        raise JsonRpcError(PARSE_ERROR, "the body must be JSON in UTF-8", status=400) from error
    except json_reader.InvalidJson as error:
        raise JsonRpcError(INVALID_REQUEST, str(error), status=400) from error


def _unreadable(error: Exception) -> JsonRpcError:
    if isinstance(error, msgspec.ValidationError):
        return JsonRpcError(INVALID_REQUEST, "a message must be an object", status=400)
    return JsonRpcError(PARSE_ERROR, "the body must be JSON in UTF-8", status=400)


def _id(raw: bytes) -> bytes:
    """Return the id as the response must repeat it: a string or an integer, with type and digits unchanged."""
    if raw.startswith(b'"'):
        try:
            return _encode(_text(raw))
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            raise _unreadable(error) from error
    if not _INTEGER.fullmatch(raw):
        raise JsonRpcError(INVALID_REQUEST, "id must be a string or an integer", status=400)
    return raw


HEADER_MISMATCH = -32020
UNSUPPORTED_REVISION = -32022
REVISION_HEADER = "mcp-protocol-version"

_REVISION = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_SENTINEL, _SENTINEL_END = "=?base64?", "?="


class Headers(Protocol):
    """The request's headers."""

    def get(self, name: str) -> str | None:
        """Return the value of the header of this lower-case name."""
        ...


class _Params(msgspec.Struct):
    meta: dict[str, Any] | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="_meta")
    name: Any = None


_decode_params = msgspec.json.Decoder(_Params).decode


def header_of(headers: Headers, name: str) -> str | None:
    """Return the header's value without surrounding white space (RFC 9110 §5.5)."""
    header = headers.get(name)
    return None if header is None else header.strip(" \t")


def is_self_described(headers: Headers, request: RpcRequest | None) -> bool:
    """Return whether a message uses revision 2026-07-28 or later, because its metadata or its header names a revision
    without a handshake. This is false for an `initialize` request without such metadata (2026-07-28, Versioning,
    Backward Compatibility)."""
    revision = None if request is None else _meta(request).get(_REVISION)
    if revision is not None and revision not in _HANDSHAKE_NAMES:
        return True
    if revision is None and request is not None and request.method == "initialize":
        return False
    header = header_of(headers, REVISION_HEADER)
    return header is not None and header not in _HANDSHAKE_NAMES


def check_headers(headers: Headers, request: RpcRequest) -> None:
    """Compare a request's headers with its body (2026-07-28, Streamable HTTP, Server Validation).

    Raises:
        JsonRpcError: with status 400, -32020: a header is missing or differs; -32022: the revision is not enabled;
            -32602: the metadata lack a required member.
    """
    meta = _meta(request)
    revision, header = meta.get(_REVISION), header_of(headers, REVISION_HEADER)
    unsupported_revision = next(
        (name for name in (revision, header) if isinstance(name, str) and name != JULY_2026.name), None
    )
    if unsupported_revision is not None and revision in (None, header):
        data = {"supported": revision_names(with_2026=True), "requested": unsupported_revision}
        raise JsonRpcError(UNSUPPORTED_REVISION, "Unsupported protocol version", status=400, id=request.id, data=data)
    if not isinstance(revision, str):
        raise JsonRpcError(INVALID_PARAMS, f"params._meta must hold {_REVISION}", status=400, id=request.id)
    _compare(request, "MCP-Protocol-Version", header, revision)
    _compare(request, "Mcp-Method", header_of(headers, "mcp-method"), request.method)
    if request.method == "tools/call":
        name = _params_of(request).name if request.tool_call is None else request.tool_call.name
        _compare(request, "Mcp-Name", _decoded_header(header_of(headers, "mcp-name")), name)
    if not isinstance(meta.get(_CAPABILITIES), dict):
        raise JsonRpcError(INVALID_PARAMS, f"params._meta must hold {_CAPABILITIES}", status=400, id=request.id)


def _compare(request: RpcRequest, name: str, header: str | None, value: object) -> None:
    if header != value:
        text = f"Header mismatch: {name} must be as in the body"
        raise JsonRpcError(HEADER_MISMATCH, text, status=400, id=request.id)


def _decoded_header(header: str | None) -> str | None:
    """Return the header's value; non-ASCII values are sent as base64 (Value Encoding)."""
    if header is None or not (header.startswith(_SENTINEL) and header.endswith(_SENTINEL_END)):
        return header
    try:
        return base64.b64decode(header[len(_SENTINEL) : -len(_SENTINEL_END)], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _meta(request: RpcRequest) -> Mapping[str, Any]:
    if request.tool_call is not None:
        return request.tool_call.meta
    meta_object = _params_of(request).meta
    return cast("Mapping[str, Any]", {}) if meta_object is msgspec.UNSET else meta_object


def _params_of(request: RpcRequest) -> _Params:
    if request.params is None:
        return _Params()
    try:
        return _decode_params(request.params)
    except (msgspec.DecodeError, RecursionError):
        return _Params()
