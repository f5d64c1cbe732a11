"""What the API document names: endpoints with parameters, bodies and answers, and the members of its objects.

Whatever the service has beyond this is marked `x-addition` in the description it serves.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

Members: TypeAlias = Mapping[str, bool]
"""Whether a member is required, by its name."""

OBJECTS: Mapping[str, Members] = {
    "Product": {"id": True, "slug": True, "title": True, "description": False, "kind": True, "platforms": True},
    "ProductList": {"items": True, "next_cursor": True},
    "Release": {"version": True, "channel": True, "published_at": True, "notes": False},
    "operation": {"method": True, "path": True, "body": False},
    "result": {"status": True, "body": True},
    "batch request": {"operations": True},
    "batch response": {"results": True},
    "JobStatus": {"job_id": True, "status": True, "progress": False},
    "problem details": {
        "type": True,
        "title": True,
        "status": True,
        "detail": True,
        "instance": False,
        "code": False,
        "resolution": False,
    },
    "health": {"status": True, "version": False},
    "info": {"service": True, "version": True, "storage": False},
    "sandbox metadata": {
        "sandbox": True,
        "status": True,
        "environment": True,
        "free_tier": False,
        "self_serve_keys": False,
    },
    "sandbox health": {"status": True, "environment": True},
    "sandbox telemetry": {"status": True, "active_agents": True},
    "provisioned key": {"status": True, "api_key": True, "self_serve": True, "free_tier": False},
    "natural-language answer": {"answer": True},
    "redeem result": {"success": True, "product_id": True},
    "redeem request": {"code": True},
    "job request": {"type": True, "payload": True},
    "ask request": {"query": True},
    "token request": {"grant_type": False, "assertion": False, "scope": False},
    "token": {"access_token": True, "token_type": True, "expires_in": True, "scope": True},
    "registration": {
        "grant_type": False,
        "assertion_type": False,
        "assertion": False,
        "scope": False,
        "method": False,
        "email": False,
    },
    "revocation": {"token": False, "token_type_hint": False},
}
HELD: Mapping[tuple[str, str], str] = {
    ("ProductList", "items"): "Product",
    ("batch request", "operations"): "operation",
    ("batch response", "results"): "result",
}
"""Objects within objects: what the items of a member are."""
NULLABLE = frozenset({("ProductList", "next_cursor")})
"""Members that may be null."""
IN_GENERAL = frozenset({401, 403, 429})
"""Statuses that the section on errors gives to every endpoint they can arise at."""
HEADERS = frozenset(
    {
        "RateLimit-Limit",
        "RateLimit-Remaining",
        "RateLimit-Reset",
        "Retry-After",
        "WWW-Authenticate",
        "Deprecation",
        "Sunset",
    }
)
"""Headers of answers."""


class Endpoint(NamedTuple):
    """One row of the endpoint table: the names of its parameters, and the objects of its body and answers."""

    parameters: tuple[str, ...] = ()
    body: str | None = None
    answers: Mapping[int, str | None] = {}


_KEY = "Idempotency-Key"

ENDPOINTS: Mapping[tuple[str, str], Endpoint] = {
    ("GET", "/health"): Endpoint(("format",), None, {200: "health", 429: "problem details"}),
    ("GET", "/info"): Endpoint(("format",), None, {200: "info"}),
    ("GET", "/products"): Endpoint(("cursor", "limit"), None, {200: "ProductList"}),
    ("GET", "/products/{id}"): Endpoint(("id",), None, {200: "Product", 404: "problem details"}),
    ("GET", "/products/{id}/releases"): Endpoint(("id",), None, {200: "Release"}),
    ("GET", "/library"): Endpoint(("limit", "cursor"), None, {200: "Product", 401: "problem details"}),
    ("POST", "/redeem"): Endpoint((_KEY,), "redeem request", {200: "redeem result"}),
    ("POST", "/batch"): Endpoint((_KEY,), "batch request", {200: "batch response"}),
    ("POST", "/jobs"): Endpoint((_KEY,), "job request", {200: "JobStatus", 202: "JobStatus"}),
    ("GET", "/jobs/{job_id}"): Endpoint(("job_id",), None, {200: "JobStatus"}),
    ("GET", "/sandbox"): Endpoint(("format",), None, {200: "sandbox metadata"}),
    ("GET", "/sandbox/api/v1/health"): Endpoint(("format",), None, {200: "sandbox health"}),
    ("GET", "/sandbox/api/v1/telemetry"): Endpoint(("format",), None, {200: "sandbox telemetry"}),
    ("GET", "/api/keys"): Endpoint(("tier",), None, {200: "provisioned key"}),
    ("POST", "/ask"): Endpoint(("stream",), "ask request", {200: "natural-language answer"}),
    ("GET", "/ask"): Endpoint(("q",), None, {200: "natural-language answer"}),
    # From the section on authentication.
    ("POST", "/auth/token"): Endpoint((), "token request", {200: "token"}),
    ("POST", "/auth/login"): Endpoint((), "token request", {200: "token"}),
    ("POST", "/auth/register"): Endpoint((), "registration", {200: None}),
    ("GET", "/auth/me"): Endpoint((), None, {200: None}),
    ("POST", "/auth/revoke"): Endpoint((), "revocation", {200: None}),
    ("GET", "/auth/authorize"): Endpoint((), None, {200: None}),
    ("POST", "/healthz"): Endpoint((), None, {202: None}),
}
UNSAID = Endpoint((), None, {200: None})
"""An endpoint that the document names without saying more."""
