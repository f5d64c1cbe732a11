"""The token endpoint (RFC 6749 §3.2) and revocation (RFC 7009): client authentication, resources, and every grant."""

import base64
import binascii
from collections.abc import Sequence
from urllib.parse import unquote_plus

import msgspec

from countersign.kernel import clock
from countersign.kernel.clock import SECOND, Instant
from countersign.kernel.errors import InvalidRequest, Refused
from countersign.kernel.http.request import Headers
from countersign.kernel.security import secrets
from countersign.kernel.security.jose import AccessClaims, InvalidToken
from countersign.store import scopes
from countersign.store.auth import id_jag, queries, tokens
from countersign.store.auth.agents import claim, register, registrations, schemas
from countersign.store.auth.agents.claim import (
    AccessDenied,
    AttemptOver,
    ClaimExpired,
    InvalidClaimToken,
    SlowDown,
)
from countersign.store.auth.agents.register import PendingClaim
from countersign.store.auth.agents.registrations import Applicant, InvalidGrant
from countersign.store.auth.agents.schemas import ClaimedToken
from countersign.store.auth.oauth import clients, consents
from countersign.store.auth.queries import Client, Grant
from countersign.store.auth.schemas import Credentials, RevokeRequest, TokenRequest, TokenResponse
from countersign.store.context import Store


class InvalidTarget(Refused):
    """The token was requested for another service (RFC 8707 §2)."""

    code = "invalid_target"
    title = "Invalid target"
    resolution = "Leave resource out, or send an address of this service."


def require_own_resource(store: Store, resource: str | Sequence[str] | None) -> None:
    """Require that every resource is the root address of this service or an address below the root. Addresses below the
    root are accepted, because clients send the address that they call.

    Raises:
        InvalidTarget: a resource belongs to another service, or its address has a fragment.
    """
    named_resources = [resource] if isinstance(resource, str) else list(resource or ())
    if not all(is_own_resource(store, named_resource) for named_resource in named_resources):
        raise InvalidTarget("the token was requested for another service")


def is_own_resource(store: Store, resource: str) -> bool:
    """Whether the address belongs to this service."""
    return (resource == store.root_url or resource.startswith(f"{store.root_url}/")) and "#" not in resource


# If the client is unknown, the sent secret is compared with this hash, so that the response takes as long as for a
# known client.
_UNKNOWN_CLIENT_HASH = secrets.digest("no client has this")
_CHALLENGE = {"WWW-Authenticate": 'Basic realm="token"'}


class InvalidClient(Refused):
    """The client is unknown, or its secret is wrong; the response is the same for both."""

    status = 401
    code = "invalid_client"
    title = "Invalid client"
    resolution = "Check client id and secret; an administrator of the organisation can create a new client."


class UnauthorizedClient(Refused):
    """The client may not use this grant (RFC 6749 §5.2)."""

    code = "unauthorized_client"
    title = "Unauthorized client"
    resolution = "Use the authorization_code grant; other grants need a client of an organisation."


def has_client_credentials(credentials: Credentials, headers: Headers) -> bool:
    """Whether the request has credentials of a client. A bearer token does not count."""
    scheme = (headers.get("authorization") or "").partition(" ")[0].lower()
    return (
        scheme not in ("", "bearer")
        or credentials.client_secret is not None
        or credentials.client_assertion is not None
    )


async def authenticate_client(store: Store, credentials: Credentials, headers: Headers) -> Client:
    """Authenticate the client of the request.

    Raises:
        InvalidRequest: the request authenticates the client in two ways (RFC 6749 §2.3).
        InvalidClient: the client is missing or unknown, or its secret is wrong.
    """
    client_id, secret = _credentials(credentials, headers)
    client = await queries.client(store.database, client_id)
    stored_hash = client.secret_hash if client else _UNKNOWN_CLIENT_HASH
    if not secrets.matches(secret, stored_hash) or client is None or not clients.is_enabled(store, client):
        raise _invalid_client("unknown client or wrong secret")
    return client


async def authenticate_for_grant(store: Store, token_request: TokenRequest, headers: Headers) -> Client:
    """Authenticate the client of a request at the token endpoint, and check that it may use the grant.

    Raises:
        InvalidRequest, InvalidClient: the same conditions as in `authenticate_client`.
        UnauthorizedClient: the client registered itself, and the grant is not the authorization code.
    """
    client = await authenticate_client(store, token_request, headers)
    if client.is_dynamic and token_request.grant_type != clients.DYNAMIC_GRANT:
        raise UnauthorizedClient("clients that registered themselves can only use the authorization_code grant")
    return client


