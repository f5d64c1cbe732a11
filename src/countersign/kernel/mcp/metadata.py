"""Revision 2026-07-28: what every request says of itself, in its `_meta` and the same again in headers."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Protocol, cast

import msgspec

from countersign.kernel.mcp.messages import INVALID_PARAMS, Fault, Request
from countersign.kernel.mcp.revisions import HANDSHAKES, JULY_2026, offered

HEADER_MISMATCH = -32020
UNSUPPORTED_REVISION = -32022
REVISION_HEADER = "mcp-protocol-version"

_REVISION = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_SENTINEL, _SENTINEL_END = "=?base64?", "?="


class Headers(Protocol):
    """The request's headers."""

    def get(self, name: str) -> str | None:
        """The value of the header of this lower-case name."""
        ...


class _Params(msgspec.Struct):
    meta: dict[str, Any] | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="_meta")
    name: Any = None


_params = msgspec.json.Decoder(_Params).decode


def header_of(headers: Headers, name: str) -> str | None:
    """The header's value without the white space around it, which is no part of it (RFC 9110 §5.5)."""
    found = headers.get(name)
    return None if found is None else found.strip(" \t")


def is_self_described(headers: Headers, request: Request | None) -> bool:
    """Whether a message is in this revision or a later one: it says so, or its header names none with a handshake.
    The handshake itself never is (2026-07-28, Versioning, Backward Compatibility)."""
    wanted = None if request is None else _meta(request).get(_REVISION)
    if wanted is None and request is not None and request.method == "initialize":
        return False
    return any(
        each is not None and each not in tuple(HANDSHAKES) for each in (wanted, header_of(headers, REVISION_HEADER))
    )


def check(headers: Headers, request: Request) -> None:
    """Hold a request's headers against its body (2026-07-28, Streamable HTTP, Server Validation).

    Raises:
        Fault: with status 400, -32020: a header is missing or differs; -32022: the revision is not on; -32602: the
            metadata lack what every request must say.
    """
    meta = _meta(request)
    wanted, header = meta.get(_REVISION), header_of(headers, REVISION_HEADER)
    unsupported = next((each for each in (wanted, header) if isinstance(each, str) and each != JULY_2026.name), None)
    if unsupported is not None and wanted in (None, header):
        data = {"supported": offered(with_2026=True), "requested": unsupported}
        raise Fault(UNSUPPORTED_REVISION, "Unsupported protocol version", status=400, id=request.id, data=data)
    if not isinstance(wanted, str):
        raise Fault(INVALID_PARAMS, f"params._meta must hold {_REVISION}", status=400, id=request.id)
    _compare(request, "MCP-Protocol-Version", header, wanted)
    _compare(request, "Mcp-Method", header_of(headers, "mcp-method"), request.method)
    if request.method == "tools/call":
        _compare(request, "Mcp-Name", _plain(header_of(headers, "mcp-name")), _of(request).name)
    if not isinstance(meta.get(_CAPABILITIES), dict):
        raise Fault(INVALID_PARAMS, f"params._meta must hold {_CAPABILITIES}", status=400, id=request.id)


def _compare(request: Request, name: str, header: str | None, value: object) -> None:
    if header != value:
        raise Fault(HEADER_MISMATCH, f"Header mismatch: {name} must be as in the body", status=400, id=request.id)


def _plain(header: str | None) -> str | None:
    """The header's value; what is no plain ASCII was sent as base64 (Value Encoding)."""
    if header is None or not (header.startswith(_SENTINEL) and header.endswith(_SENTINEL_END)):
        return header
    try:
        return base64.b64decode(header[len(_SENTINEL) : -len(_SENTINEL_END)], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _meta(request: Request) -> Mapping[str, Any]:
    found = _of(request).meta
    return cast("Mapping[str, Any]", {}) if found is msgspec.UNSET else found


def _of(request: Request) -> _Params:
    if request.params is None:
        return _Params()
    try:
        return _params(request.params)
    except (msgspec.DecodeError, RecursionError):
        return _Params()
