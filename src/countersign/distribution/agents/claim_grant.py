"""The claim grant: polling a claim at the token endpoint, in the manner of RFC 8628 §3.5."""

from countersign.distribution.agents import assertions, exchange, polling
from countersign.distribution.agents.claim import AttemptOver
from countersign.distribution.agents.polling import AccessDenied, ClaimExpired, InvalidClaimToken, SlowDown
from countersign.distribution.agents.schemas import ClaimedToken
from countersign.distribution.context import Store
from countersign.distribution.identity import queries, tokens
from countersign.kernel import clock
from countersign.kernel.errors import Refused


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
        standing = await polling.poll(store, claim_token)
    except SlowDown as refused:
        raise PollTooFast(refused.detail, headers=refused.headers) from refused
    except (InvalidClaimToken, ClaimExpired, AttemptOver) as refused:
        raise ExpiredToken(refused.detail) from refused
    except AccessDenied as refused:
        raise ClaimDenied(refused.detail) from refused
    if standing.state == "pending":
        raise AuthorizationPending("the person has not confirmed yet")
    registration = standing.registration
    grant = await exchange.of_registration(store.database, registration)
    held = await tokens.held_through(store.database, grant)
    issued = exchange.token_of(store, grant, tokens.requested(scope, held))
    person = await queries.person(store.database, grant.person_id or "")
    assertion, expires_at = assertions.issue(store, registration, person.email if person else None)
    return ClaimedToken(
        issued.access_token,
        issued.token_type,
        issued.expires_in,
        issued.scope,
        assertion,
        clock.rfc3339(expires_at),
        registration.id,
    )
