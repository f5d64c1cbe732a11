"""The token endpoint: from the grant a request names to the file that knows it (RFC 6749 §3.2)."""

from countersign.distribution.agents import claim_grant
from countersign.distribution.context import Store
from countersign.distribution.identity.schemas import TokenResponse
from countersign.distribution.oauth import (
    authorization_code,
    client_authentication,
    client_credentials,
    jwt_bearer,
    targets,
)
from countersign.distribution.oauth.schemas import TokenRequest
from countersign.kernel.errors import InvalidRequest, Refused
from countersign.kernel.http.request import Headers

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class UnsupportedGrantType(Refused):
    """The grant is none the token endpoint knows."""

    code = "unsupported_grant_type"
    title = "Unsupported grant type"
    resolution = "Use one of grant_types_supported in /.well-known/oauth-authorization-server."


def grant_types(store: Store) -> tuple[str, ...]:
    """The grants there are, as the metadata lists them."""
    return ("authorization_code", "client_credentials", JWT_BEARER, store.settings.claim_grant)


async def exchange(store: Store, request: TokenRequest, headers: Headers) -> TokenResponse:
    """An access token for whatever the grant presents (agent-auth 7.7).

    Raises:
        InvalidRequest: no grant_type, a member of the grant is missing, or two ways of client authentication.
        UnsupportedGrantType: another grant.
        InvalidTarget: `resource` is another service.
        InvalidClient: unknown client or wrong secret, or none where one is needed.
        UnauthorizedClient: the client may not use the grant.
        InvalidGrant: what was presented does not hold.
        InvalidScope: a scope that is not held.
        Refused: the claim grant's own answers (RFC 8628 §3.5).
    """
    if request.grant_type is None:
        raise InvalidRequest("grant_type is required", resolution="Name the grant.")
    if request.grant_type not in grant_types(store):
        raise UnsupportedGrantType("this grant_type is not supported")
    targets.require_ours(store, request.resource)
    if request.grant_type == JWT_BEARER:
        return await jwt_bearer.exchange(store, request, headers)
    if request.grant_type == store.settings.claim_grant:
        if request.claim_token is None:
            raise InvalidRequest("claim_token is required", resolution="Send the claim token of the registration.")
        return await claim_grant.poll(store, request.claim_token, request.scope)
    client = await client_authentication.authenticated_for(store, request, headers)
    if request.grant_type == "client_credentials":
        return client_credentials.exchange(store, client, request.scope)
    return await authorization_code.exchange(store, client, request)
