"""The application in front: what is addressed to the sandbox goes to a data set of the caller's own, all else to the
service.

The part of the path that names the sandbox is taken off, and with it whatever belongs to the service itself: cookies
both ways, and the key that names the data set. Whoever sends that key alone is the owner of the data set; a token that
was issued inside may be sent beside it. Below, nothing knows of the sandbox: it is the same application on another
store.
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
"""Addresses below the sandbox's that tell of the sandbox itself."""
# Pages are not among them: what a stranger wrote into a data set has no business in a browser at this address.
_PUBLIC_PATHS = ("/.well-known/", "/openapi.json", "/openapi/", "/problems/", "/auth/revoke", "/auth.md", "/mcp")
_FORWARDED = tuple(f"{ROOT}{path}".encode() for path in (f"{PREFIX}/", *_PUBLIC_PATHS))
_ISOLATING_POLICY = (b"content-security-policy", b"sandbox; default-src 'none'")


class CallerCredentials(NamedTuple):
    """Whoever calls: the key that came along, and the request's other headers."""

    key: ApiKey | None
    has_token: bool
    headers: list[tuple[bytes, bytes]]


class SandboxRouter:
    """The whole service as ASGI: the application, and the sandbox beside it."""

    def __init__(
        self, app: App[Store], store: Store, parts: SandboxDependencies, limiter: RateLimiter, proxies: Container[str]
    ):
        self.routes: tuple[Route[Store], ...] = app.routes
        self._app = app
        self._store = store
        self._limiter = limiter
        self._proxies = proxies
        self.data_sets = DataSets(store, parts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request (ASGI 3)."""
        path: bytes = scope.get("raw_path") or scope.get("path", "").encode()
        if scope["type"] != "http" or not path.startswith((_AT_ROOT, _BELOW)):
            await self._app(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send, self._proxies)
        try:
            named = dependencies.parse_capability_path(self._store, path)
            if named is not None:
                await self._inside(*named, exchange, scope, self._without_key(exchange.headers, scope))
                return
            visitor = await self._visitor(exchange.headers, scope)
            if path.startswith(_FORWARDED) and path not in _ABOUT_SANDBOX:
                is_owner = visitor.key is not None and not visitor.has_token
                name = self._name(visitor.key, exchange.address)
                await self._inside(name, ROOT, exchange, scope, visitor.headers, is_owner=is_owner)
            else:
                await self._app({**scope, "headers": visitor.headers}, receive, send)
        except Refused as refused:
            await self._refuse(refused, exchange)

    async def close(self) -> None:
        """Close the data sets that are open."""
        await self.data_sets.close()

    async def _visitor(self, headers: Headers, scope: Scope) -> CallerCredentials:
        """Who calls.

        Raises:
            Unauthenticated: the key is not known.
            InvalidRequest: a header that can be sent once was sent twice.
        """
        sent: list[tuple[bytes, bytes]] = list(scope["headers"])
        carrier, presented = _presented_key(headers)
        if presented is None:
            return CallerCredentials(None, headers.get("authorization") is not None, sent)
        key = await api_keys.find_key(self._store, presented)
        if key is None:
            refused = authentication.rejected(self._store, "the key is not known, or was not used for too long")
            refused.remedy = key_instructions(self._store)
            raise refused
        self._store.uses.note(key.id)
        others = [pair for pair in sent if pair[0] != carrier]
        return CallerCredentials(key, any(name == b"authorization" for name, _ in others), others)

    def _without_key(self, headers: Headers, scope: Scope) -> list[tuple[bytes, bytes]]:
        """The headers without a key: the address names the data set."""
        carrier, presented = _presented_key(headers)
        return [pair for pair in scope["headers"] if presented is None or pair[0] != carrier]

    async def _inside(
        self,
        name: str,
        root: str,
        exchange: Exchange,
        scope: Scope,
        headers: list[tuple[bytes, bytes]],
        *,
        is_owner: bool = False,
    ) -> None:
        """Have the data set answer what is addressed to it below `root`, as to its owner or as to anybody."""
        # An owner makes as many callers as they like, each with a quota: all of them together have one person's here.
        await self._limiter.count("person", name)
        async with self.data_sets.used(name) as data_set:
            headers = [pair for pair in headers if pair[0] != b"cookie"]
            if is_owner:
                # Not as Authorization, which some addresses read by themselves: it is nothing that the caller said.
                headers.append((b"x-api-key", (await data_set.owner.token()).encode()))
            inner = {
                **scope,
                "path": scope["path"].removeprefix(root),
                "raw_path": exchange.raw_path.removeprefix(root.encode()),
                "root_path": root,
                "headers": headers,
            }
            await data_set.application(inner, exchange.receive, _isolated(exchange.send))

    def _name(self, key: ApiKey | None, address: str) -> str:
        """What the data set of the caller is called.

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

    async def _refuse(self, refused: Refused, exchange: Exchange) -> None:
        """Tell the refusal; it counts against the address, so that keys cannot be guessed without end."""
        if exchange.started:
            raise ConnectionAbortedError(refused.code)
        if not isinstance(refused, RateLimited):
            try:
                exchange.limits = await self._limiter.count(ANONYMOUS, exchange.address)
            except RateLimited as limited:
                refused = limited
        await exchange.answer(problem(refused, self._store.root_url, exchange.target))


def _presented_key(headers: Headers) -> tuple[bytes, str | None]:
    """The header that carries a key, and the key; what else is in X-API-Key is one as well, though not a good one.

    Raises:
        InvalidRequest: a header was sent twice.
    """
    for name in ("Authorization", "X-API-Key"):
        if headers.count(name.lower()) > 1:
            raise invalid_parameter(name, "must be sent once at most")
    presented = headers.get("x-api-key")
    if presented is not None:
        return b"x-api-key", presented
    kind, _, token = (headers.get("authorization") or "").partition(" ")
    is_key = kind.lower() == "bearer" and api_keys.is_key(token.strip())
    return b"authorization", token.strip() if is_key else None


def _isolated(send: Send) -> Callable[[Message], Any]:
    """Send an answer of a data set: without cookies, led back into the sandbox, for nobody else's cache, never as a
    page of the service."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*_rewrite_headers(message["headers"]), _ISOLATING_POLICY]
        await send(message)

    return sent


def _rewrite_headers(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    kept: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        if name == b"location" and value.startswith(b"/") and not value.startswith(b"//"):
            kept.append((name, _AT_ROOT + value))
        elif name == b"cache-control" and b"public" in value:
            # The next caller at this address may be of another data set.
            kept.append((name, b"private, no-cache"))
        elif name != b"set-cookie":
            kept.append((name, value))
    return kept
