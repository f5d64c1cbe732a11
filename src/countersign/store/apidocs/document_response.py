"""Responses with documents about the service: cacheable, with an ETag, readable by pages of any site."""

from collections.abc import Mapping
from typing import TypedDict

from countersign.kernel.http.rate_limit import DOCUMENTS as QUOTA
from countersign.kernel.http.response import JSON, Response, etag_of
from countersign.kernel.http.response_cache import VARY

MAX_AGE_S = 300
DOCUMENTS: Mapping[str, str] = {
    "openapi": "/openapi.json",
    "wiki": "/wiki.json",
    "agents": "/auth.md",
    "llms": "/llms.txt",
    "api-catalog": "/.well-known/api-catalog",
}
"""What describes the service, by what it is called in the others."""
SENDS: Mapping[int, tuple[str, ...]] = dict.fromkeys((200, 304), ("ETag", "Cache-Control", "Vary", "Content-Encoding"))


class DocumentOptions(TypedDict):
    """Which of a route's options every document has."""

    at_root: bool
    compressed: bool
    cross_origin: bool
    quota: str
    reads: tuple[str, ...]
    sends: Mapping[int, tuple[str, ...]]


OPTIONS: DocumentOptions = {
    "at_root": True,
    "compressed": True,
    "cross_origin": True,
    "quota": QUOTA,
    "reads": ("If-None-Match",),
    "sends": SENDS,
}
"""What the route of every document has in common."""


def answer(body: bytes, media_type: str = JSON, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """The document with its entity tag; a route with `OPTIONS` answers 304 to a client that has it."""
    headers = (("Cache-Control", f"public, max-age={MAX_AGE_S}"), VARY, *headers)
    return Response(200, body, media_type, headers, etag_of(body))
