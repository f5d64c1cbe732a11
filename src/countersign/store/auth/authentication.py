"""Authentication: finds the caller of a request by its credentials, and makes challenges (RFC 6750, RFC 9728)."""

from countersign.kernel.errors import Refused, invalid_parameter
from countersign.kernel.http.rate_limit import DOCUMENTS
from countersign.kernel.http.request import Headers
from countersign.kernel.http.routing import Route
from countersign.kernel.security.jose import InvalidToken
from countersign.kernel.security.secrets import digest
from countersign.store.auth import api_keys, queries, tokens
from countersign.store.auth.callers import Caller, anonymous_caller
from countersign.store.context import PREFIX, Store

_CACHED_CALLERS = 10_000


class Unauthenticated(Refused):
    """A token is required and none was sent, or the token is not valid."""

    status = 401
    code = "invalid_token"
    title = "Authentication required"
    resolution = "Obtain a token at the token endpoint and send it as Authorization: Bearer."


class InsufficientScope(Refused):
    """The token does not have the scope that the endpoint requires."""

    status = 403
    code = "insufficient_scope"
    title = "Insufficient scope"
    resolution = "Obtain a token with the scope that WWW-Authenticate names."


class SandboxOnly(Refused):
    """The key is for the sandbox only, and this is the service itself."""

    status = 403
    code = "sandbox_only"
    title = "For the sandbox only"
    resolution = "Send this key to the same path below ROOT/sandbox/api/v1, or get a key of the tier agent."


def metadata_parameter(store: Store, resource: str = "") -> str:
    """Return the challenge parameter that names the address of the resource's metadata (RFC 9728 §5.1). `resource` is
    the path of the resource."""
    return f'resource_metadata="{store.root_url}/.well-known/oauth-protected-resource{resource}"'


def missing_credential(
    store: Store, detail: str, resolution: str | None = None, scope: str | None = None, resource: str = ""
) -> Unauthenticated:
    """Return the error for a request without a credential, with a challenge (agent-auth 7.2). The challenge names the
    scope that the endpoint requires (RFC 6750 §3). Otherwise a client would request every scope, and few clients have
    all scopes."""
    challenge = f"Bearer {metadata_parameter(store, resource)}{_scope_parameter(scope)}"
    return Unauthenticated(
        detail, resolution=resolution or _remedy(store), headers=_challenge_headers(store, challenge)
    )


def invalid_credential(
    store: Store, reason: str, scope: str | None = None, resolution: str | None = None
) -> Unauthenticated:
    """The error for a credential that is not valid."""
    parameters = f"{metadata_parameter(store)}{_scope_parameter(scope)}"
    challenge = f'Bearer error="invalid_token", error_description="{reason}", {parameters}'
    return Unauthenticated(
        reason, resolution=resolution or _remedy(store), headers=_challenge_headers(store, challenge)
    )


def _remedy(store: Store) -> str:
    return (
        store.token_hint or f"Obtain a token as {store.root_url}/auth.md describes. Send it as Authorization: Bearer."
    )


def _challenge_headers(store: Store, challenge: str) -> dict[str, str]:
    """The challenge, and a link to the page that explains to agents how to register (RFC 8631)."""
    return {"WWW-Authenticate": challenge, "Link": f'<{store.root_url}/auth.md>; rel="service-doc"'}


def credential_of(headers: Headers) -> str | None:
    """Return the credential of a request: a bearer token, or the value of X-API-Key. The result is empty if
    Authorization has another form, and None if the request has no credential.

    Raises:
        InvalidRequest: more than one credential was sent.
    """
    authorization, api_key = headers.get("authorization"), headers.get("x-api-key")
    if headers.count("authorization") + headers.count("x-api-key") > 1:
        raise invalid_parameter("Authorization", "conflicts with another credential; send only one")
    if authorization is None:
        return api_key
    kind, _, token = authorization.partition(" ")
    return "" if kind.lower() != "bearer" or "," in token else token.strip()


def is_document(route: Route[Store]) -> bool:
    """Whether the route serves a document about the service or a page of a problem type, or issues keys."""
    return route.quota == DOCUMENTS


def _scope_parameter(scope: str | None) -> str:
    return "" if scope is None else f', scope="{scope}"'


