"""The gate: from a request's credentials to its caller, and the refusals that name the way in (RFC 6750, 9728)."""

from countersign.kernel.errors import Refused, invalid_parameter
from countersign.kernel.http.rate_limit import DOCUMENTS
from countersign.kernel.http.request import Headers
from countersign.kernel.http.routing import Route
from countersign.kernel.security.jose import InvalidToken
from countersign.kernel.security.secrets import digest
from countersign.store.auth import api_keys, tokens
from countersign.store.auth.callers import Caller, anonymous
from countersign.store.context import PREFIX, Store

_CACHED_CALLERS = 10_000


class Unauthenticated(Refused):
    """No token was presented where one is needed, or the presented one does not hold."""

    status = 401
    code = "invalid_token"
    title = "Authentication required"
    resolution = "Obtain a token at the token endpoint and send it as Authorization: Bearer."


class InsufficientScope(Refused):
    """The token does not carry the scope the endpoint needs."""

    status = 403
    code = "insufficient_scope"
    title = "Insufficient scope"
    resolution = "Obtain a token with the scope that WWW-Authenticate names."


class SandboxOnly(Refused):
    """The key opens the sandbox alone, and this is the service itself."""

    status = 403
    code = "sandbox_only"
    title = "For the sandbox only"
    resolution = "Send this key to the same path below ROOT/sandbox/api/v1, or get a key of the tier agent."


def metadata_parameter(store: Store, resource: str = "") -> str:
    """The parameter of a challenge that leads to the metadata of the resource at this path (RFC 9728 §5.1)."""
    return f'resource_metadata="{store.root_url}/.well-known/oauth-protected-resource{resource}"'


def unauthenticated(
    store: Store, detail: str, resolution: str | None = None, scope: str | None = None, resource: str = ""
) -> Unauthenticated:
    """The refusal of a request without any credential, with its challenge (agent-auth 7.2). It names the scope that
    the address needs: a client that is not told asks for every scope there is, and few hold all (RFC 6750 §3)."""
    challenge = f"Bearer {metadata_parameter(store, resource)}{_scope_parameter(scope)}"
    return Unauthenticated(
        detail, resolution=resolution or _remedy(store), headers=_challenge_headers(store, challenge)
    )


def rejected(store: Store, why: str, scope: str | None = None, resolution: str | None = None) -> Unauthenticated:
    """The refusal of a credential that does not hold."""
    challenge = (
        f'Bearer error="invalid_token", error_description="{why}", {metadata_parameter(store)}{_scope_parameter(scope)}'
    )
    return Unauthenticated(why, resolution=resolution or _remedy(store), headers=_challenge_headers(store, challenge))


def _remedy(store: Store) -> str:
    return store.way_in or f"Obtain a token as {store.root_url}/auth.md describes. Send it as Authorization: Bearer."


def _challenge_headers(store: Store, challenge: str) -> dict[str, str]:
    """The challenge, and the page that explains to an agent how it registers (RFC 8631)."""
    return {"WWW-Authenticate": challenge, "Link": f'<{store.root_url}/auth.md>; rel="service-doc"'}


def credential_of(headers: Headers) -> str | None:
    """The one credential of a request: a bearer token, or what X-API-Key holds; empty where Authorization is of
    another form, None where nothing is sent.

    Raises:
        InvalidRequest: more than one was sent.
    """
    authorization, api_key = headers.get("authorization"), headers.get("x-api-key")
    if headers.count("authorization") + headers.count("x-api-key") > 1:
        raise invalid_parameter("Authorization", "is one credential too many; send one of them only")
    if authorization is None:
        return api_key
    kind, _, token = authorization.partition(" ")
    return "" if kind.lower() != "bearer" or "," in token else token.strip()


def is_document(route: Route[Store]) -> bool:
    """Whether the route is a document about the service, a problem's page, or gives keys."""
    return route.quota == DOCUMENTS


def _scope_parameter(scope: str | None) -> str:
    return "" if scope is None else f', scope="{scope}"'