def _credentials(credentials: Credentials, headers: Headers) -> tuple[str, str]:
    authorization = headers.get("authorization")
    sent_credentials = (authorization, credentials.client_secret, credentials.client_assertion)
    if sum(credential is not None for credential in sent_credentials) > 1:
        raise InvalidRequest("authenticate either by HTTP Basic or in the body", resolution="Send one of them.")
    if authorization is None:
        if not credentials.client_id or not credentials.client_secret:
            raise _invalid_client("send client_id and client_secret, by HTTP Basic or in the body")
        return credentials.client_id, credentials.client_secret
    client_id, secret = _basic_credentials(authorization)
    if credentials.client_id not in (None, client_id):
        raise InvalidRequest("client_id differs from the authenticated client", resolution="Send the same client_id.")
    return client_id, secret


def _basic_credentials(authorization: str) -> tuple[str, str]:
    scheme, _, encoded_pair = authorization.partition(" ")
    try:
        if scheme.lower() != "basic":
            raise ValueError("another kind of credentials")
        client_id, separator, secret = base64.b64decode(encoded_pair.strip(), validate=True).decode().partition(":")
        pair = unquote_plus(client_id), unquote_plus(secret)
        if not separator or "\0" in "".join(pair):
            raise ValueError("no colon, or a NUL character")
        return pair
    except (ValueError, binascii.Error) as error:
        raise _invalid_client("the Authorization header must be HTTP Basic") from error


def _invalid_client(reason: str) -> InvalidClient:
    return InvalidClient(reason, headers=_CHALLENGE)


def exchange_client_credentials(store: Store, client: Client, scope: str | None) -> TokenResponse:
    """Issue an access token to an authenticated client. The token has the requested scopes, or all scopes of the client
    if none are requested.

    Raises:
        InvalidScope: the client does not have a requested scope.
    """
    token_scopes = tokens.granted_scopes(scope, client.scopes)
    token = tokens.issue(store, client.id, client.id, token_scopes)
    return TokenResponse(token, "Bearer", store.settings.token_ttl_s, scopes.words(token_scopes))


class _IssuerClaim(msgspec.Struct):
    iss: str


async def exchange_assertion(store: Store, request: TokenRequest, headers: Headers) -> TokenResponse:
    """Exchange an assertion for an access token. The issuer that the assertion names selects how the assertion is
    verified. An assertion of this service needs no client authentication. An identity
    assertion of a provider (ID-JAG, identity assertion JWT authorization grant) must be issued for the authenticated
    client (agent-auth 7.7).

    Raises:
        InvalidRequest: the assertion is missing.
        InvalidClient: the credentials are invalid, or an ID-JAG was sent without credentials.
        UnauthorizedClient: the client registered itself.
        InvalidGrant: the assertion is not valid.
        InvalidScope: a requested scope is not available.
    """
    if request.assertion is None:
        raise InvalidRequest("assertion is required", resolution="Send the assertion.")
    is_own_assertion = _unverified_issuer(request.assertion) == store.root_url
    if is_own_assertion and not has_client_credentials(request, headers):
        return await exchange_own_assertion(store, request.assertion, request.scope)
    client = await authenticate_for_grant(store, request, headers)
    if is_own_assertion:
        return await exchange_own_assertion(store, request.assertion, request.scope)
    return await exchange_id_jag(store, request.assertion, client, request.scope)


def _unverified_issuer(assertion: str) -> str:
    """Return the issuer that an assertion names. The assertion is not verified yet."""
    encoded_payload = assertion.split(".")[1:2]
    try:
        payload = base64.urlsafe_b64decode(encoded_payload[0] + "=" * (-len(encoded_payload[0]) % 4))
        return msgspec.json.decode(payload, type=_IssuerClaim).iss
    except (IndexError, ValueError, binascii.Error, msgspec.DecodeError, RecursionError) as error:
        raise InvalidGrant("the assertion must be a JWT with an issuer") from error


JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class UnsupportedGrantType(Refused):
    """The token endpoint does not support the grant."""

    code = "unsupported_grant_type"
    title = "Unsupported grant type"
    resolution = "Use one of grant_types_supported in /.well-known/oauth-authorization-server."


