"""The gate: from a request's credentials to its caller, and the refusals that name the way in (RFC 6750, 9728)."""

from countersign.distribution.context import Store
from countersign.distribution.identity import tokens
from countersign.distribution.identity.callers import Caller, anonymous
from countersign.kernel.errors import Refused, invalid_parameter
from countersign.kernel.http.call import Headers
from countersign.kernel.security.jose import InvalidToken
from countersign.kernel.security.secrets import digest

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


def metadata(store: Store) -> str:
    """The parameter of a challenge that leads to the way in (RFC 9728 §5.1)."""
    return f'resource_metadata="{store.root_url}/.well-known/oauth-protected-resource"'


def unauthenticated(
    store: Store, detail: str, resolution: str | None = None, scope: str | None = None
) -> Unauthenticated:
    """The refusal of a request without any credential, with its challenge (agent-auth 7.2). It names the scope that
    the address needs: a client that is not told asks for every scope there is, and few hold all (RFC 6750 §3)."""
    challenge = f"Bearer {metadata(store)}{_needed(scope)}"
    return Unauthenticated(detail, resolution=resolution, headers={"WWW-Authenticate": challenge})


def _needed(scope: str | None) -> str:
    return "" if scope is None else f', scope="{scope}"'


class Gate:
    """Knows callers by their tokens. Signature checks are cached by the token's hash; what the caller may do is
    read again whenever anything about identities changed, so that a revocation holds at once on every worker."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._callers: dict[bytes, tuple[int, Caller]] = {}
        self._metadata = metadata(store)

    async def caller_of(self, headers: Headers, address: str, scope: str | None = None) -> Caller:
        """Whoever the Authorization header names (X-API-Key is another spelling of it); anonymous without one. A
        refusal names the scope that the address needs.

        Raises:
            Unauthenticated: the token is malformed, expired, revoked, or not one of this service.
            InvalidRequest: more than one credential was sent.
        """
        authorization = headers.get("authorization")
        api_key = headers.get("x-api-key")
        if authorization is None and api_key is None:
            return anonymous(address)
        if headers.count("authorization") + headers.count("x-api-key") > 1:
            raise invalid_parameter("Authorization", "is one credential too many; send one of them only")
        if authorization is None:
            raise self._rejected("the key is not known", scope)
        kind, _, token = authorization.partition(" ")
        if kind.lower() != "bearer" or not token.strip() or "," in token:
            raise self._rejected("the Authorization header must read: Bearer TOKEN", scope)
        return await self._caller_with(token.strip(), scope)

    async def _caller_with(self, token: str, scope: str | None) -> Caller:
        # First, as it brings the signing keys of the moment: a token of a key that was dropped ends with it.
        identity = (await self._store.versions())[1]
        try:
            claims = self._store.tokens.verify(token)
        except InvalidToken as error:
            why = "the token is expired, malformed, or not one of this service"
            raise self._rejected(why, scope) from error
        name = digest(token)
        known = self._callers.get(name)
        if known is not None and known[0] == identity:
            self._note(known[1])
            return known[1]
        caller = await tokens.caller_from(self._store.database, claims)
        if caller is None:
            self._callers.pop(name, None)
            raise self._rejected("the token was revoked", scope)
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
        if scope is not None and not caller.allows(scope):
            challenge = f'Bearer error="insufficient_scope", scope="{scope}", {self._metadata}'
            remedy = f"Obtain a token with the scope {scope}."
            headers = {"WWW-Authenticate": challenge}
            raise InsufficientScope(f"this needs the scope {scope}", resolution=remedy, headers=headers)

    def _rejected(self, why: str, scope: str | None) -> Unauthenticated:
        challenge = f'Bearer error="invalid_token", error_description="{why}", {self._metadata}{_needed(scope)}'
        return Unauthenticated(why, headers={"WWW-Authenticate": challenge})
