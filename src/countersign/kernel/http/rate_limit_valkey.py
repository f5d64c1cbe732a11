"""Rate limit counters in Valkey or Redis, shared by the workers of several nodes. Importing the client takes a long
time, so import this module only if it is needed."""

import asyncio
from collections.abc import Callable, Sequence
from socket import gaierror
from ssl import SSLError
from typing import Protocol, cast

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError
from redis.exceptions import TimeoutError as ServerTimeout

from countersign.kernel import clock, connection_urls
from countersign.kernel.http.rate_limit import Quota, SharedMemoryCounters

SETTING = "COUNTERSIGN_COUNTERS_URL"
PATIENCE_S = 0.25
PAUSE_S = 1.0
WARN_EVERY_S = 60.0
_MAX_CONNECTIONS = 16
_KEY_PREFIX = "countersign:quota:"
RIGHTS = "~countersign:* +evalsha +script|load +get +set +incrby +pttl +pexpire"

# The script repairs a key without an expiry (PTTL -1), which was damaged, and a key that expires more than one window
# from now, because the limit was changed or the server's clock went back. It returns whether the hit is allowed, the
# count, and the milliseconds left.
_HIT = """
local limit, window, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local left = redis.call('PTTL', KEYS[1])
local count = left >= 0 and tonumber(redis.call('GET', KEYS[1])) or 0
if left > window then
  redis.call('PEXPIRE', KEYS[1], window)
  left = window
end
if cost > limit - count then
  return {0, count, left < 0 and window or left}
end
if left < 0 then
  redis.call('SET', KEYS[1], cost, 'PX', window)
  return {1, cost, window}
end
return {1, redis.call('INCRBY', KEYS[1], cost), left}
"""


class _Script(Protocol):
    async def __call__(self, keys: Sequence[str], args: Sequence[int]) -> tuple[int, int, int]: ...


class _Client(Protocol):
    def register_script(self, script: str) -> _Script: ...
    async def aclose(self) -> None: ...


class ValkeyCounters:
    """Counters in one Valkey or Redis server. Each call runs one atomic script.

    While the server does not answer within a quarter of a second, this node counts in `fallback`: requests continue,
    and limits apply per node. The server is retried after a second; `warn` is called once a minute.
    """

    def __init__(self, url: str, fallback: SharedMemoryCounters, warn: Callable[[str], None]) -> None:
        """Create counters for a URL with `valkey://`, `valkeys://`, `redis://`, `rediss://` or `unix://`. The first hit
        opens the connection.

        Raises:
            ValueError: the URL has another scheme, or cannot be parsed. The message quotes no part of the URL.
        """
        self._fallback = fallback
        self._warn = warn
        self._is_down = False
        self._ask_again_s = 0.0
        self._warn_again_s = 0.0
        self._client = _connect(url)
        self._hit = self._client.register_script(_HIT)

    async def hit(self, key: str, limit: int, window_s: int, cost: int = 1) -> Quota:
        """Do what `Counters.hit` does. Wait for the server for a quarter of a second at most."""
        quota = await self._hit_server(key, limit, window_s, cost)
        return self._fallback.hit_now(key, limit, window_s, cost) if quota is None else quota

    async def peek(self, key: str, limit: int, window_s: int) -> Quota:
        """Do what `Counters.peek` does. Wait for the server for a quarter of a second at most."""
        quota = await self._hit_server(key, limit, window_s, 0)
        if quota is None:
            return await self._fallback.peek(key, limit, window_s)
        return Quota(limit, quota.remaining, quota.reset_s, quota.remaining > 0)

    async def close(self) -> None:
        """Close the connections and the fallback."""
        await self._client.aclose()
        await self._fallback.close()

    async def _hit_server(self, key: str, limit: int, window_s: int, cost: int) -> Quota | None:
        if self._is_down:
            if clock.monotonic_s() < self._ask_again_s:
                return None
            # Only this call retries the server. Concurrent calls use the fallback until then.
            self._ask_again_s = clock.monotonic_s() + PAUSE_S
        try:
            async with asyncio.timeout(PATIENCE_S):
                is_allowed, count, left_ms = await self._hit([_KEY_PREFIX + key], [limit, window_s * 1_000, cost])
        except (RedisError, OSError) as error:
            self._note_failure(error)
            return None
        self._is_down = False
        return Quota(limit, max(0, limit - count), -(-left_ms // 1_000), is_allowed == 1)

    def _note_failure(self, error: Exception) -> None:
        now_s = clock.monotonic_s()
        self._is_down = True
        self._ask_again_s = now_s + PAUSE_S
        if now_s >= self._warn_again_s:
            self._warn_again_s = now_s + WARN_EVERY_S
            self._warn(f"the rate-limit server {failure_reason(error)}; this node counts alone")


def failure_reason(error: Exception) -> str:
    """Return the cause of a failure and the remedy, but not the error's text, which may contain the URL's password."""
    if isinstance(error, AuthenticationError):
        return f"refuses user and password: correct them in {SETTING}"
    if isinstance(error, NoPermissionError):
        return f"does not permit this user to count: allow {RIGHTS} there"
    if isinstance(error, ResponseError):
        return f"refuses the command: correct the database's number in {SETTING}, or check its log"
    # The client raises its own error while it handles the system's error, which is the cause.
    cause = error.__cause__ or error.__context__ or error
    if isinstance(cause, gaierror):
        return f"cannot be resolved: correct the host in {SETTING}"
    if isinstance(cause, ConnectionRefusedError):
        return f"does not listen: start it, or correct host and port in {SETTING}"
    if isinstance(cause, SSLError):
        return f"does not accept TLS: correct its certificate, or the scheme of {SETTING}"
    if isinstance(error, TimeoutError | ServerTimeout):
        return f"does not answer in {PATIENCE_S} s: check it, or correct host, port and TLS (rediss://) in {SETTING}"
    return f"does not answer: check its log, or correct {SETTING}"


def _connect(url: str) -> _Client:
    connection_urls.require_readable(url, SETTING)
    client_url = url.replace("valkey", "redis", 1) if url.startswith(("valkey://", "valkeys://")) else url
    pool = BlockingConnectionPool(
        max_connections=_MAX_CONNECTIONS,
        timeout=PATIENCE_S,
        socket_timeout=PATIENCE_S,
        socket_connect_timeout=PATIENCE_S,
        retry=Retry(NoBackoff(), 1),
        **parse_url(client_url),
    )
    return cast(_Client, Redis.from_pool(pool))
