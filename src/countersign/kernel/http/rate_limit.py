"""Rate limits: which quota counts a request, and the headers that tell where it stands."""

from collections.abc import Mapping
from typing import Protocol

from countersign.kernel.errors import Refused
from countersign.kernel.http.counters import Quota

WINDOW_S = 60
DOCUMENTS = "documents"
"""The quota of documents, problem pages and self-serve keys, by address."""


class RateLimited(Refused):
    """The caller has used up its quota of the current window."""

    status = 429
    code = "rate_limit_exceeded"
    title = "Too many requests"
    resolution = "Wait for the seconds in Retry-After, then continue more slowly."

    def __init__(self, detail: str, standing: Quota, way_up: str = "") -> None:
        """`standing` is the quota that is used up: the answer carries its numbers, whatever else was counted. `way_up`
        says how the caller gets a higher one."""
        resolution = f"{self.resolution} {way_up}" if way_up else None
        super().__init__(detail, resolution=resolution, headers=used_up(standing.limit, standing.reset_s))


class HitCounter(Protocol):
    """What counts: see `counters`."""

    async def hit(self, key: str, limit: int, window_s: int, cost: int = 1) -> Quota:
        """Count `cost` against the key and tell where it stands."""
        ...


class RateLimiter:
    """Counts each request against its caller's quota (requests per minute, by quota name)."""

    def __init__(
        self, counters: HitCounter, quotas: Mapping[str, int], ways_up: Mapping[str, str] | None = None
    ) -> None:
        """`ways_up` say how a caller gets a higher quota than the one of this name."""
        self._counters = counters
        self._quotas = quotas
        self._ways_up = ways_up or {}

    async def count(self, quota: str, key: str) -> tuple[tuple[str, str], ...]:
        """Count one request; the RateLimit headers for its answer.

        Raises:
            RateLimited: the quota of this window is used up.
        """
        standing = await self._counters.hit(f"{quota}\0{key}", self._quotas[quota], WINDOW_S)
        headers = headers_of(standing)
        if not standing.allowed:
            detail = f"more than {standing.limit} requests in {WINDOW_S} seconds"
            raise RateLimited(detail, standing, self._ways_up.get(quota, ""))
        return headers


def used_up(limit: int, wait_s: int) -> dict[str, str]:
    """The headers of a 429: the limit that was reached, nothing left of it, and the seconds to wait."""
    wait = str(max(1, wait_s))
    return {"RateLimit-Limit": str(limit), "RateLimit-Remaining": "0", "RateLimit-Reset": wait, "Retry-After": wait}


def headers_of(standing: Quota) -> tuple[tuple[str, str], ...]:
    """RateLimit-Limit, -Remaining and -Reset (seconds) as the API document names them."""
    return (
        ("RateLimit-Limit", str(standing.limit)),
        ("RateLimit-Remaining", str(standing.remaining)),
        ("RateLimit-Reset", str(standing.reset_s)),
    )
