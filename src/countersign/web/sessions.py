"""Exchanges the session cookie for the bearer token of the API. Scripts of pages can read neither.

Tokens are never logged. Those of `TokenExchangeSessions` exist only in the memory of this process, keyed by a hash of
the cookie. The service decides whether a token is valid: a 401 removes it from the cache.
"""

import asyncio
import hashlib
import re
from collections import OrderedDict
from typing import NamedTuple, Protocol

from countersign.kernel import clock
from countersign.kernel.http.exchange import Scope
from countersign.kernel.http.request import ASGIApp
from countersign.web import api_client
from countersign.web.origin import PublicAddress

MAX_CACHED = 10_000
RENEWAL_MARGIN_S = 60
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,4096}")


class Sessions(Protocol):
    """The sessions of the visitors of a site."""

    cookie_name: str

    async def bearer(self, service: ASGIApp, scope: Scope, value: str) -> str | None:
        """Return the bearer token of the session with this cookie, or None if the session has ended."""
        ...

    def forget(self, value: str) -> None:
        """Remove the session with this cookie from the cache."""
        ...


class CookieSessions:
    """The sessions of an app whose sign-in form this site handles: the value of the cookie is the bearer token."""

    def __init__(self, name: str, address: PublicAddress) -> None:
        self.cookie_name = f"__Host-{name}" if address.is_secure else name
        self._attributes = "Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if address.is_secure else "")

    async def bearer(self, service: ASGIApp, scope: Scope, value: str) -> str | None:
        """The value of the cookie, if it has the format of a token."""
        return value if _TOKEN.fullmatch(value) else None

    def forget(self, value: str) -> None:
        """Do nothing, since nothing is cached."""

    def set_cookie(self, token: str) -> tuple[str, str]:
        """The header that sets the session cookie until the browser is closed."""
        return ("Set-Cookie", f"{self.cookie_name}={token}; {self._attributes}")

    def delete_cookie(self) -> tuple[str, str]:
        """The header that deletes the session cookie."""
        return ("Set-Cookie", f"{self.cookie_name}=; Max-Age=0; {self._attributes}")


class _CachedToken(NamedTuple):
    bearer: str | None
    expires_s: float


class TokenExchangeSessions:
    """For services with sessions of their own: exchanges the cookie for a bearer token at `exchange_path`, and caches
    the token until shortly before it expires. Ended sessions are cached as well, so that a stale cookie causes only one
    exchange."""

    def __init__(self, cookie_name: str, exchange_path: str, address: PublicAddress) -> None:
        self.cookie_name = cookie_name
        self._exchange_path = exchange_path
        self._address = address
        self._cache: OrderedDict[bytes, _CachedToken] = OrderedDict()
        self._exchange_lock = asyncio.Lock()

    async def bearer(self, service: ASGIApp, scope: Scope, value: str) -> str | None:
        """The bearer token of the session, from the cache or from the service."""
        if not _TOKEN.fullmatch(value):
            return None
        key = _key(value)
        # Check the cache before the lock as well, so that cached sessions never wait for exchanges.
        cached_bearer = self._cached(key)
        if cached_bearer is not None:
            return cached_bearer.bearer
        async with self._exchange_lock:
            cached_bearer = self._cached(key)
            if cached_bearer is not None:
                return cached_bearer.bearer
            headers = (("Cookie", f"{self.cookie_name}={value}"), ("Origin", self._address.origin))
            reply = await api_client.call_api(service, scope, "POST", self._exchange_path, headers=headers, body=b"{}")
            members = reply.members()
            bearer, life_s = members.get("access_token"), members.get("expires_in")
            if reply.status == 200 and isinstance(bearer, str) and isinstance(life_s, int):
                self._add(key, _CachedToken(bearer, clock.monotonic_s() + life_s - RENEWAL_MARGIN_S))
                return bearer
            if reply.status == 401:
                self._add(key, _CachedToken(None, float("inf")))
            return None

    def forget(self, value: str) -> None:
        """Remove the token of this session from the cache."""
        self._cache.pop(_key(value), None)

    def _cached(self, key: bytes) -> _CachedToken | None:
        """The cached token, unless it has expired."""
        cached_token = self._cache.get(key)
        if cached_token is None or cached_token.expires_s <= clock.monotonic_s():
            return None
        self._cache.move_to_end(key)
        return cached_token

    def _add(self, key: bytes, token: _CachedToken) -> None:
        self._cache[key] = token
        self._cache.move_to_end(key)
        if len(self._cache) > MAX_CACHED:
            self._cache.popitem(last=False)


def session_mark(value: str) -> str:
    """Return a hash that identifies the session of the cookie. A page sends the hash with each call. If another person
    has signed in since, the page then does not receive the data of that person."""
    return hashlib.sha256(b"mark of " + value.encode()).hexdigest()[:32]


def _key(value: str) -> bytes:
    return hashlib.sha256(value.encode()).digest()
