"""Claims of agents by people (RFC 8628, agent-auth 7.5): attempts, decisions, polling, and the notice by e-mail.

By a claim, a person confirms that a registered agent may act for them. A claim can take several attempts. Each attempt
has two links for the person. On the page "typed", the person types the code that the agent shows. The page "shown"
shows a code that the person gives to the agent.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

from countersign.kernel import clock, ids, telemetry
from countersign.kernel.clock import Instant
from countersign.kernel.database import versions
from countersign.kernel.database.port import Reader, Row, Transaction
from countersign.kernel.errors import Refused, Unavailable
from countersign.kernel.http.rate_limit import RateLimited, exhausted_headers
from countersign.kernel.mail.queue import Email
from countersign.kernel.security import secrets
from countersign.store import scopes, webhook_events
from countersign.store.auth import queries
from countersign.store.auth.agents import registrations, schemas
from countersign.store.auth.agents.registrations import Registration
from countersign.store.auth.agents.schemas import AttemptLink, Ceremony, TypedCode
from countersign.store.context import Store

Status: TypeAlias = Literal["open", "confirmed", "claimed", "declined", "ended"]
Page: TypeAlias = Literal["typed", "shown"]

MAX_TRIES = 5
# The alphabet has no vowels, so that codes form no words, and no characters that look alike (RFC 8628 §6.1).
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_TYPED_LENGTH = 8
_SHOWN_DIGITS = 6

_COLUMNS = "id, registration_id, status, typed_code, shown_code, confirmed_by, tries, created_at, expires_at"
BY_TYPED = f"SELECT {_COLUMNS} FROM claim_attempt WHERE typed_hash = $1"
BY_SHOWN = f"SELECT {_COLUMNS} FROM claim_attempt WHERE shown_hash = $1"
LATEST = f"""
    SELECT {_COLUMNS}
    FROM claim_attempt
    WHERE registration_id = $1
    ORDER BY created_at DESC, id DESC
    LIMIT 1
"""
INSERT = """
    INSERT INTO claim_attempt (id, registration_id, status, typed_hash, shown_hash, typed_code, tries, created_at,
        expires_at)
    VALUES ($1, $2, 'open', $3, $4, $5, 0, $6, $7)
"""
END_EARLIER = "UPDATE claim_attempt SET status = 'ended' WHERE registration_id = $1 AND status IN ('open', 'confirmed')"
# Count the try before comparing the code, so that concurrent tries cannot exceed the limit.
COUNT_TRY = """
    UPDATE claim_attempt SET tries = tries + 1
    WHERE id = $1 AND status IN ('open', 'confirmed') AND tries < $2 AND expires_at > $3
"""
CONFIRM = """
    UPDATE claim_attempt SET status = 'confirmed', confirmed_by = $2, shown_code = $3
    WHERE id = $1 AND expires_at > $4 AND tries < $5
        AND (status = 'open' OR (status = 'confirmed' AND confirmed_by = $2))
"""
FINISH = """
    UPDATE claim_attempt SET status = $2
    WHERE id = $1 AND status IN ('open', 'confirmed') AND expires_at > $3
