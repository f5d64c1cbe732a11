"""Grants of agents at the token endpoint: assertions (RFC 7521, RFC 7523, ID-JAG) and claims (RFC 8628 §3.5)."""

from countersign.kernel import clock
from countersign.kernel.database.port import Reader
from countersign.kernel.errors import Refused
from countersign.store import scopes
from countersign.store.auth import queries, tokens
from countersign.store.auth.agents import claim, register, registrations, schemas
from countersign.store.auth.agents.claim import (
    AccessDenied,
    AttemptOver,
    ClaimExpired,
    InvalidClaimToken,
    SlowDown,
)
from countersign.store.auth.agents.register import Waiting
from countersign.store.auth.agents.registrations import Applicant, InvalidGrant, Registration
from countersign.store.auth.agents.schemas import ClaimedToken
from countersign.store.auth.identity_providers import id_jag
from countersign.store.auth.queries import Client, Grant
from countersign.store.auth.schemas import TokenResponse
from countersign.store.context import Store


async def own_assertion(store: Store, assertion: str, scope: str | None) -> TokenResponse:
    """An access token for an assertion of this service; it may be exchanged again until it expires.

    Raises:
        InvalidGrant: it does not hold, or its registration was claimed anew, revoked or removed since.
        InvalidScope: a scope the registration does not hold.
    """
    claims = registrations.read(store, assertion)
    grant = await queries.grant(store.database, claims.sub)
    if grant is None or not grant.is_live or grant.generation != claims.gen:
        raise InvalidGrant("the registration behind the assertion has ended or was claimed since")
    return token_of(store, grant, tokens.requested(scope, await tokens.held_through(store.database, grant)))


async def foreign_assertion(store: Store, assertion: str, client: Client, scope: str | None) -> TokenResponse:
    """An access token for a trusted provider's ID-JAG, presented by the client it was made for.

    Raises:
        InvalidGrant: the assertion does not hold, is another client's, was used, is stale, or its person has to
            confirm first, which registration offers.
        InvalidScope: a scope that it does not carry or the person does not hold.
    """
    try:
        believed = await id_jag.verified(store, assertion)
        if believed.client_id != client.id:
            raise InvalidGrant("the assertion was made for another client")
        id_jag.require_fresh(believed)
        wanted = register.asserted_scopes(believed, scope) & client.scopes
        if not wanted:
            raise tokens.InvalidScope("the client holds none of the scopes asked for")
        applicant = Applicant(schemas.name_of(client.name), "", wanted)
        outcome = await register.admit(store, believed, applicant)
    except (InvalidGrant, tokens.InvalidScope):
        raise
    except Refused as refused:
        if refused.status >= 500:
            raise
        raise InvalidGrant(refused.detail, resolution=refused.remedy) from refused
    if isinstance(outcome, Waiting):
        remedy = "Register with the assertion at /api/v1/auth/register: the person confirms there once."
        raise InvalidGrant("the person has to confirm the agent first", resolution=remedy)
    grant = await of_registration(store.database, outcome)
    granted = tokens.requested(scopes.words(wanted), await tokens.held_through(store.database, grant))
    return token_of(store, grant, granted, client_id=client.id, auth_time_s=believed.auth_time_s)


async def of_registration(reader: Reader, registration: Registration) -> Grant:
    """What a registration gives at this moment.

    Raises:
        InvalidGrant: it has ended.
    """
    grant = await queries.grant(reader, registration.id)
    if grant is None or not grant.is_live:
        raise InvalidGrant("the registration has ended")
    return grant


def token_of(
    store: Store,
    grant: Grant,
    granted: frozenset[str],
    *,
    client_id: str | None = None,
    auth_time_s: int | None = None,
) -> TokenResponse:
    """A fresh access token of a registration; of an OAuth client that presented the assertion, it is the client's and
    ends with it."""
    subject = grant.person_id or grant.id
    token, _ = tokens.issue_through(store, subject, client_id or grant.id, granted, grant, auth_time_s)
    return TokenResponse(token, "Bearer", store.settings.token_ttl_s, scopes.words(granted))


class AuthorizationPending(Refused):
    """The person has not decided yet."""

    code = "authorization_pending"
    title = "Authorization pending"
    resolution = "Poll again after the interval."


class PollTooFast(Refused):
    """Polls come faster than they may; the interval has grown."""

    code = "slow_down"
    title = "Slow down"
    resolution = "Wait for the seconds in Retry-After before the next poll, and between later ones."


class ExpiredToken(Refused):
    """Nothing can come of the claim token, or of its attempt, any more."""

    code = "expired_token"
    title = "Expired token"
    resolution = "Begin another attempt at the claim endpoint; if that says claim_expired, register again."


class ClaimDenied(Refused):
    """The person declined, or has disconnected the agent since."""

    code = "access_denied"
    title = "Access denied"
    resolution = "Do not ask again unless your person wants it."


async def poll(store: Store, claim_token: str, scope: str | None) -> ClaimedToken:
    """An access token and the assertion for later ones, once the person has claimed the agent.

    Raises:
        AuthorizationPending, PollTooFast, ExpiredToken, ClaimDenied: as RFC 8628 §3.5 has it, each with status 400.
        InvalidScope: a scope that was not granted, or that the person who confirmed does not hold.
    """
    try:
        standing = await claim.poll(store, claim_token)
    except SlowDown as refused:
        raise PollTooFast(refused.detail, headers=refused.headers) from refused
    except (InvalidClaimToken, ClaimExpired, AttemptOver) as refused:
        raise ExpiredToken(refused.detail) from refused
    except AccessDenied as refused:
        raise ClaimDenied(refused.detail) from refused
    if standing.state == "pending":
        raise AuthorizationPending("the person has not confirmed yet")
    registration = standing.registration
    grant = await of_registration(store.database, registration)
    held = await tokens.held_through(store.database, grant)
    issued = token_of(store, grant, tokens.requested(scope, held))
    person = await queries.person(store.database, grant.person_id or "")
    assertion, expires_at = registrations.issue(store, registration, person.email if person else None)
    return ClaimedToken(
        issued.access_token,
        issued.token_type,
        issued.expires_in,
        issued.scope,
        assertion,
        clock.rfc3339(expires_at),
        registration.id,
    )