class Authenticator:
    """Resolves credentials to callers. Callers are cached by the hash of their token; the cache is invalid after any
    change of identities, so that a revocation takes effect at once on every worker."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._callers: dict[bytes, tuple[int, Caller]] = {}
        self._metadata = metadata_parameter(store)

    async def caller_of(self, headers: Headers, address: str, route: Route[Store] | None = None) -> Caller:
        """Return the caller to whom the token or self-serve key in Authorization or X-API-Key belongs. Without a
        credential, the caller is anonymous. Errors name the scope that the route requires.

        Raises:
            Unauthenticated: the token is malformed, expired, revoked, or not issued by this service, or the key is
                unknown.
            SandboxOnly: the key is for the sandbox, and the route does not serve a document.
            InvalidRequest: more than one credential was sent.
        """
        credential = credential_of(headers)
        if credential is None:
            return anonymous_caller(address)
        scope = None if route is None else route.scope
        if api_keys.is_api_key(credential):
            return await self._caller_with_key(credential, scope, is_document=route is not None and is_document(route))
        if not credential:
            raise invalid_credential(self._store, "the Authorization header must read: Bearer TOKEN", scope)
        return await self._caller_with_token(credential, scope)

    async def _caller_with_key(self, key: str, scope: str | None, *, is_document: bool) -> Caller:
        api_key = await api_keys.find_key(self._store, key)
        if api_key is None:
            remedy = f"Get another with GET {self._store.root_url}/api/keys?tier=agent; public data requires none."
            raise invalid_credential(
                self._store, "the API key is unknown, or expired because it was not used", scope, remedy
            )
        if api_key.tier == "sandbox" and not is_document:
            remedy = (
                f"Send it to {self._store.root_url}/sandbox{PREFIX}, or get a key for this address: "
                f"GET {self._store.root_url}/api/keys?tier=agent"
            )
            raise SandboxOnly("this key is for the sandbox", resolution=remedy)
        self._store.uses.note(api_key.id)
        return api_key.caller

    async def _caller_with_token(self, token: str, scope: str | None) -> Caller:
        # Read the change counters first. This call also loads the current signing keys, so that a token is rejected if
        # its signing key was removed.
        identity = (await self._store.versions())[1]
        try:
            claims = self._store.tokens.verify(token)
        except InvalidToken as error:
            reason = "the token is expired, malformed, or not one of this service"
            raise invalid_credential(self._store, reason, scope) from error
        name = digest(token)
        known_caller = self._callers.get(name)
        if known_caller is not None and known_caller[0] == identity:
            self._record_use(known_caller[1])
            return known_caller[1]
        caller = await tokens.resolve_caller(self._store.database, claims)
        if caller is None:
            self._callers.pop(name, None)
            raise invalid_credential(self._store, "the token was revoked", scope)
        if len(self._callers) >= _CACHED_CALLERS:
            self._callers.clear()
        self._callers[name] = (identity, caller)
        self._record_use(caller)
        return caller

    def _record_use(self, caller: Caller) -> None:
        if caller.grant_id is not None:
            self._store.uses.note(caller.grant_id)
        if caller.session is not None:
            self._store.uses.note(queries.SESSION_PREFIX + caller.session.hex())

    def admit(self, caller: Caller, scope: str | None) -> None:
        """Check that the caller may use a route that requires this scope. Without a scope, any credential is enough.

        Raises:
            Unauthenticated: the request has no credential.
            InsufficientScope: the credential does not have the scope.
        """
        if caller.is_anonymous:
            raise missing_credential(self._store, "this endpoint requires a token", scope=scope)
        if caller.kind == "key":
            headers = {
                "WWW-Authenticate": f'Bearer error="insufficient_scope", {self._metadata}{_scope_parameter(scope)}'
            }
            remedy = f"Obtain a token as {self._store.root_url}/auth.md describes: API keys read public data only."
            raise InsufficientScope("API keys cannot call this endpoint", resolution=remedy, headers=headers)
        if scope is not None and not caller.allows(scope):
            challenge = f'Bearer error="insufficient_scope", scope="{scope}", {self._metadata}'
            remedy = f"Obtain a token with the scope {scope}: {self._store.root_url}/auth.md describes how."
            headers = {"WWW-Authenticate": challenge}
            raise InsufficientScope(f"this endpoint requires the scope {scope}", resolution=remedy, headers=headers)
