"""Polling a claim: what an agent is told, at which pace, and for how long (agent-auth 7.5; RFC 8628 §3.5)."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from countersign.distribution.agents import attempts, registrations, rules
from countersign.distribution.agents.claim import AttemptOver
from countersign.distribution.agents.registrations import Registration
from countersign.distribution.context import Store
from countersign.distribution.identity import queries
from countersign.kernel import clock
from countersign.kernel.errors import Refused
from countersign.kernel.http.rate_limit import used_up

State: TypeAlias = Literal["pending", "claimed"]


class InvalidClaimToken(Refused):
    """No registration waits under this claim token."""

    status = 401
    code = "invalid_claim_token"
    title = "Invalid claim token"
    resolution = "Send the claim token of the registration's answer, or register again."

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers={"WWW-Authenticate": f'AgentAuth error="{self.code}"'})


class ClaimExpired(Refused):
    """The time in which the agent could be claimed is over."""

    status = 410
    code = "claim_expired"
    title = "Claim expired"
    resolution = "Register again."


class AccessDenied(Refused):
    """The person declined, or has disconnected the agent since."""

    status = 403
    code = "access_denied"
    title = "Access denied"
    resolution = "Do not ask again unless your person wants it; then register anew."


class SlowDown(Refused):
    """Polls come faster than they may; the interval has grown."""

    status = 429
    code = "slow_down"
    title = "Slow down"
    resolution = "Wait for the seconds in Retry-After before the next poll, and between later ones."


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a claim stands: `pending` for `expires_in_s` more, or `claimed`."""

    state: State
    registration: Registration
    expires_in_s: int = 0


async def poll(store: Store, claim_token: str) -> Standing:
    """Where the claim of this token stands; counted against its pace.

    Raises:
        InvalidClaimToken: unknown, or dead since ten minutes after the claim.
        SlowDown: this poll came too early, and the claim is not decided.
        ClaimExpired, AttemptOver: nothing can come of it, or not of this attempt.
        InvalidScope: the person confirmed, and does not hold a scope that the agent asked for.
        AccessDenied: the person declined or has ended the registration.
    """
    registration = await of_token(store, claim_token)
    async with store.database.transaction() as transaction:
        now = clock.now()
        if not await transaction.run(registrations.POLLED, registration.id, now):
            await transaction.run(registrations.SLOW_DOWN, registration.id, now)
            slower_s = min(60, registration.interval_s + 5)
            too_early = True
        else:
            slower_s, too_early = 0, False
    standing = await _standing(store, registration)
    if too_early and standing.state == "pending":
        raise SlowDown("polls come faster than the interval", headers=used_up(1, slower_s))
    return standing


async def of_token(store: Store, claim_token: str) -> Registration:
    """The registration of a claim token that still means something.

    Raises:
        InvalidClaimToken: unknown, or dead since ten minutes after the claim.
        ClaimExpired: the claim window is over.
    """
    found = await registrations.with_claim_token(store.database, claim_token)
    if found is None:
        raise InvalidClaimToken("the claim token is unknown")
    now = clock.now()
    if found.claimed_at is not None and now > clock.later(found.claimed_at, seconds=registrations.FETCHABLE_S):
        raise InvalidClaimToken("the claim token was used")
    if found.status == "unclaimed" and found.claim_expires_at is not None and now >= found.claim_expires_at:
        raise ClaimExpired("the registration was not claimed in time")
    return found


async def _standing(store: Store, registration: Registration) -> Standing:
    if registration.status == "claimed":
        return Standing("claimed", registration)
    attempt = await attempts.latest(store.database, registration.id)
    is_declined = attempt is not None and attempt.status == "declined"
    if registration.status in ("denied", "revoked") or is_declined:
        members = {"claim_status": "denied"}
        raise AccessDenied("the person declined, or has disconnected the agent", members=members)
    if attempt is None or attempt.is_over:
        raise AttemptOver("the link and its code are used up, or none was asked for yet")
    if attempt.confirmed_by is not None:
        roles = await queries.roles(store.database, attempt.confirmed_by)
        rules.require_held(registration.scopes, roles.values())
    return Standing("pending", registration, attempts.seconds_left(attempt))
