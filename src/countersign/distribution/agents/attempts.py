"""Attempts of the claim ceremony: two links and their codes, of which one finishes it (RFC 8628, agent-auth 7.5)."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from countersign.distribution.agents import registrations
from countersign.distribution.agents.registrations import Registration
from countersign.distribution.agents.schemas import AttemptLink, Ceremony, TypedCode
from countersign.distribution.context import Store
from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Row, Transaction
from countersign.kernel.security import secrets

Status: TypeAlias = Literal["open", "confirmed", "claimed", "declined", "ended"]
Page: TypeAlias = Literal["typed", "shown"]

TRIES = 5
# No vowels, so that no word comes up, and nothing that is mistaken for something else (RFC 8628 §6.1).
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
# Counted before the code is looked at, so that tries at the same moment cannot be more than there are.
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


class Attempt(NamedTuple):
    """One attempt as it is stored; codes are MACs."""

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
        """Whether nothing can come of it any more, by its age or its tries."""
        return self.status == "ended" or self.tries >= TRIES or clock.now() >= self.expires_at


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt just made, with what is told this once: both links and the code to type."""

    id: str
    expires_at: Instant
    typed_uri: str
    shown_uri: str
    user_code: str

    def code(self, interval_s: int) -> TypedCode:
        """The code and its page, as clients of RFC 8628 know them."""
        return TypedCode(self.user_code, self.typed_uri, _seconds_until(self.expires_at), interval_s)

    def link(self) -> AttemptLink:
        """The page that shows a code instead."""
        return AttemptLink(self.shown_uri, clock.rfc3339(self.expires_at))

    def ceremony(self, store: Store, claim_token: str, claim_ends: str, interval_s: int) -> Ceremony:
        """The whole ceremony as a registration's answer tells it."""
        typed = self.code(interval_s)
        return Ceremony(
            claim_token,
            claim_ends,
            f"{store.base_url}/auth/me",
            user_code=typed.user_code,
            verification_uri=typed.verification_uri,
            expires_in=typed.expires_in,
            interval=typed.interval,
            attempt=self.link(),
        )


async def begin(store: Store, transaction: Transaction, registration: Registration) -> Begun:
    """Another attempt for a registration; links and codes of earlier ones are dead from now on."""
    now = clock.now()
    ends = clock.later(now, seconds=store.settings.attempt_ttl_s)
    if registration.claim_expires_at is not None:
        ends = min(ends, registration.claim_expires_at)
    attempt_id = "att_" + ids.new_uuid().replace("-", "")
    typed, shown, letters = secrets.new_secret("cat"), secrets.new_secret("cat"), _letters()
    # Two attempts begun at once would otherwise not see each other, and both stay open.
    await registrations.hold(transaction, registration.id)
    await transaction.run(END_EARLIER, registration.id)
    await transaction.run(
        INSERT,
        attempt_id,
        registration.id,
        secrets.digest(typed),
        secrets.digest(shown),
        mac(store, attempt_id, letters),
        now,
        ends,
    )
    page = f"{store.root_url}/auth/claim?claim_attempt_token="
    return Begun(attempt_id, ends, page + typed, page + shown, f"{letters[:4]}-{letters[4:]}")


async def of_link(reader: Reader, token: str) -> tuple[Attempt, Page] | None:
    """The attempt a link leads to, and which of its two pages."""
    digest = secrets.digest(token)
    row = await reader.fetch_one(BY_TYPED, digest)
    if row is not None:
        return _attempt(row), "typed"
    row = await reader.fetch_one(BY_SHOWN, digest)
    return None if row is None else (_attempt(row), "shown")


async def latest(reader: Reader, registration_id: str) -> Attempt | None:
    """The newest attempt of a registration."""
    row = await reader.fetch_one(LATEST, registration_id)
    return None if row is None else _attempt(row)


async def is_typed_right(store: Store, transaction: Transaction, attempt: Attempt, text: str) -> bool | None:
    """Whether this is the code the agent shows; counts a try. None: no try is left, or the attempt is over."""
    if not await transaction.run(COUNT_TRY, attempt.id, TRIES, clock.now()):
        return None
    letters = "".join(letter for letter in text.upper() if letter.isalpha())
    return matches(store, attempt.id, letters, attempt.typed_code)


async def is_shown_right(store: Store, transaction: Transaction, attempt: Attempt, text: str) -> bool | None:
    """Whether this is the code the page showed the person; counts a try. None: no try is left, or it is over."""
    if attempt.shown_code is None or not await transaction.run(COUNT_TRY, attempt.id, TRIES, clock.now()):
        return None
    digits = "".join(letter for letter in text if letter.isdigit())
    return matches(store, attempt.id, digits, attempt.shown_code)


async def confirm(store: Store, transaction: Transaction, attempt: Attempt, person_id: str) -> str | None:
    """The person confirmed: the digits to read to the agent, another code each time. None: the attempt is over, or
    somebody else's."""
    digits = "".join(str(byte % 10) for byte in _bytes_below(250, _SHOWN_DIGITS))
    code = mac(store, attempt.id, digits)
    changed = await transaction.run(CONFIRM, attempt.id, person_id, code, clock.now(), TRIES)
    return digits if changed else None


async def finish(transaction: Transaction, attempt: Attempt, status: Literal["claimed", "declined"]) -> bool:
    """Bring the attempt to its end: exactly one of several calls gets True."""
    return bool(await transaction.run(FINISH, attempt.id, status, clock.now()))


def mac(store: Store, attempt_id: str, code: str) -> bytes:
    """What is kept of a code: without the master key its few bits cannot be searched for."""
    return store.codes.sign(f"claim\0{attempt_id}\0{code}".encode())


def matches(store: Store, attempt_id: str, code: str, kept: bytes) -> bool:
    """Whether a code is the one that was kept; compared in constant time."""
    return store.codes.verify(f"claim\0{attempt_id}\0{code}".encode(), kept)


def seconds_left(attempt: Attempt) -> int:
    """Whole seconds until the attempt ends."""
    return _seconds_until(attempt.expires_at)


def _seconds_until(moment: Instant) -> int:
    return max(0, (moment - clock.now()) // clock.SECOND)


def _letters() -> str:
    return "".join(LETTERS[byte % len(LETTERS)] for byte in _bytes_below(240, _TYPED_LENGTH))


def _bytes_below(limit: int, count: int) -> list[int]:
    """Random bytes below a limit, so that their remainders are equally likely."""
    found: list[int] = []
    while len(found) < count:
        found += [byte for byte in ids.random_bytes(2 * count) if byte < limit]
    return found[:count]


def _attempt(row: Row) -> Attempt:
    attempt = Attempt(*row)
    shown = None if attempt.shown_code is None else bytes(attempt.shown_code)
    return attempt._replace(typed_code=bytes(attempt.typed_code), shown_code=shown)