def grant_types(store: Store) -> tuple[str, ...]:
    """The supported grants, as the metadata lists them."""
    return ("authorization_code", "client_credentials", JWT_BEARER, store.settings.claim_grant)


async def exchange(store: Store, request: TokenRequest, headers: Headers) -> TokenResponse:
    """Exchange the request's grant for an access token (agent-auth 7.7).

    Raises:
        InvalidRequest: grant_type or a member of the grant is missing, or the client authenticates in two ways.
        UnsupportedGrantType: the service does not support the grant.
        InvalidTarget: `resource` belongs to another service.
        InvalidClient: the client is unknown, its secret is wrong, or required credentials are missing.
        UnauthorizedClient: the client may not use the grant.
        InvalidGrant: the grant is not valid.
        InvalidScope: a requested scope is not available.
        Refused: the errors of the claim grant (RFC 8628 §3.5).
    """
    if request.grant_type is None:
        raise InvalidRequest("grant_type is required", resolution="Name the grant.")
    if request.grant_type not in grant_types(store):
        raise UnsupportedGrantType("this grant_type is not supported")
    require_own_resource(store, request.resource)
    if request.grant_type == JWT_BEARER:
        return await exchange_assertion(store, request, headers)
    if request.grant_type == store.settings.claim_grant:
        if request.claim_token is None:
            raise InvalidRequest("claim_token is required", resolution="Send the claim token of the registration.")
        return await exchange_claim(store, request.claim_token, request.scope)
    client = await authenticate_for_grant(store, request, headers)
    if request.grant_type == "client_credentials":
        return exchange_client_credentials(store, client, request.scope)
    return await consents.exchange_code(store, client, request)


async def revoke(store: Store, request: RevokeRequest, headers: Headers) -> None:
    """Revoke the access token, at once on every worker. If the token is an assertion, revoke the registration of the
    agent that the assertion names. A token that is unknown or expired, or belongs to another client, is ignored without
    an error (RFC 7009 §2.2).

    Raises:
        InvalidRequest: the token is missing, or the client authenticates in two ways.
        InvalidClient: the credentials are invalid.
    """
    if not request.token:
        raise InvalidRequest("token is required", resolution="Send the token to revoke.")
    client = None
    if has_client_credentials(request, headers):
        client = await authenticate_client(store, request, headers)
    claims = _access_claims(store, request.token)
    if claims is not None:
        await _revoke_access_token(store, claims, client)
        return
    await _revoke_registration(store, request.token, client)


def _access_claims(store: Store, token: str) -> AccessClaims | None:
    try:
        return store.tokens.verify(token)
    except InvalidToken:
        return None


async def _revoke_access_token(store: Store, claims: AccessClaims, client: Client | None) -> None:
    if client is not None and claims.client_id != client.id:
        return
    async with store.database.transaction() as transaction:
        await queries.revoke_token(transaction, claims.jti, Instant(claims.exp * SECOND))


async def _revoke_registration(store: Store, token: str, client: Client | None) -> None:
    try:
        claims = registrations.read_assertion(store, token)
    except InvalidGrant:
        return
    if client is not None and claims.client_id != client.id:
        return
    async with store.database.transaction() as transaction:
        registration = await registrations.with_id(transaction, claims.sub)
        # When a person claims the agent, the generation of the registration increases. An assertion that was issued
        # before is no longer valid, and cannot be used for revocation either.
        if registration is not None and registration.generation == claims.gen:
            await registrations.revoke(transaction, registration.id)


async def exchange_own_assertion(store: Store, assertion: str, scope: str | None) -> TokenResponse:
    """Exchange an assertion of this service for an access token. An assertion can be exchanged repeatedly until it
    expires.

    Raises:
        InvalidGrant: the assertion is not valid, or its registration was claimed, revoked or removed since.
        InvalidScope: the registration does not have a requested scope.
    """
    claims = registrations.read_assertion(store, assertion)
    grant = await queries.grant(store.database, claims.sub)
    if grant is None or not grant.is_live or grant.generation != claims.gen:
        raise InvalidGrant("the registration behind the assertion has ended or was claimed since")
    return _registration_token(
        store, grant, tokens.granted_scopes(scope, await tokens.scopes_of_grant(store.database, grant))
    )


