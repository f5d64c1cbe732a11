"""Authentication of an OAuth client by HTTP Basic or in the body (RFC 6749 §2.3.1)."""

import base64
import binascii
from urllib.parse import unquote_plus

from countersign.distribution.context import Store
from countersign.distribution.identity import queries
from countersign.distribution.identity.queries import Client
from countersign.distribution.oauth import dynamic_clients
from countersign.distribution.oauth.schemas import Credentials, TokenRequest
from countersign.kernel.errors import InvalidRequest, Refused
from countersign.kernel.http.request import Headers
from countersign.kernel.security import secrets

# What an unknown client's secret is compared with, so that the answer takes as long as for a known one.
_NO_SECRET = secrets.digest("no client has this")
_CHALLENGE = {"WWW-Authenticate": 'Basic realm="token"'}


class InvalidClient(Refused):
    """The client is unknown, or its secret is wrong: the same answer for both."""

    status = 401
    code = "invalid_client"
    title = "Invalid client"
    resolution = "Check client id and secret; an administrator of the organisation can create a new client."


class UnauthorizedClient(Refused):
    """The client may not use this grant (RFC 6749 §5.2)."""

    code = "unauthorized_client"
    title = "Unauthorized client"
    resolution = "Use the authorization_code grant; other grants need a client of an organisation."


def is_offered(sent: Credentials, headers: Headers) -> bool:
    """Whether the request tries to authenticate a client at all; a bearer token does not."""
    kind = (headers.get("authorization") or "").partition(" ")[0].lower()
    return kind not in ("", "bearer") or sent.client_secret is not None or sent.client_assertion is not None


async def authenticated(store: Store, sent: Credentials, headers: Headers) -> Client:
    """The client whose credentials the request carries.

    Raises:
        InvalidRequest: two ways of authentication at once (RFC 6749 §2.3).
        InvalidClient: none, an unknown client, or a wrong secret.
    """
    client_id, secret = _credentials(sent, headers)
    client = await queries.client(store.database, client_id)
    stored = client.secret_hash if client else _NO_SECRET
    if not secrets.matches(secret, stored) or client is None or not dynamic_clients.is_enabled(store, client):
        raise _refused("unknown client or wrong secret")
    return client


async def authenticated_for(store: Store, sent: TokenRequest, headers: Headers) -> Client:
    """The client whose credentials a request at the token endpoint carries, when it may use the grant.

    Raises:
        InvalidRequest, InvalidClient: as `authenticated`.
        UnauthorizedClient: it registered itself, and the grant is another than the authorization code.
    """
    client = await authenticated(store, sent, headers)
    if client.is_dynamic and sent.grant_type != dynamic_clients.GRANT:
        raise UnauthorizedClient("clients that registered themselves use the authorization_code grant alone")
    return client


def _credentials(sent: Credentials, headers: Headers) -> tuple[str, str]:
    authorization = headers.get("authorization")
    ways = (authorization, sent.client_secret, sent.client_assertion)
    if sum(way is not None for way in ways) > 1:
        raise InvalidRequest(
            "authenticate in one way only: by HTTP Basic or in the body", resolution="Send one of them."
        )
    if authorization is None:
        if not sent.client_id or not sent.client_secret:
            raise _refused("send client_id and client_secret, by HTTP Basic or in the body")
        return sent.client_id, sent.client_secret
    client_id, secret = _basic(authorization)
    if sent.client_id not in (None, client_id):
        raise InvalidRequest("client_id differs from the authenticated client", resolution="Send the same client_id.")
    return client_id, secret


def _basic(authorization: str) -> tuple[str, str]:
    kind, _, encoded = authorization.partition(" ")
    try:
        if kind.lower() != "basic":
            raise ValueError("another kind of credentials")
        client_id, separator, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
        pair = unquote_plus(client_id), unquote_plus(secret)
        if not separator or "\0" in "".join(pair):
            raise ValueError("no colon, or a text that no client has")
        return pair
    except (ValueError, binascii.Error) as error:
        raise _refused("the Authorization header must be HTTP Basic") from error


def _refused(why: str) -> InvalidClient:
    return InvalidClient(why, headers=_CHALLENGE)
