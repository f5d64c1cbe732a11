"""The router in front of the application: requests to the sandbox go to the caller's own data set, others to the
service.

The router removes the sandbox's path prefix, cookies in both directions, and the key that selects the data set. A
caller who sends only the key acts as the owner of the data set. A caller can also send the key together with a token
that was issued in the data set. Each data set is served by the same application, with another store.
"""

from collections.abc import Callable, Container
from typing import Any, NamedTuple

from countersign.kernel.errors import Refused, invalid_parameter
from countersign.kernel.http.app import ANONYMOUS, App
from countersign.kernel.http.exchange import Exchange, Scope
from countersign.kernel.http.problems import problem
from countersign.kernel.http.rate_limit import RateLimited, RateLimiter
from countersign.kernel.http.request import Headers, Message, Receive, Send
from countersign.kernel.http.routing import Route
from countersign.store.auth import api_keys, authentication
from countersign.store.auth.api_keys import ApiKey
from countersign.store.auth.authentication import InsufficientScope
from countersign.store.context import PREFIX, Store
from countersign.store.sandbox import data_sets as dependencies
from countersign.store.sandbox.data_sets import ROOT, DataSets, SandboxDependencies, key_instructions

_AT_ROOT, _BELOW = ROOT.encode(), (PREFIX + ROOT).encode()
_ABOUT_SANDBOX = frozenset(f"{ROOT}{path}".encode() for path in (f"{PREFIX}/health", f"{PREFIX}/telemetry"))
"""Addresses below the sandbox's path that describe the sandbox itself."""
# Web pages are not served, because a browser must not show content of a data set, which a stranger may have written, as
# a page of this service.
_PUBLIC_PATHS = ("/.well-known/", "/openapi.json", "/openapi/", "/problems/", "/auth/revoke", "/auth.md", "/mcp")
_FORWARDED = tuple(f"{ROOT}{path}".encode() for path in (f"{PREFIX}/", *_PUBLIC_PATHS))
_ISOLATING_POLICY = (b"content-security-policy", b"sandbox; default-src 'none'")


class CallerCredentials(NamedTuple):
    """The credentials of a request: its key, whether it has a token too, and the remaining headers."""

    key: ApiKey | None
    has_token: bool
    headers: list[tuple[bytes, bytes]]


