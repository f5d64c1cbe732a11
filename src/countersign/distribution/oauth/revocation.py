"""Revocation of tokens (RFC 7009): whoever holds one may end it, and a client only its own."""

from countersign.distribution.agents import assertions, registrations
from countersign.distribution.agents.assertions import InvalidGrant
from countersign.distribution.context import Store
from countersign.distribution.identity import queries
from countersign.distribution.identity.queries import Client
from countersign.distribution.oauth import client_authentication
from countersign.distribution.oauth.schemas import RevokeRequest
from countersign.kernel.clock import SECOND, Instant
from countersign.kernel.errors import InvalidRequest
from countersign.kernel.http.request import Headers
from countersign.kernel.security.jose import AccessClaims, InvalidToken


async def revoke(store: Store, request: RevokeRequest, headers: Headers) -> None:
    """End an access token, or the registration behind an agent's assertion, at once on every worker. A token that is
    unknown, expired, or another client's is let be, without a word (RFC 7009 §2.2).

    Raises:
        InvalidRequest: no token, or two ways of client authentication.
        InvalidClient: credentials that do not hold.
    """
    if not request.token:
        raise InvalidRequest("token is required", resolution="Send the token that is to end.")
    client = None
    if client_authentication.is_offered(request, headers):
        client = await client_authentication.authenticated(store, request, headers)
    claims = _access_claims(store, request.token)
    if claims is not None:
        await _end_token(store, claims, client)
        return
    await _end_registration(store, request.token, client)


def _access_claims(store: Store, token: str) -> AccessClaims | None:
    try:
        return store.tokens.verify(token)
    except InvalidToken:
        return None


async def _end_token(store: Store, claims: AccessClaims, client: Client | None) -> None:
    if client is not None and claims.client_id != client.id:
        return
    async with store.database.transaction() as transaction:
        await queries.revoke_token(transaction, claims.jti, Instant(claims.exp * SECOND))


async def _end_registration(store: Store, token: str, client: Client | None) -> None:
    try:
        claims = assertions.read(store, token)
    except InvalidGrant:
        return
    if client is not None and claims.client_id != client.id:
        return
    async with store.database.transaction() as transaction:
        found = await registrations.with_id(transaction, claims.sub)
        # One from before the claim says nothing any more, not even this.
        if found is not None and found.generation == claims.gen:
            await registrations.revoke(transaction, found.id)
