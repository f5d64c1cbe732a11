"""Caches 200 responses in memory until the versions of their data change, and caches compressed bodies (RFC 9110 §8.4).

Only responses that are the same for every caller are compressed. A response to a request with a cookie or a credential
is never compressed, because the length of a compressed response can reveal its content (BREACH).
"""

import gzip
import sys
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from countersign.kernel.http.request import Headers
from countersign.kernel.http.response import CODINGS, Coding, Response, etag_for_coding

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MIN_BYTES = 1024
"""The minimum size of a body to compress. Compressing shorter bodies has no benefit."""
CREDENTIALS = ("authorization", "x-api-key", "cookie")
VARY = ("Vary", "Accept-Encoding")
_GZIP_LEVEL, _ZSTD_LEVEL = 6, 9


def negotiate_coding(headers: Headers) -> Coding | None:
    """Return the content coding for the response to this request, or None to send the body uncoded."""
    accept_header = headers.get("accept-encoding")
    if accept_header is None or any(headers.get(name) is not None for name in CREDENTIALS):
        return None
    return _best(accept_header)


@lru_cache(maxsize=256)
def _best(accepted: str) -> Coding | None:
    weights: dict[str, float] = {}
    for accepted_coding in accepted.lower().split(","):
        name, *parameters = (part.strip() for part in accepted_coding.split(";"))
        weights[name] = _weight(parameters)
    every = weights.get("*", 0.0)
    best = max(CODINGS, key=lambda coding: weights.get(coding, every))
    weight = weights.get(best, every)
    return best if weight > 0 and weight >= weights.get("identity", 0.0) else None


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0


class EncodingCache:
    """Maps entity tags, which identify content, to compressed bodies. The least recently used bodies are evicted.

    A body above the limit is not compressed. It could not be cached, so it would have to be compressed for every
    request.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    def body(self, etag: str, body: bytes, coding: Coding) -> bytes:
        """Return the compressed body."""
        name = etag_for_coding(etag, coding)
        cached_body = self._kept.get(name)
        if cached_body is not None:
            self._kept.move_to_end(name)
            return cached_body
        compressed_body = (
            gzip.compress(body, _GZIP_LEVEL, mtime=0) if coding == "gzip" else zstd.compress(body, _ZSTD_LEVEL)
        )
        if len(compressed_body) > self._limit_bytes:
            return compressed_body
        self._kept[name] = compressed_body
        self._used_bytes += len(compressed_body)
        while self._used_bytes > self._limit_bytes:
            _, evicted_body = self._kept.popitem(last=False)
            self._used_bytes -= len(evicted_body)
        return compressed_body

    def answer(self, answer: Response, headers: Headers) -> Response:
        """Return the response in the coding that the request accepts. A response that is short, above the limit,
        streamed, or without a tag is returned unchanged."""
        coding = negotiate_coding(headers)
        if answer.status != 200 or answer.etag is None or not isinstance(answer.body, bytes):
            return answer
        if coding is None or not MIN_BYTES <= len(answer.body) <= self._limit_bytes:
            return answer
        compressed_body = self.body(answer.etag, answer.body, coding)
        tag = etag_for_coding(answer.etag, coding)
        return Response(200, compressed_body, answer.media_type, (*answer.headers, ("Content-Encoding", coding)), tag)


Target: TypeAlias = tuple[bytes, bytes]
"""A raw path and a query string, as they were sent."""

MAX_ASKED = 10_000


@dataclass(slots=True)
class CachedResponse:
    """An encoded 200 response for anonymous callers, and the versions of its data. `headers` do not contain its entity
    tag."""

    versions: tuple[int, ...]
    body: bytes
    etag: str
    headers: tuple[tuple[bytes, bytes], ...]


class ResponseCache:
    """The most recently used responses, with a limit in bytes. A response of older versions is never returned."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self._asked: set[Target] = set()
        self._pages: OrderedDict[Target, CachedResponse] = OrderedDict()

    def is_repeat(self, target: Target) -> bool:
        """Return whether the target was requested before, as far as earlier targets are remembered. Only then is its
        response cached.

        A crawler requests most pages of a large catalog only once. Caching these pages would evict other pages.
        """
        if target in self._pages or target in self._asked:
            return True
        if len(self._asked) >= MAX_ASKED:
            self._asked.clear()
        self._asked.add(target)
        return False

    def get(self, target: Target, versions: tuple[int, ...]) -> CachedResponse | None:
        """Return the response for the target if its data have exactly these versions, or None."""
        page = self._pages.get(target)
        if page is None:
            return None
        if page.versions != versions:
            self._drop(target)
            return None
        self._pages.move_to_end(target)
        return page

    def put(self, target: Target, page: CachedResponse) -> None:
        """Cache the response, and evict the least recently used ones. A response larger than a sixteenth of the limit
        is not cached."""
        if _bytes_of(target, page) > self._limit_bytes // 16:
            return
        self._drop(target)
        self._pages[target] = page
        self._used_bytes += _bytes_of(target, page)
        while self._used_bytes > self._limit_bytes:
            oldest, evicted_page = self._pages.popitem(last=False)
            self._used_bytes -= _bytes_of(oldest, evicted_page)

    def _drop(self, target: Target) -> None:
        page = self._pages.pop(target, None)
        if page is not None:
            self._used_bytes -= _bytes_of(target, page)


def _bytes_of(target: Target, page: CachedResponse) -> int:
    return len(target[0]) + len(target[1]) + len(page.body) + 512