class SandboxRouter:
    """The service as an ASGI application: the application itself, and the sandbox."""

    def __init__(
        self,
        app: App[Store],
        store: Store,
        dependencies: SandboxDependencies,
        limiter: RateLimiter,
        proxies: Container[str],
    ):
        self.routes: tuple[Route[Store], ...] = app.routes
        self._app = app
        self._store = store
        self._limiter = limiter
        self._proxies = proxies
        self.data_sets = DataSets(store, dependencies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP request (ASGI 3)."""
        path: bytes = scope.get("raw_path") or scope.get("path", "").encode()
        if scope["type"] != "http" or not path.startswith((_AT_ROOT, _BELOW)):
            await self._app(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send, self._proxies)
        try:
            path_match = dependencies.parse_capability_path(self._store, path)
            if path_match is not None:
                await self._forward(*path_match, exchange, scope, self._without_key(exchange.headers, scope))
                return
            credentials = await self._credentials(exchange.headers, scope)
            if path.startswith(_FORWARDED) and path not in _ABOUT_SANDBOX:
                is_owner = credentials.key is not None and not credentials.has_token
                name = self._name(credentials.key, exchange.address)
                await self._forward(name, ROOT, exchange, scope, credentials.headers, is_owner=is_owner)
            else:
                await self._app({**scope, "headers": credentials.headers}, receive, send)
        except Refused as refused:
            await self._refuse(refused, exchange)

    async def close(self) -> None:
        """Close the data sets that are open."""
        await self.data_sets.close()

    async def _credentials(self, headers: Headers, scope: Scope) -> CallerCredentials:
        """The credentials of the request.

        Raises:
            Unauthenticated: the key is unknown.
            InvalidRequest: a header that can be sent once was sent twice.
        """
        request_headers: list[tuple[bytes, bytes]] = list(scope["headers"])
        carrier, presented_key = _presented_key(headers)
        if presented_key is None:
            return CallerCredentials(None, headers.get("authorization") is not None, request_headers)
        key = await api_keys.find_key(self._store, presented_key)
        if key is None:
            refusal = authentication.invalid_credential(
                self._store, "the API key is unknown, or expired because it was not used"
            )
            refusal.remedy = key_instructions(self._store)
            raise refusal
        self._store.uses.note(key.id)
        other_headers = [pair for pair in request_headers if pair[0] != carrier]
        return CallerCredentials(key, any(name == b"authorization" for name, _ in other_headers), other_headers)

    def _without_key(self, headers: Headers, scope: Scope) -> list[tuple[bytes, bytes]]:
        """Return the headers without the key. The signed address selects the data set instead."""
        carrier, presented_key = _presented_key(headers)
        return [pair for pair in scope["headers"] if presented_key is None or pair[0] != carrier]

    async def _forward(
        self,
        name: str,
        root: str,
        exchange: Exchange,
        scope: Scope,
        headers: list[tuple[bytes, bytes]],
        *,
        is_owner: bool = False,
    ) -> None:
        """Forward a request below `root` to the data set, as its owner or with the caller's own credentials."""
        # The owner of a data set can create any number of callers, and each has its own quota in the data set. So all
        # callers of the data set together are limited to one person's quota.
        await self._limiter.count("person", name)
        async with self.data_sets.opened(name) as data_set:
            headers = [pair for pair in headers if pair[0] != b"cookie"]
            if is_owner:
                # Do not send the token as Authorization: the caller did not send this header, and some endpoints read
                # it themselves.
                headers.append((b"x-api-key", (await data_set.owner.token()).encode()))
            inner = {
                **scope,
                "path": scope["path"].removeprefix(root),
                "raw_path": exchange.raw_path.removeprefix(root.encode()),
                "root_path": root,
                "headers": headers,
            }
            await data_set.application(inner, exchange.receive, _isolating_send(exchange.send))

    def _name(self, key: ApiKey | None, address: str) -> str:
        """The name of the caller's data set.

        Raises:
            InsufficientScope: the key is not for the sandbox.
        """
        if key is None:
            return "a" + self._store.addresses.sign(b"sandbox\0" + address.encode()).hex()[:40]
        if key.tier == "community":
            raise InsufficientScope(
                "this key is for public reads, not for the sandbox", resolution=key_instructions(self._store)
            )
        return "k" + key.id.removeprefix(api_keys.PREFIX)[:40]

    async def _refuse(self, refusal: Refused, exchange: Exchange) -> None:
        """Send the error, and count the request towards the quota of the address, so that keys cannot be guessed
        without limit."""
        if exchange.started:
            raise ConnectionAbortedError(refusal.code)
        if not isinstance(refusal, RateLimited):
            try:
                exchange.limits = await self._limiter.count(ANONYMOUS, exchange.address)
            except RateLimited as limited:
                refusal = limited
        await exchange.answer(problem(refusal, self._store.root_url, exchange.target))


def _presented_key(headers: Headers) -> tuple[bytes, str | None]:
    """The header that carries a key, and the key; any value of X-API-Key counts as a key, even if it is not valid.

    Raises:
        InvalidRequest: a header was sent twice.
    """
    for name in ("Authorization", "X-API-Key"):
        if headers.count(name.lower()) > 1:
            raise invalid_parameter(name, "must be sent once at most")
    presented_key = headers.get("x-api-key")
    if presented_key is not None:
        return b"x-api-key", presented_key
    kind, _, token = (headers.get("authorization") or "").partition(" ")
    is_key = kind.lower() == "bearer" and api_keys.is_api_key(token.strip())
    return b"authorization", token.strip() if is_key else None


def _isolating_send(send: Send) -> Callable[[Message], Any]:
    """Send a response of a data set: without cookies, with locations inside the sandbox, not cacheable by others, and
    never as a page of the service."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*_rewrite_headers(message["headers"]), _ISOLATING_POLICY]
        await send(message)

    return sent


def _rewrite_headers(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    rewritten_headers: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        if name == b"location" and value.startswith(b"/") and not value.startswith(b"//"):
            rewritten_headers.append((name, _AT_ROOT + value))
        elif name == b"cache-control" and b"public" in value:
            # The next caller at this address may have another data set.
            rewritten_headers.append((name, b"private, no-cache"))
        elif name != b"set-cookie":
            rewritten_headers.append((name, value))
    return rewritten_headers
