"""Converts refusals to problem details (RFC 9457) that combine both documented error formats."""

from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from countersign.kernel.errors import Refused
from countersign.kernel.http.response import JSON, Response, encode
from countersign.kernel.log_redaction import redacted

PROBLEM_JSON = "application/problem+json"
_URI = "!#$%&'()*+,/:;=?@[]~"
"""Characters that a URI contains unencoded, besides letters, digits and `-._` (RFC 3986 §2)."""


class RouteNotFound(Refused):
    """No endpoint has this address."""

    status = 404
    code = "route_not_found"
    title = "No such address"
    resolution = (
        "See /openapi.json for the addresses of the API. Web pages are sent only to browsers, which accept text/html."
    )


class MethodNotAllowed(Refused):
    """The address exists, but not for this method."""

    status = 405
    code = "method_not_allowed"
    title = "Method not allowed"
    resolution = "Use one of the methods in the Allow header."


class NotAcceptable(Refused):
    """Accept excludes every media type that this endpoint can return."""

    status = 406
    code = "not_acceptable"
    title = "Not acceptable"
    resolution = "Accept a media type that the detail names, or omit Accept."


class InternalError(Refused):
    """A fault of the service itself. The fault is logged with the request's id."""

    status = 500
    code = "internal_error"
    title = "Internal error"
    resolution = "Try again; if it persists, report the X-Request-Id of the answer."


def problem(refused: Refused, root_url: str, target: str) -> Response:
    """Return the refusal as application/problem+json. It contains the documented members, the `message` of the short
    format, and the two members that OAuth and auth.md clients read (agent-auth 7.1).

    `target` is the requested address: an absolute URI, or a path with its query below `root_url`. If `root_url` is
    empty, the member `instance` is omitted.
    """
    body: dict[str, Any] = {
        "type": f"{root_url}/problems/{refused.code.replace('_', '-')}",
        "title": refused.title or HTTPStatus(refused.status).phrase,
        "status": refused.status,
        "detail": refused.detail,
        "code": refused.code,
        "message": refused.detail,
        "error": _oauth_code(refused),
        "error_description": refused.detail,
        **refused.members,
    }
    if root_url:
        body["instance"] = _instance(root_url, target)
    if refused.remedy:
        body["resolution"] = refused.remedy
    if refused.faults:
        body["errors"] = [
            {"parameter" if fault.is_parameter else "pointer": fault.place, "detail": fault.detail}
            for fault in refused.faults
        ]
    return Response(refused.status, encode(body), PROBLEM_JSON, tuple(refused.headers.items()))


def _instance(root_url: str, target: str) -> str:
    """Return the requested address as an absolute URI (RFC 9457 §3.1.5). Others may log the URI, so the secrets that an
    upload's address and a set-up link contain in path and query are left out."""
    address = str(redacted(target))
    full_address = root_url + address if address.startswith("/") else address
    return quote(full_address.encode("latin-1", "replace"), safe=_URI)


def oauth_error(refused: Refused) -> Response:
    """Return the refusal in the format of RFC 6749 §5.2, which is also the documented short format."""
    body = {
        "error": _oauth_code(refused),
        "error_description": refused.detail,
        "code": refused.code,
        "message": refused.detail,
        **refused.members,
    }
    if refused.remedy:
        body["resolution"] = refused.remedy
    headers = (*refused.headers.items(), ("Cache-Control", "no-store"), ("Pragma", "no-cache"))
    return Response(refused.status, encode(body), JSON, headers)


def _oauth_code(refused: Refused) -> str:
    """Return the error code for OAuth and auth.md, which differs from the API's code in one case."""
    return "rate_limited" if refused.code == "rate_limit_exceeded" else refused.code
