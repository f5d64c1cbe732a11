"""The claim: a person takes an agent as theirs, or turns it away; exactly one of that happens, once."""

from countersign.distribution.agents import attempts, registrations, rules
from countersign.distribution.agents.attempts import Attempt
from countersign.distribution.agents.registrations import Registration
from countersign.distribution.context import Store
from countersign.distribution.identity import queries, scopes
from countersign.distribution.webhooks import events
from countersign.kernel import clock, telemetry
from countersign.kernel.database import versions
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import Refused
from countersign.kernel.http.rate_limit import RateLimited

GUESSES_AN_HOUR = 20
GUESSES_OF_ADDRESS = 60


class AttemptOver(Refused):
    """The link or the code is used up: by its age, by wrong tries, by a newer one, or by a decision."""

    status = 410
    code = "user_code_expired"
    title = "The link or code is used up"
    resolution = "Begin another attempt: POST the claim token to /api/v1/auth/me with type service_auth and the e-mail."


class WrongAccount(Refused):
    """The agent asked for somebody else's confirmation."""

    status = 403
    code = "wrong_account"
    title = "Wrong account"
    resolution = "Sign in with the account the agent named, or let it be."


async def count_guess(store: Store, person_id: str, address: str) -> None:
    """Count one code that somebody typed; a new attempt gives no new guesses (attack T26).

    Raises:
        RateLimited: too many of one person or one address in an hour.
    """
    for key, limit in ((f"claim\0{person_id}", GUESSES_AN_HOUR), (f"claim-at\0{address}", GUESSES_OF_ADDRESS)):
        standing = await store.counters.hit(key, limit, 3600)
        if not standing.allowed:
            raise RateLimited("too many codes were typed; wait before the next", standing)


def require_own(registration: Registration, email: str | None) -> None:
    """Insist that the registration is meant for the person with this (proven) address.

    Raises:
        WrongAccount: it is not (attack T24), or names nobody yet.
    """
    if registration.email is None or registration.email != email:
        raise WrongAccount("the agent asked for the confirmation of another account")


async def accept(transaction: Transaction, attempt: Attempt, registration: Registration, person_id: str) -> None:
    """Make the agent the person's, with the scopes it asked for; what it had before is dead.

    The caller holds the registration (`registrations.hold`) before it touches an attempt, as whoever begins one does.

    Raises:
        AttemptOver: another decision, another attempt or the time came first; nothing is changed then.
        InvalidScope: the person does not hold a scope that the agent asked for; nothing is changed either.
    """
    if not await attempts.finish(transaction, attempt, "claimed"):
        raise AttemptOver("the attempt was decided, replaced or has expired")
    present = await registrations.with_id(transaction, registration.id)
    if present is None or present.named != registration.named:
        # The agent has named somebody else meanwhile, or another provider: the person did not agree to that.
        raise AttemptOver("the registration was changed meanwhile")
    await bind(transaction, registration, person_id)


async def bind(transaction: Transaction, registration: Registration, person_id: str) -> None:
    """Make a registration the person's, without a ceremony where their provider speaks for them.

    Raises:
        AttemptOver: it was claimed or has ended; nothing is changed then.
        InvalidScope: the person does not hold a scope that the agent asked for; nothing is changed either.
    """
    person = await queries.person(transaction, person_id)
    if person is None:
        raise AttemptOver("the account is no more")
    roles = await queries.roles(transaction, person_id)
    rules.require_held(registration.scopes, roles.values())
    now = clock.now()
    claimed = await transaction.run(
        registrations.CLAIM, registration.id, person_id, scopes.words(registration.scopes), now, person.email
    )
    if not claimed:
        raise AttemptOver("the registration has ended or was claimed already")
    if registration.issuer is not None and registration.subject is not None:
        await transaction.run(registrations.DELEGATE, registration.issuer, registration.subject, person_id, now)
        tied = await registrations.delegated(transaction, registration.issuer, registration.subject)
        if tied != person_id:
            raise AttemptOver("the provider's account was given to another person meanwhile")
    await events.agent_added(transaction, registration.id, registration.scopes, roles)
    await versions.bump(transaction, "identity")
    telemetry.logger("agents").info("claim confirmed", registration=registration.id)


async def decline(transaction: Transaction, attempt: Attempt, registration: Registration) -> None:
    """Turn the agent away. An anonymous one keeps what anybody may do.

    Raises:
        AttemptOver: another decision, another attempt or the time came first.
    """
    await registrations.hold(transaction, registration.id)
    if not await attempts.finish(transaction, attempt, "declined"):
        raise AttemptOver("the attempt was decided, replaced or has expired")
    if registration.kind != "anonymous":
        await transaction.run(registrations.DENY, registration.id)
        await versions.bump(transaction, "identity")
    telemetry.logger("agents").info("claim declined", registration=registration.id)
