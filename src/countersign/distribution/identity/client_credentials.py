"""The client-credentials grant (RFC 6749 §4.4) and client authentication (§2.3.1)."""

import base64
import binascii
from urllib.parse import unquote_plus

from countersign.distribution.context import Store
from countersign.distribution.identity import queries, scopes, tokens
from countersign.distribution.identity.schemas import TokenRequest, TokenResponse
from countersign.kernel.errors import InvalidRequest, Refused
from countersign.kernel.http.call import Headers
from countersign.kernel.security import secrets

_NO_SECRET = secrets.digest("no client has this")


class InvalidClient(Refused):
    """The client is unknown, or its secret is wrong: the same answer for both."""

    status = 401
    code = "invalid_client"
    title = "Invalid client"
    resolution = "Check client id and secret; an administrator of the organisation can create a new client."


class UnsupportedGrantType(Refused):
    """The grant is none the token endpoint knows."""

    code = "unsupported_grant_type"
    title = "Unsupported grant type"
    resolution = "Use grant_type=client_credentials."


class InvalidTarget(Refused):
    """The token was asked for another service (RFC 8707 §2)."""

    code = "invalid_target"
    title = "Invalid target"
    resolution = "Leave resource out, or send this service's own address."


async def exchange(store: Store, request: TokenRequest, headers: Headers) -> TokenResponse:
    """An access token for an authenticated client, with the scopes it asks for or all it holds.

    Raises:
        InvalidRequest: no grant_type, or two ways of authentication at once (RFC 6749 §2.3).
        UnsupportedGrantType: another grant than client_credentials.
        InvalidClient: unknown client or wrong secret.
        InvalidScope: a scope the client does not hold.
        InvalidTarget: `resource` is another service.
    """
    if request.grant_type is None:
        raise InvalidRequest("grant_type is required")
    if request.grant_type != "client_credentials":
        raise UnsupportedGrantType("this grant_type is not supported")
    client_id, secret, challenge = _credentials(request, headers)
    client = await queries.client(store.database, client_id)
    stored = client.secret_hash if client else _NO_SECRET
    if not secrets.matches(secret, stored) or client is None:
        raise InvalidClient("unknown client or wrong secret", headers=challenge)
    if request.resource not in (None, store.root_url, store.base_url):
        raise InvalidTarget("the token was asked for another service")
    granted = tokens.requested(request.scope, client.scopes)
    token = tokens.issue(store, client.id, client.id, granted)
    return TokenResponse(token, "Bearer", store.settings.token_ttl_s, scopes.words(granted))


def _credentials(request: TokenRequest, headers: Headers) -> tuple[str, str, dict[str, str]]:
    """Client id, secret, and the challenge a failure must carry."""
    authorization = headers.get("authorization")
    challenge = {"WWW-Authenticate": 'Basic realm="token"'}
    if authorization is None:
        if not request.client_id or not request.client_secret:
            raise InvalidClient("send client_id and client_secret, by HTTP Basic or in the form", headers=challenge)
        return request.client_id, request.client_secret, challenge
    if request.client_secret is not None:
        raise InvalidRequest("authenticate by HTTP Basic or in the form, not both")
    client_id, secret = _basic(authorization, challenge)
    if request.client_id not in (None, client_id):
        raise InvalidRequest("client_id differs from the authenticated client")
    return client_id, secret, challenge


def _basic(authorization: str, challenge: dict[str, str]) -> tuple[str, str]:
    kind, _, encoded = authorization.partition(" ")
    try:
        if kind.lower() != "basic":
            raise ValueError("another kind of credentials")
        client_id, separator, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
        if not separator:
            raise ValueError("no colon")
        return unquote_plus(client_id), unquote_plus(secret)
    except (ValueError, binascii.Error) as error:
        raise InvalidClient("the Authorization header must be HTTP Basic", headers=challenge) from error