async def exchange_id_jag(store: Store, assertion: str, client: Client, scope: str | None) -> TokenResponse:
    """Exchange a trusted provider's ID-JAG for an access token. Only the client that the ID-JAG was issued for can
    exchange it.

    Raises:
        InvalidGrant: the assertion is not valid, is for another client, was used, or is stale, or the person must
            confirm the agent first.
        InvalidScope: the assertion or the person does not have a requested scope.
    """
    try:
        assertion_claims = await id_jag.verify(store, assertion)
        if assertion_claims.client_id != client.id:
            raise InvalidGrant("the assertion is for another client")
        id_jag.require_fresh(assertion_claims)
        requested_scopes = register.asserted_scopes(assertion_claims, scope) & client.scopes
        if not requested_scopes:
            raise tokens.InvalidScope("the client has none of the requested scopes")
        applicant = Applicant(schemas.agent_name(client.name), "", requested_scopes)
        outcome = await register.register_or_await(store, assertion_claims, applicant)
    except (InvalidGrant, tokens.InvalidScope):
        raise
    except Refused as refused:
        if refused.status >= 500:
            raise
        raise InvalidGrant(refused.detail, resolution=refused.remedy) from refused
    if isinstance(outcome, PendingClaim):
        remedy = "Register with the assertion at /api/v1/auth/register: the person confirms there once."
        raise InvalidGrant("the person has to confirm the agent first", resolution=remedy)
    grant = await registrations.grant_of(store.database, outcome)
    token_scopes = tokens.granted_scopes(
        scopes.words(requested_scopes), await tokens.scopes_of_grant(store.database, grant)
    )
    return _registration_token(
        store, grant, token_scopes, client_id=client.id, auth_time_s=assertion_claims.auth_time_s
    )


def _registration_token(
    store: Store,
    grant: Grant,
    granted_scopes: frozenset[str],
    *,
    client_id: str | None = None,
    auth_time_s: int | None = None,
) -> TokenResponse:
    """Issue an access token for a registration. If an OAuth client presented the assertion, the token belongs to the
    client, and becomes invalid when the client is removed."""
    subject = grant.person_id or grant.id
    token, _ = tokens.issue_for_grant(store, subject, client_id or grant.id, granted_scopes, grant, auth_time_s)
    return TokenResponse(token, "Bearer", store.settings.token_ttl_s, scopes.words(granted_scopes))


class AuthorizationPending(Refused):
    """The person has not decided yet."""

    code = "authorization_pending"
    title = "Authorization pending"
    resolution = "Poll again after the interval."


class PollTooFast(Refused):
    """The client polls faster than the interval allows; the interval was increased."""

    code = "slow_down"
    title = "Slow down"
    resolution = "Wait for the seconds in Retry-After before the next poll, and between later ones."


class ExpiredToken(Refused):
    """The claim token is no longer valid, or the attempt to claim the agent is over."""

    code = "expired_token"
    title = "Expired token"
    resolution = "Begin another attempt at the claim endpoint; if that says claim_expired, register again."


class ClaimDenied(Refused):
    """The person declined, or has disconnected the agent since."""

    code = "access_denied"
    title = "Access denied"
    resolution = "Do not ask again unless your person wants it."


async def exchange_claim(store: Store, claim_token: str, scope: str | None) -> ClaimedToken:
    """Exchange a claim token for an access token and an assertion, after the person has claimed the agent.

    Raises:
        AuthorizationPending, PollTooFast, ExpiredToken, ClaimDenied: as in RFC 8628 §3.5, each with status 400.
        InvalidScope: a scope was not granted, or the person who confirmed does not have it.
    """
    try:
        progress = await claim.poll(store, claim_token)
    except SlowDown as refused:
        raise PollTooFast(refused.detail, headers=refused.headers) from refused
    except (InvalidClaimToken, ClaimExpired, AttemptOver) as refused:
        raise ExpiredToken(refused.detail) from refused
    except AccessDenied as refused:
        raise ClaimDenied(refused.detail) from refused
    if progress.state == "pending":
        raise AuthorizationPending("the person has not confirmed yet")
    registration = progress.registration
    grant = await registrations.grant_of(store.database, registration)
    available_scopes = await tokens.scopes_of_grant(store.database, grant)
    token_response = _registration_token(store, grant, tokens.granted_scopes(scope, available_scopes))
    person = await queries.person(store.database, grant.person_id or "")
    assertion, expires_at = registrations.issue_assertion(store, registration, person.email if person else None)
    return ClaimedToken(
        token_response.access_token,
        token_response.token_type,
        token_response.expires_in,
        token_response.scope,
        assertion,
        clock.rfc3339(expires_at),
        registration.id,
    )
