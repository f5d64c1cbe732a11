"""From a session's cookie to the bearer that the service's API asks for. No page ever learns either.

A bearer is in this process's memory alone, under a hash of the cookie, and in no log. What the service says of it
holds: a bearer that was ended elsewhere is refused there with 401, and then forgotten here.
"""

import asyncio
import hashlib
import re
from collections import OrderedDict
from typing import NamedTuple, Protocol

from countersign.kernel import clock
from countersign.kernel.http.exchange import Scope
from countersign.kernel.http.request import ASGIApp
from countersign.web import asking
from countersign.web.origin import Home

MAX_KEPT = 10_000
RENEWED_BEFORE_S = 60
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,4096}")


class Sessions(Protocol):
    """What the pages of a service know of being signed in."""

    cookie_name: str

    async def bearer(self, service: ASGIApp, scope: Scope, value: str) -> str | None:
        """The bearer of the session with this cookie; None when the session has ended."""
        ...

    def forget(self, value: str) -> None:
        """Keep nothing of the session with this cookie."""
        ...


class OwnSessions:
    """Where the pages themselves sign in: the cookie holds the bearer."""

    def __init__(self, name: str, home: Home) -> None:
        self.cookie_name = f"__Host-{name}" if home.is_secure else name
        self._attributes = "Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if home.is_secure else "")

    async def bearer(self, service: ASGIApp, scope: Scope, value: str) -> str | None:
        """The bearer in the cookie, when it looks like one."""
        return value if _TOKEN.fullmatch(value) else None

    def forget(self, value: str) -> None:
        """Nothing is kept."""

    def started(self, token: str) -> tuple[str, str]:
        """The header by which a browser keeps the session until it is closed."""
        return ("Set-Cookie", f"{self.cookie_name}={token}; {self._attributes}")

    def ended(self) -> tuple[str, str]:
        """The header by which a browser forgets the session."""
        return ("Set-Cookie", f"{self.cookie_name}=; Max-Age=0; {self._attributes}")


class _Kept(NamedTuple):
    bearer: str | None
    until_s: float


class ExchangedSessions:
    """Where the service has sessions of its own: a bearer is asked for in exchange, and kept until shortly before it
    ends. That a session has ended is remembered as well, or every request of a stale cookie would ask again."""

    def __init__(self, cookie_name: str, address: str, home: Home) -> None:
        self.cookie_name = cookie_name
        self._address = address
        self._home = home
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self._asking = asyncio.Lock()

    async def bearer(self, service: ASGIApp, scope: Scope, value: str) -> str | None:
        """The bearer for the session, from memory or from the service."""
        if not _TOKEN.fullmatch(value):
            return None
        key = _key(value)
        # Looked for before waiting as well: whoever is known is not held up by cookies that have to be asked about.
        found = self._found(key)
        if found is not None:
            return found.bearer
        async with self._asking:
            found = self._found(key)
            if found is not None:
                return found.bearer
            headers = (("Cookie", f"{self.cookie_name}={value}"), ("Origin", self._home.origin))
            reply = await asking.ask(service, scope, "POST", self._address, headers=headers, body=b"{}")
            members = reply.members()
            bearer, life_s = members.get("access_token"), members.get("expires_in")
            if reply.status == 200 and isinstance(bearer, str) and isinstance(life_s, int):
                self._keep(key, _Kept(bearer, clock.monotonic_s() + life_s - RENEWED_BEFORE_S))
                return bearer
            if reply.status == 401:
                self._keep(key, _Kept(None, float("inf")))
            return None

    def forget(self, value: str) -> None:
        """Ask again for this session's bearer the next time."""
        self._kept.pop(_key(value), None)

    def _found(self, key: bytes) -> _Kept | None:
        """What is remembered of the session and still holds."""
        kept = self._kept.get(key)
        if kept is None or kept.until_s <= clock.monotonic_s():
            return None
        self._kept.move_to_end(key)
        return kept

    def _keep(self, key: bytes, kept: _Kept) -> None:
        self._kept[key] = kept
        self._kept.move_to_end(key)
        if len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)


def mark(value: str) -> str:
    """What tells a session's cookie from another's and nothing else of it: a page that shows one person's data says it
    with each call, and is not answered with another's once somebody else has signed in."""
    return hashlib.sha256(b"mark of " + value.encode()).hexdigest()[:32]


def _key(value: str) -> bytes:
    return hashlib.sha256(value.encode()).digest()