class Authenticator:
    """Knows callers by their tokens. Signature checks are cached by the token's hash; what the caller may do is
    read again whenever anything about identities changed, so that a revocation holds at once on every worker."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._callers: dict[bytes, tuple[int, Caller]] = {}
        self._metadata = metadata_parameter(store)

    async def caller_of(self, headers: Headers, address: str, route: Route[Store] | None = None) -> Caller:
        """Whoever the Authorization header names, by a token or a self-serve key (X-API-Key is another spelling of it);
        anonymous without one. A refusal names the scope that the route needs. Documents can be read with any key.

        Raises:
            Unauthenticated: the token is malformed, expired, revoked, or not one of this service; the key is unknown.
            SandboxOnly: the key is for the sandbox.
            InvalidRequest: more than one credential was sent.
        """
        credential = credential_of(headers)
        if credential is None:
            return anonymous(address)
        scope = None if route is None else route.scope
        if api_keys.is_key(credential):
            return await self._caller_with_key(credential, scope, is_document=route is not None and is_document(route))
        if not credential:
            raise rejected(self._store, "the Authorization header must read: Bearer TOKEN", scope)
        return await self._caller_with(credential, scope)

    async def _caller_with_key(self, key: str, scope: str | None, *, is_document: bool) -> Caller:
        found = await api_keys.find_key(self._store, key)
        if found is None:
            remedy = f"Get another with GET {self._store.root_url}/api/keys?tier=agent; what is public needs none."
            raise rejected(self._store, "the key is not known, or was not used for too long", scope, remedy)
        if found.tier == "sandbox" and not is_document:
            remedy = (
                f"Send it to {self._store.root_url}/sandbox{PREFIX}, or get a key for this address: "
                f"GET {self._store.root_url}/api/keys?tier=agent"
            )
            raise SandboxOnly("this key is for the sandbox", resolution=remedy)
        self._store.uses.note(found.id)
        return found.caller

    async def _caller_with(self, token: str, scope: str | None) -> Caller:
        # First, as it brings the signing keys of the moment: a token of a key that was dropped ends with it.
        identity = (await self._store.versions())[1]
        try:
            claims = self._store.tokens.verify(token)
        except InvalidToken as error:
            why = "the token is expired, malformed, or not one of this service"
            raise rejected(self._store, why, scope) from error
        name = digest(token)
        known = self._callers.get(name)
        if known is not None and known[0] == identity:
            self._note(known[1])
            return known[1]
        caller = await tokens.resolve_caller(self._store.database, claims)
        if caller is None:
            self._callers.pop(name, None)
            raise rejected(self._store, "the token was revoked", scope)
        if len(self._callers) >= _CACHED_CALLERS:
            self._callers.clear()
        self._callers[name] = (identity, caller)
        self._note(caller)
        return caller

    def _note(self, caller: Caller) -> None:
        if caller.through is not None:
            self._store.uses.note(caller.through)

    def admit(self, caller: Caller, scope: str | None) -> None:
        """Let the caller through to a route that needs this scope; None: any credential will do.

        Raises:
            Unauthenticated: there is no credential.
            InsufficientScope: it does not carry the scope.
        """
        if caller.is_anonymous:
            raise unauthenticated(self._store, "this needs a token", scope=scope)
        if caller.kind == "key":
            headers = {
                "WWW-Authenticate": f'Bearer error="insufficient_scope", {self._metadata}{_scope_parameter(scope)}'
            }
            remedy = f"Obtain a token as {self._store.root_url}/auth.md says: API keys read public data only."
            raise InsufficientScope("API keys cannot call this endpoint", resolution=remedy, headers=headers)
        if scope is not None and not caller.allows(scope):
            challenge = f'Bearer error="insufficient_scope", scope="{scope}", {self._metadata}'
            remedy = f"Obtain a token with the scope {scope}: {self._store.root_url}/auth.md says how."
            headers = {"WWW-Authenticate": challenge}
            raise InsufficientScope(f"this needs the scope {scope}", resolution=remedy, headers=headers)