"""


class ClaimAttempt(NamedTuple):
    """An attempt to claim an agent, as stored; codes are stored as MACs."""

    id: str
    registration_id: str
    status: Status
    typed_code: bytes
    shown_code: bytes | None
    confirmed_by: str | None
    tries: int
    created_at: Instant
    expires_at: Instant

    @property
    def is_over(self) -> bool:
        """Whether the attempt has ended, has expired, or has no tries left."""
        return self.status == "ended" or self.tries >= MAX_TRIES or clock.now() >= self.expires_at


@dataclass(frozen=True, slots=True)
class NewAttempt:
    """A new attempt, with its two links and the code to type. The links and the code are disclosed only once."""

    id: str
    expires_at: Instant
    typed_uri: str
    shown_uri: str
    user_code: str

    def code(self, interval_s: int) -> TypedCode:
        """Return the code and the page to type it on, in the form of RFC 8628."""
        return TypedCode(self.user_code, self.typed_uri, _seconds_until(self.expires_at), interval_s)

    def link(self) -> AttemptLink:
        """Return the link to the page that shows a code, which the person gives to the agent."""
        return AttemptLink(self.shown_uri, clock.rfc3339(self.expires_at))

    def ceremony(self, store: Store, claim_token: str, claim_ends: str, interval_s: int) -> Ceremony:
        """The `claim` member of the response to a registration."""
        typed_code = self.code(interval_s)
        return Ceremony(
            claim_token,
            claim_ends,
            f"{store.base_url}/auth/me",
            user_code=typed_code.user_code,
            verification_uri=typed_code.verification_uri,
            expires_in=typed_code.expires_in,
            interval=typed_code.interval,
            attempt=self.link(),
        )


async def begin_attempt(store: Store, transaction: Transaction, registration: Registration) -> NewAttempt:
    """Begin an attempt for a registration; links and codes of earlier attempts become invalid."""
    now = clock.now()
    ends_at = clock.later(now, seconds=store.settings.attempt_ttl_s)
    if registration.claim_expires_at is not None:
        ends_at = min(ends_at, registration.claim_expires_at)
    attempt_id = "att_" + ids.new_uuid().replace("-", "")
    typed_code, shown_code, letters = secrets.new_secret("cat"), secrets.new_secret("cat"), _random_letters()
    # Without the lock, two concurrent attempts would not see each other, and both would remain open.
    await registrations.lock(transaction, registration.id)
    await transaction.run(END_EARLIER, registration.id)
    await transaction.run(
        INSERT,
        attempt_id,
        registration.id,
        secrets.digest(typed_code),
        secrets.digest(shown_code),
        code_mac(store, attempt_id, letters),
        now,
        ends_at,
    )
    page = f"{store.root_url}/auth/claim?claim_attempt_token="
    return NewAttempt(attempt_id, ends_at, page + typed_code, page + shown_code, f"{letters[:4]}-{letters[4:]}")


async def attempt_of_link(reader: Reader, token: str) -> tuple[ClaimAttempt, Page] | None:
    """The attempt of a link, and which of its two pages the link is for."""
    digest = secrets.digest(token)
    row = await reader.fetch_one(BY_TYPED, digest)
    if row is not None:
        return _attempt(row), "typed"
    row = await reader.fetch_one(BY_SHOWN, digest)
    return None if row is None else (_attempt(row), "shown")


async def latest_attempt(reader: Reader, registration_id: str) -> ClaimAttempt | None:
    """The newest attempt of a registration."""
    row = await reader.fetch_one(LATEST, registration_id)
    return None if row is None else _attempt(row)


async def check_typed_code(store: Store, transaction: Transaction, attempt: ClaimAttempt, text: str) -> bool | None:
    """Count a try, and return whether the text is the code that the agent shows. Return None if no tries are left or
    the attempt is over."""
    if not await transaction.run(COUNT_TRY, attempt.id, MAX_TRIES, clock.now()):
        return None
    letters = "".join(letter for letter in text.upper() if letter.isalpha())
    return is_code_of_mac(store, attempt.id, letters, attempt.typed_code)


async def check_shown_code(store: Store, transaction: Transaction, attempt: ClaimAttempt, text: str) -> bool | None:
    """Count a try, and return whether the text is the code that the page showed. Return None if no tries are left or
    the attempt is over."""
    if attempt.shown_code is None or not await transaction.run(COUNT_TRY, attempt.id, MAX_TRIES, clock.now()):
        return None
    digits = "".join(letter for letter in text if letter.isdigit())
    return is_code_of_mac(store, attempt.id, digits, attempt.shown_code)


async def confirm(store: Store, transaction: Transaction, attempt: ClaimAttempt, person_id: str) -> str | None:
    """Record the person's confirmation, and return new digits, which the person gives to the agent. Return None if the
    attempt is over or another person confirmed it."""
    digits = "".join(str(byte % 10) for byte in _bytes_below(250, _SHOWN_DIGITS))
    code = code_mac(store, attempt.id, digits)
    changed_rows = await transaction.run(CONFIRM, attempt.id, person_id, code, clock.now(), MAX_TRIES)
    return digits if changed_rows else None


async def finish(transaction: Transaction, attempt: ClaimAttempt, status: Literal["claimed", "declined"]) -> bool:
    """End the attempt. If calls are concurrent, exactly one of them returns True."""
    return bool(await transaction.run(FINISH, attempt.id, status, clock.now()))


def code_mac(store: Store, attempt_id: str, code: str) -> bytes:
    """Return the MAC of a code. The MAC is stored instead of the code, so that no one can find the short code by brute
    force without the master key."""
    return store.codes.sign(f"claim\0{attempt_id}\0{code}".encode())


def is_code_of_mac(store: Store, attempt_id: str, code: str, stored_code: bytes) -> bool:
    """Whether `stored_code` is the MAC of the code. The comparison takes constant time."""
    return store.codes.verify(f"claim\0{attempt_id}\0{code}".encode(), stored_code)


def seconds_left(attempt: ClaimAttempt) -> int:
    """Whole seconds until the attempt ends."""
    return _seconds_until(attempt.expires_at)


def _seconds_until(moment: Instant) -> int:
    return max(0, (moment - clock.now()) // clock.SECOND)


def _random_letters() -> str:
    return "".join(LETTERS[byte % len(LETTERS)] for byte in _bytes_below(240, _TYPED_LENGTH))


def _bytes_below(limit: int, count: int) -> list[int]:
    """Return random bytes below a limit. If the limit is a multiple of n, all remainders of a division by n are equally
    probable."""
    numbers: list[int] = []
    while len(numbers) < count:
        numbers += [byte for byte in ids.random_bytes(2 * count) if byte < limit]
    return numbers[:count]


def _attempt(row: Row) -> ClaimAttempt:
    attempt = ClaimAttempt(*row)
    code_bytes = None if attempt.shown_code is None else bytes(attempt.shown_code)
    return attempt._replace(typed_code=bytes(attempt.typed_code), shown_code=code_bytes)


MAX_GUESSES_OF_PERSON = 20
MAX_GUESSES_OF_ADDRESS = 60


class AttemptOver(Refused):
    """The link or code is no longer valid: expired, too many wrong tries, replaced, or decided."""

    status = 410
    code = "user_code_expired"
    title = "The link or code is used up"
    resolution = "Begin another attempt: POST the claim token to /api/v1/auth/me with type service_auth and the e-mail."


class WrongAccount(Refused):
    """The agent requested the confirmation of another person."""

    status = 403
    code = "wrong_account"
    title = "Wrong account"
    resolution = "Sign in with the account that the agent named, or ignore the request."


async def count_guess(store: Store, person_id: str, address: str) -> None:
    """Count one typed code; a new attempt does not reset the limit (attack T26).

    Raises:
        RateLimited: one person or one address typed too many codes in an hour.
    """
    for key, limit in (
        (f"claim\0{person_id}", MAX_GUESSES_OF_PERSON),
        (f"claim-at\0{address}", MAX_GUESSES_OF_ADDRESS),
    ):
        quota = await store.counters.hit(key, limit, 3600)
        if not quota.allowed:
            raise RateLimited("too many codes were typed; wait before trying again", quota)


def require_named_person(registration: Registration, email: str | None) -> None:
    """Require that the registration names the person with this (proven) address.

    Raises:
        WrongAccount: the registration names another person (attack T24), or no person yet.
    """
    if registration.email is None or registration.email != email:
        raise WrongAccount("the agent requested the confirmation of another account")


async def accept(transaction: Transaction, attempt: ClaimAttempt, registration: Registration, person_id: str) -> None:
    """Claim the agent for the person, with the requested scopes. Earlier tokens of the agent become invalid.

    The caller must lock the registration (`registrations.lock`) before it changes an attempt, like `begin_attempt`.

    Raises:
        AttemptOver: the attempt was decided or replaced, or has expired; nothing changes.
        InvalidScope: the person lacks a requested scope; nothing changes.
    """
    if not await finish(transaction, attempt, "claimed"):
        raise AttemptOver("the attempt was decided, replaced or has expired")
    current_registration = await registrations.with_id(transaction, registration.id)
    if current_registration is None or current_registration.terms != registration.terms:
        # Since the person saw the page, the agent has changed the terms: the person did not agree to the new terms.
        raise AttemptOver("the registration was changed by a concurrent request")
    await bind(transaction, registration, person_id)


async def bind(transaction: Transaction, registration: Registration, person_id: str) -> None:
    """Bind a registration to the person. This function does not check that the person confirmed the registration,
    because an assertion of the person's provider can replace the confirmation.

    Raises:
        AttemptOver: the registration was claimed or has ended; nothing changes.
        InvalidScope: the person lacks a requested scope; nothing changes.
    """
    person = await queries.person(transaction, person_id)
    if person is None:
        raise AttemptOver("the account no longer exists")
    roles = await queries.roles(transaction, person_id)
    schemas.require_scopes(registration.scopes, roles.values())
    now = clock.now()
    claimed_rows = await transaction.run(
        registrations.CLAIM, registration.id, person_id, scopes.words(registration.scopes), now, person.email
    )
    if not claimed_rows:
        raise AttemptOver("the registration has ended or was claimed already")
    if registration.issuer is not None and registration.subject is not None:
        await transaction.run(registrations.DELEGATE, registration.issuer, registration.subject, person_id, now)
        bound_registration = await registrations.person_of_subject(
            transaction, registration.issuer, registration.subject
        )
        if bound_registration != person_id:
            raise AttemptOver("the provider's account was bound to another person by a concurrent request")
    await webhook_events.agent_added(transaction, registration.id, registration.scopes, roles)
    await versions.bump(transaction, "identity")
    telemetry.logger("agents").info("claim confirmed", registration=registration.id)


async def decline(transaction: Transaction, attempt: ClaimAttempt, registration: Registration) -> None:
    """Decline the agent. An anonymous agent keeps the scopes of an unclaimed agent.

    Raises:
        AttemptOver: the attempt was decided or replaced, or has expired.
    """
    await registrations.lock(transaction, registration.id)
    if not await finish(transaction, attempt, "declined"):
        raise AttemptOver("the attempt was decided, replaced or has expired")
    if registration.kind != "anonymous":
        await transaction.run(registrations.DENY, registration.id)
        await versions.bump(transaction, "identity")
    telemetry.logger("agents").info("claim declined", registration=registration.id)


State: TypeAlias = Literal["pending", "claimed"]


class InvalidClaimToken(Refused):
    """No registration with this claim token is waiting."""

    status = 401
    code = "invalid_claim_token"
    title = "Invalid claim token"
    resolution = "Send the claim token of the registration's response, or register again."

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers={"WWW-Authenticate": f'AgentAuth error="{self.code}"'})


class ClaimExpired(Refused):
    """The agent was not claimed in time."""

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
    """The client polls faster than the interval allows; the interval was increased."""

    status = 429
    code = "slow_down"
    title = "Slow down"
    resolution = "Wait for the seconds in Retry-After before the next poll, and between later ones."


@dataclass(frozen=True, slots=True)
class ClaimProgress:
    """The state of a claim: `pending` for `expires_in_s` more seconds, or `claimed`."""

    state: State
    registration: Registration
    expires_in_s: int = 0


async def poll(store: Store, claim_token: str) -> ClaimProgress:
    """Record a poll, and return the state of the claim that this token belongs to.

    Raises:
        InvalidClaimToken: the token is unknown, or its registration was claimed more than ten minutes ago.
        SlowDown: the client polled before the interval passed, and the person has not decided yet.
        ClaimExpired, AttemptOver: the claim or its current attempt has ended.
        InvalidScope: the person confirmed, but lacks a requested scope.
        AccessDenied: the person declined, or has revoked the registration.
    """
    registration = await registration_of_token(store, claim_token)
    async with store.database.transaction() as transaction:
        now = clock.now()
        if not await transaction.run(registrations.POLLED, registration.id, now):
            await transaction.run(registrations.SLOW_DOWN, registration.id, now)
            slower_s = min(60, registration.interval_s + 5)
            too_early = True
        else:
            slower_s, too_early = 0, False
    progress = await _progress(store, registration)
    if too_early and progress.state == "pending":
        raise SlowDown("polled faster than the interval allows", headers=exhausted_headers(1, slower_s))
    return progress


async def registration_of_token(store: Store, claim_token: str) -> Registration:
    """The registration of a valid claim token.

    Raises:
        InvalidClaimToken: the token is unknown, or its registration was claimed more than ten minutes ago.
        ClaimExpired: the registration was not claimed in time.
    """
    registration = await registrations.with_claim_token(store.database, claim_token)
    if registration is None:
        raise InvalidClaimToken("the claim token is unknown")
    now = clock.now()
    if registration.claimed_at is not None and now > clock.later(
        registration.claimed_at, seconds=registrations.FETCHABLE_S
    ):
        raise InvalidClaimToken("the claim token was used")
    if (
        registration.status == "unclaimed"
        and registration.claim_expires_at is not None
        and now >= registration.claim_expires_at
    ):
        raise ClaimExpired("the registration was not claimed in time")
    return registration


async def _progress(store: Store, registration: Registration) -> ClaimProgress:
    if registration.status == "claimed":
        return ClaimProgress("claimed", registration)
    attempt = await latest_attempt(store.database, registration.id)
    is_declined = attempt is not None and attempt.status == "declined"
    if registration.status in ("denied", "revoked") or is_declined:
        members = {"claim_status": "denied"}
        raise AccessDenied("the person declined, or has disconnected the agent", members=members)
    if attempt is None or attempt.is_over:
        raise AttemptOver("the link and its code are used up, or no attempt was begun")
    if attempt.confirmed_by is not None:
        roles = await queries.roles(store.database, attempt.confirmed_by)
        schemas.require_scopes(registration.scopes, roles.values())
    return ClaimProgress("pending", registration, seconds_left(attempt))


def notify_person(store: Store, registration_id: str) -> None:
    """After the response is sent, tell the agent's person by e-mail. If the queue is full, no e-mail is sent; the page
    of connected agents still lists the agent."""
    try:
        store.mail.enqueue(partial(_notice_email, store, registration_id))
    except Unavailable:
        telemetry.logger("agents").warning(
            "mail queue full: notice of a connected agent dropped", registration=registration_id
        )


async def _notice_email(store: Store, registration_id: str) -> Email | None:
    registration = await registrations.with_id(store.database, registration_id)
    person = None if registration is None else await queries.person(store.database, registration.person_id or "")
    if registration is None or person is None or registration.status != "claimed":
        return None
    name = store.settings.resource_name
    permission_lines = "\n".join(f"- {scopes.MEANING[scope]}" for scope in scopes.ALL if scope in registration.scopes)
    text = (
        f"An agent that calls itself “{registration.agent}” can act for you at {name} since "
        f"{clock.rfc3339(registration.claimed_at or clock.now())}. It registered from "
        f"{registration.address or 'a server'}.\n\n"
        f"It can:\n{permission_lines}\n\n"
        f"If you did not allow this, disconnect the agent, and set another password:\n{store.root_url}/auth/agents\n"
    )
    return Email(person.email, f"An agent can act for you at {name}", text)
