"""The claim grant: polling a claim at the token endpoint, in the manner of RFC 8628 §3.5."""

from countersign.distribution.agents import registrations
from countersign.distribution.agents.schemas import ClaimedToken
from countersign.distribution.context import Store
from countersign.kernel.errors import Refused


class AuthorizationPending(Refused):
    """The person has not decided yet."""

    code = "authorization_pending"
    title = "Authorization pending"
    resolution = "Poll again after the interval."


class ExpiredToken(Refused):
    """Nothing can come of the claim token, or of its attempt, any more."""

    code = "expired_token"
    title = "Expired token"
    resolution = "Begin another attempt at the claim endpoint; if that says claim_expired, register again."


async def poll(store: Store, claim_token: str, scope: str | None) -> ClaimedToken:
    """An access token and the assertion for later ones, once the person has claimed the agent."""
    if await registrations.with_claim_token(store.database, claim_token) is None:
        raise ExpiredToken("the claim token is unknown or used up")
    raise AuthorizationPending(f"the person has not confirmed yet {scope}")
